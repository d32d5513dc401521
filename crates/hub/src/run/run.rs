//! A run: a topic that ends, with a state.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use anemone_wire::RunState;
use tokio::sync::watch;

use super::events;
use super::failure::Stopped;
use super::key::RunKey;
use super::lane::RunLane;
use super::moment::Moment;
use super::name::RunName;
use super::owner::OwnerKey;
use super::place::QueuePlace;
use super::progress::RunProgress;
use super::shown_input::ShownInput;
use super::state::{Ending, RunFacts};
use super::status::RunStatus;
use crate::log::cost_bytes;
use crate::{Batch, Data, NewEvent, PublishError, Topic, UnixTime};

/// The memory of a run itself, its topic and its entries in lists. Its events and what it keeps are counted apart.
const OVERHEAD_BYTES: u64 = 3_000;

/// The bytes of events that a work publishes before they are counted, so that each costs little more than publishing.
const UNCOUNTED_BYTES_MAX: u64 = 16 << 10;

/// A run: its topic, its state, and the way to cancel it.
pub struct Run {
    key: RunKey,
    service: String,
    name: Option<RunName>,
    input: Option<ShownInput>,
    /// The client who started it; `None` for those who count together.
    owner: Option<OwnerKey>,
    is_timed: bool,
    lane: RunLane,
    topic: Arc<Topic>,
    facts: Mutex<RunFacts>,
    /// Notified at the end.
    ended: Condvar,
    stopped: watch::Sender<Option<Stopped>>,
    /// The bytes of the input that its work holds.
    held_bytes: AtomicU64,
    /// The approximate bytes of the events published since it was counted.
    uncounted_bytes: AtomicU64,
    /// The bytes that count in the total. They change under `is_counted`.
    counted_bytes: AtomicU64,
    /// False once it is forgotten.
    is_counted: Mutex<bool>,
    keeper: Weak<dyn Keeper>,
}

/// The owner of all runs, as a run sees it.
pub(crate) trait Keeper: Send + Sync {
    /// Ends the run. Returns true if it has ended by this, and not before.
    fn end(&self, run: &Run, ending: Ending) -> bool;

    fn count(&self, run: &Run);

    /// Remembers to tell the progress of a run that was withheld.
    fn tell_later(&self);

    /// Updates the places of the runs of a lane that wait and start next. Returns the number of runs that have begun there.
    fn update_places(&self, lane: RunLane) -> u64;
}

/// An error: the run has ended already.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the run has ended already")]
pub struct RunEnded;

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, service, .. } = self;
        f.debug_struct("Run").field("key", key).field("service", service).finish_non_exhaustive()
    }
}

/// The facts of a run that its start decides.
pub(crate) struct NewRun {
    pub(crate) key: RunKey,
    /// The path of its service.
    pub(crate) service: String,
    pub(crate) name: Option<RunName>,
    pub(crate) input: Option<ShownInput>,
    /// The client who started it; `None` for those who count together.
    pub(crate) owner: Option<OwnerKey>,
    /// True if it has a time limit by default.
    pub(crate) is_timed: bool,
    pub(crate) lane: RunLane,
    pub(crate) topic: Topic,
}

impl Run {
    /// Creates a run that waits.
    pub(crate) fn new(new: NewRun, now: Moment, keeper: Weak<dyn Keeper>) -> Self {
        let NewRun { key, service, name, input, owner, is_timed, lane, topic } = new;
        Self {
            key,
            service,
            name,
            input,
            owner,
            is_timed,
            lane,
            topic: Arc::new(topic),
            facts: Mutex::new(RunFacts::new(now.time)),
            ended: Condvar::new(),
            stopped: watch::Sender::new(None),
            held_bytes: AtomicU64::new(0),
            uncounted_bytes: AtomicU64::new(0),
            counted_bytes: AtomicU64::new(0),
            is_counted: Mutex::new(true),
            keeper,
        }
    }

    /// Returns its key.
    #[must_use]
    pub fn key(&self) -> RunKey {
        self.key
    }

