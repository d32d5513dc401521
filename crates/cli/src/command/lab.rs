//! `anemone lab`: measures, until it is done or the user has enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anemone_lab::lab::{self, Options};

use super::{EndSignals, runtime};

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let mut signals = EndSignals::listen(&runtime)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    thread::spawn(move || {
        runtime.block_on(signals.next());
        stopped.store(true, Ordering::Relaxed);
    });
    lab::run(options, &stop)
}
