//! `anemone.v1`: many requests on one connection ("Multiplexed" in `docs/PROTOCOL.md`).
//!
//! A message is a line of ASCII, perhaps with a line feed and a payload after it. Over WebSocket, it is one message; over
//! TCP, its [length](crate::framing) precedes it.

mod id;
mod message;
mod reply;

pub use id::{Id, IdError};
pub use message::{MalformedMessage, Message, MessageError, Request};
pub use reply::{Reply, status, write_item};

/// The WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "anemone.v1";

#[cfg(test)]
mod testing {
    use proptest::prelude::*;

    use super::Id;

    pub(super) fn ids() -> impl Strategy<Value = Id> {
        "[A-Za-z0-9_][A-Za-z0-9_-]{0,15}".prop_map(|text| text.parse().unwrap())
    }
}
