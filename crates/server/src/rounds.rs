//! The rounds of a thread, in each of which all tasks of one kind together have a share of time.
//!
//! A runtime gives each ready task a turn, so a kind of task with many of them would delay every other: a thousand streams
//! that all have something to write, or ten connections whose requests are dear. Here those whose share is used up wait, in
//! the order in which they came, until every other task of the thread has had its turn. Whoever is admitted and does not
//! come holds up nobody: each round admits the next.
//!
//! The tasks of a lane, as those of the requests of one HTTP/2 connection, have one place in the line: each other lane has its
//! turn before their next one. A lane whose turns take whole shares is dear, and so is a new one, of which nothing is known.
//! These wait in a line of their own: whoever has short turns waits for two of them at most, and not for all.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::turn::TURN_TIME;

/// The share of a round: two turns. The last task to begin may exceed it.
const SHARE: Duration = TURN_TIME.saturating_mul(2);

/// The rounds for one kind of task on one thread.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    state: Mutex<RoundState>,
    /// Told when somebody waits.
    wanted: Notify,
}

#[derive(Debug, Default)]
struct RoundState {
    light: VecDeque<Arc<Lane>>,
    dear: VecDeque<Arc<Lane>>,
    /// True in each second round, which begins with a dear task.
    is_of_dear: bool,
    /// When this round began, and the time that was used in it.
    begun: Option<Instant>,
    used: Duration,
}

impl RoundState {
    fn is_waited_for(&self) -> bool {
        !(self.light.is_empty() && self.dear.is_empty())
    }

    /// Returns true if a task that nobody waits before may begin at once. A round in which others had as much time as was used
    /// is over, so that who asks little, and seldom, never waits for a round.
    fn has_time(&mut self) -> bool {
        if self.used >= SHARE {
            if self.begun.is_some_and(|begun| begun.elapsed() < 2 * self.used) {
                return false;
            }
            (self.begun, self.used) = (Some(Instant::now()), Duration::ZERO);
        }
        true
    }

    /// Begins another round.
    fn begin(&mut self) {
        (self.begun, self.used) = (Some(Instant::now()), Duration::ZERO);
        self.is_of_dear = !self.is_of_dear;
        self.admit();
    }

    /// Admits the first of those who are still there.
    fn admit(&mut self) {
        let is_dear_first = self.is_of_dear && self.used.is_zero();
        while let Some(lane) = self.next_lane(is_dear_first) {
            let is_admitted = lane.admit();
            if lane.is_waited_in() {
                self.line_of(&lane).push_back(lane);
            }
            if is_admitted {
                return;
            }
        }
    }

    /// Takes the first lane out of its line. One that has become dear since it came goes to the other line.
    fn next_lane(&mut self, is_dear_first: bool) -> Option<Arc<Lane>> {
        if is_dear_first && let Some(lane) = self.dear.pop_front() {
            return Some(lane);
        }
        while let Some(lane) = self.light.pop_front() {
            if !lane.is_dear() {
                return Some(lane);
            }
            self.dear.push_back(lane);
        }
        self.dear.pop_front()
    }

    fn line_of(&mut self, lane: &Lane) -> &mut VecDeque<Arc<Lane>> {
        if lane.is_dear() { &mut self.dear } else { &mut self.light }
    }
}

/// The tasks that have one place in the line together.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Those who wait; while there are some, the lane is in a line. Changes only under the lock of the rounds.
    waiting: Mutex<VecDeque<oneshot::Sender<()>>>,
    /// How dear its last turns were: two more for each that took a whole share, one less for each other. One alone makes no
    /// lane dear, since the system may have done something else meanwhile.
    cost: AtomicU8,
}

/// The cost from which a lane is dear, that of a new one, and the greatest one.
const DEAR: u8 = 3;
const DEAREST: u8 = 4;

impl Default for Lane {
    fn default() -> Self {
        Self { waiting: Mutex::default(), cost: AtomicU8::new(DEAR) }
    }
}

impl Lane {
    /// Counts a turn.
    fn count(&self, time: Duration) {
        // Only one task of a lane has a turn at a time.
        let cost = self.cost.load(Ordering::Relaxed);
        let cost = if time >= SHARE { DEAREST.min(cost + 2) } else { cost.saturating_sub(1) };
        self.cost.store(cost, Ordering::Relaxed);
    }

    /// Admits its first task that is still there; false if there is none.
    fn admit(&self) -> bool {
        let mut waiting = self.waiting();
        while let Some(next) = waiting.pop_front() {
            if next.send(()).is_ok() {
                return true;
            }
        }
        false
    }

    fn is_waited_in(&self) -> bool {
        !self.waiting().is_empty()
    }

