//! The queue of a lane, and its works that have not returned. It has no clock and no thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lane::RunLane;
use super::limits::RunLimits;
use super::moment::Moment;
use super::owner::OwnerKey;
use super::place::{NEAR_PLACES, QueuePlace};
use super::queue::{QueueFull, QueueLimits, SlotQueue};
use super::run::Run;
use super::service::RunWork;

/// The number of places in the queue whose runs are told when they move. All learn their place from the state.
const TOLD_PLACES: usize = 10;

/// A run and its work, before it begins.
#[derive(Debug)]
pub(crate) struct RunJob {
    pub(crate) run: Arc<Run>,
    pub(crate) work: RunWork,
}

/// A run whose work has not returned, with the end of its time.
#[derive(Debug)]
pub(crate) struct Working {
    pub(crate) until: Instant,
    pub(crate) run: Arc<Run>,
}

/// The numbers of jobs that wait: all, and those of one owner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitingJobs {
    pub(crate) all: usize,
    pub(crate) of_owner: usize,
}

/// The jobs of a lane that wait, and its works that have not returned.
#[derive(Debug)]
pub(crate) struct LaneQueue {
    limits: QueueLimits,
    of_runs: RunLimits,
    queue: SlotQueue<OwnerKey, RunJob, Working>,
    /// The number of runs that have begun.
    begun: u64,
    /// The number of times that the queue has moved since all in it were told their places.
    moves: usize,
    /// True if the next in line may be at other places than they know.
    has_moved: bool,
}

impl LaneQueue {
    pub(crate) fn new(lane: RunLane, of_runs: RunLimits) -> Self {
        let RunLimits { queued_max, queued_per_owner_max, .. } = of_runs;
        let running_max = lane.slots(of_runs.running_max);
        let limits = QueueLimits { running_max, queued_max, queued_per_owner_max };
        Self { limits, of_runs, queue: SlotQueue::new(), begun: 0, moves: 0, has_moved: false }
    }

    pub(crate) fn waiting(&self, owner: Option<OwnerKey>) -> WaitingJobs {
        WaitingJobs { all: self.queue.len(), of_owner: self.queue.len_of(owner) }
    }

    /// Checks that one more may come, while these wait in the other lanes: the limits of the queue are for all lanes
    /// together.
    pub(crate) fn admits(
        &self,
        owner: Option<OwnerKey>,
        elsewhere: WaitingJobs,
    ) -> Result<(), QueueFull> {
        let QueueLimits { running_max, queued_max, queued_per_owner_max } = self.limits;
        let left = QueueLimits {
            running_max,
            queued_max: queued_max.saturating_sub(elsewhere.all),
            queued_per_owner_max: queued_per_owner_max.saturating_sub(elsewhere.of_owner),
        };
        self.queue.admits(&left, owner)
    }

    pub(crate) fn push(&mut self, job: RunJob) {
        self.queue.push(job.run.owner(), job);
        self.note_move();
    }

    /// Returns the next job whose work may begin now; it has a slot.
    pub(crate) fn next(&mut self, now: Moment) -> Option<RunJob> {
        let of_runs = self.of_runs;
        let begin = |job: &RunJob| {
            let time_max = of_runs.time_max_of(job.run.is_timed()).unwrap_or(Duration::MAX);
            Working { until: now.after(time_max), run: Arc::clone(&job.run) }
        };
        let job = self.queue.next(&self.limits, begin)?;
        self.begun += 1;
        self.note_move();
        Some(job)
    }

    /// Returns the slot of a run whose work has returned.
    pub(crate) fn release(&mut self, run: &Run) {
        self.queue.release(|working| working.run.key() == run.key());
        self.note_move();
    }

    pub(crate) fn remove(&mut self, run: &Run) -> Option<RunJob> {
        let job = self.queue.remove(run.owner(), |job| job.run.key() == run.key());
        if job.is_some() {
            self.note_move();
        }
        job
    }

    /// Returns those that wait, in no order.
    pub(crate) fn all_waiting(&self) -> impl Iterator<Item = &RunJob> {
        self.queue.all_waiting()
    }

    /// Returns those whose works have not returned, in the order in which they began.
    pub(crate) fn working(&self) -> impl ExactSizeIterator<Item = &Working> {
        self.queue.running()
    }

    fn note_move(&mut self) {
        self.has_moved = true;
        self.moves += 1;
    }

    /// Tells the runs that are next their places, and so `new`, a run that waits. The others learn theirs when somebody
    /// asks, so that a move of the queue takes the same few steps however long it is.
    pub(crate) fn tell_places(&self, now: Moment, new: Option<&Arc<Run>>) {
        self.tell_next(now, TOLD_PLACES);
        if let Some(new) = new.filter(|new| new.known_place().is_none()) {
            new.move_to(now.time, self.place_of_newcomer(new), false);
        }
    }

    fn tell_next(&self, now: Moment, count: usize) {
        for (before, job) in self.queue.next_in_line(&self.limits, count).enumerate() {
            let place = QueuePlace { before, begun: self.begun };
            job.run.move_to(now.time, place, before < TOLD_PLACES);
        }
    }

    /// Returns the place of a run that has just come. Behind the near places it is an estimate: once behind each owner
    /// who waits, and that behind the one of its own owner that came before it.
    fn place_of_newcomer(&self, new: &Arc<Run>) -> QueuePlace {
        let mut near = self.queue.next_in_line(&self.limits, NEAR_PLACES);
        let before = near.position(|job| Arc::ptr_eq(&job.run, new)).unwrap_or_else(|| {
            let last =
                self.queue.last_but_one_of(new.owner()).and_then(|job| job.run.known_place());
            let rounds = last.map_or(0, |place| place.before(self.begun) + 1);
            let others = self.queue.owners_waiting() - 1;
            (rounds + others).min(self.queue.len() - 1).max(NEAR_PLACES)
        });
        QueuePlace { before, begun: self.begun }
    }

    /// Updates the places of the next [`NEAR_PLACES`] that wait, if the queue has moved since the last time; those of all,
    /// once the queue has moved so often that this takes no more steps for each move.
    pub(crate) fn update_places(&mut self, now: Moment) {
        if std::mem::take(&mut self.has_moved) {
            let is_due = self.queue.len() <= NEAR_PLACES.saturating_mul(self.moves);
            self.tell_next(now, if is_due { usize::MAX } else { NEAR_PLACES });
            self.moves = if is_due { 0 } else { self.moves };
        }
    }

    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }
}
