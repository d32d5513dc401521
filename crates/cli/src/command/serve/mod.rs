//! `anemone serve`: sources, topics and the server that offers them.

pub(crate) mod descriptors;
mod listen;
mod messages;
mod sources;

use anemone_hub::{DataDir, DataOptions, Epoch, Hub, Storage};
use anemone_server::Running;
use anyhow::Context;
use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

pub(crate) use self::listen::{cannot_write, refuse_other_contents, tls};
use self::messages::DemoMessages;
use self::sources::Sources;
use super::missing::run_missing;
use super::{EndSignals, runtime};
use crate::config::{Config, Kind, files};
use crate::log;

pub(crate) fn run(config: &Config) -> anyhow::Result<()> {
    for warning in files::check(config)? {
        tracing::warn!("{warning}");
    }
    for warning in config.runs.iter().filter_map(run_missing) {
        tracing::warn!("{warning}");
    }
    let config = &descriptors::within(config)?;
    let runtime = runtime()?;
    let mut signals = EndSignals::listen(&runtime)?;
    survive_file_size_limit(&runtime)?;
    let hub = open_hub(config)?;
    let messages = DemoMessages::open(&hub, config)?;
    create_topics(&hub, config)?;
    let running = listen::start(config, &hub, messages)?;
    listen::print_topics(config, &running);
    let mut sources = {
        let _entered = runtime.enter();
        Sources::start(&config.sources, &hub)?
    };
    let ended = runtime.block_on(end(sources.failed(), running.failed(), signals.next()));
    let stopped = stop(&runtime, &mut signals, sources, running, hub);
    if let (Err(_), Err(error)) = (&ended, &stopped) {
        // The reason for the end is reported last; this is another error.
        tracing::error!("{error:#}");
    }
    ended.and(stopped)
}

/// A thread of the server, or an essential task, panicked.
#[derive(Debug, thiserror::Error)]
#[error("a thread of the server panicked; the lines above say where")]
struct Panicked;

/// Waits for a reason to end: a failure or a request.
async fn end<S>(
    source_failed: impl Future<Output = anyhow::Error>,
    panicked: impl Future<Output = ()>,
    asked: impl Future<Output = S>,
) -> anyhow::Result<()> {
    tokio::select! {
        failed = source_failed => Err(failed),
        () = panicked => Err(Panicked.into()),
        _ = asked => Ok(()),
    }
}

/// Stops the sources and the server, within the grace periods of programs and clients, and then the hub.
fn stop(
    runtime: &Runtime,
    signals: &mut EndSignals,
    sources: Sources,
    running: Running,
    hub: Hub,
) -> anyhow::Result<()> {
    tracing::info!("stopping");
    let stopped = async {
        // A program's last output is still published, so the hub is closed last.
        let (ended, _) = tokio::join!(sources.stop(), running.stop());
        let closed = spawn_blocking(move || hub.close()).await?;
        closed.context("some published events are not on the disk")?;
        ended
    };
    runtime.block_on(async {
        tokio::select! {
            ended = stopped => ended,
            again = signals.next() => end_at_once(again),
        }
    })
}

/// Ends at once after a second request: open connections are cut, and programs that ignore SIGTERM are left to their
/// guards. The status is the one that a shell reports for this signal.
fn end_at_once(signal: SignalKind) -> ! {
    tracing::info!("stopping immediately");
    log::flush();
    std::process::exit(128 + signal.as_raw_value())
}

/// Opens the topics: in memory, or in the data directory with the existing ones.
fn open_hub(config: &Config) -> anyhow::Result<Hub> {
    let epoch = Epoch::random().context("cannot get random bytes for an epoch")?;
    let hub = match &config.data.dir {
        None => Hub::new(epoch),
        Some(path) => {
            let cannot = || format!("cannot store topics in {}", path.display());
            let bytes_max = config.shared_bytes_max(Storage::Data);
            let options = DataOptions { bytes_max, ..config.data.options() };
            let data = DataDir::open(&path.value, options).with_context(cannot)?;
            Hub::with_data(epoch, data).with_context(cannot)?
        }
    };
    hub.keep_in_memory(config.shared_bytes_max(Storage::Memory));
    Ok(hub)
}

/// Creates the topics that are declared by name. One that is on disk already is kept.
fn create_topics(hub: &Hub, config: &Config) -> anyhow::Result<()> {
    for rule in config.rules()?.iter() {
        if let Some(name) = rule.topics.name() {
            hub.ensure(name.clone(), rule.options())?;
        }
    }
    if makes_no_topics(config) && hub.topics_after("", None, 1).is_empty() {
        tracing::warn!("{NO_TOPICS}");
    }
    Ok(())
}

pub(crate) const NO_TOPICS: &str = "no topics, and nothing to create any: use --exec, --stdin, --file, \
                                    --serial-lines, --serial, --run or --demo, or --config with a file";

/// Returns true if all possible topics exist on disk already.
pub(crate) fn makes_no_topics(config: &Config) -> bool {
    let is_wanted = |kind: &Kind| !matches!(kind, Kind::Host(_));
    config.topics.is_empty()
        && config.runs.is_empty()
        && !config.sources.iter().any(|source| is_wanted(&source.kind))
}

/// Makes a write beyond the limit on file sizes (RLIMIT_FSIZE) fail like any other without space. By default its
/// signal ends the process; with a listener for the signal, it does not.
fn survive_file_size_limit(runtime: &Runtime) -> anyhow::Result<()> {
    let _entered = runtime.enter();
    let _heard = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;
    use crate::exit::Exit;

    #[tokio::test]
    async fn a_thread_that_panics_is_why_it_ends_and_its_exit_status() {
        let error = end(pending(), ready(()), pending::<()>()).await.unwrap_err();
        let said = "a thread of the server panicked; the lines above say where";
        assert_eq!((error.to_string().as_str(), Exit::of(&error)), (said, Exit::Failed));
        assert!(end(pending(), pending(), ready(())).await.is_ok(), "somebody asked");
    }
}
