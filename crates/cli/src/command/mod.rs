//! One file for each command.

pub(crate) mod serve;
pub(crate) mod windsonic;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for Ctrl-C or a polite request to end.
async fn asked_to_end() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// A runtime for sources, on this thread.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Prints a line that a program may wait for; nothing else goes to standard output.
fn announce(line: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
