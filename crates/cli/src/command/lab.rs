//! `anemone lab`: measures, until it is done or the user has enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anemone_lab::lab::{self, Options};

use super::{EndSignals, runtime};

/// The status of a program that was ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let mut signals = EndSignals::listen(&runtime)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    thread::spawn(move || {
        runtime.block_on(signals.next());
        stopped.store(true, Ordering::Relaxed);
        // Who asks again does not wait for what is being measured.
        runtime.block_on(signals.next());
        std::process::exit(INTERRUPTED);
    });
    lab::run(options, &stop)
}
