//! The open calls of a connection by their ids. Pure.

use anemone_wire::multiplexed::Id;
use slab::Slab;

/// The calls that have no final status yet. An id is free again after the call's final status, so ids stay short.
#[derive(Debug)]
pub(super) struct OpenCalls<C> {
    calls: Slab<(u64, C)>,
    /// The number of calls so far.
    count: u64,
}

/// The identity of a call. Two calls of a connection never have the same ticket, even if the second one gets the id of
/// the first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ticket {
    pub(super) id: Id,
    number: u64,
}

impl<C> Default for OpenCalls<C> {
    fn default() -> Self {
        Self { calls: Slab::new(), count: 0 }
    }
}

impl<C> OpenCalls<C> {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a call under a free id.
    pub(super) fn open(&mut self, call: C) -> Ticket {
        self.count += 1;
        let key = self.calls.insert((self.count, call));
        Ticket { id: id(key), number: self.count }
    }

    /// Returns the call with this ticket, unless it is over.
    pub(super) fn of(&self, ticket: Ticket) -> Option<&C> {
        let (number, call) = self.calls.get(key(ticket.id)?)?;
        (*number == ticket.number).then_some(call)
    }

    pub(super) fn get(&self, id: Id) -> Option<&C> {
        self.calls.get(key(id)?).map(|(_, call)| call)
    }

    /// Removes the call with this id, since its final status has come.
    pub(super) fn close(&mut self, id: Id) -> Option<C> {
        self.calls.try_remove(key(id)?).map(|(_, call)| call)
    }

    pub(super) fn clear(&mut self) {
        self.calls.clear();
    }
}

/// Returns the id for a key of the slab. The conversion cannot overflow, since a client has far fewer open calls than
/// there are ids.
fn id(key: usize) -> Id {
    Id::from(u32::try_from(key).unwrap_or(u32::MAX))
}

/// Returns the key for an id; `None` if this client does not use the id.
fn key(own: Id) -> Option<usize> {
    let key = own.as_str().parse().ok()?;
    (id(key) == own).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_free_after_its_call_and_its_ticket_is_void() {
        let mut calls = OpenCalls::default();
        let [first, second] = ["a", "b"].map(|call| calls.open(call));
        assert_eq!((first.id.as_str(), second.id.as_str()), ("0", "1"));
        assert_eq!(calls.close(first.id), Some("a"));
        let third = calls.open("c");
        assert_eq!((third.id, calls.of(first), calls.of(third)), (first.id, None, Some(&"c")));
        assert_eq!(calls.get(second.id), Some(&"b"));
        assert_eq!(calls.close(second.id), Some("b"));
        assert_eq!(calls.close(second.id), None);
        assert!(!calls.is_empty());
    }

    #[test]
    fn an_id_that_nobody_gave_is_no_call() {
        let mut calls = OpenCalls::default();
        calls.open(());
        for text in ["1", "00", "x", "4294967295", "99999999999"] {
            assert_eq!(calls.get(text.parse().unwrap()), None, "{text}");
        }
        assert_eq!(calls.get("0".parse().unwrap()), Some(&()));
    }
}
