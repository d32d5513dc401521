//! The one thread that writes to a data directory: whatever has gathered while it wrote goes in the next
//! write, and, with `always`, under one flush.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::intake::Job;
use super::log::DiskLog;
use super::options::Fsync;
use crate::StorageError;

/// The interval at which topics that nobody publishes to have retention applied to their files. Readers do not see
/// what is too old meanwhile. Tests have a time of their own, and call the sweep where they mean it: by the system's clock all
/// of their events would be too old.
const SWEEP_INTERVAL: Duration = Duration::from_secs(if cfg!(test) { 24 * 3600 } else { 30 });

/// Has publishers told that nobody writes any more, also when that comes as a surprise.
struct Closing<'a>(&'a Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.queue.close();
        // Whoever waits for one of these is told by its going.
        drop(self.0.queue.take(Instant::now()));
    }
}

/// Writes until the queue is closed, then flushes everything and says that it is all there.
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
                    // Not over and over without a pause when it fails.
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

/// Shortest time before flushing is tried again after it failed.
const RETRY_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Each log's jobs, in their order.
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
        // All of them, also after one that fails.
        flushed = flushed.and(log.flush_all());
        heads.insert(log.groundwork.directory_name().into_owned(), log.position());
    }
    flushed.and_then(|()| desk.disk.end(&heads))
}
