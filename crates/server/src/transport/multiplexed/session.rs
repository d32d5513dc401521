//! The open requests of a connection, their limits, and their turns.
//!
//! No IO and no clock. The `work` of a request is opaque here.

use std::collections::{BTreeMap, VecDeque};

use anemone_wire::multiplexed::{Id, Message, Request};
use anemone_ws::{Memory, Reservation};

use crate::cost::MULTIPLEXED_REQUEST_BYTES;
use crate::{Kind, Limits, Problem};

/// The step to take after a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// A new request, whose id is free, within the limits. It is answered at once, or [opened](Session::open).
    Begin(Id, Request<'a>),
    /// The cancellation of this open request.
    Cancel(Id),
    /// The cancellation of a request that is over. Its final status was under way, and is its only one.
    Pass,
    /// A problem to report: without an id if there is none, or if it belongs to an open request; without a request if
    /// that cannot be parsed.
    Refuse(Option<Id>, Option<Request<'a>>, Problem),
}

/// The requests of a connection.
#[derive(Debug)]
pub(crate) struct Session<T> {
    open: BTreeMap<Id, OpenWork<T>>,
    /// The requests with a turn, in order. An id may belong to a request that is over.
    turns: VecDeque<Id>,
    requests_max: usize,
    line_bytes_max: usize,
    /// Counts the cost of open requests.
    held: Reservation,
}

#[derive(Debug)]
struct OpenWork<T> {
    work: T,
    has_turn: bool,
}

impl<T> Session<T> {
    /// Creates a session whose open requests count in `memory`.
    pub(crate) fn new(limits: &Limits, memory: &Memory) -> Self {
        let (requests_max, line_bytes_max) =
            (limits.multiplexed_requests_max, limits.multiplexed_line_bytes_max);
        let (open, turns, held) = (BTreeMap::new(), VecDeque::new(), memory.reservation());
        Self { open, turns, requests_max, line_bytes_max, held }
    }

    pub(crate) fn receive<'a>(&self, bytes: &'a [u8]) -> Step<'a> {
        match Message::parse(bytes, self.line_bytes_max) {
            Ok(Message::Request { id, request }) => match self.refusal(id) {
                Some((id, problem)) => Step::Refuse(id, Some(request), problem),
                None => Step::Begin(id, request),
            },
            Ok(Message::Cancel(id)) if self.open.contains_key(&id) => Step::Cancel(id),
            Ok(Message::Cancel(_)) => Step::Pass,
            Err(malformed) => {
                // With the id of an open request, the problem would look like that one's end.
                let id = malformed.id.filter(|id| !self.open.contains_key(id));
                let problem = Problem::new(Kind::BadMessage, malformed.error.to_string());
                Step::Refuse(id, None, problem)
            }
        }
    }

    /// Returns the problem of a request with this id, and the id to report it with.
    fn refusal(&self, id: Id) -> Option<(Option<Id>, Problem)> {
        if self.open.contains_key(&id) {
            let detail = format!("request {} is still open: its id is not free yet", id.as_str());
            return Some((None, Problem::new(Kind::BadMessage, detail)));
        }
        if self.open.len() >= self.requests_max {
            let detail = format!(
                "the connection already has {} open requests, the most that are allowed",
                self.requests_max
            );
            return Some((Some(id), Problem::new(Kind::TooManyRequests, detail)));
        }
        None
    }

    /// Opens the request, and gives it a turn.
    pub(crate) fn open(&mut self, id: Id, work: T) {
        self.hold(id, work);
        self.give_turn(id);
    }

    /// Opens the request without a turn.
    pub(crate) fn hold(&mut self, id: Id, work: T) {
        self.open.insert(id, OpenWork { work, has_turn: false });
        self.held.set(self.open.len() * MULTIPLEXED_REQUEST_BYTES);
    }

    /// Ends the request, and frees its id.
    pub(crate) fn end(&mut self, id: Id) -> Option<T> {
        let open = self.open.remove(&id);
        self.held.set(self.open.len() * MULTIPLEXED_REQUEST_BYTES);
        open.map(|open| open.work)
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.turns.clear();
        self.held.set(0);
    }

    pub(crate) fn work(&mut self, id: Id) -> Option<&mut T> {
        self.open.get_mut(&id).map(|open| &mut open.work)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the cost of the open requests in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.bytes()
    }

    pub(crate) fn works(&mut self) -> impl Iterator<Item = (Id, &mut T)> {
        self.open.iter_mut().map(|(id, open)| (*id, &mut open.work))
    }

    /// Returns the work of all open requests, to look at.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> + Clone {
        self.open.values().map(|open| &open.work)
    }

    /// Gives a request a turn, after those that have one already.
    pub(crate) fn give_turn(&mut self, id: Id) {
        if let Some(open) = self.open.get_mut(&id)
            && !open.has_turn
        {
            open.has_turn = true;
            self.turns.push_back(id);
        }
    }

    pub(crate) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    pub(crate) fn take_turn(&mut self) -> Option<Id> {
        while let Some(id) = self.turns.pop_front() {
            if let Some(open) = self.open.get_mut(&id)
                && open.has_turn
            {
                open.has_turn = false;
                return Some(id);
            }
        }
        // Frees the queue after a burst.
        self.turns = VecDeque::new();
        None
    }
}

#[cfg(test)]
mod tests;
