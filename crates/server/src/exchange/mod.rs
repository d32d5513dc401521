//! The exchange of an admitted request: its meaning, its reply, and the handoff of its connection.

pub(crate) mod arrival;
pub(crate) mod change;
pub(crate) mod destination;
mod documents;
pub(crate) mod gate;
pub(crate) mod handoff;
pub(crate) mod many_request;
pub(crate) mod page_reply;
pub(crate) mod read_request;
pub(crate) mod read_transport;
pub(crate) mod resource;
pub(crate) mod survey;
pub(crate) mod tcp_transport;
pub(crate) mod upgrade;
mod visible;
pub(crate) mod visit;
