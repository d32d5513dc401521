//! The list of runs: those that wait, work and have ended. It has no clock and no thread.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anemone_wire::RunState;

use super::held::HeldBytes;
use super::key::RunKey;
use super::limits::RunLimits;
use super::list::{EndedRuns, ListedStates, RunList};
use super::moment::Moment;
use super::owner::OwnerKey;
use super::place::{NEAR_PLACES, QueuePlace};
use super::queue::Queue;
use super::run::Run;
use super::service::{InputDigest, RunWork};
use super::shares::{Ended, Shares};
use super::start::StartError;
use crate::IdempotencyKey;

/// The number of places in the queue whose runs are told when they move. All learn their place from the state.
const TOLD_PLACES: usize = 10;

/// The part of the memory that others leave which one owner's runs may hold.
const HELD_PER_OWNER_ONE_IN: u64 = 4;

/// A run and its work, before it begins.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) run: Arc<Run>,
    pub(crate) work: RunWork,
}

/// An idempotency key with the owner who sent it and the path of its service.
pub(crate) type ReplayKey = (Option<OwnerKey>, String, IdempotencyKey);

/// All runs that are kept.
#[derive(Debug)]
pub(crate) struct Registry {
    limits: RunLimits,
    /// The jobs that wait, and the works that have not returned.
    queue: Queue<OwnerKey, Job, Working>,
    /// The number of each run, which counts up.
    numbers: HashMap<RunKey, u64>,
    runs: BTreeMap<u64, Kept>,
    ended: EndedRuns,
    next_number: u64,
    replays: HashMap<ReplayKey, (InputDigest, u64)>,
    /// The memory of each owner's runs, and those that have ended.
    shares: Shares<OwnerKey>,
    /// The bytes that the works hold that have not returned.
    held: HeldBytes<OwnerKey, RunKey>,
    /// Runs that are no longer in the list, and whose events are to be dropped, which may take long.
    forgotten: Vec<Arc<Run>>,
    is_stopping: bool,
    /// The number of runs that have begun.
    begun: u64,
    /// The number of times that the queue has moved since all in it were told their places.
    moves: usize,
    /// True if the next in line may be at other places than they know.
    has_moved: bool,
    /// True while a caller of [`Registry::begins`] begins works.
    is_beginning: bool,
}

/// A run whose work has not returned, with the end of its time.
#[derive(Debug)]
struct Working {
    until: Instant,
    run: Arc<Run>,
}

#[derive(Debug)]
struct Kept {
    run: Arc<Run>,
    key: Option<ReplayKey>,
    /// Its bytes in the share of its owner.
    bytes: u64,
}

/// Where room comes from.
enum Room {
    Ended(Ended),
    /// It has lost events, and is to be counted.
    Shrunk(Arc<Run>),
}

impl Registry {
    pub(crate) fn new(limits: RunLimits) -> Self {
        Self {
            limits,
            queue: Queue::new(),
            numbers: HashMap::new(),
            runs: BTreeMap::new(),
            ended: EndedRuns::default(),
            next_number: 1,
            replays: HashMap::new(),
            shares: Shares::new(),
            held: HeldBytes::new(),
            forgotten: Vec::new(),
            is_stopping: false,
            begun: 0,
            moves: 0,
            has_moved: false,
            is_beginning: false,
        }
    }

    /// Returns the run that this key started, if it is kept and its client has not abandoned it.
    pub(crate) fn replayed(
        &self,
        key: &ReplayKey,
        digest: InputDigest,
    ) -> Result<Option<Arc<Run>>, StartError> {
        match self.replays.get(key) {
            None => Ok(None),
            Some((first, number)) if *first == digest => {
                let run = self.runs.get(number).map(|kept| Arc::clone(&kept.run));
                Ok(run.filter(|run| !run.is_abandoned()))
            }
            Some(_) => Err(StartError::KeyReused),
        }
    }

    /// Checks that one more run may start, which holds this many bytes.
    pub(crate) fn admits(&self, owner: Option<OwnerKey>, held: u64) -> Result<(), StartError> {
        if self.is_stopping {
            return Err(StartError::Stopping);
        }
        self.queue.admits(&self.limits, owner)?;
        if owner.is_some() && held > 0 && !self.may_hold(owner, held) {
            return Err(StartError::OwnerMemoryFull);
        }
        Ok(())
    }

    /// Returns true if the runs of `owner` may hold so many bytes more. What a run holds cannot make room, so each owner
    /// leaves most of what the others leave.
    fn may_hold(&self, owner: Option<OwnerKey>, more: u64) -> bool {
        let own = self.held.of_owner(owner);
        let left = self.limits.total_bytes_max.saturating_sub(self.held.of_others(owner));
        own == 0 || own + more <= left / HELD_PER_OWNER_ONE_IN
    }

