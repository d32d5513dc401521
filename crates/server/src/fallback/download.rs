//! The body of a service's reply.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anemone_ws::Memory;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;

use super::caught::catch;
use crate::memory::counted;
use crate::reply::body::Body;
use crate::stop::Stop;

/// Counts a body in `memory`, ends it when its client is gone, and logs its failure. A client that has ended its side
/// waits for each piece no longer than `grace`.
pub(super) fn watched(body: Body, memory: &Memory, stop: Stop, grace: Duration) -> Body {
    if body.is_end_stream() {
        return body;
    }
    Download { body, memory: memory.clone(), stop, grace, gone: None }.boxed_unsync()
}

struct Download {
    body: Body,
    memory: Memory,
    stop: Stop,
    grace: Duration,
    /// Completes when the client is gone. `None` while there is no wait for a piece.
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Download {
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { stop, grace, gone, .. } = self;
        let gone = gone.get_or_insert_with(|| {
            let (mut stop, grace) = (stop.clone(), *grace);
            Box::pin(async move { stop.gone(grace).await })
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
        let frame = match catch(|| Pin::new(&mut self.body).poll_frame(cx)) {
            Ok(Poll::Ready(frame)) => frame,
            Ok(Poll::Pending) => {
                ready!(self.poll_gone(cx));
                return Poll::Ready(Some(Err(io::Error::other("the client is gone"))));
            }
            Err(panicked) => Some(Err(io::Error::other(panicked))),
        };
        self.gone = None;
        if let Some(Err(error)) = &frame {
            let error = error as &dyn Error;
            tracing::warn!(error, "a reply of the service beside the topics failed midway");
        }
        let count = |frame: Frame<Bytes>| frame.map_data(|data| counted(&self.memory, data));
        Poll::Ready(frame.map(|frame| frame.map(count)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
