//! `anemone serve`: sources, topics and the server that offers them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{
    DataDir, DataOptions, Epoch, Fsync, Hub, Retention, Storage, Topic, TopicOptions,
};
use anemone_server::{Options, PublishRight, Server, Tls, TopicRule, TopicRules};
use anemone_sources::windsonic::emulate::{self, Emulator};
use anemone_sources::{host, stdin, windsonic};
use anyhow::Context;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::SignalKind;

use super::{EndSignals, announce, runtime};
use crate::args;

/// Statuses change seldom and are all worth keeping for a day.
const STATUS_RETENTION: Retention =
    Retention { events_max: 1000, bytes_max: 1 << 20, age_max: Duration::from_secs(24 * 3600) };

/// What `--demo` keeps of each topic that is published to: 100,000 events of up to 1.2 KB on average.
const SCRATCH_RETENTION: Retention = Retention {
    events_max: 100_000,
    bytes_max: 128 << 20,
    age_max: Duration::from_secs(24 * 3600),
};
/// Most of those topics. It is programs on this very machine that fill them.
const SCRATCH_TOPICS_MAX: usize = 1000;

pub(crate) fn run(args: args::Serve) -> anyhow::Result<()> {
    raise_descriptor_limit();
    let runtime = runtime()?;
    let mut signals = EndSignals::listen(&runtime)?;
    let hub = open_hub(&args)?;
    let host = create(&hub, "host", in_memory(Retention::default()))?;
    let instrument = Instrument::open(&args, &hub)?;
    let input = args.stdin.as_deref().map(|name| Input::create(&hub, name)).transpose()?;
    let tls = tls(&args)?;

    let mut options = Options::new(args.listen);
    options.tcp = args.tcp;
    options.tcp_echo = args.tcp_echo;
    options.threads = args.threads;
    options.allowed_origins = args.allowed_origins;
    options.limits.connections_max = args.connections_max.get();
    options.tls = tls.clone();
    options.topics = topics(args.demo)?;
    let server = Server::bind(options, hub.clone())
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let running = server.start().context("cannot start to serve")?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    announce(&format!("listening on {scheme}://{}", running.local_addr()))?;
    if let Some(tls) = tls.filter(|_| args.tls_dev) {
        tell_how_to_trust(&tls, running.local_addr());
    }
    if let Some(address) = running.tcp_addr() {
        announce(&format!("tcp on {address}"))?;
    }
    if let Some(address) = running.tcp_echo_addr() {
        announce(&format!("tcp echo on {address}"))?;
    }

    runtime.block_on(async {
        tokio::select! {
            never = host::run(host, host::INTERVAL_DEFAULT) => match never {},
            ended = instrument.run() => match ended? {},
            never = Input::run(input) => match never {},
            _ = signals.next() => anyhow::Ok(()),
        }
    })?;
    tracing::info!("stopping");
    runtime.block_on(async {
        let stopped = tokio::task::spawn_blocking(move || {
            running.stop();
            if let Err(error) = hub.close() {
                tracing::error!(%error, "not all that was published is on the disk");
            }
        });
        tokio::select! {
            ended = stopped => Ok(ended?),
            again = signals.next() => end_at_once(again),
        }
    })
}

/// Asked a second time: connections that are still closing are cut off. The status is the one a
/// shell gives for this signal.
fn end_at_once(signal: SignalKind) -> ! {
    tracing::info!("ending at once");
    std::process::exit(128 + signal.as_raw_value())
}

/// What to speak TLS with, if it is to be spoken.
fn tls(args: &args::Serve) -> anyhow::Result<Option<Tls>> {
    Ok(match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::from_files(certificate, key)?),
        _ if args.tls_dev => Some(Tls::for_localhost()?),
        _ => None,
    })
}

/// No file is needed for it: the key's digest says which one it is.
fn tell_how_to_trust(tls: &Tls, address: SocketAddr) {
    let (fingerprint, pin) = (tls.fingerprint(), tls.public_key_pin());
    tracing::info!("development certificate, SHA-256 {fingerprint}");
    tracing::info!(
        "trust exactly this one: curl --insecure --pinnedpubkey 'sha256//{pin}' https://{address}/clock"
    );
    tracing::info!("or: chromium --ignore-certificate-errors-spki-list={pin} https://{address}/");
}

/// What clients may publish to: with `--demo`, `scratch-*` from this machine.
fn topics(is_demo: bool) -> anyhow::Result<TopicRules> {
    let scratch = TopicRule {
        publish: PublishRight::Loopback,
        retention: SCRATCH_RETENTION,
        topics_max: SCRATCH_TOPICS_MAX,
        ..TopicRule::new("scratch-*".parse()?)
    };
    Ok(TopicRules::new(is_demo.then_some(scratch))?)
}

