//! A computation: its actions take turns until all are done. Pure: it gets the time, and returns events.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::board::Board;
use super::event::{Counts, EventText};
use super::forecast::Forecast;
use super::list;
use super::options::ComputationOptions;
use super::recorder::Recorder;
use super::sorting;
use super::tree::{ActionKind, ActionTree};

/// The steps of a turn, and so of the work between two looks at whether the run goes on: below a millisecond.
const TURN_STEPS: u32 = 4_096;

/// Whole lists are told again when the events since then have this many bytes, or twice as many as the whole lists
/// themselves had, if that is more.
const KEY_BYTES: usize = 64 << 10;

pub(super) struct Computation {
    tree: ActionTree,
    options: ComputationOptions,
    branches: Vec<Branch>,
    /// The action that has the next turn.
    next: usize,
    /// The bytes of the events since the lists were told whole, and of those that told them.
    since_key: usize,
    key: usize,
    /// With a pace.
    forecast: Option<Forecast>,
}

/// An action's part of the work.
#[derive(Default)]
struct Branch {
    /// `None` before it begins.
    recorder: Option<Recorder>,
    /// `Some` while it sorts.
    sorting: Option<Sorting>,
}

struct Sorting {
    board: Rc<Board>,
    algorithm: Pin<Box<dyn Future<Output = ()>>>,
    begun: Duration,
}

#[derive(Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// Events, maybe none, and more work.
    Worked(Vec<EventText>),
    /// The pace allows no list to change yet.
    TooEarly,
    Done,
}

impl Computation {
    pub(super) fn new(tree: ActionTree, options: ComputationOptions) -> Self {
        let branches = tree.actions.iter().map(|_| Branch::default()).collect();
        let forecast = options.pace.map(|_| Forecast::new(&tree));
        Self { tree, options, branches, next: 0, since_key: 0, key: 0, forecast }
    }

    /// Begins: tells the actions, and makes the lists that are at the beginning.
    pub(super) fn begin(&mut self, now: Duration) -> Vec<EventText> {
        let mut events = vec![EventText::plan(&self.tree, self.options.states)];
        self.start_after(None, now, &mut events);
        self.key = bytes(&events);
        events
    }

    /// Gives the next action its turn.
    pub(super) fn turn(&mut self, now: Duration) -> Turn {
        let count = self.branches.len();
        let others = (0..count).map(|step| (self.next + step) % count);
        let mut running = others.filter(|at| self.branches[*at].sorting.is_some()).peekable();
        if running.peek().is_none() {
            return Turn::Done;
        }
        let pace = self.options.pace;
        let mut events = Vec::new();
        if let Some(at) = running.find(|at| self.branches[*at].allowed(now, pace) > 0) {
            self.next = (at + 1) % count;
            if self.branches[at].work(now, pace, &mut events) {
                self.start_after(Some(at), now, &mut events);
            }
        } else {
            self.recorders().for_each(|recorder| recorder.tell_due(now, &mut events));
            if events.is_empty() {
                return Turn::TooEarly;
            }
        }
        self.since_key += bytes(&events);
        if self.since_key >= KEY_BYTES.max(2 * self.key) {
            self.tell_whole(&mut events);
        }
        Turn::Worked(events)
    }

    /// Starts the actions after this one; those that are done at once start others.
    fn start_after(&mut self, parent: Option<usize>, now: Duration, events: &mut Vec<EventText>) {
        let mut done = vec![parent];
        while let Some(parent) = done.pop() {
            for at in 0..self.branches.len() {
                if self.tree.actions[at].after == parent && self.start(at, now, events) {
                    done.push(Some(at));
                }
            }
        }
    }

    /// Starts an action. Returns true if it is done at once.
    fn start(&mut self, at: usize, now: Duration, events: &mut Vec<EventText>) -> bool {
        let action = &self.tree.actions[at];
        match action.kind {
            ActionKind::List { distribution, seed } => {
                let list = list::make(distribution, action.size, seed);
                let mut recorder = Recorder::new(at, list, self.options, now);
                recorder.done_at_once(events);
                self.branches[at].recorder = Some(recorder);
                true
            }
            ActionKind::Sort { algorithm, criterion } => {
                let parent =
                    action.after.and_then(|parent| self.branches[parent].recorder.as_ref());
                let list = parent.map(|parent| parent.list().to_vec()).unwrap_or_default();
                let board = Rc::new(Board::new(&list, criterion));
                let mut recorder = Recorder::new(at, list, self.options, now);
                recorder.whole(events);
                let sorted = Rc::clone(&board);
                let algorithm = Box::pin(async move { sorting::sort(algorithm, &sorted).await });
                self.branches[at].recorder = Some(recorder);
                self.branches[at].sorting = Some(Sorting { board, algorithm, begun: now });
                false
            }
        }
    }

