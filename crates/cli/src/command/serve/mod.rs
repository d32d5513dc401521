//! `anemone serve`: sources, topics and the server that offers them.

mod listen;
mod sources;

use anemone_hub::{DataDir, Epoch, Hub};
use anemone_server::Running;
use anyhow::Context;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::signal::unix::SignalKind;
use tokio::task::spawn_blocking;

pub(crate) use self::listen::tls;
use self::sources::Sources;
use super::{EndSignals, runtime};
use crate::config::{Config, Kind};

pub(crate) fn run(config: &Config) -> anyhow::Result<()> {
    raise_descriptor_limit();
    let runtime = runtime()?;
    let mut signals = EndSignals::listen(&runtime)?;
    let hub = open_hub(config)?;
    create_topics(&hub, config)?;
    let running = listen::start(config, &hub)?;
    let mut sources = {
        let _entered = runtime.enter();
        Sources::start(&config.sources, &hub)?
    };
    let ended = runtime.block_on(async {
        tokio::select! {
            failed = sources.failed() => Err(failed),
            _ = signals.next() => Ok(()),
        }
    });
    let stopped = stop(&runtime, &mut signals, sources, running, hub);
    if let (Err(_), Err(error)) = (&ended, &stopped) {
        // Why it had to end is told last; this is another thing.
        tracing::error!("{error:#}");
    }
    ended.and(stopped)
}

/// Ends the sources and the server, which takes as long as programs and clients have grace, and then the
/// hub.
fn stop(
    runtime: &Runtime,
    signals: &mut EndSignals,
    sources: Sources,
    running: Running,
    hub: Hub,
) -> anyhow::Result<()> {
    tracing::info!("stopping");
    let stopped = async {
        // What a program says as it ends is still published, so the hub is closed last.
        let server = spawn_blocking(move || running.stop());
        let (ended, server) = tokio::join!(sources.stop(), server);
        let closed = spawn_blocking(move || hub.close()).await?;
        closed.context("not all that was published is on the disk")?;
        server?;
        ended
    };
    runtime.block_on(async {
        tokio::select! {
            ended = stopped => ended,
            again = signals.next() => end_at_once(again),
        }
    })
}

/// Asked a second time: connections that are still closing are cut off, and programs that do not heed
/// SIGTERM are left behind with what ends them after their grace. The status is the one a shell gives for
/// this signal.
fn end_at_once(signal: SignalKind) -> ! {
    tracing::info!("ending at once");
    std::process::exit(128 + signal.as_raw_value())
}

/// The topics: in memory, or in the data directory, those that are there included.
fn open_hub(config: &Config) -> anyhow::Result<Hub> {
    let epoch = Epoch::from_bits(getrandom::u64().context("no random bytes for an epoch")?);
    let Some(path) = &config.data.dir else { return Ok(Hub::new(epoch)) };
    let cannot = || format!("cannot keep topics in {}", path.display());
    let data = DataDir::open(&path.value, config.data.options()).with_context(cannot)?;
    Hub::with_data(epoch, data).with_context(cannot)
}

/// Those that have a name from the start. One that is on the disk already goes on.
fn create_topics(hub: &Hub, config: &Config) -> anyhow::Result<()> {
    for rule in config.rules()?.iter() {
        if let Some(name) = rule.topics.name() {
            hub.ensure(name.clone(), rule.options())?;
        }
    }
    let is_wanted = |kind: &Kind| !matches!(kind, Kind::Host(_));
    if !config.sources.iter().any(|source| is_wanted(&source.kind)) && config.topics.is_empty() {
        tracing::warn!(
            "no sources, and so no topics: start with --demo, with --host, or with --config and a file"
        );
    }
    Ok(())
}

/// Every connection takes a descriptor, and the default limit is often 1,024.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
}
