//! The result of an opening handshake.

use std::sync::Arc;

use anemone_proto::{Config, Connection, NegotiatedDeflate, Time};

use crate::codecs;

/// The server's state after an opening handshake, from which a connection begins.
#[derive(Clone, Debug, Default)]
pub struct Negotiated {
    /// Limits and timeouts.
    pub config: Arc<Config>,
    /// The compression, if it was negotiated (RFC 7692).
    pub deflate: Option<NegotiatedDeflate>,
    /// The bytes that came after the handshake, if any.
    pub first: Vec<u8>,
}

impl Negotiated {
    pub(crate) fn connection(&self, now: Time) -> Connection {
        let connection = Connection::server(Arc::clone(&self.config), now);
        match &self.deflate {
            Some(negotiated) => connection.with_deflate(negotiated, codecs::exchange),
            None => connection,
        }
    }
}
