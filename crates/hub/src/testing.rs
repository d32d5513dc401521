//! What tests share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Batch, Data, NewEvent, Page, UnixTime};

/// A directory of its own for a test, removed when dropped.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("anemone-hub-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // One of a process before, which had the same id and was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Seconds after a moment in 2026.
pub(crate) fn at(seconds: u64) -> UnixTime {
    UnixTime::from_micros((1_789_000_000 + seconds) * 1_000_000)
}

/// One event for each of these numbers, at this time.
pub(crate) fn batch(time: UnixTime, numbers: impl IntoIterator<Item = u64>) -> Batch {
    let event = |number| NewEvent { time, data: Data::json(&number).unwrap() };
    Batch::new(numbers.into_iter().map(event).collect())
}

/// The numbers in a page's events.
pub(crate) fn numbers(page: &Page) -> Vec<u64> {
    page.events.iter().map(|event| event.data.as_str().parse().unwrap()).collect()
}

pub(crate) fn offsets(page: &Page) -> Vec<u64> {
    page.events.iter().map(|event| event.offset).collect()
}
