//! All runs: starts them, finds them and stops them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use anemone_wire::RunState;

use super::alarm::Alarm;
use super::attachment::Attachment;
use super::context::RunContext;
use super::failure::RunFailure;
use super::key::RunKey;
use super::lane::RunLane;
use super::lane_queue::RunJob;
use super::limits::RunLimits;
use super::list::{ListedRuns, RunList};
use super::moment::Moment;
use super::progress;
use super::registry::Registry;
use super::run::{Keeper, NewRun, Run};
use super::service::RunWork;
use super::start::{StartError, StartRun, Started};
use super::state::Ending;
use super::thread;
use crate::{Epoch, KeyWindow, Retention, Topic, TopicName, TopicOptions};

/// All runs of a server. Clones share them; when the last one is dropped, all runs are cancelled.
#[derive(Clone, Debug)]
pub struct Runs(Arc<RunsHandle>);

#[derive(Debug)]
struct RunsHandle(Arc<SharedRuns>);

impl Drop for RunsHandle {
    fn drop(&mut self) {
        self.0.cancel_all();
        self.0.alarm.close();
    }
}

#[derive(Debug)]
struct SharedRuns {
    limits: RunLimits,
    registry: Mutex<Registry>,
    /// Notified when a work returns.
    returned: Condvar,
    total_bytes: AtomicU64,
    /// Wakes the thread that looks at the time.
    alarm: Arc<Alarm>,
    has_timer: AtomicBool,
    /// True if a withheld progress has rung the alarm, and is not told yet.
    is_withheld: AtomicBool,
    own: Weak<Self>,
}

impl Runs {
    /// Creates an empty list. Its first run starts a thread that looks at the time.
    #[must_use]
    pub fn new(limits: RunLimits) -> Self {
        let limits = RunLimits { running_max: limits.running_max.max(1), ..limits };
        let shared = Arc::new_cyclic(|own| SharedRuns {
            limits,
            registry: Mutex::new(Registry::new(limits)),
            returned: Condvar::new(),
            total_bytes: AtomicU64::new(0),
            alarm: Arc::default(),
            has_timer: AtomicBool::new(false),
            is_withheld: AtomicBool::new(false),
            own: Weak::clone(own),
        });
        Self(Arc::new(RunsHandle(shared)))
    }

    /// Starts a run, or puts it in the queue. Never blocks for another run.
    ///
    /// # Errors
    /// [`StartError`] when there is no room, or the key was used with another input.
    pub fn start(&self, start: StartRun) -> Result<Started, StartError> {
        self.0.0.start(start)
    }

    /// Returns the run with this key, if it is kept. A text that is not a key has none.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Arc<Run>> {
        let key: RunKey = key.parse().ok()?;
        self.0.0.lock().get(key)
    }

    /// Lists at most `limit` runs in these states, or in all if there are none: those that have not ended, newest first,
    /// and then those that have.
    #[must_use]
    pub fn list(&self, states: &[RunState], limit: usize) -> RunList {
        self.0.0.lock().list(ListedRuns { service: None, states }, limit)
    }

    /// Lists as [`list`](Self::list) does, but only the runs of the service at this path.
    #[must_use]
    pub fn list_of_service(&self, service: &str, states: &[RunState], limit: usize) -> RunList {
        self.0.0.lock().list(ListedRuns { service: Some(service), states }, limit)
    }

    /// Cancels all runs and refuses new ones. Waits at most this time, blocking its thread, until their works have
    /// returned. Returns the number of works that have not.
    #[must_use]
    pub fn stop(&self, wait: Duration) -> usize {
        let shared = &self.0.0;
        shared.cancel_all();
        let is_busy = |registry: &mut Registry| registry.running() > 0;
        let waited = shared.returned.wait_timeout_while(shared.lock(), wait, is_busy);
        waited.unwrap_or_else(PoisonError::into_inner).0.running()
    }

    /// Returns the number of works that have not returned.
    #[cfg(test)]
    pub(crate) fn running(&self) -> usize {
        self.0.0.lock().running()
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> RunLimits {
        self.0.0.limits
    }

    /// Returns the bytes of all runs that are kept.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.0.total_bytes.load(Ordering::Relaxed)
    }
}

