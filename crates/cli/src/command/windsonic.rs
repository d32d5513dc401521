//! `anemone windsonic`: emulates an instrument.

use anemone_sources::status::chain;
use anemone_sources::windsonic::emulate::{Emulator, EmulatorOptions, Settings};
use anyhow::Context;

use super::{EndSignals, runtime};
use crate::args;
use crate::output::announce;

pub(crate) fn run(args: args::Windsonic) -> anyhow::Result<()> {
    let settings = Settings {
        unit: args.unit,
        rate: args.rate,
        format: args.mode.into(),
        ..Settings::default()
    };
    let options = EmulatorOptions {
        settings,
        seed: args.seed,
        replay: args.replay,
        noise: args.noise,
        link: args.link,
    };
    let runtime = runtime()?;
    // A closed terminal must not leave the link behind.
    let mut signals = EndSignals::listen(&runtime)?.and_hangup(&runtime)?;
    let emulator = Emulator::open(options).context("cannot emulate an instrument")?;
    if let Some(left_out) = emulator.left_out() {
        let (count, why) = (left_out.count, chain(&left_out.first));
        let lines = if count == 1 { "line" } else { "lines" };
        tracing::warn!("replaying without {count} {lines} of the recording; the first: {why}");
    }
    announce(&emulator.path().display().to_string())?;
    if let Some(link) = emulator.link() {
        tracing::info!("also at {}", link.display());
    }
    runtime.block_on(async {
        tokio::select! {
            ended = emulator.run() => match ended.context("the pseudo-terminal failed")? {},
            _ = signals.next() => Ok(()),
        }
    })
}
