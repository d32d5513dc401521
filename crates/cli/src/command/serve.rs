//! `anemone serve`: sources, topics and the server that offers them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Epoch, Hub, Retention, Topic};
use anemone_server::{Options, Server, Tls};
use anemone_sources::windsonic::emulate::{self, Emulator};
use anemone_sources::{host, windsonic};
use anyhow::Context;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::SignalKind;

use super::{EndSignals, announce, runtime};
use crate::args;

/// Statuses change seldom and are all worth keeping for a day.
const STATUS_RETENTION: Retention =
    Retention { events_max: 1000, bytes_max: 1 << 20, age_max: Duration::from_secs(24 * 3600) };

pub(crate) fn run(args: args::Serve) -> anyhow::Result<()> {
    raise_descriptor_limit();
    let runtime = runtime()?;
    let mut signals = EndSignals::listen(&runtime)?;
    let hub = Hub::new(Epoch::from_bits(getrandom::u64().context("no random bytes for an epoch")?));
    let host = create(&hub, "host", Retention::default())?;
    let instrument = Instrument::open(&args, &hub)?;
    let tls = tls(&args)?;

    let mut options = Options::new(args.listen);
    options.tcp_echo = args.tcp_echo;
    options.threads = args.threads;
    options.allowed_origins = args.allowed_origins;
    options.limits.connections_max = args.connections_max.get();
    options.tls = tls.clone();
    let server =
        Server::bind(options, hub).with_context(|| format!("cannot listen on {}", args.listen))?;
    let running = server.start().context("cannot start to serve")?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    announce(&format!("listening on {scheme}://{}", running.local_addr()))?;
    if let Some(tls) = tls.filter(|_| args.tls_dev) {
        tell_how_to_trust(&tls, running.local_addr());
    }
    if let Some(address) = running.tcp_echo_addr() {
        announce(&format!("tcp echo on {address}"))?;
    }

    runtime.block_on(async {
        tokio::select! {
            never = host::run(host, host::INTERVAL_DEFAULT) => match never {},
            ended = instrument.run() => match ended? {},
            _ = signals.next() => anyhow::Ok(()),
        }
    })?;
    tracing::info!("stopping");
    runtime.block_on(async {
        let stopped = tokio::task::spawn_blocking(|| running.stop());
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

fn create(hub: &Hub, name: &str, retention: Retention) -> anyhow::Result<Arc<Topic>> {
    Ok(hub.create(name.parse()?, retention)?)
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
        let status = create(hub, "wind.status", STATUS_RETENTION)?;
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
