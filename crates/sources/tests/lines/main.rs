//! The sources that publish lines, end to end: real programs, real files, a real standard input.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod alone;
mod disk;
mod exec;
mod file;
mod lifeline;
mod outliving;
mod place;
mod program;
mod stdin;

use std::path::Path;

/// A FIFO, which is how a test and a program wait for each other.
fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// Lets programs have a guard, although the `main` of tests is not theirs.
fn use_guard() {
    anemone_sources::exec::guard_with(env!("CARGO_BIN_EXE_anemone-guard"));
}
