//! The records of a collection, as the events of its topic make them. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use anemone_hub::Position;

use super::event::{RecordChange, RecordChangeKind};
use crate::{Fields, Record, Tag};

#[derive(Debug)]
pub(super) struct Stored {
    pub(super) fields: Arc<Fields>,
    pub(super) tag: Tag,
    /// The offset of its newest event.
    offset: u64,
    /// The cost of all events before that one.
    before: u64,
    /// The cost of that event.
    cost: u64,
}

impl Stored {
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    pub(super) fn record(&self) -> Record {
        Record { fields: Fields::clone(&self.fields), tag: Some(self.tag.clone()) }
    }
}

/// Orders ids by length and then by characters, which is the order of creation for the ids that a collection gives.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct RecordId {
    bytes: usize,
    text: Arc<str>,
}

impl RecordId {
    fn of(text: &str) -> Self {
        Self { bytes: text.len(), text: text.into() }
    }
}

/// The events that a topic certainly retains, by number and by cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Window {
    pub(super) events: u64,
    pub(super) bytes: u64,
}

/// An upper bound of the bytes that an event counts for in any log, besides its data.
const OVERHEAD_BYTES: u64 = 160;

/// Returns an upper bound of the bytes that an event with this much data counts for in its topic.
pub(super) fn cost(data_bytes: usize) -> u64 {
    data_bytes as u64 + OVERHEAD_BYTES
}

/// The records, and where in the topic their newest events are.
#[derive(Debug, Default)]
pub(super) struct State {
    records: BTreeMap<RecordId, Arc<Stored>>,
    by_offset: BTreeMap<u64, RecordId>,
    /// The offset of the newest event.
    head: u64,
    /// The cost of all events up to that one.
    end: u64,
    /// The cost of the newest events of all records.
    live: u64,
}

impl State {
    pub(super) fn get(&self, id: &str) -> Option<&Arc<Stored>> {
        self.records.get(&RecordId::of(id))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.records.values()
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Returns the cost of the newest events of all records.
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// Returns the events from the oldest one that is the newest of a record, to the head.
    pub(super) fn extent(&self) -> Window {
        let oldest = self.oldest().next();
        let from =
            oldest.map_or((self.head, self.end), |(offset, stored)| (offset - 1, stored.before));
        Window { events: self.head - from.0, bytes: self.end - from.1 }
    }

    /// The records by their newest events, the oldest first.
    fn oldest(&self) -> impl Iterator<Item = (u64, &Arc<Stored>)> {
        let records = self.by_offset.iter();
        records.filter_map(|(offset, id)| Some((*offset, self.records.get(id)?)))
    }

    /// Takes the event at this position into account; `None` for an event that is no change.
    pub(super) fn apply(&mut self, position: Position, cost: u64, change: Option<RecordChange>) {
        let before = self.end;
        self.head = position.offset;
        self.end += cost;
        let Some(change) = change else { return };
        let id = RecordId::of(change.id());
        if let Some(old) = self.records.remove(&id) {
            self.by_offset.remove(&old.offset);
            self.live -= old.cost;
        }
        let tag = match change.kind {
            RecordChangeKind::Removed => return,
            RecordChangeKind::Kept(tag) => tag,
            _ => position.into(),
        };
        self.live += cost;
        self.by_offset.insert(position.offset, id.clone());
        let offset = position.offset;
        let fields = Arc::new(change.record);
        self.records.insert(id, Arc::new(Stored { fields, tag, offset, before, cost }));
    }

    /// Skips events that the topic does not have.
    pub(super) fn skip_to(&mut self, offset: u64) {
        self.head = offset;
    }

    /// Returns the records to publish again before an event of this cost, so that the window always has the newest event
    /// of each record.
    ///
    /// This begins when the window is half used, with two records and twice the cost of the event at a time. While the
    /// records take at most a quarter of the window, all of them have moved before the window is full, and a change never
    /// costs more than that.
    pub(super) fn due(&self, next: u64, window: Window) -> Vec<RecordChange> {
        let (mut due, mut moved) = (Vec::new(), 0);
        for (offset, stored) in self.oldest() {
            let added = due.len() as u64 + 1;
            let events = self.head - offset + 1 + added;
            let bytes = self.end - stored.before + moved + next;
            let is_half = events * 2 > window.events || bytes * 2 > window.bytes;
            let is_full = events > window.events || bytes > window.bytes;
            let is_enough = due.len() >= 2 && moved >= 2 * next;
            if !is_full && (!is_half || is_enough) {
                break;
            }
            let kind = RecordChangeKind::Kept(stored.tag.clone());
            due.push(RecordChange { kind, record: Fields::clone(&stored.fields) });
            moved += stored.cost + KEPT_BYTES;
        }
        due
    }
}

/// An upper bound of the bytes that `{"kept":…,"of":"…"}` has more than `{"created":…}`.
const KEPT_BYTES: u64 = 48;
