//! The list of runs: those that wait, work and have ended. It has no clock and no thread.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anemone_wire::RunState;

use super::held::HeldBytes;
use super::input::InputDigest;
use super::key::RunKey;
use super::lane::RunLane;
use super::lane_queue::{LaneQueue, RunJob, WaitingJobs, Working};
use super::limits::RunLimits;
use super::list::{EndedRuns, ListedRuns, RunList};
use super::moment::Moment;
use super::owner::OwnerKey;
use super::run::Run;
use super::shares::{Ended, Shares};
use super::start::StartError;
use crate::IdempotencyKey;

/// The part of the memory that others leave which one owner's runs may hold.
const HELD_PER_OWNER_ONE_IN: u64 = 4;

/// An idempotency key with the owner who sent it and the path of its service.
pub(crate) type ReplayKey = (Option<OwnerKey>, String, IdempotencyKey);

/// All runs that are kept.
#[derive(Debug)]
pub(crate) struct Registry {
    limits: RunLimits,
    /// The jobs that wait, and the works that have not returned, by their [`RunLane`].
    lanes: [LaneQueue; RunLane::ALL.len()],
    /// The number of each run, which counts up.
    numbers: HashMap<RunKey, u64>,
    runs: BTreeMap<u64, KeptRun>,
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
    /// True while a caller of [`Registry::claim_beginning`] begins works.
    is_beginning: bool,
}

#[derive(Debug)]
struct KeptRun {
    run: Arc<Run>,
    key: Option<ReplayKey>,
    /// Its bytes in the share of its owner.
    bytes: u64,
}

enum Room {
    Ended(Ended),
    /// It has lost events, and is to be counted.
    Shrunk(Arc<Run>),
}