impl Keeper for SharedRuns {
    fn end(&self, run: &Run, ending: Ending) -> bool {
        let now = Moment::now();
        let mut registry = self.lock();
        if !run.end(now, ending) {
            return false;
        }
        let job = registry.end(now, run, &self.total_bytes);
        drop(registry);
        self.count(run);
        self.alarm.ring();
        // The work may take its time when it is dropped.
        drop(job);
        true
    }

    fn count(&self, run: &Run) {
        let grown = run.count_in(&self.total_bytes);
        if self.total_bytes.load(Ordering::Relaxed) <= self.limits.total_bytes_max {
            return;
        }
        let mut registry = self.lock();
        let excess = registry.make_room(&self.total_bytes, run);
        if excess > 0 {
            // The rest of the excess is that of others, who grow at the same time.
            run.shrink_by(excess.min(grown));
            run.count_in(&self.total_bytes);
        }
        drop(registry);
        self.alarm.ring();
    }

    fn tell_later(&self) {
        if !self.is_withheld.swap(true, Ordering::Relaxed) {
            self.alarm.ring();
        }
    }

    fn update_places(&self, lane: RunLane) -> u64 {
        self.lock().update_places(lane, Moment::now())
    }
}

impl SharedRuns {
    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, start: StartRun) -> Result<Started, StartError> {
        let StartRun { service, name, input, owner, is_exempt, .. } = start;
        let StartRun { key, is_timed, is_attached, held_bytes, work, .. } = start;
        let attach = |run: &Arc<Run>| is_attached.then(|| Attachment::new(run));
        let (held_bytes, lane) = (work.bytes(held_bytes), work.lane());
        let owner = owner.filter(|_| !is_exempt);
        let key = key.map(|(key, digest)| ((owner, service.clone(), key), digest));
        let (run_key, topic) = self.new_topic()?;
        let new = NewRun { key: run_key, service, name, input, owner, is_timed, lane, topic };
        let keeper: Weak<dyn Keeper> = self.own.clone();
        let run = Arc::new(Run::new(new, Moment::now(), keeper));
        self.look_at_the_time()?;
        let now = Moment::now();
        let mut registry = self.lock();
        if let Some((key, digest)) = &key
            && let Some(run) = registry.replayed(key, *digest)?
        {
            // Under the lock, so that it has not ended with its earlier attachment.
            let attachment = if run.is_attached() { attach(&run) } else { None };
            return Ok(Started { run, is_replayed: true, attachment });
        }
        registry.admits(lane, owner, held_bytes)?;
        run.hold(held_bytes);
        run.count_in(&self.total_bytes);
        let excess = registry.make_room(&self.total_bytes, &run);
        self.alarm.ring();
        if excess > 0 {
            run.discount(&self.total_bytes);
            return Err(StartError::MemoryFull);
        }
        registry.add(RunJob { run: Arc::clone(&run), work }, key);
        let attachment = attach(&run);
        let job = registry.next_job(lane, now);
        let waits = job.as_ref().is_none_or(|job| !Arc::ptr_eq(&job.run, &run));
        registry.tell_places(lane, now, waits.then_some(&run));
        drop(registry);
        job.into_iter().for_each(|job| self.begin(now, job));
        Ok(Started { run, is_replayed: false, attachment })
    }

    fn new_topic(&self) -> Result<(RunKey, Topic), StartError> {
        let key = RunKey::random()?;
        let name: TopicName = key.short().parse().map_err(io::Error::other)?;
        let RunLimits { events_max, bytes_max, .. } = self.limits;
        let age_max = Duration::MAX;
        let retention = Retention { events_max, bytes_max, age_max };
        let topic = Topic::new(name, Epoch::random()?, retention);
        let keys = KeyWindow { keys_max: 0, ..KeyWindow::default() };
        topic.configure(TopicOptions { keys, ..retention.into() });
        Ok((key, topic))
    }

    /// Begins the works that may begin. A work that ends at once, or gets no thread, calls this again; so only the
    /// first caller begins works, in a loop.
    fn begin_next(&self) {
        if !self.lock().claim_beginning() {
            return;
        }
        loop {
            let now = Moment::now();
            let mut registry = self.lock();
            let Some(job) = registry.next_job_or_end(now) else { return };
            registry.tell_places(job.run.lane(), now, None);
            drop(registry);
            self.begin(now, job);
        }
    }

    /// Begins the work of a job that has a slot, on a thread of its own.
    fn begin(&self, now: Moment, job: RunJob) {
        let RunJob { run, work } = job;
        let Some(shared) = self.own.upgrade() else { return };
        let slot = Slot { shared, run: Arc::clone(&run) };
        if !run.begin(now) {
            return;
        }
        self.alarm.ring();
        let name = format!("run {}", run.key().short());
        if let Err(error) = thread::spawn(name, work.priority(), move || slot.work(work)) {
            let detail = format!("the system has no thread for the run: {error}");
            self.end(&run, Ending::failed(&RunFailure::new(detail)));
        }
    }

    fn cancel_all(&self) {
        let runs = self.lock().stop();
        for run in runs {
            self.end(&run, Ending::cancelled());
        }
    }

    /// Starts the thread that looks at the time, once.
    fn look_at_the_time(&self) -> io::Result<()> {
        if self.has_timer.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (alarm, shared) = (Arc::clone(&self.alarm), Weak::clone(&self.own));
        let watch = move || {
            let mut next = None;
            while alarm.wait(next) {
                let Some(shared) = shared.upgrade() else { return };
                next = shared.tick();
            }
        };
        let begun = std::thread::Builder::new().name("runs".to_owned()).spawn(watch);
        begun.map(drop).inspect_err(|_| self.has_timer.store(false, Ordering::Relaxed))
    }

    /// Does what is due, and returns the time until the next.
    fn tick(&self) -> Option<Duration> {
        let now = Moment::now();
        let mut registry = self.lock();
        registry.expire(now.instant, &self.total_bytes);
        let forgotten = registry.take_forgotten();
        let (overdue, working) = (registry.overdue(now.instant), registry.working());
        drop(registry);
        forgotten.iter().for_each(|run| run.forget());
        drop(forgotten);
        for run in overdue {
            let time_max = self.limits.time_max_of(run.is_timed()).unwrap_or_default();
            self.end(&run, Ending::timed_out(time_max));
        }
        self.is_withheld.store(false, Ordering::Relaxed);
        let mut is_withheld = false;
        for run in working {
            // The event counts with the next one: only the work itself knows by how much it has grown.
            is_withheld |= run.tell_withheld(now);
        }
        self.is_withheld.fetch_or(is_withheld, Ordering::Relaxed);
        let next = self.lock().next_due(Instant::now());
        let soon = is_withheld.then_some(progress::INTERVAL);
        next.into_iter().chain(soon).min()
    }
}

/// The slot of a work. Dropping it lets the next one begin.
struct Slot {
    shared: Arc<SharedRuns>,
    run: Arc<Run>,
}

impl Slot {
    /// Does the work, and ends the run with its outcome.
    fn work(self, work: RunWork) {
        let Self { shared, run } = &self;
        let context = RunContext::new(Arc::clone(run), Arc::clone(shared) as Arc<dyn Keeper>);
        let outcome = work.run(&context);
        run.hold(0);
        shared.end(run, Ending::of(outcome, shared.limits.bytes_max));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Whether the work has returned or could not begin, it holds nothing any more.
        self.run.hold(0);
        self.shared.count(&self.run);
        self.shared.lock().release(&self.run);
        self.shared.returned.notify_all();
        self.shared.begin_next();
    }
}
