//! The result of an opening handshake: all that a connection begins with.

use std::sync::Arc;

use anemone_proto::{Config, Connection, NegotiatedDeflate, Time};

use crate::codecs;

/// The server's side of a handshake that is done, whoever did it.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    /// Limits and times.
    pub config: Arc<Config>,
    /// Compression, if it was negotiated (RFC 7692).
    pub deflate: Option<NegotiatedDeflate>,
    /// The bytes that came after the handshake, if any.
    pub first: Vec<u8>,
}

impl Agreed {
    /// The connection that begins now.
    pub(crate) fn connection(&self, now: Time) -> Connection {
        let connection = Connection::server(Arc::clone(&self.config), now);
        match &self.deflate {
            Some(negotiated) => connection.with_deflate(negotiated, codecs::exchange),
            None => connection,
        }
    }
}