impl Registry {
    pub(crate) fn new(limits: RunLimits) -> Self {
        Self {
            limits,
            lanes: RunLane::ALL.map(|lane| LaneQueue::new(lane, limits)),
            numbers: HashMap::new(),
            runs: BTreeMap::new(),
            ended: EndedRuns::default(),
            next_number: 1,
            replays: HashMap::new(),
            shares: Shares::new(),
            held: HeldBytes::new(),
            forgotten: Vec::new(),
            is_stopping: false,
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

    /// Checks that one more run may start in this lane, which holds this many bytes.
    pub(crate) fn admits(
        &self,
        lane: RunLane,
        owner: Option<OwnerKey>,
        held: u64,
    ) -> Result<(), StartError> {
        if self.is_stopping {
            return Err(StartError::Stopping);
        }
        let others = RunLane::ALL.into_iter().filter(|other| *other != lane);
        let elsewhere = others.fold(WaitingJobs::default(), |sum, other| {
            let WaitingJobs { all, of_owner } = self.lane(other).waiting(owner);
            WaitingJobs { all: sum.all + all, of_owner: sum.of_owner + of_owner }
        });
        self.lane(lane).admits(owner, elsewhere)?;
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

    fn lane(&self, lane: RunLane) -> &LaneQueue {
        &self.lanes[lane as usize]
    }

    pub(crate) fn add(&mut self, job: RunJob, key: Option<(ReplayKey, InputDigest)>) {
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
        self.runs.insert(number, KeptRun { run: Arc::clone(&run), key, bytes: 0 });
        self.count(&run);
        self.lanes[run.lane() as usize].push(job);
    }

    /// Returns the next job of a lane whose work may begin now; it has a slot.
    pub(crate) fn next_job(&mut self, lane: RunLane, now: Moment) -> Option<RunJob> {
        self.lanes[lane as usize].next(now)
    }

    /// Returns true if the caller must begin works, one after another, until there is none. Others leave the slots that come
    /// free meanwhile to this caller. Besides it, each start may begin one work.
    pub(crate) fn claim_beginning(&mut self) -> bool {
        !std::mem::replace(&mut self.is_beginning, true)
    }

    /// Returns the next job for the one who begins works; `None` ends that, and then another may begin works.
    pub(crate) fn next_job_or_end(&mut self, now: Moment) -> Option<RunJob> {
        let job = RunLane::ALL.into_iter().find_map(|lane| self.next_job(lane, now));
        self.is_beginning = job.is_some();
        job
    }

    /// Tells the runs of a lane that are next their places, and so `new`, a run of it that waits.
    pub(crate) fn tell_places(&self, lane: RunLane, now: Moment, new: Option<&Arc<Run>>) {
        if !self.is_stopping {
            self.lane(lane).tell_places(now, new);
        }
    }

    /// Updates the places in the queue of a lane, if it has moved. Returns the number of runs that have begun there.
    pub(crate) fn update_places(&mut self, lane: RunLane, now: Moment) -> u64 {
        let is_stopping = self.is_stopping;
        let lane = &mut self.lanes[lane as usize];
        if !is_stopping {
            lane.update_places(now);
        }
        lane.begun()
    }

    /// Returns the slot of a run whose work has returned.
    pub(crate) fn release(&mut self, run: &Run) {
        self.lanes[run.lane() as usize].release(run);
        self.count(run);
    }

    /// Lists a run as ended, and returns its job if it was waiting.
    pub(crate) fn end(&mut self, now: Moment, run: &Run, total: &AtomicU64) -> Option<RunJob> {
        if let Some(number) = self.numbers.get(&run.key()) {
            self.shares.end(run.owner(), (now.after(self.limits.retention), *number));
            self.ended.add(run.service(), run.state(), *number);
        }
        if self.lane(run.lane()).working().any(|working| working.run.key() == run.key()) {
            self.count(run);
            return None;
        }
        let job = self.lanes[run.lane() as usize].remove(run);
        if job.is_some() {
            // The caller drops its work.
            run.hold(0);
            run.count_in(total);
            self.count(run);
            self.tell_places(run.lane(), now, None);
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
        let Some(KeptRun { run, key, bytes }) = self.runs.remove(&ended.1) else { return };
        self.shares.forget(ended, bytes);
        self.ended.remove(run.service(), ended.1);
        self.numbers.remove(&run.key());
        key.map(|key| self.replays.remove(&key));
        run.discount(total);
        self.forgotten.push(run);
    }

    /// Takes the runs whose events are to be dropped.
    pub(crate) fn take_forgotten(&mut self) -> Vec<Arc<Run>> {
        std::mem::take(&mut self.forgotten)
    }

    pub(crate) fn overdue(&self, now: Instant) -> Vec<Arc<Run>> {
        let is_overdue = |working: &&Working| working.until <= now && !working.run.has_ended();
        self.all_working().filter(is_overdue).map(|working| Arc::clone(&working.run)).collect()
    }

    fn all_working(&self) -> impl Iterator<Item = &Working> {
        self.lanes.iter().flat_map(LaneQueue::working)
    }

    /// Returns the runs whose work has not returned.
    pub(crate) fn working(&self) -> Vec<Arc<Run>> {
        self.all_working().map(|working| Arc::clone(&working.run)).collect()
    }

    /// Returns the time from `now` until the next run is overdue or to be forgotten.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Duration> {
        if !self.forgotten.is_empty() {
            return Some(Duration::ZERO);
        }
        let working = self.all_working().filter(|working| !working.run.has_ended());
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

    pub(crate) fn get(&self, key: RunKey) -> Option<Arc<Run>> {
        let number = self.numbers.get(&key)?;
        self.runs.get(number).map(|kept| Arc::clone(&kept.run))
    }

    /// Lists at most `limit` of these runs: those that have not ended, newest first, and then those that have.
    pub(crate) fn list(&self, listed: ListedRuns<'_>, limit: usize) -> RunList {
        let in_state = |state| move |run: &&Arc<Run>| listed.has(run.service(), state);
        let working = self.all_working().map(|working| &working.run);
        let working = working.filter(in_state(RunState::Running)).filter(|run| !run.has_ended());
        let waiting = self.lanes.iter().flat_map(LaneQueue::all_waiting).map(|job| &job.run);
        let waiting = waiting.filter(in_state(RunState::Queued));
        let live: BTreeSet<u64> = working
            .chain(waiting)
            .filter_map(|run| self.numbers.get(&run.key()))
            .copied()
            .collect();
        let ended = self.ended.newest(listed, limit.saturating_sub(live.len()));
        let numbers = live.iter().rev().chain(&ended).take(limit);
        let runs = numbers.filter_map(|number| Some(Arc::clone(&self.runs.get(number)?.run)));
        RunList { total: live.len() + self.ended.count(listed), runs: runs.collect() }
    }

    /// Returns the number of works that have not returned.
    pub(crate) fn running(&self) -> usize {
        self.lanes.iter().map(|lane| lane.working().len()).sum()
    }
}

#[cfg(test)]
mod tests;