    /// Tells all that a watcher needs who knows nothing of what came before.
    fn tell_whole(&mut self, events: &mut Vec<EventText>) {
        // What waits in a list comes before the plan, which begins everything anew.
        let mut wholes = vec![EventText::plan(&self.tree, self.options.states)];
        for recorder in self.recorders() {
            recorder.send(events);
            recorder.whole(&mut wholes);
        }
        self.key = bytes(&wholes);
        self.since_key = 0;
        events.extend(wholes);
    }

    /// Returns the lists of the actions that have begun.
    fn recorders(&mut self) -> impl Iterator<Item = &mut Recorder> {
        self.branches.iter_mut().filter_map(|branch| branch.recorder.as_mut())
    }

    /// Returns how much of the work is done, from 0 to 1, and words about it.
    pub(super) fn progress(&self) -> (f64, String) {
        let (value, is_exact) = match &self.forecast {
            Some(forecast) => {
                let changes = |at: usize| {
                    let branch = &self.branches[at];
                    (!branch.is_done()).then(|| branch.counts().changes)
                };
                (forecast.done(&self.tree, changes), forecast.is_exact())
            }
            None => self.work_done(),
        };
        let ended = self.branches.iter().filter(|branch| branch.is_done()).count();
        let how = if is_exact { "counted" } else { "estimated" };
        (value, format!("{ended} of {} actions done, progress {how}", self.branches.len()))
    }

    /// Returns how much of the work is done, from 0 to 1, and whether its amount is certain.
    fn work_done(&self) -> (f64, bool) {
        let (mut done, mut total, mut is_exact) = (0.0, 0.0, true);
        for (action, branch) in self.tree.actions.iter().zip(&self.branches) {
            let Some(work) = action.work() else { continue };
            total += work.total as f64;
            is_exact &= work.is_exact;
            let Counts { comparisons, writes, .. } = branch.counts();
            let steps = work.done(comparisons, writes);
            done += if branch.is_done() { work.total as f64 } else { steps };
        }
        (if total > 0.0 { done / total } else { 1.0 }, is_exact)
    }

    /// Returns the result: the number of states, and the counts of the sorts.
    pub(super) fn result(&self) -> EventText {
        let begun = self.tree.actions.iter().zip(&self.branches);
        let begun = begun.filter_map(|(action, branch)| Some((action, branch.recorder.as_ref()?)));
        let states = begun.clone().map(|(_, recorder)| recorder.states()).sum();
        let sorts = begun.filter(|(action, _)| matches!(action.kind, ActionKind::Sort { .. }));
        EventText::result(states, sorts.map(|(action, list)| (action.id.as_str(), list.counts())))
    }
}

impl Branch {
    /// Returns the steps so far.
    fn counts(&self) -> Counts {
        self.recorder.as_ref().map(Recorder::counts).unwrap_or_default()
    }

    fn is_done(&self) -> bool {
        self.recorder.is_some() && self.sorting.is_none()
    }

    /// Returns the number of changes that the pace allows now.
    fn allowed(&self, now: Duration, pace: Option<u64>) -> u64 {
        let (Some(pace), Some(sorting), Some(recorder)) = (pace, &self.sorting, &self.recorder)
        else {
            return u64::MAX;
        };
        let time = now.saturating_sub(sorting.begun).as_secs_f64();
        // The first change comes at once.
        ((time * pace as f64) as u64).saturating_add(1).saturating_sub(recorder.counts().changes)
    }

    /// Works for a turn. Returns true if that was the last one.
    fn work(&mut self, now: Duration, pace: Option<u64>, events: &mut Vec<EventText>) -> bool {
        let allowed = self.allowed(now, pace);
        let (Some(sorting), Some(recorder)) = (&mut self.sorting, &mut self.recorder) else {
            return false;
        };
        sorting.board.grant(TURN_STEPS, allowed);
        let polled = sorting.algorithm.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        for change in sorting.board.take_changes() {
            recorder.take(now, change, events);
        }
        recorder.compared(sorting.board.comparisons());
        recorder.tell_due(now, events);
        if polled == Poll::Pending {
            return false;
        }
        recorder.end(now, events);
        self.sorting = None;
        true
    }
}

fn bytes(events: &[EventText]) -> usize {
    events.iter().map(EventText::len).sum()
}
