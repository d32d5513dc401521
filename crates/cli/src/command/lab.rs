//! `anemone lab`: measures, until it is done or the user has enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use anemone_lab::lab::{self, InvalidRun, Options};

use super::{EndSignals, runtime};

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    if !options.can_stop() {
        // A signal ends it.
        return lab::run(options, &Arc::default());
    }
    let runtime = runtime()?;
    let mut signals = EndSignals::listen(&runtime)?;
    let (stop, signal) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI32::new(0)));
    let (stopped, came) = (Arc::clone(&stop), Arc::clone(&signal));
    thread::spawn(move || {
        let first = runtime.block_on(signals.next());
        came.store(first.as_raw_value(), Ordering::Relaxed);
        stopped.store(true, Ordering::Relaxed);
        // The second signal does not wait for the sample that is begun.
        let second = runtime.block_on(signals.next());
        std::process::exit(128 + second.as_raw_value());
    });
    let measured = lab::run(options, &stop);
    let signal = signal.load(Ordering::Relaxed);
    if signal != 0 && measured.as_ref().err().is_none_or(|error| error.is::<InvalidRun>()) {
        // What was measured is written.
        std::process::exit(128 + signal);
    }
    measured
}
