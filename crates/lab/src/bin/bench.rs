//! `bench`: measures the cost of a server beside a bare TCP echo. See `bench --help`.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anemone_lab::bench::{BenchOptions, run};
use clap::Parser as _;
use tokio::runtime;

/// The exit status after Ctrl-C.
const INTERRUPTED: i32 = 130;

fn main() -> anyhow::Result<()> {
    let options = BenchOptions::parse();
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = Arc::clone(&stop);
    thread::spawn(move || {
        let ctrl_c = || runtime.block_on(tokio::signal::ctrl_c());
        // Without signals, Ctrl-C ends the program as ever.
        if ctrl_c().is_ok() {
            asked.store(true, Ordering::Relaxed);
            // The second signal does not wait for the sample that is begun.
            let _ = ctrl_c();
            process::exit(INTERRUPTED);
        }
    });
    run(&options, &stop)?;
    if stop.load(Ordering::Relaxed) {
        process::exit(INTERRUPTED);
    }
    Ok(())
}
