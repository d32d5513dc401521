//! A connection's requests: which are open, within which limits, and whose turn it is.
//!
//! No IO and no clock. What is done for a request is its `work`, of which nothing is known here.

use std::collections::{BTreeMap, VecDeque};

use anemone_wire::multiplexed::{Id, Message, Request};
use anemone_ws::{Memory, Reservation};

use crate::cost::MULTIPLEXED_REQUEST_BYTES;
use crate::{Kind, Limits, Problem};

/// The step to take after a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// A request, whose id is free and for which there is room. It is answered on the spot, or
    /// [opened](Session::open).
    Begin(Id, Request<'a>),
    /// This one, which is open, is wanted no longer.
    Cancel(Id),
    /// A request that is over is cancelled. Its final status was on its way, and is its only one.
    Pass,
    /// To be told; without an id, since there is none, or because it is that of a request that goes on. Without a request
    /// if it cannot be read.
    Refuse(Option<Id>, Option<Request<'a>>, Problem),
}

/// The requests of a connection.
#[derive(Debug)]
pub(crate) struct Session<T> {
    open: BTreeMap<Id, Open<T>>,
    /// Those that have something to tell, first come first served. An id may be of one that is over.
    turns: VecDeque<Id>,
    requests_max: usize,
    line_bytes_max: usize,
    /// The cost of those that are open.
    held: Reservation,
}

#[derive(Debug)]
struct Open<T> {
    work: T,
    has_turn: bool,
}

impl<T> Session<T> {
    /// The cost of its open requests counts in `memory`.
    pub(crate) fn new(limits: &Limits, memory: &Memory) -> Self {
        let (requests_max, line_bytes_max) =
            (limits.multiplexed_requests_max, limits.multiplexed_line_bytes_max);
        let (open, turns, held) = (BTreeMap::new(), VecDeque::new(), memory.reservation());
        Self { open, turns, requests_max, line_bytes_max, held }
    }

    /// Reads a message.
    pub(crate) fn receive<'a>(&self, bytes: &'a [u8]) -> Step<'a> {
        match Message::parse(bytes, self.line_bytes_max) {
            Ok(Message::Request { id, request }) => match self.refusal(id) {
                Some((id, problem)) => Step::Refuse(id, Some(request), problem),
                None => Step::Begin(id, request),
            },
            Ok(Message::Cancel(id)) if self.open.contains_key(&id) => Step::Cancel(id),
            Ok(Message::Cancel(_)) => Step::Pass,
            Err(malformed) => {
                // Told of a request that goes on, it would look like that one's end.
                let id = malformed.id.filter(|id| !self.open.contains_key(id));
                let problem = Problem::new(Kind::BadMessage, malformed.error.to_string());
                Step::Refuse(id, None, problem)
            }
        }
    }

    /// The problem with a request of this id, and the id that it is told of.
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

    /// The request is open from now on, and it is its turn some time.
    pub(crate) fn open(&mut self, id: Id, work: T) {
        self.open.insert(id, Open { work, has_turn: false });
        self.held.set(self.open.len() * MULTIPLEXED_REQUEST_BYTES);
        self.give_turn(id);
    }

    /// The request is over, and its id free.
    pub(crate) fn end(&mut self, id: Id) -> Option<T> {
        let open = self.open.remove(&id);
        self.held.set(self.open.len() * MULTIPLEXED_REQUEST_BYTES);
        open.map(|open| open.work)
    }

    /// All are over.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.turns.clear();
        self.held.set(0);
    }

    pub(crate) fn work(&mut self, id: Id) -> Option<&mut T> {
        self.open.get_mut(&id).map(|open| &mut open.work)
    }

    /// Whether none is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The cost of those that are open, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.bytes()
    }

    /// All that are open.
    pub(crate) fn works(&mut self) -> impl Iterator<Item = (Id, &mut T)> {
        self.open.iter_mut().map(|(id, open)| (*id, &mut open.work))
    }

    /// It has something to tell; not sooner than those who have had that already.
    pub(crate) fn give_turn(&mut self, id: Id) {
        if let Some(open) = self.open.get_mut(&id)
            && !open.has_turn
        {
            open.has_turn = true;
            self.turns.push_back(id);
        }
    }

    /// Whether it may be somebody's turn.
    pub(crate) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Whose turn it is.
    pub(crate) fn take_turn(&mut self) -> Option<Id> {
        while let Some(id) = self.turns.pop_front() {
            if let Some(open) = self.open.get_mut(&id)
                && open.has_turn
            {
                open.has_turn = false;
                return Some(id);
            }
        }
        // A burst is over.
        self.turns = VecDeque::new();
        None
    }
}

#[cfg(test)]
mod tests;
