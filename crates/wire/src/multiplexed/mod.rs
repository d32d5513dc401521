//! `anemone.v1`: many requests on one connection.
//!
//! Each message of a WebSocket, and on TCP each after its [length](crate::framing), is a line of ASCII, and after a line
//! feed the payload. The meaning of a request, and whether its id is free, is decided elsewhere.

mod id;
mod message;
mod reply;

pub use id::{Id, IdError};
pub use message::{MalformedMessage, Message, MessageError, Request};
pub use reply::{Reply, status, write_item};

/// The subprotocol's name.
pub const SUBPROTOCOL: &str = "anemone.v1";

#[cfg(test)]
mod testing {
    use proptest::prelude::*;

    use super::Id;

    pub(super) fn ids() -> impl Strategy<Value = Id> {
        "[A-Za-z0-9_][A-Za-z0-9_-]{0,15}".prop_map(|text| text.parse().unwrap())
    }
}
