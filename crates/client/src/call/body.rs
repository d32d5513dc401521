//! A reply that arrives in pieces.

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::http::HttpBody;
use super::mux::MuxBody;
use super::reply::Reply;
use crate::options::Options;
use crate::{Error, Malformed};

/// The body of a reply, by its transport.
#[derive(Debug)]
pub(super) enum Body {
    Http(Box<HttpBody>),
    Mux(Box<MuxBody>),
}

/// A reply whose items arrive one at a time: a success, or 304.
///
/// Nothing is read while no item is awaited, so a slow caller slows the service down. On a multiplexed connection, up
/// to [`Limits::waiting_bytes_max`](crate::Limits::waiting_bytes_max) bytes of items wait; beyond that, the connection
/// stops, and with it all calls of the client. Dropping the reply cancels the call and ends the service's work.
pub type ReplyStream = Reply<ReplyItems>;

/// The items of a [`ReplyStream`].
#[derive(Debug)]
pub struct ReplyItems {
    pub(super) body: Body,
    /// The permit that counts this call among the open calls of the client.
    pub(super) _place: OwnedSemaphorePermit,
}

impl ReplyStream {
    /// Returns true if the reply is a stream (`application/x-ndjson`), whose items [`next`](Self::next) returns. Any
    /// other body comes in parts of any length.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.head.is_stream()
    }

    /// Returns the next item, or the next part of a body that is not a stream; `None` at the end of a complete reply.
    /// A service may take any time for an item.
    ///
    /// # Errors
    /// An error means that the service failed midway, or that the connection was lost. The reply cannot be continued.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        match &mut self.body.body {
            Body::Http(body) => body.next().await,
            Body::Mux(body) => body.next().await,
        }
    }

    pub(super) async fn collect(mut self, options: &Options) -> Result<Reply, Error> {
        let (is_stream, limit) = (self.is_stream(), options.limits.reply_bytes_max);
        let stall = options.timeouts.stall;
        let mut whole = Vec::new();
        let stalled = |_| Error::Stalled { limit: stall };
        while let Some(part) = timeout(stall, self.next()).await.map_err(stalled)?? {
            if whole.len() + part.len() + usize::from(is_stream) > limit {
                return Err(Malformed::TooLong { limit }.into());
            }
            whole.extend_from_slice(&part);
            if is_stream {
                whole.push(b'\n');
            }
        }
        Ok(Reply { head: self.head, body: whole.into() })
    }
}
