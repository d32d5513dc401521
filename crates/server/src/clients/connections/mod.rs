//! The clients of this server, for those who may see them: the connections of each thread, and the last that were closed.
//!
//! Connections of the loop and WebSockets describe themselves when somebody asks, so they cost nothing more before. Only
//! the connections of the HTTP server, which take much more memory anyway, have an entry in a list.

pub(crate) mod closed;
pub(crate) mod described;
pub(crate) mod http;
pub(crate) mod survey;
pub(crate) mod view_right;
