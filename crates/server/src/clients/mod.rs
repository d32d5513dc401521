//! The connected clients: their permits, the list of readers, and the logs of their requests.

pub(crate) mod access;
pub(crate) mod awaited;
pub(crate) mod connections;
pub(crate) mod herald;
pub(crate) mod permits;
pub(crate) mod places;
pub(crate) mod readers;
pub(crate) mod refusals;
