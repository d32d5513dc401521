//! The meeting place of publishers and the writer: the batches that wait to be written, and the open topics.
//!
//! Besides the log itself, the two sides share nothing else. Publishers add batches and never use the file; the
//! writer takes them and assigns no offsets.

use std::sync::Arc;

use super::intake::Job;
use super::lock::{LAST, Lock, lock};
use super::log::DiskLog;
use super::queue::JobQueue;
use super::shared::Disk;
use crate::UnixTime;

#[derive(Debug)]
pub(super) struct Desk {
    pub(super) disk: Arc<Disk>,
    pub(super) queue: JobQueue<(Arc<DiskLog>, Job)>,
    /// All open logs, even if nobody else holds them: they are flushed when the directory is closed.
    logs: Lock<LAST, Vec<Arc<DiskLog>>>,
}

impl Desk {
    pub(super) fn new(disk: Arc<Disk>) -> Self {
        let queue = JobQueue::new(disk.options.queue_bytes_max);
        Self { disk, queue, logs: Lock::default() }
    }

    pub(super) fn add(&self, log: &Arc<DiskLog>) {
        lock(&self.logs).push(Arc::clone(log));
    }

    pub(super) fn remove(&self, log: &Arc<DiskLog>) {
        lock(&self.logs).retain(|other| !Arc::ptr_eq(other, log));
    }

    pub(super) fn forget(&self) {
        lock(&self.logs).clear();
    }

    pub(super) fn logs(&self) -> Vec<Arc<DiskLog>> {
        lock(&self.logs).clone()
    }

    /// Applies retention to the files of all topics, including idle ones.
    pub(super) fn sweep(&self, now: UnixTime) {
        self.logs().iter().for_each(|log| log.sweep(now));
    }
}
