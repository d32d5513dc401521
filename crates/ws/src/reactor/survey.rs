//! Descriptions of the connections of a thread, for those who ask who is connected.
//!
//! A survey costs nothing until somebody asks. It then describes a few connections in each turn, so that it stops
//! nobody, and holds no connection: one that ends meanwhile is missing.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use slab::Slab;
use tokio::sync::oneshot;

use super::waker::{Token, WakeQueue};

/// The most connections that are described in one turn, which takes some dozens of microseconds.
pub(super) const DESCRIBED_MAX: usize = 64;
/// The most places that are looked at in one turn. Many may be empty after a crowd has left.
pub(super) const LOOKED_AT_MAX: usize = 4096;

/// The identity of a connection among those that a thread has had.
///
/// Surveys list connections in the order of their ids.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId {
    /// True for a connection that a task drives.
    is_driven: bool,
    place: u32,
    generation: u32,
}

impl ConnectionId {
    const DRIVEN: u64 = 1 << 63;

    pub(super) fn of_loop(token: Token) -> Self {
        Self { is_driven: false, place: token.key, generation: token.generation }
    }

    /// Returns the id as a number, in the same order.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        let driven = if self.is_driven { Self::DRIVEN } else { 0 };
        driven | u64::from(self.place) << 32 | u64::from(self.generation)
    }

    /// Returns the id of this number. Any number is one, though maybe not of a connection.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        let place = (bits & !Self::DRIVEN) >> 32;
        Self { is_driven: bits & Self::DRIVEN != 0, place: place as u32, generation: bits as u32 }
    }
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Speaks {
    /// Its first bytes have not decided it yet.
    Undecided,
    /// Requests, which [`Opening::answered`](super::Opening::answered) answers.
    Requests,
    /// WebSocket, after its handshake.
    WebSocket,
    /// The bytes of a [`StreamHandler`](super::StreamHandler).
    Stream,
}

/// A description of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub struct SurveyedConnection {
    /// Its identity on its thread.
    pub id: ConnectionId,
    /// Its protocol.
    pub speaks: Speaks,
    /// The address of the peer; `None` for a stream that tells none, such as one of a task.
    pub peer: Option<SocketAddr>,
    /// True once the connection is being closed.
    pub is_closing: bool,
    /// The time since the connection came to its loop or its task, to the second.
    pub age: Duration,
    /// The bytes of output that the stream has not taken yet.
    pub queued_bytes: usize,
    /// The bytes that are held for the peer in all: queued output, and incomplete input.
    pub held_bytes: usize,
    /// The bytes that were read from the stream, with those that came with the handshake.
    pub received_bytes: u64,
    /// The bytes that the stream has taken.
    pub sent_bytes: u64,
    /// True for a WebSocket whose messages are compressed (RFC 7692).
    pub is_compressed: bool,
    /// The last measured time from a ping of a WebSocket to its pong, to the millisecond.
    pub round_trip: Option<Duration>,
    /// The result of [`Handler::describe`](super::Handler::describe) or
    /// [`StreamHandler::describe`](super::StreamHandler::describe) returns.
    pub description: Option<Box<dyn Any>>,
}

impl SurveyedConnection {
    pub(super) fn new(id: ConnectionId, speaks: Speaks, description: Option<Box<dyn Any>>) -> Self {
        let (peer, is_closing, is_compressed, age, round_trip) = Default::default();
        let (queued_bytes, held_bytes, received_bytes, sent_bytes) = Default::default();
        Self {
            id,
            speaks,
            peer,
            is_closing,
            age,
            queued_bytes,
            held_bytes,
            received_bytes,
            sent_bytes,
            is_compressed,
            round_trip,
            description,
        }
    }
}

/// The figures of a thread's loop, and of its connections with tasks. All but the first two count from the beginning.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LoopFigures {
    /// The number of open connections, including the undecided ones and those that tasks drive.
    pub connections: usize,
    /// The number of sockets that have work left from the last turn.
    pub waiting: usize,
    /// The turns of the loop.
    pub turns: u64,
    /// The events of sockets that the system has reported.
    pub events: u64,
    /// The bytes that were read.
    pub received_bytes: u64,
    /// The bytes that were written, or wait to be written.
    pub sent_bytes: u64,
}

impl LoopFigures {
    /// Adds the work of other connections of the same thread.
    pub(super) fn beside(self, other: Self) -> Self {
        Self {
            received_bytes: self.received_bytes + other.received_bytes,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            ..self
        }
    }
}

#[derive(Debug)]
pub(super) struct LoopSurvey {
    /// The next place to look at.
    next: u32,
    most: usize,
    found: Vec<SurveyedConnection>,
    told: oneshot::Sender<Vec<SurveyedConnection>>,
}

/// The open questions about the connections of a thread, and those beside its loop.
#[derive(Default)]
pub(super) struct Surveys {
    queue: RefCell<VecDeque<LoopSurvey>>,
    driven: Rc<DrivenConnections>,
}

impl Surveys {
    pub(super) fn have_work(&self) -> bool {
        !self.queue.borrow().is_empty()
    }

