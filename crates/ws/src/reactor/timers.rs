//! The times at which sockets are due.
//!
//! Each socket has one valid entry. A due time that moves later, as it does with every read, does not move the entry.
//! The loop checks the socket again when the entry comes up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anemone_proto::Time;

/// Due times by socket, the earliest first.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Time, u32)>>);

impl Timers {
    pub(super) fn insert(&mut self, due: Time, key: u32) {
        self.0.push(Reverse((due, key)));
    }

    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        let Reverse(entry) = *self.0.peek()?;
        (entry.0 <= now).then(|| {
            self.0.pop();
            entry
        })
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.0.peek().map(|Reverse((due, _))| *due)
    }
}