    /// Returns the path of its service.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.is_timed
    }

    pub(crate) fn owner(&self) -> Option<OwnerKey> {
        self.owner
    }

    pub(crate) fn lane(&self) -> RunLane {
        self.lane
    }

    /// Returns the topic with its events, which ends with it. Its name is [`RunKey::short`].
    #[must_use]
    pub fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }

    /// Returns its state at `now`, which counts for the time left.
    #[must_use]
    pub fn status(&self, now: Instant) -> RunStatus {
        let keeper = self.keeper.upgrade().filter(|_| self.is_queued());
        let begun = keeper.map(|keeper| keeper.update_places(self.lane));
        let facts = self.lock();
        let progress = facts.progress.as_ref();
        let left = progress.filter(|_| facts.state == RunState::Running);
        // Many programs tell less at their end than they have done.
        let value = progress.and_then(RunProgress::value);
        let value = value.map(|value| if facts.state == RunState::Done { 1.0 } else { value });
        RunStatus {
            key: self.key,
            service: self.service.clone(),
            name: self.name.clone(),
            input: self.input.clone(),
            state: facts.state,
            progress: value,
            text: progress.and_then(RunProgress::text).map(str::to_owned),
            left: left.and_then(|progress| progress.left(now)).map(events::tenths),
            place: facts.place.map(|place| place.before(begun.unwrap_or(place.begun))),
            created: facts.created,
            started: facts.started,
            ended: facts.ended,
            next: self.topic.info(facts.created).head,
            result: Some(facts.result.clone()),
            problem: facts.problem.clone(),
            stderr: facts.stderr(),
        }
    }

    pub(crate) fn state(&self) -> RunState {
        self.lock().state
    }

    /// Returns true if it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state().is_end()
    }

    pub(crate) fn known_place(&self) -> Option<QueuePlace> {
        self.lock().place
    }

    fn is_queued(&self) -> bool {
        self.state() == RunState::Queued
    }

    /// Cancels it. It is cancelled on return, and no event follows; its work is told to stop.
    ///
    /// # Errors
    /// When it has ended already.
    pub fn cancel(&self) -> Result<(), RunEnded> {
        let ending = Ending::cancelled();
        let is_cancelled = match self.keeper.upgrade() {
            Some(keeper) => keeper.end(self, ending),
            None => self.end(Moment::now(), ending),
        };
        if is_cancelled { Ok(()) } else { Err(RunEnded) }
    }

    /// Returns true if it belongs to a client, or did.
    pub(crate) fn is_attached(&self) -> bool {
        self.lock().is_attached()
    }

    /// Attaches it to a client. Returns the number of the attachment, the newest one.
    pub(crate) fn attach(&self) -> u64 {
        self.lock().attach()
    }

    /// Cancels it because the client to whom it belongs has gone, if this attachment is the newest.
    pub(crate) fn abandon(&self, attachment: u64) {
        if let Some(keeper) = self.keeper.upgrade() {
            keeper.end(self, Ending::abandoned(attachment));
        }
    }

    /// Returns true if it was cancelled because its client had gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().is_abandoned
    }

    /// Moves it in the queue. Tells its watchers the first place, and others if `is_told`.
    pub(crate) fn move_to(&self, now: UnixTime, place: QueuePlace, is_told: bool) {
        let mut facts = self.lock();
        let is_new = facts.place.is_none();
        if facts.move_to(place) && (is_told || is_new) {
            self.publish(now, events::queued(place.before));
        }
    }

    /// Begins the work. Returns false if it has ended.
    pub(crate) fn begin(&self, now: Moment) -> bool {
        let mut facts = self.lock();
        let begins = facts.begin(now);
        if begins {
            self.publish(now.time, events::running());
        }
        begins
    }

    /// Takes a report. Returns true if it is withheld for a moment.
    pub(crate) fn report(
        &self,
        now: Moment,
        value: f64,
        text: Option<&str>,
    ) -> Result<bool, Stopped> {
        let mut facts = self.lock();
        if let Some(stopped) = facts.stopped {
            return Err(stopped);
        }
        let Some(progress) = &mut facts.progress else { return Ok(false) };
        progress.report(now.instant, value, text);
        Ok(self.tell(progress, now))
    }

    /// Tells a report that was withheld, if it is time. Returns true if one is still withheld.
    pub(crate) fn tell_withheld(&self, now: Moment) -> bool {
        let mut facts = self.lock();
        let is_running = facts.state == RunState::Running;
        let progress = facts.progress.as_mut().filter(|_| is_running);
        progress.is_some_and(|progress| self.tell(progress, now))
    }

    fn tell(&self, progress: &mut RunProgress, now: Moment) -> bool {
        if let Some(report) = progress.due(now.instant) {
            self.publish(now.time, events::progress(report));
        }
        progress.is_untold()
    }

    /// Tells a report that was withheld before later output, or drops it if it is too early: its event never comes after
    /// that output.
    fn tell_before_output(&self) {
        let mut facts = self.lock();
        if let Some(progress) = facts.progress.as_mut().filter(|progress| progress.is_untold()) {
            self.tell(progress, Moment::now());
            progress.drop_untold();
        }
    }

    /// Publishes partial results together. Returns true if it is time to count their bytes.
    pub(crate) fn partials(&self, values: &[Data]) -> Result<bool, PublishError> {
        if !values.is_empty() {
            self.tell_before_output();
        }
        let time = UnixTime::now();
        let event = |value| NewEvent { time, data: events::partial(value) };
        // The topic is in memory, which keeps them at once.
        let _receipt = self.topic.append(time, &Batch::new(values.iter().map(event).collect()))?;
        let bytes = values.iter().map(cost_bytes).sum::<u64>();
        Ok(self.uncounted_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > UNCOUNTED_BYTES_MAX)
    }

    /// Ends it: publishes the last progress and the last event, and tells the work to stop. Returns false if it has
    /// ended before.
    pub(crate) fn end(&self, now: Moment, ending: Ending) -> bool {
        let mut facts = self.lock();
        if !facts.end(now, &ending) {
            return false;
        }
        if let Some(report) = facts.progress.as_mut().and_then(|last| last.rest(now.instant)) {
            self.publish(now.time, events::progress(report));
        }
        self.topic.end_with(NewEvent { time: now.time, data: ending.event });
        self.stopped.send_replace(Some(ending.reason));
        drop(facts);
        self.ended.notify_all();
        true
    }

    /// A watcher that has missed such an event loses nothing: the state has what it says.
    fn publish(&self, time: UnixTime, data: Data) {
        let _ = self.topic.publish(time, data);
    }

    /// Returns the reason to stop after its topic has ended.
    pub(crate) fn reason(&self) -> Stopped {
        self.lock().stopped.unwrap_or(Stopped::Ended)
    }

    /// Returns the reason to stop, if there is one.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        *self.stopped.borrow()
    }

    pub(crate) async fn wait_stopped(&self) -> Stopped {
        let mut stopped = self.stopped.subscribe();
        // The sender lives as long as the run.
        stopped
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|reason| *reason)
            .unwrap_or(Stopped::Ended)
    }

    /// Blocks the thread for this time, or until the end.
    pub(crate) fn sleep(&self, time: Duration) -> Option<Stopped> {
        let facts = self.lock();
        let waited = self.ended.wait_timeout_while(facts, time, |facts| facts.stopped.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.stopped
    }

    pub(crate) fn keep_stderr(&self, bytes: &[u8]) {
        self.lock().keep_stderr(bytes);
    }

    pub(crate) fn hold(&self, bytes: u64) {
        self.held_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Drops its oldest events, as many as take this many bytes. Returns the number of those that it has dropped.
    pub(crate) fn shrink_by(&self, bytes: u64) -> u64 {
        let first = || self.topic.info(UnixTime::default()).first;
        let (before, kept) = (first(), self.topic.bytes(UnixTime::default()));
        self.topic.shrink_to(kept.saturating_sub(bytes));
        first() - before
    }

    /// Counts its bytes anew in the total. Returns the bytes by which it has grown.
    pub(crate) fn count_in(&self, total: &AtomicU64) -> u64 {
        let is_counted = self.is_counted.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_counted {
            return 0;
        }
        self.uncounted_bytes.store(0, Ordering::Relaxed);
        let bytes = self.bytes();
        let before = self.counted_bytes.swap(bytes, Ordering::Relaxed);
        total.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        bytes.saturating_sub(before)
    }

    fn bytes(&self) -> u64 {
        let events = self.topic.bytes(UnixTime::default());
        let name = self.name.as_ref().map_or(0, |name| name.as_str().len());
        let input = self.input.as_ref().map_or(0, ShownInput::held_bytes);
        let held = self.held_bytes() + (self.service.len() + name) as u64 + input;
        events + held + self.lock().bytes() + OVERHEAD_BYTES
    }

    pub(crate) fn discount(&self, total: &AtomicU64) {
        *self.is_counted.lock().unwrap_or_else(PoisonError::into_inner) = false;
        total.fetch_sub(self.counted_bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(crate) fn counted_bytes(&self) -> u64 {
        self.counted_bytes.load(Ordering::Relaxed)
    }

    /// Drops its events and tells its readers, who may hold it for long.
    pub(crate) fn forget(&self) {
        // Only a log on disk can fail.
        let _ = self.topic.delete();
    }

    fn lock(&self) -> MutexGuard<'_, RunFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
