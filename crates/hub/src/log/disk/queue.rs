//! The queue from publishers on any thread to the writer, limited in bytes.
//!
//! Owns waiting for room and for work. The log owns the contents of a job.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::PublishError;

/// The jobs that wait to be taken.
#[derive(Debug)]
pub(super) struct JobQueue<J> {
    waiting: Mutex<QueueState<J>>,
    bytes_max: u64,
    arrived: Condvar,
    taken: Condvar,
    room: Notify,
}

#[derive(Debug)]
struct QueueState<J> {
    jobs: Vec<J>,
    bytes: u64,
    /// The number of times that all jobs were taken.
    takes: u64,
    closed: bool,
    /// The time since when the oldest of them has been waiting.
    since: Option<Instant>,
    /// The time since when the oldest of the jobs taken last had been waiting, while the writer may still work on them.
    taken_since: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Taken<J> {
    pub(super) jobs: Vec<J>,
    /// True if no more jobs will come.
    pub(super) closed: bool,
}

impl<J> JobQueue<J> {
    /// Creates a queue for at most `bytes_max` bytes, or one job if that alone is larger.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            waiting: Mutex::new(QueueState {
                jobs: Vec::new(),
                bytes: 0,
                takes: 0,
                closed: false,
                since: None,
                taken_since: None,
            }),
            bytes_max,
            arrived: Condvar::new(),
            taken: Condvar::new(),
            room: Notify::new(),
        }
    }

    pub(super) fn push(&self, job: J, bytes: u64) -> Result<(), PublishError> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(PublishError::Closed);
        }
        if !waiting.jobs.is_empty() && waiting.bytes + bytes > self.bytes_max {
            return Err(PublishError::Busy { bytes: waiting.bytes, bytes_max: self.bytes_max });
        }
        waiting.bytes += bytes;
        waiting.jobs.push(job);
        waiting.since.get_or_insert_with(Instant::now);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// Blocks until jobs are taken, which makes room; returns false if `until` comes first.
    pub(super) fn wait_for_room(&self, until: Instant) -> bool {
        let waiting = self.lock();
        let left = until.saturating_duration_since(Instant::now());
        let before = waiting.takes;
        let blocked = |waiting: &mut QueueState<J>| {
            waiting.takes == before && !waiting.jobs.is_empty() && !waiting.closed
        };
        let waited = self.taken.wait_timeout_while(waiting, left, blocked);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Returns the notifier of the jobs' being taken.
    pub(super) fn room(&self) -> &Notify {
        &self.room
    }

    /// Blocks until there are jobs, and takes all of them; none if `until` comes first.
    pub(super) fn take(&self, until: Instant) -> Taken<J> {
        let left = until.saturating_duration_since(Instant::now());
        let idle = |waiting: &mut QueueState<J>| waiting.jobs.is_empty() && !waiting.closed;
        let mut waiting = self.lock();
        // The caller has finished the jobs that it took before.
        waiting.taken_since = None;
        let waited = self.arrived.wait_timeout_while(waiting, left, idle);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        let jobs = std::mem::take(&mut waiting.jobs);
        waiting.taken_since = waiting.since.take();
        waiting.bytes = 0;
        waiting.takes += 1;
        let closed = waiting.closed;
        drop(waiting);
        self.notify_room();
        Taken { jobs, closed }
    }

    /// Returns for how long the oldest unfinished job has been waiting.
    pub(super) fn waits_for(&self) -> Option<Duration> {
        let waiting = self.lock();
        waiting.taken_since.or(waiting.since).map(|since| since.elapsed())
    }

    /// Refuses further jobs. Waiting ones can still be taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
        self.notify_room();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn notify_room(&self) {
        self.taken.notify_all();
        self.room.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<J>> {
        // No method panics while it holds the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(1)
    }

    #[test]
    fn as_much_waits_as_may_and_not_a_byte_more() {
        let queue = JobQueue::new(10);
        queue.push('a', 6).unwrap();
        queue.push('b', 4).unwrap();
        assert_eq!(queue.push('c', 1), Err(PublishError::Busy { bytes: 10, bytes_max: 10 }));
        assert_eq!(queue.take(soon()).jobs, ['a', 'b']);
        queue.push('c', 1).unwrap();
    }

    #[test]
    fn a_job_larger_than_the_bound_waits_alone() {
        let queue = JobQueue::new(10);
        queue.push('a', 90).unwrap();
        assert!(matches!(queue.push('b', 0), Err(PublishError::Busy { bytes: 90, .. })));
    }

    #[test]
    fn after_closing_what_waits_is_taken_and_nothing_more_comes() {
        let queue = JobQueue::new(10);
        queue.push('a', 1).unwrap();
        queue.close();
        assert_eq!(queue.push('b', 1), Err(PublishError::Closed));
        let taken = queue.take(soon());
        assert_eq!((taken.jobs, taken.closed), (vec!['a'], true));
    }

    #[test]
    fn the_oldest_waits_until_it_is_done_and_not_only_taken() {
        let queue = JobQueue::new(10);
        assert_eq!(queue.waits_for(), None);
        queue.push('a', 1).unwrap();
        let pushed = Instant::now();
        queue.take(soon());
        queue.push('b', 1).unwrap();
        let waited = pushed.elapsed();
        assert!(queue.waits_for().unwrap() >= waited, "a is being worked on");
        queue.take(soon());
        assert!(queue.waits_for().is_some(), "b is");
        queue.take(soon());
        assert_eq!(queue.waits_for(), None);
    }

    #[test]
    fn waiting_for_room_ends_when_jobs_are_taken_or_the_time_is_up() {
        let queue = JobQueue::new(1);
        queue.push('a', 1).unwrap();
        assert!(!queue.wait_for_room(soon()));
        std::thread::scope(|scope| {
            let waiter =
                scope.spawn(|| queue.wait_for_room(Instant::now() + Duration::from_secs(60)));
            queue.take(soon());
            assert!(waiter.join().unwrap());
        });
    }
}
