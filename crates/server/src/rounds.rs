//! The rounds of a thread, in each of which all tasks of one kind together have a share of time.
//!
//! A runtime gives each ready task a turn, so a kind of task with many of them would delay every other: a thousand streams
//! that all have something to write, or ten connections whose requests are dear. Here those whose share is used up wait, in
//! the order in which they came, until every other task of the thread has had its turn. Whoever is admitted and does not
//! come holds up nobody: each round admits the next.
//!
//! Tasks wait as lanes ([`Lane`]): each other lane has its turn before the next one of the same lane. Dear lanes wait in a line of
//! their own: whoever has short turns waits for two of them at most, and not for all.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;
use tokio::time::Instant;

pub(crate) use self::lane::Lane;
use self::lane::SHARE;

mod lane;

/// The rounds for one kind of task on one thread.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    state: Mutex<RoundState>,
    /// Notified when a task waits.
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

    /// Returns true if a task may begin at once when nobody waits. A round is over once others have had as much time as was
    /// used in it. So a task that asks little, and seldom, never waits for a round.
    fn has_time(&mut self) -> bool {
        if self.used >= SHARE {
            if self.begun.is_some_and(|begun| begun.elapsed() < 2 * self.used) {
                return false;
            }
            (self.begun, self.used) = (Some(Instant::now()), Duration::ZERO);
        }
        true
    }

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

    /// Takes a step once it is admitted. Each step needs an admission of its own.
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
mod tests;
