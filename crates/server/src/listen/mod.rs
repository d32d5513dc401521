//! From an address to the requests on it.

pub(crate) mod accept;
pub(crate) mod connection;
pub(crate) mod first_bytes;
pub(crate) mod http2;
pub(crate) mod listener;
pub(crate) mod secure;