    /// Adds a run to the queue.
    pub(crate) fn add(&mut self, job: Job, key: Option<(ReplayKey, InputDigest)>) {
        let (number, run) = (self.next_number, Arc::clone(&job.run));
        self.next_number += 1;
        self.numbers.insert(run.key(), number);
        let key = key.map(|(key, digest)| {
            let before = self.replays.insert(key.clone(), (digest, number));
            // The key is that of the new run alone.
            let before = before.and_then(|(_, abandoned)| self.runs.get_mut(&abandoned));
            before.map(|kept| kept.key.take());
            key
        });
        self.runs.insert(number, Kept { run: Arc::clone(&run), key, bytes: 0 });
        self.count(&run);
        self.queue.push(run.owner(), job);
        self.note_move();
    }

    /// Returns the next job whose work may begin now; it has a slot.
    pub(crate) fn next_job(&mut self, now: Moment) -> Option<Job> {
        let until = now.after(self.limits.time_max);
        let begin = |job: &Job| Working { until, run: Arc::clone(&job.run) };
        let job = self.queue.next(&self.limits, begin)?;
        self.begun += 1;
        self.note_move();
        Some(job)
    }

    fn note_move(&mut self) {
        self.has_moved = true;
        self.moves += 1;
    }

    /// Returns true if the caller is to begin works, one after another until there is none: also those whose slots come
    /// free meanwhile, which their callers leave to it. Beside it, each start may begin one.
    pub(crate) fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.is_beginning, true)
    }

    /// Returns the next job for the one who begins works. Without one, this ends.
    pub(crate) fn next_job_or_rest(&mut self, now: Moment) -> Option<Job> {
        let job = self.next_job(now);
        self.is_beginning = job.is_some();
        job
    }

    /// Tells the runs that are next their places, and so `new`, a run that waits. The others learn theirs when somebody
    /// asks, so that a move of the queue takes the same few steps however long it is.
    pub(crate) fn tell_places(&self, now: Moment, new: Option<&Arc<Run>>) {
        if self.is_stopping {
            return;
        }
        self.tell_next(now, TOLD_PLACES);
        if let Some(new) = new.filter(|new| new.known_place().is_none()) {
            new.wait(now.time, self.place_of_newcomer(new), false);
        }
    }

    /// Tells so many runs that are next their places.
    fn tell_next(&self, now: Moment, count: usize) {
        for (before, job) in self.queue.next_in_line(&self.limits, count).enumerate() {
            let place = QueuePlace { before, begun: self.begun };
            job.run.wait(now.time, place, before < TOLD_PLACES);
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
    /// once the queue has moved so often that this takes no more steps for each move. Returns the number of runs that have
    /// begun.
    pub(crate) fn update_places(&mut self, now: Moment) -> u64 {
        if !self.is_stopping && std::mem::take(&mut self.has_moved) {
            let is_due = self.queue.len() <= NEAR_PLACES.saturating_mul(self.moves);
            self.tell_next(now, if is_due { usize::MAX } else { NEAR_PLACES });
            self.moves = if is_due { 0 } else { self.moves };
        }
        self.begun
    }

    /// Returns the slot of a run whose work has returned.
    pub(crate) fn release(&mut self, run: &Run) {
        self.queue.release(|working| working.run.key() == run.key());
        self.note_move();
        self.count(run);
    }

    /// Lists a run as ended, and returns its job if it was waiting.
    pub(crate) fn end(&mut self, now: Moment, run: &Run, total: &AtomicU64) -> Option<Job> {
        if let Some(number) = self.numbers.get(&run.key()) {
            self.shares.end(run.owner(), (now.after(self.limits.retention), *number));
            self.ended.add(run.state(), *number);
        }
        if self.queue.running().any(|working| working.run.key() == run.key()) {
            self.count(run);
            return None;
        }
        let job = self.queue.remove(run.owner(), |job| job.run.key() == run.key());
        if job.is_some() {
            self.note_move();
            // The caller drops its work.
            run.hold(0);
            run.count_in(total);
            self.count(run);
            self.tell_places(now, None);
        }
        job
    }

    /// Counts for its owner what a run takes and what its work holds now. While it works, [`Registry::make_room`] does
    /// that.
    fn count(&mut self, run: &Run) {
        self.held.set(run.key(), run.owner(), run.held_bytes());
        let number = self.numbers.get(&run.key());
        if let Some(kept) = number.and_then(|number| self.runs.get_mut(number)) {
            let before = std::mem::replace(&mut kept.bytes, run.counted_bytes());
            self.shares.count(run.owner(), before, kept.bytes);
        }
    }

    /// Forgets the runs that ended too long ago.
    pub(crate) fn expire(&mut self, now: Instant, total: &AtomicU64) {
        while let Some(oldest) = self.shares.oldest().filter(|(until, _)| *until <= now) {
            self.forget(oldest, total);
        }
    }

    /// Lets runs make room until they are within the limit, those of the owner whose runs take the most first. Returns
    /// the bytes that are still too many, and that `run` may not take. Spares that run, and those of owners who have
    /// less than its owner.
    pub(crate) fn make_room(&mut self, total: &AtomicU64, run: &Run) -> u64 {
        let bytes_max = self.limits.total_bytes_max;
        let excess = || total.load(Ordering::Relaxed).saturating_sub(bytes_max);
        if excess() > 0 {
            self.working().iter().for_each(|working| self.count(working));
        }
        loop {
            let excess = excess();
            if excess == 0 {
                return 0;
            }
            match self.room(run, excess) {
                Some(Room::Ended(ended)) => self.forget(ended, total),
                Some(Room::Shrunk(growing)) => {
                    growing.count_in(total);
                    self.count(&growing);
                }
                None => return excess,
            }
        }
    }

    /// Finds the owner with the largest share who can make room for `run`: with the run that ended first, or else with
    /// events of those that work, which are dropped.
    fn room(&self, run: &Run, bytes: u64) -> Option<Room> {
        let spared = self.numbers.get(&run.key()).copied();
        for owner in self.shares.largest_first() {
            if let Some(ended) = self.shares.oldest_of(owner, spared) {
                return Some(Room::Ended(ended));
            }
            if owner == run.owner() {
                return None;
            }
            let mut working = self.working();
            working.retain(|working| working.owner() == owner);
            working.sort_unstable_by_key(|working| Reverse(working.counted_bytes()));
            let shrunk = working.into_iter().find(|working| working.shrink_by(bytes) > 0);
            if let Some(shrunk) = shrunk {
                return Some(Room::Shrunk(shrunk));
            }
        }
        None
    }

    fn forget(&mut self, ended: Ended, total: &AtomicU64) {
        let Some(Kept { run, key, bytes }) = self.runs.remove(&ended.1) else { return };
        self.shares.forget(ended, bytes);
        self.ended.remove(ended.1);
        self.numbers.remove(&run.key());
        key.map(|key| self.replays.remove(&key));
        run.discount(total);
        self.forgotten.push(run);
    }

    /// Takes the runs whose events are to be dropped.
    pub(crate) fn take_forgotten(&mut self) -> Vec<Arc<Run>> {
        std::mem::take(&mut self.forgotten)
    }

    /// Returns the runs whose time is over at `now`.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<Arc<Run>> {
        let is_overdue = |working: &&Working| working.until <= now && !working.run.has_ended();
        self.queue.running().filter(is_overdue).map(|working| Arc::clone(&working.run)).collect()
    }

    /// Returns the runs whose work has not returned.
    pub(crate) fn working(&self) -> Vec<Arc<Run>> {
        self.queue.running().map(|working| Arc::clone(&working.run)).collect()
    }

    /// Returns the time from `now` until the next run is overdue or to be forgotten.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Duration> {
        if !self.forgotten.is_empty() {
            return Some(Duration::ZERO);
        }
        let working = self.queue.running().filter(|working| !working.run.has_ended());
        let ended = self.shares.oldest().map(|(until, _)| until);
        let next = working.map(|working| working.until).chain(ended).min()?;
        Some(next.saturating_duration_since(now))
    }

    /// Refuses new runs, and returns those that have not ended.
    pub(crate) fn stop(&mut self) -> Vec<Arc<Run>> {
        self.is_stopping = true;
        let runs = self.runs.values().map(|kept| &kept.run);
        runs.filter(|run| !run.has_ended()).cloned().collect()
    }

    /// Returns the run with this key.
    pub(crate) fn get(&self, key: RunKey) -> Option<Arc<Run>> {
        let number = self.numbers.get(&key)?;
        self.runs.get(number).map(|kept| Arc::clone(&kept.run))
    }

    /// Lists at most `limit` runs in these states: those that have not ended, newest first, and then those that have.
    pub(crate) fn list(&self, states: ListedStates<'_>, limit: usize) -> RunList {
        let working = self.queue.running().map(|working| &working.run);
        let working = working.filter(|run| states.has(RunState::Running) && !run.has_ended());
        let waiting = self.queue.all_waiting().map(|job| &job.run);
        let waiting = waiting.filter(|_| states.has(RunState::Queued));
        let live: BTreeSet<u64> = working
            .chain(waiting)
            .filter_map(|run| self.numbers.get(&run.key()))
            .copied()
            .collect();
        let ended = self.ended.newest(states, limit.saturating_sub(live.len()));
        let numbers = live.iter().rev().chain(&ended).take(limit);
        let runs = numbers.filter_map(|number| Some(Arc::clone(&self.runs.get(number)?.run)));
        RunList { total: live.len() + self.ended.count(states), runs: runs.collect() }
    }

    /// Returns the number of works that have not returned.
    pub(crate) fn running(&self) -> usize {
        self.queue.running().len()
    }
}

#[cfg(test)]
mod tests;
