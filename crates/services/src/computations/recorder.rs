//! The states of one list: from its changes to the events that tell them.

use std::time::Duration;

use super::board::{ListChange, ListChangeKind};
use super::event::{Counts, EventText};
use super::options::{ComputationOptions, SentStates};

/// An event is sent when its changes have so many bytes, or have waited for this time.
const BATCH_BYTES: usize = 16 << 10;
const BATCH_TIME: Duration = Duration::from_millis(20);

/// A list as it is now, and as the events have told it.
#[derive(Debug)]
pub(super) struct Recorder {
    action: usize,
    options: ComputationOptions,
    /// With all changes.
    list: Vec<u32>,
    counts: Counts,
    /// With the changes that are told; empty if each change is told.
    told: Vec<u32>,
    told_counts: Counts,
    /// The positions at which the two differ, or may; and for each position, whether it is one of them.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    /// The newest state was told at this time.
    told_at: Duration,
    /// The bytes of that state, if states are sent at a rate.
    told_bytes: usize,
    /// The states that are told in all.
    states: u64,
    /// The states of the event that is not sent yet.
    batch: String,
    batch_states: u64,
    batch_since: Duration,
    is_done: bool,
}

impl Recorder {
    pub(super) fn new(
        action: usize,
        list: Vec<u32>,
        options: ComputationOptions,
        now: Duration,
    ) -> Self {
        let is_all = options.states == SentStates::All;
        let (told, is_touched) =
            if is_all { Default::default() } else { (list.clone(), vec![false; list.len()]) };
        Self {
            action,
            options,
            list,
            counts: Counts::default(),
            told,
            told_counts: Counts::default(),
            touched: Vec::new(),
            is_touched,
            told_at: now,
            told_bytes: 0,
            states: 0,
            batch: String::new(),
            batch_states: 0,
            batch_since: now,
            is_done: false,
        }
    }

    /// Returns the list with all changes.
    pub(super) fn list(&self) -> &[u32] {
        &self.list
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn states(&self) -> u64 {
        self.states
    }

    /// Takes a change. Appends the events that are full.
    pub(super) fn take(&mut self, now: Duration, change: ListChange, events: &mut Vec<EventText>) {
        let ListChange { kind, comparisons } = change;
        self.counts.comparisons = comparisons;
        self.counts.changes += 1;
        match kind {
            ListChangeKind::Swap(first, second) => {
                self.list.swap(first, second);
                self.counts.writes += 2;
            }
            ListChangeKind::Write(at, value) => {
                self.list[at] = value;
                self.counts.writes += 1;
            }
        }
        match self.options.states {
            SentStates::All => {
                self.tell(now, &kind.to_json());
                self.send_full(events);
            }
            SentStates::Every(count) => {
                self.touch(kind);
                if self.counts.changes.is_multiple_of(count) {
                    self.tell_touched(now, events);
                }
            }
            SentStates::Rate(_) => self.touch(kind),
        }
    }

    /// Takes the number of comparisons, some of which have led to no change.
    pub(super) fn compared(&mut self, comparisons: u64) {
        self.counts.comparisons = comparisons;
    }

    pub(super) fn tell_due(&mut self, now: Duration, events: &mut Vec<EventText>) {
        let interval = self.options.states.interval(self.told_bytes);
        let is_due = now.saturating_sub(self.told_at) >= interval;
        if self.options.states.is_rate() && is_due && !self.touched.is_empty() {
            let before = events.len();
            self.tell_touched(now, events);
            self.send(events);
            self.told_bytes = events[before..].iter().map(EventText::len).sum();
        } else if now.saturating_sub(self.batch_since) >= BATCH_TIME {
            self.send(events);
        }
    }

    /// Tells the last state: nothing changes after it.
    pub(super) fn end(&mut self, now: Duration, events: &mut Vec<EventText>) {
        if self.told_counts.changes < self.counts.changes && self.options.states != SentStates::All
        {
            self.tell_touched(now, events);
        }
        self.told_counts = self.counts;
        self.is_done = true;
        let changes = std::mem::take(&mut self.batch);
        self.batch_states = 0;
        events.push(EventText::changes(self.action, &changes, self.told_counts, true));
    }

    /// Returns the whole list as it is told, and sends before it what waits.
    pub(super) fn whole(&mut self, events: &mut Vec<EventText>) {
        self.send(events);
        let told = if self.options.states == SentStates::All { &self.list } else { &self.told };
        events.push(EventText::list(self.action, told, self.told_counts, self.is_done));
    }

    /// Returns the whole list of an action that is done at once.
    pub(super) fn done_at_once(&mut self, events: &mut Vec<EventText>) {
        self.is_done = true;
        self.whole(events);
    }

    fn touch(&mut self, kind: ListChangeKind) {
        let places = match kind {
            ListChangeKind::Swap(first, second) => [first, second],
            ListChangeKind::Write(at, _) => [at, at],
        };
        for at in places {
            if !std::mem::replace(&mut self.is_touched[at], true) {
                self.touched.push(at);
            }
        }
    }

    /// Tells the state that the list has now: the positions that have changed, or all of it if that is shorter.
    fn tell_touched(&mut self, now: Duration, events: &mut Vec<EventText>) {
        let is_whole = self.touched.len() * 2 >= self.list.len();
        self.touched.sort_unstable();
        let mut writes = String::from("[\"w\"");
        for at in std::mem::take(&mut self.touched) {
            self.is_touched[at] = false;
            self.told[at] = self.list[at];
            if !is_whole {
                writes.push_str(&format!(",{at},{}", self.list[at]));
            }
        }
        writes.push(']');
        if is_whole {
            self.send(events);
            (self.told_counts, self.told_at) = (self.counts, now);
            self.states += 1;
            self.whole(events);
        } else {
            self.tell(now, &writes);
            self.send_full(events);
        }
    }

    /// Appends a state to the event that waits.
    fn tell(&mut self, now: Duration, change: &str) {
        if self.batch.is_empty() {
            self.batch_since = now;
        } else {
            self.batch.push(',');
        }
        self.batch.push_str(change);
        self.batch_states += 1;
        self.states += 1;
        (self.told_counts, self.told_at) = (self.counts, now);
    }

    fn send_full(&mut self, events: &mut Vec<EventText>) {
        if self.batch_states >= self.options.batch || self.batch.len() >= BATCH_BYTES {
            self.send(events);
        }
    }

    pub(super) fn send(&mut self, events: &mut Vec<EventText>) {
        if self.batch_states > 0 {
            let changes = std::mem::take(&mut self.batch);
            self.batch_states = 0;
            events.push(EventText::changes(self.action, &changes, self.told_counts, false));
        }
    }
}