    /// Works on the first survey in the queue: `look` describes from a place on at most so many connections, and returns
    /// the next place, unless that was all.
    pub(super) fn work(
        &self,
        look: impl FnOnce(u32, usize, &mut Vec<SurveyedConnection>) -> Option<u32>,
    ) {
        let Some(mut survey) = self.queue.borrow_mut().pop_front() else { return };
        if survey.told.is_closed() {
            return;
        }
        let most = (survey.most - survey.found.len()).min(DESCRIBED_MAX);
        let next = look(survey.next, most, &mut survey.found);
        match next.filter(|_| survey.found.len() < survey.most) {
            Some(next) => self.queue.borrow_mut().push_front(LoopSurvey { next, ..survey }),
            // Fails if nobody wants it any more.
            None => drop(survey.told.send(survey.found)),
        }
    }

    /// Lists a connection that a task drives.
    pub(super) fn enter(&self, driven: Weak<dyn Driven>) -> DrivenPlace {
        let mut table = self.driven.0.borrow_mut();
        table.generation = table.generation.wrapping_add(1);
        let generation = table.generation;
        let key = table.all.insert((generation, driven));
        DrivenPlace { all: Rc::clone(&self.driven), key }
    }

    /// Returns the number of connections that tasks drive.
    pub(super) fn driven(&self) -> usize {
        self.driven.0.borrow().all.len()
    }

    /// Describes the connections of the loop, which `wakes` wakes, and then those that tasks drive.
    pub(super) async fn survey(
        &self,
        wakes: &WakeQueue,
        after: Option<ConnectionId>,
        most: usize,
    ) -> Vec<SurveyedConnection> {
        let mut found = Vec::new();
        let next = after.map_or(0, |after| after.place.saturating_add(1));
        let is_in_tasks = after.is_some_and(|after| after.is_driven);
        if !is_in_tasks && most > 0 {
            let (told, tells) = oneshot::channel();
            let survey = LoopSurvey { next, most, found: Vec::new(), told };
            self.queue.borrow_mut().push_back(survey);
            wakes.notify();
            // Fails if the loop has ended, with all of its connections.
            found = tells.await.unwrap_or_default();
        }
        let mut next = Some(if is_in_tasks { next } else { 0 });
        while let Some(from) = next.filter(|_| found.len() < most) {
            next = self.driven.describe(from, (most - found.len()).min(DESCRIBED_MAX), &mut found);
            tokio::task::yield_now().await;
        }
        found
    }
}

/// A connection that a task drives.
pub(super) trait Driven {
    /// Describes it; `None` while it is at work.
    fn describe(&self, id: ConnectionId) -> Option<SurveyedConnection>;
}

/// The connections of a thread that tasks drive.
#[derive(Default)]
pub(super) struct DrivenConnections(RefCell<DrivenTable>);

#[derive(Default)]
struct DrivenTable {
    all: Slab<(u32, Weak<dyn Driven>)>,
    generation: u32,
}

impl DrivenConnections {
    /// Describes at most `most` connections from a place on. Returns the next place, unless that was all.
    fn describe(&self, from: u32, most: usize, found: &mut Vec<SurveyedConnection>) -> Option<u32> {
        let all = &self.0.borrow().all;
        look_through(from, most, all.capacity(), |place| {
            let (generation, driven) = all.get(place as usize)?;
            let id = ConnectionId { is_driven: true, place, generation: *generation };
            found.push(driven.upgrade()?.describe(id)?);
            Some(())
        })
    }
}

/// Lists a driven connection until it is dropped.
pub(super) struct DrivenPlace {
    all: Rc<DrivenConnections>,
    key: usize,
}

impl Drop for DrivenPlace {
    fn drop(&mut self) {
        self.all.0.borrow_mut().all.remove(self.key);
    }
}

/// Looks at places until `most` of them had something, or [`LOOKED_AT_MAX`] were looked at. Returns the next place,
/// unless that was all.
pub(super) fn look_through(
    from: u32,
    most: usize,
    places: usize,
    mut look: impl FnMut(u32) -> Option<()>,
) -> Option<u32> {
    let end = u32::try_from(places).unwrap_or(u32::MAX);
    let (mut place, mut found) = (from, 0);
    while place < end {
        if found == most || (place - from) as usize == LOOKED_AT_MAX {
            return Some(place);
        }
        found += usize::from(look(place).is_some());
        place += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_number_in_the_same_order() {
        let id = |is_driven, place, generation| ConnectionId { is_driven, place, generation };
        let ids = [
            id(false, 0, u32::MAX),
            id(false, 1, 0),
            id(false, u32::MAX >> 1, 7),
            id(true, 0, 1),
            id(true, 3, 0),
        ];
        assert!(ids.is_sorted() && ids.iter().map(|id| id.to_bits()).is_sorted());
        assert_eq!(ids.map(|id| ConnectionId::from_bits(id.to_bits())), ids);
    }

    #[test]
    fn a_turn_looks_at_so_many_places_and_finds_so_many_connections_and_no_more() {
        let look = |from, most, places| {
            let mut found = 0;
            let next =
                look_through(from, most, places, |place| (place % 2 == 0).then(|| found += 1));
            (next, found)
        };
        assert_eq!(look(0, 3, 100), (Some(5), 3));
        assert_eq!(look(5, 3, 10), (None, 2));
        assert_eq!(look(0, 5, 9), (None, 5), "the last place had the last that was wanted");
        assert_eq!(look(0, 9999, 9999), (Some(LOOKED_AT_MAX as u32), LOOKED_AT_MAX / 2));
        assert_eq!(look(0, 9999, LOOKED_AT_MAX), (None, LOOKED_AT_MAX / 2));
        assert_eq!(look(7, 1, 7), (None, 0));
    }
}
