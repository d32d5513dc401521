//! The body of a service's reply.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use super::caught::{Caught, ServiceError};
use super::context::ServiceContext;
use crate::memory::counted;
use crate::reply::body::{Body, full, pieces};

/// Counts a body in the memory, ends it when its client is gone, and logs its failure. A client that has ended its
/// side waits for each piece no longer than `write_timeout`.
pub(super) fn watched(body: Body, mount: &Arc<str>, context: ServiceContext) -> Body {
    let body = match body.into_whole() {
        Ok(bytes) => return full(counted(&context.memory, bytes)),
        Err(pieces) => Caught::new(pieces),
    };
    pieces(Download { body, mount: Arc::clone(mount), context, gone: None })
}

/// Returns an error that runs no code of a service.
fn in_words(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), ServiceError::of(error))
}

/// Returns true if nothing of a body is left.
fn is_end(body: &Caught<Body>) -> bool {
    body.ask(Body::is_end_stream).unwrap_or(false)
}

struct Download {
    body: Caught<Body>,
    /// The path of its service.
    mount: Arc<str>,
    context: ServiceContext,
    /// Completes when the client is gone. `None` while there is no wait for a piece.
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Download {
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { context, gone, .. } = self;
        if context.stop.is_none() {
            return Poll::Pending;
        }
        let gone = gone.get_or_insert_with(|| {
            let mut context = context.clone();
            Box::pin(async move { context.gone().await })
        });
        gone.as_mut().poll(cx)
    }
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = match self.body.call(|body| Pin::new(body).poll_frame(cx)) {
            Ok(Poll::Ready(frame)) => frame.map(|frame| frame.map_err(in_words)),
            Ok(Poll::Pending) => {
                ready!(self.poll_gone(cx));
                return Poll::Ready(Some(Err(io::Error::other("the client is gone"))));
            }
            Err(panicked) => Some(Err(io::Error::other(panicked))),
        };
        self.gone = None;
        if let Some(Err(error)) = &frame {
            let error = error as &dyn Error;
            tracing::warn!(error, mount = %self.mount, "a reply of a service failed midway");
        }
        let count =
            |frame: Frame<Bytes>| frame.map_data(|data| counted(&self.context.memory, data));
        Poll::Ready(frame.map(|frame| frame.map(count)))
    }

    fn is_end_stream(&self) -> bool {
        is_end(&self.body)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.ask(Body::size_hint).unwrap_or_default()
    }
}