    fn is_dear(&self) -> bool {
        self.cost.load(Ordering::Relaxed) >= DEAR
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<()>>> {
        // No method panics while it holds the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rounds {
    /// Begins one round after the other while somebody waits. It runs on the thread of the tasks.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            self.wanted.notified().await;
            while self.state().is_waited_for() {
                yield_now().await;
                self.state().begin();
            }
        }
    }

    /// Counts time that was used. While there is some left, the next one is admitted.
    fn spend(&self, time: Duration) {
        let mut state = self.state();
        state.begun.get_or_insert_with(Instant::now);
        state.used += time;
        if state.used < SHARE {
            state.admit();
        }
    }

    /// Returns what tells when the caller is admitted; `None` if it may begin at once.
    fn enter(&self, lane: &Arc<Lane>) -> Option<oneshot::Receiver<()>> {
        let mut state = self.state();
        if !state.is_waited_for() && state.has_time() {
            return None;
        }
        let (admit, admitted) = oneshot::channel();
        if !lane.is_waited_in() {
            state.line_of(lane).push_back(Arc::clone(lane));
        }
        lane.waiting().push_back(admit);
        self.wanted.notify_one();
        Some(admitted)
    }

    fn state(&self) -> MutexGuard<'_, RoundState> {
        // No method panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task among those of its kind.
#[derive(Debug)]
pub(crate) struct InRounds {
    rounds: Arc<Rounds>,
    lane: Arc<Lane>,
    /// Set while it waits.
    admitted: Option<oneshot::Receiver<()>>,
}

impl InRounds {
    /// Returns a task with a lane of its own.
    pub(crate) fn new(rounds: &Arc<Rounds>) -> Self {
        Self::of_lane(rounds, &Arc::default())
    }

    /// Returns a task of this lane.
    pub(crate) fn of_lane(rounds: &Arc<Rounds>, lane: &Arc<Lane>) -> Self {
        Self { rounds: Arc::clone(rounds), lane: Arc::clone(lane), admitted: None }
    }

    /// Waits until it may work. Cancel safe: it keeps its place.
    pub(crate) async fn admitted(&mut self) {
        poll_fn(|cx| self.poll_admitted(cx)).await;
    }

    /// Counts the time since it has begun to work.
    pub(crate) fn count(&self, begun: Instant) {
        self.spend(begun.elapsed());
    }

    fn spend(&self, time: Duration) {
        self.lane.count(time);
        self.rounds.spend(time);
    }

    /// Takes a step once it is admitted, which it has to be for each.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        step: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        ready!(self.poll_admitted(cx));
        let begun = Instant::now();
        let taken = step(cx);
        self.count(begun);
        taken
    }

