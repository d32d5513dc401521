//! `anemone.v1`: many requests on one connection ("Multiplexed: `anemone.v1`" in `docs/PROTOCOL.md`).
//!
//! A message is a line of ASCII, perhaps with a line feed and a payload after it. Over WebSocket, it is one message; over
//! TCP, its [length](crate::framing) precedes it.

mod fields;
mod id;
mod message;
mod reply;

pub use fields::{FieldError, FieldList, Fields, REPLY_FIELDS, is_request_field};
pub use id::{Id, IdError};
pub use message::{MalformedMessage, Message, MessageError, Request};
pub use reply::{ItemMessage, Reply, status};

/// The WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "anemone.v1";

#[cfg(test)]
mod testing {
    use proptest::prelude::*;

    use super::{FieldList, Id};

    pub(super) fn ids() -> impl Strategy<Value = Id> {
        "[A-Za-z0-9_][A-Za-z0-9_-]{0,15}".prop_map(|text| text.parse().unwrap())
    }
    pub(super) fn fields() -> impl Strategy<Value = FieldList> {
        let value = prop::collection::vec(any::<u8>(), 0..9);
        prop::collection::btree_map("x-[a-z]{1,9}", value, 0..3).prop_map(|fields| {
            let mut list = FieldList::default();
            for (name, value) in &fields {
                // Values with control characters are left out.
                let _ = list.push(name, value);
            }
            list
        })
    }
}
