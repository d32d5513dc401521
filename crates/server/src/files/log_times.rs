//! Logs existing files that are not served, each cause once a minute.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::open::FileRefusal;

const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The times at which each cause was last logged.
#[derive(Debug, Default)]
pub(super) struct LogTimes(Mutex<[Option<Instant>; 7]>);

impl LogTimes {
    /// Records that the file at `path` below `dir` is not served, or not to its end.
    pub(super) fn log_refusal(&self, dir: &Path, path: &Path, refusal: FileRefusal) {
        let cause = match refusal {
            FileRefusal::LeadsOut => 0,
            FileRefusal::NotReadable => 1,
            FileRefusal::Special => 2,
            FileRefusal::Changed => 3,
            FileRefusal::Hidden => 4,
            FileRefusal::Unfit => 5,
        };
        if !self.is_time(cause, Instant::now()) {
            return;
        }
        let file = shown(dir, path);
        match refusal {
            FileRefusal::Changed => tracing::warn!(
                "{file} changed while it was sent: the reply was cut off, since it would have mixed two \
                 versions; replace a file with a rename instead"
            ),
            refusal => tracing::warn!("{file} is not served: {refusal}"),
        }
    }

    pub(super) fn log_error(&self, dir: &Path, path: &Path, error: &std::io::Error) {
        if self.is_time(6, Instant::now()) {
            tracing::error!("cannot read {}: {error}", shown(dir, path));
        }
    }

    fn is_time(&self, cause: usize, now: Instant) -> bool {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if times[cause].is_some_and(|at| now - at < LOG_INTERVAL) {
            return false;
        }
        times[cause] = Some(now);
        true
    }
}

fn shown(dir: &Path, path: &Path) -> String {
    dir.join(path.strip_prefix(".").unwrap_or(path)).display().to_string()
}