    /// Runs a future, whose every step has to be admitted.
    pub(crate) async fn run<T>(mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|cx| self.poll(cx, |cx| future.as_mut().poll(cx))).await
    }

    fn poll_admitted(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.admitted.is_none() {
            self.admitted = self.rounds.enter(&self.lane);
        }
        if let Some(admitted) = &mut self.admitted {
            // An error says that the thread ends.
            let _ = ready!(admitted.poll_unpin(cx));
            self.admitted = None;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local};
    use tokio::time::advance;

    use super::*;

    type Log = Rc<RefCell<Vec<&'static str>>>;

    /// Has ten turns, each of which takes so long.
    async fn take_turns(rounds: Arc<Rounds>, log: Log, name: &'static str, each: Duration) {
        let mut own = InRounds::new(&rounds);
        for _ in 0..10 {
            own.admitted().await;
            log.borrow_mut().push(name);
            own.spend(each);
            yield_now().await;
        }
    }

    /// Returns the log of tasks with turns of this length, and of another kind of task, until these have had all turns.
    async fn logged(names: &[&'static str], each: Duration) -> Vec<&'static str> {
        let log = Log::default();
        let turns = async {
            let rounds = Arc::<Rounds>::default();
            let beginning = spawn_local(Arc::clone(&rounds).run());
            let other = Rc::clone(&log);
            let other = spawn_local(async move {
                loop {
                    other.borrow_mut().push("other");
                    yield_now().await;
                }
            });
            let begin = |name: &&'static str| {
                spawn_local(take_turns(Arc::clone(&rounds), Rc::clone(&log), name, each))
            };
            let tasks: Vec<_> = names.iter().map(begin).collect();
            for task in tasks {
                task.await.unwrap();
            }
            beginning.abort();
            other.abort();
        };
        LocalSet::new().run_until(turns).await;
        log.take()
    }

    #[tokio::test(start_paused = true)]
    async fn another_task_has_its_turn_between_any_two_that_take_long() {
        let log = logged(&["a", "b", "c", "d"], 10 * SHARE).await;
        assert!(log.windows(2).all(|two| two.contains(&"other")), "{log:?}");
        // Those that take long have their turns in order.
        let dear: Vec<_> = log.into_iter().filter(|name| *name != "other").collect();
        assert_eq!(dear.len(), 40);
        assert!(dear.windows(2).all(|two| two[0] != two[1]), "{dear:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn short_turns_share_a_round() {
        let log = logged(&["a"; 40], SHARE / 20).await;
        let most = log.split(|name| *name == "other").map(<[_]>::len).max().unwrap();
        assert!((10..=20).contains(&most), "{most} turns in a round");
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_turn_waits_for_two_dear_ones_and_not_for_all() {
        let log = Log::default();
        let turns = async {
            let rounds = Arc::<Rounds>::default();
            let beginning = spawn_local(Arc::clone(&rounds).run());
            let begin = |name, each| {
                spawn_local(take_turns(Arc::clone(&rounds), Rc::clone(&log), name, each))
            };
            let dear: Vec<_> = (0..20).map(|_| begin("dear", 10 * SHARE)).collect();
            // By then, each has had a turn, and is known to be dear.
            while log.borrow().len() < 3 * dear.len() {
                yield_now().await;
            }
            log.borrow_mut().clear();
            let light = begin("light", SHARE / 20);
            for task in dear.into_iter().chain([light]) {
                task.await.unwrap();
            }
            beginning.abort();
        };
        LocalSet::new().run_until(turns).await;
        let log = log.take();
        let between = log.split(|name| *name == "light");
        let waits: Vec<_> = between.map(<[_]>::len).collect();
        assert_eq!(waits.iter().sum::<usize>(), 140, "nobody is left out");
        // Its first turn comes after theirs, since nobody knows that it is short.
        let [first, short @ .., _] = &*waits else { panic!("{waits:?}") };
        assert!(*first <= 20 && short.len() == 9, "{waits:?}");
        assert!(short.iter().all(|wait| *wait <= 2), "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_tasks_of_a_lane_wait_for_each_other_and_no_other_lane_for_them() {
        let log = Log::default();
        let turns = async {
            let rounds = Arc::<Rounds>::default();
            let beginning = spawn_local(Arc::clone(&rounds).run());
            let lane = Arc::<Lane>::default();
            let once = |name, mut own: InRounds, each| {
                let log = Rc::clone(&log);
                spawn_local(async move {
                    own.admitted().await;
                    log.borrow_mut().push(name);
                    own.spend(each);
                })
            };
            // Each has one turn, so nobody knows before that it is dear. One has gone before its turn.
            let many =
                (0..100).map(|_| once("many", InRounds::of_lane(&rounds, &lane), 10 * SHARE));
            let many: Vec<_> = many.collect();
            yield_now().await;
            many[50].abort();
            for _ in 0..5 {
                once("one", InRounds::new(&rounds), SHARE / 20).await.unwrap();
            }
            for task in many {
                let _ = task.await;
            }
            beginning.abort();
        };
        LocalSet::new().run_until(turns).await;
        let log = log.take();
        let last = log.iter().rposition(|name| *name == "one").unwrap();
        assert!(last <= 5 * 4, "each waits for few of the many: {last}");
        assert_eq!(log.len(), 104, "nobody is left out");
    }

    #[test]
    fn one_long_turn_in_three_makes_no_lane_dear_and_one_in_two_does() {
        let lane = Lane::default();
        assert!(lane.is_dear(), "nothing is known of it");
        let mut after = |time| {
            lane.count(time);
            lane.is_dear()
        };
        let (long, short) = (SHARE, SHARE / 2);
        let few = [short, short, short, long, short, short, long, short, short];
        assert!(!few.into_iter().any(&mut after));
        let dear = [long, short].into_iter().cycle().take(100).filter(|time| after(*time)).count();
        assert!(dear >= 90, "{dear}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_seldom_waits_for_no_round() {
        let mut seldom = InRounds::new(&Arc::default());
        for _ in 0..3 {
            assert!(seldom.admitted().now_or_never().is_some());
            seldom.spend(SHARE);
            // The others have as much time.
            advance(2 * SHARE).await;
        }
        assert!(seldom.admitted().now_or_never().is_some());
        seldom.spend(SHARE);
        advance(SHARE).await;
        assert!(seldom.admitted().now_or_never().is_none(), "they have had none yet");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_admitted_and_does_not_come_holds_up_nobody() {
        let turns = async {
            let rounds = Arc::<Rounds>::default();
            rounds.spend(SHARE);
            // One never comes again, and one is gone.
            let mut absent = InRounds::new(&rounds);
            assert!(absent.admitted().now_or_never().is_none());
            let mut gone = InRounds::new(&rounds);
            assert!(gone.admitted().now_or_never().is_none());
            drop(gone);
            let beginning = spawn_local(Arc::clone(&rounds).run());
            InRounds::new(&rounds).admitted().await;
            beginning.abort();
        };
        LocalSet::new().run_until(turns).await;
    }
}
