//! From an address to its requests.

pub(crate) mod accept;
mod at_once;
pub(crate) mod bind_error;
pub(crate) mod connection;
pub(crate) mod doors;
pub(crate) mod first_bytes;
mod guest;
pub(crate) mod http2;
mod idle;
pub(crate) mod listener;
mod parsed;
pub(crate) mod port;
pub(crate) mod running;
pub(crate) mod secure;
pub(crate) mod upgraded;
