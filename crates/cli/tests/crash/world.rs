//! The state that all participants share: whether the server is up, how many events were acknowledged, and who waits
//! for what. Every wait is for a change of this state, never a sleep.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::history::{Head, Id, Pen, Place, Record, Role};

/// No wait here takes this long, on any machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) http: SocketAddr,
    pub(crate) tcp: SocketAddr,
}

pub(crate) struct World {
    pub(crate) directory: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) server: Option<Addresses>,
    /// Publishers begin nothing more.
    pub(crate) publishing_is_over: bool,
    /// Nobody publishes any more.
    pub(crate) is_settled: bool,
    /// Readers begin nothing more.
    pub(crate) reading_is_over: bool,
    /// Events acknowledged.
    pub(crate) acked: u64,
    /// Batches acknowledged again under the same key.
    pub(crate) replayed: u64,
    pub(crate) gaps: u64,
    /// The newest known offset of each topic, and the offset of each reader.
    pub(crate) newest: BTreeMap<String, u64>,
    pub(crate) reached: BTreeMap<String, (String, u64)>,
    pub(crate) faults: Vec<String>,
}

impl World {
    pub(crate) fn new(directory: PathBuf) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { directory, state, changed }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Waits until this is so. Panics if it takes too long, or if a participant received something that is never
    /// allowed.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&State) -> bool) {
        let until = Instant::now() + LONG;
        let mut state = self.state();
        while !is_so(&state) {
            assert!(state.faults.is_empty(), "{:#?}", state.faults);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let State { server, newest, reached, .. } = &*state;
                panic!(
                    "no {what} after {LONG:?}: {server:?}, newest {newest:?}, reached {reached:?}"
                );
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The server, once it is up. `None` when all is over.
    pub(crate) fn server(&self) -> Option<Addresses> {
        let mut state = self.state();
        while state.server.is_none() && !state.reading_is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.server.filter(|_| !state.reading_is_over)
    }

    pub(crate) fn is_publishing(&self) -> bool {
        !self.state().publishing_is_over
    }

    /// Waits for so many more events, for the server's end, or for that of publishing.
    pub(crate) fn pace(&self, events: u64) {
        let mut state = self.state();
        let enough = state.acked + events;
        while state.acked < enough && state.server.is_some() && !state.publishing_is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the server's end.
    pub(crate) fn rest(&self) {
        let mut state = self.state();
        while state.server.is_some() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Records the observations of one participant, and updates the shared state.
pub(crate) struct Witness<'a> {
    pub(crate) world: &'a World,
    pub(crate) head: Head,
    pen: Pen,
    /// The place where a reader stands.
    pub(crate) place: Option<Place>,
}

impl<'a> Witness<'a> {
    pub(crate) fn new(world: &'a World, who: &str, topic: &str, role: Role) -> Self {
        let head = Head { who: who.to_owned(), topic: topic.to_owned(), role };
        let pen = Pen::new(&world.directory, &head);
        if role == Role::Reader {
            let reached = (topic.to_owned(), 0);
            world.change(|state| state.reached.extend([(who.to_owned(), reached)]));
        }
        Self { world, head, pen, place: None }
    }

    /// Notes something down.
    pub(crate) fn record(&mut self, record: Record) {
        self.pen.record(&record);
        let Head { who, topic, role } = &self.head;
        let newest = match &record {
            Record::Acked { at: Some((_, last)), .. } => last.offset,
            Record::Begins(place) | Record::Gap { resume: place, .. } => {
                self.place = Some(place.clone());
                place.offset
            }
            Record::Event { at, .. } => {
                let counted = self.place.as_ref().map(|place| place.at(place.offset + 1));
                self.place = at.clone().or(counted);
                self.place.as_ref().map_or(0, |place| place.offset)
            }
            _ => 0,
        };
        self.world.change(|state| {
            match &record {
                Record::Acked { first, last, .. } => state.acked += last - first + 1,
                Record::Gap { .. } => state.gaps += 1,
                Record::Fault(fault) => state.faults.push(format!("{who} of {topic}: {fault}")),
                _ => {}
            }
            let known = state.newest.entry(topic.clone()).or_default();
            *known = newest.max(*known);
            if *role == Role::Reader && newest > 0 {
                state.reached.insert(who.clone(), (topic.clone(), newest));
            }
        });
    }

    pub(crate) fn event(&mut self, at: Option<Place>, id: Result<Id, String>) {
        self.record(match id {
            Ok(id) => Record::Event { at, id },
            Err(fault) => Record::Fault(fault),
        });
    }

    /// The target to read on at.
    pub(crate) fn target(&mut self) -> String {
        let topic = self.head.topic.clone();
        let Some(place) = self.place.clone() else {
            return format!("/topics/{topic}?after=earliest");
        };
        self.record(Record::Resumed(place.clone()));
        format!("/topics/{topic}?after={place}")
    }
}
