//! The thread that writes to a data directory. Batches that gather during a write go into the next write, and share
//! its flush with `always`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::intake::Job;
use super::log::DiskLog;
use super::options::Fsync;
use crate::StorageError;

/// The interval at which retention is applied to the files of idle topics. Readers do not see events that are too old
/// meanwhile. Tests use times of their own and call the sweep themselves: by the system's clock, all of their events
/// would be too old.
const SWEEP_INTERVAL: Duration = Duration::from_secs(if cfg!(test) { 24 * 3600 } else { 30 });

/// Tells publishers that nothing is written any more, even after a panic.
struct Closing<'a>(&'a Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.queue.close();
        // Dropping the waiting jobs tells their publishers.
        drop(self.0.queue.take(Instant::now()));
    }
}

/// Writes until the queue is closed, then flushes everything and saves that the directory is complete.
pub(super) fn run(desk: &Desk) -> Result<(), StorageError> {
    let (closing, disk) = (Closing(desk), &desk.disk);
    let mut unflushed: Vec<Arc<DiskLog>> = Vec::new();
    let mut flush_at: Option<Instant> = None;
    let mut sweep_at = Instant::now() + SWEEP_INTERVAL;
    loop {
        let until = flush_at.map_or(sweep_at, |at| at.min(sweep_at));
        let taken = desk.queue.take(until);
        for (log, jobs) in by_log(taken.jobs) {
            let is_unflushed = log.commit(jobs);
            log.remove_gone();
            disk.shared_bytes.evict();
            if let Fsync::Interval(interval) = disk.options.fsync
                && is_unflushed
                && !unflushed.iter().any(|other| Arc::ptr_eq(other, &log))
            {
                flush_at = flush_at.or_else(|| Instant::now().checked_add(interval));
                unflushed.push(log);
            }
        }
        if taken.closed {
            break;
        }
        let now = Instant::now();
        if flush_at.is_some_and(|at| at <= now) {
            unflushed.retain(|log| log.flush().is_err());
            flush_at = match disk.options.fsync {
                Fsync::Interval(interval) if !unflushed.is_empty() => {
                    // A pause, so that a failing flush is not repeated without end.
                    now.checked_add(interval.max(RETRY_INTERVAL_MIN))
                }
                _ => None,
            };
        }
        if sweep_at <= now {
            desk.sweep(disk.platform.now());
            sweep_at = now + SWEEP_INTERVAL;
        }
    }
    drop(closing);
    finish(desk)
}

/// The shortest time before a failed flush is tried again.
const RETRY_INTERVAL_MIN: Duration = Duration::from_millis(100);

fn by_log(jobs: Vec<(Arc<DiskLog>, Job)>) -> Vec<(Arc<DiskLog>, Vec<Job>)> {
    let mut groups: Vec<(Arc<DiskLog>, Vec<Job>)> = Vec::new();
    let mut places = HashMap::new();
    for (log, job) in jobs {
        let place = *places.entry(Arc::as_ptr(&log)).or_insert_with(|| {
            groups.push((log, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(job);
    }
    groups
}

fn finish(desk: &Desk) -> Result<(), StorageError> {
    let mut heads = BTreeMap::new();
    let mut flushed = Ok(());
    for log in desk.logs() {
        // Flushes all logs, even after one fails.
        flushed = flushed.and(log.flush_all());
        heads.insert(log.groundwork.directory_name().into_owned(), log.position());
    }
    flushed.and_then(|()| desk.disk.end(&heads))
}
