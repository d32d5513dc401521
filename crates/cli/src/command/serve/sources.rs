//! The running sources: each is a task, until it ends or all are stopped.

use std::pin::Pin;
use std::sync::Arc;

use anemone_hub::{Hub, Topic};
use anemone_sources::windsonic::emulate::{self, Emulator};
use anemone_sources::{exec, file, host, serial_lines, stdin, windsonic};
use anyhow::{Context, anyhow};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::{Kind, Part, Source};

pub(super) struct Sources {
    stop: watch::Sender<bool>,
    running: JoinSet<anyhow::Result<()>>,
}

/// The work of a source, until it is over.
type Run = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

impl Sources {
    /// Starts all sources, within a runtime. Their topics must exist.
    pub(super) fn start(sources: &[Source], hub: &Hub) -> anyhow::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        for source in sources {
            running.spawn(run(source, hub, stopped.clone())?);
        }
        Ok(Self { stop, running })
    }

    /// Waits until a source fails, which happens only if it cannot continue. The end of a source is not a failure.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = flatten(ended) {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Stops all sources, and waits for programs to end: at most their grace period and a second.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        let mut all = Ok(());
        while let Some(ended) = self.running.join_next().await {
            all = all.and(flatten(ended));
        }
        all
    }
}

fn flatten(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> anyhow::Result<()> {
    ended.context("a source panicked")?
}

fn run(source: &Source, hub: &Hub, mut stopped: watch::Receiver<bool>) -> anyhow::Result<Run> {
    let topic = |part: Part| {
        let name = source.topics().into_iter().find(|(_, of)| *of == part).map(|(name, _)| name);
        let topic = name.and_then(|name| hub.topic(&name));
        topic.ok_or_else(|| anyhow!("there is no topic for source {}", *source.topic))
    };
    let events = topic(Part::Events)?;
    let stop = async move {
        // A dropped sender means a stop, too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let run: Run = match source.kind.clone() {
        Kind::Exec(options, _) => {
            let mut options = *options;
            if let Ok(stderr) = topic(Part::Stderr) {
                options.stderr = exec::Stderr::Topic(stderr);
            }
            let status = topic(Part::Status)?;
            // It ends its program itself.
            return Ok(Box::pin(async move {
                exec::run(options, events, status, stop).await;
                Ok(())
            }));
        }
        Kind::Serial(options) => {
            let status = topic(Part::Status)?;
            Box::pin(async move { match windsonic::run(options.value, events, status).await {} })
        }
        Kind::SerialLines(options) => {
            let status = topic(Part::Status)?;
            Box::pin(async move { match serial_lines::run(options.value, events, status).await {} })
        }
        Kind::File(options) => {
            let status = topic(Part::Status)?;
            Box::pin(async move { match file::run(options, events, status).await {} })
        }
        Kind::Stdin(options) => {
            let status = topic(Part::Status)?;
            // It publishes everything that was written until now.
            return Ok(Box::pin(async move {
                stdin::run(options, events, status, stop).await;
                Ok(())
            }));
        }
        Kind::Host(interval) => Box::pin(async move { match host::run(events, interval).await {} }),
        Kind::Demo(unit) => demo(unit, events, topic(Part::Status)?)?,
    };
    Ok(Box::pin(async move {
        tokio::select! {
            ended = run => ended,
            () = stop => Ok(()),
        }
    }))
}

/// Runs an emulator, and reads it like any other instrument.
fn demo(unit: windsonic::UnitId, wind: Arc<Topic>, status: Arc<Topic>) -> anyhow::Result<Run> {
    let settings = emulate::Settings { unit, ..emulate::Settings::default() };
    let options = emulate::EmulatorOptions { settings, ..emulate::EmulatorOptions::default() };
    let emulator = Emulator::open(options).context("cannot emulate an instrument")?;
    tracing::info!("emulating a WindSonic at {}", emulator.path().display());
    let mode = windsonic::Mode::Configure;
    let options = windsonic::WindsonicOptions {
        unit,
        mode,
        ..windsonic::WindsonicOptions::new(emulator.path())
    };
    Ok(Box::pin(async move {
        tokio::select! {
            ended = emulator.run() => match ended.context("the emulated instrument failed")? {},
            never = windsonic::run(options, wind, status) => match never {},
        }
    }))
}
