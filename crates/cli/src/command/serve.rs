//! `anemone serve`: sources, topics and the server that offers them.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Epoch, Hub, Retention, Topic};
use anemone_server::{Options, Server};
use anemone_sources::windsonic::emulate::{self, Emulator};
use anemone_sources::{host, windsonic};
use anyhow::Context;
use rustix::process::{Resource, getrlimit, setrlimit};

use super::{announce, asked_to_end, runtime};
use crate::args;

/// Statuses change seldom and are all worth keeping for a day.
const STATUS_RETENTION: Retention =
    Retention { events_max: 1000, bytes_max: 1 << 20, age_max: Duration::from_secs(24 * 3600) };

pub(crate) fn run(args: args::Serve) -> anyhow::Result<()> {
    raise_descriptor_limit();
    let hub = Hub::new(Epoch::from_bits(getrandom::u64().context("no random bytes for an epoch")?));
    let host = create(&hub, "host", Retention::default())?;
    let instrument = Instrument::open(&args, &hub)?;

    let mut options = Options::new(args.listen);
    options.tcp_echo = args.tcp_echo;
    options.threads = args.threads;
    options.allowed_origins = args.allowed_origins;
    options.limits.connections_max = args.connections_max.get();
    let server =
        Server::bind(options, hub).with_context(|| format!("cannot listen on {}", args.listen))?;
    let running = server.start().context("cannot start to serve")?;
    announce(&format!("listening on http://{}", running.local_addr()))?;
    if let Some(address) = running.tcp_echo_addr() {
        announce(&format!("tcp echo on {address}"))?;
    }

    runtime()?.block_on(async {
        tokio::select! {
            never = host::run(host, host::INTERVAL_DEFAULT) => match never {},
            ended = instrument.run() => match ended? {},
            asked = asked_to_end() => asked,
        }
    })?;
    tracing::info!("stopping");
    running.stop();
    Ok(())
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
