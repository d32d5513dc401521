//! A reply that another HTTP server writes.
//!
//! That server takes pieces of a body before its client does, and never returns them. So it gets copies of small pieces,
//! and the rest is dropped here when its memory must be released.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_ws::Memory;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::reply::body::{Body, pieces};
use crate::reply::pace::{Pace, paced_in};

/// The bytes of a piece: hyper takes up to 16 pieces that a client of HTTP/1 does not take.
const PIECE_BYTES_MAX: usize = 4 << 10;

/// Keeps `guard` until the last piece of the body is written, or until the rest is dropped: when the client has taken
/// nothing for `timeout`, or when the memory must be released.
pub(crate) fn relayed<G: Send + 'static>(
    body: Body,
    guard: G,
    timeout: Option<Duration>,
    memory: &Memory,
) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let (pace, memory) = (Arc::<Pace>::default(), memory.clone());
    let rest = Mutex::new(Some((paced_in(PIECE_BYTES_MAX, body, Arc::clone(&pace), ()), guard)));
    let (_over, is_over) = oneshot::channel();
    let relay = Arc::new(Relay { rest, _over });
    let watched = Arc::downgrade(&relay);
    tokio::spawn(async move {
        tokio::select! {
            _ = is_over => {}
            () = pace.given_up(timeout, &memory) => {
                tracing::debug!("the client did not take a reply");
                let _rest = watched.upgrade().and_then(|relay| relay.rest().take());
            }
        }
    });
    pieces(Relayed(relay))
}

/// A reply that another HTTP server is writing.
struct Relay<G> {
    /// The rest of the body and its guard; `None` once they are dropped.
    rest: Mutex<Option<(Body, G)>>,
    /// Ends the watch when it is dropped, which is with the last piece.
    _over: oneshot::Sender<()>,
}

impl<G> Relay<G> {
    fn rest(&self) -> MutexGuard<'_, Option<(Body, G)>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Relayed<G>(Arc<Relay<G>>);

impl<G: Send + 'static> http_body::Body for Relayed<G> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some((body, _)) = &mut *self.0.rest() else {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        };
        let piece = |bytes: Bytes| {
            Bytes::from_owner(Piece { bytes: bytes.as_ref().into(), _relay: Arc::clone(&self.0) })
        };
        let frame = Pin::new(body).poll_frame(cx);
        frame.map(|frame| Some(frame?.map(|frame| frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.rest().as_ref().is_some_and(|(body, _)| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.rest().as_ref().map(|(body, _)| body.size_hint()).unwrap_or_default()
    }
}

/// A copy of a piece, so that it does not keep the rest of the body in memory.
struct Piece<G> {
    bytes: Box<[u8]>,
    _relay: Arc<Relay<G>>,
}

impl<G> AsRef<[u8]> for Piece<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
