//! A way to learn that all processes of a program are gone.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anemone_testing::wait_until;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::fifo;

/// A FIFO that a program has open for writing, so that its end is the program's.
pub(crate) struct Lifeline(File);

impl Lifeline {
    pub(crate) fn open(path: &Path) -> Self {
        fifo(path);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Self(openat(CWD, path, flags, Mode::empty()).unwrap().into())
    }

    /// Waits until no process has it open. It must have been open before.
    pub(crate) fn cut(self) {
        self.cut_after("its end");
    }

    /// Waits as [`cut`](Self::cut) does, and names what came before in a failure.
    pub(crate) fn cut_after(mut self, what: &str) {
        let left = format!("a process is left after {what}");
        wait_until(&left, || matches!(self.0.read(&mut [0]), Ok(0)));
    }
}