/// The topics: in memory, or with `--data` on the disk, those that are there included.
fn open_hub(args: &args::Serve) -> anyhow::Result<Hub> {
    let epoch = Epoch::from_bits(getrandom::u64().context("no random bytes for an epoch")?);
    let Some(path) = &args.data else { return Ok(Hub::new(epoch)) };
    let fsync = match args.fsync {
        args::Fsync::Always => Fsync::Always,
        args::Fsync::Interval => Fsync::default(),
        args::Fsync::Never => Fsync::Never,
    };
    let data = DataDir::open(path, DataOptions { fsync, ..DataOptions::default() })?;
    Ok(Hub::with_data(epoch, data)?)
}

/// A topic of our own: one that is on the disk already goes on.
fn create(hub: &Hub, name: &str, options: impl Into<TopicOptions>) -> anyhow::Result<Arc<Topic>> {
    Ok(hub.ensure(name.parse()?, options)?)
}

/// For what is worth nothing after a restart.
fn in_memory(retention: Retention) -> TopicOptions {
    TopicOptions { storage: Storage::Memory, ..retention.into() }
}

/// Standard input as a source.
struct Input {
    lines: Arc<Topic>,
    status: Arc<Topic>,
}

impl Input {
    fn create(hub: &Hub, name: &str) -> anyhow::Result<Self> {
        let lines = create(hub, name, Retention::default())?;
        Ok(Self {
            lines,
            status: create(hub, &format!("{name}.status"), in_memory(STATUS_RETENTION))?,
        })
    }

    /// The server goes on when the input has ended.
    async fn run(input: Option<Self>) -> Infallible {
        if let Some(Self { lines, status }) = input {
            stdin::run(stdin::Options::default(), lines, status).await;
        }
        std::future::pending().await
    }
}

/// The wind sensor, if there is one to read.
enum Instrument {
    None,
    Serial(Sensor),
    /// Its own emulator, which it reads as it would any other.
    Emulated(Box<Emulator>, Sensor),
}

struct Sensor {
    options: windsonic::Options,
    wind: Arc<Topic>,
    status: Arc<Topic>,
}

impl Instrument {
    fn open(args: &args::Serve, hub: &Hub) -> anyhow::Result<Self> {
        if args.demo {
            let settings = emulate::Settings { unit: args.unit, ..emulate::Settings::default() };
            let options = emulate::Options { settings, ..emulate::Options::default() };
            let emulator = Emulator::open(options).context("cannot emulate an instrument")?;
            tracing::info!("an emulated WindSonic is at {}", emulator.path().display());
            let mode = windsonic::Mode::Configure;
            let sensor = Sensor::create(hub, emulator.path().to_owned(), args, mode)?;
            return Ok(Self::Emulated(Box::new(emulator), sensor));
        }
        let Some(path) = &args.serial else {
            tracing::warn!(
                "no sensor: start with --demo, or with --serial and a device, to have /topics/wind"
            );
            return Ok(Self::None);
        };
        let mode = match (args.configure, args.polled) {
            (true, _) => windsonic::Mode::Configure,
            (false, true) => windsonic::Mode::Polled,
            (false, false) => windsonic::Mode::Listen,
        };
        Ok(Self::Serial(Sensor::create(hub, path.clone(), args, mode)?))
    }

    async fn run(self) -> anyhow::Result<Infallible> {
        match self {
            Self::None => Ok(std::future::pending().await),
            Self::Serial(sensor) => Ok(sensor.run().await),
            Self::Emulated(emulator, sensor) => tokio::select! {
                ended = emulator.run() => ended.context("the emulated instrument failed"),
                never = sensor.run() => match never {},
            },
        }
    }
}

impl Sensor {
    fn create(
        hub: &Hub,
        path: PathBuf,
        args: &args::Serve,
        mode: windsonic::Mode,
    ) -> anyhow::Result<Self> {
        let wind = create(hub, "wind", Retention::default())?;
        let status = create(hub, "wind.status", in_memory(STATUS_RETENTION))?;
        let options = windsonic::Options {
            baud: args.baud,
            unit: args.unit,
            mode,
            ..windsonic::Options::new(path)
        };
        Ok(Self { options, wind, status })
    }

    async fn run(self) -> Infallible {
        windsonic::run(self.options, self.wind, self.status).await
    }
}

/// Every connection takes a descriptor, and the default limit is often 1,024.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit on open files");
    }
}
