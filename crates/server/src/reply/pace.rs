//! The pace of an HTTP/2 reply, which finds replies that the client does not take.
//!
//! The connection may be fine while the window of one stream stays closed. The body of that reply is not polled then,
//! so the stream's task drops the reply after too long, which resets the stream.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anemone_ws::Memory;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::reply::body::{Body, pieces};

/// The bytes passed on at once. The rest stays out of the stream, which keeps everything until the client takes it.
const PIECE_BYTES_MAX: usize = 16 << 10;

/// The progress of a reply.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The time since when the client has to take something.
    waits_since: Mutex<Option<Instant>>,
    waits: Notify,
}

impl Pace {
    /// Waits until the client has taken nothing for `timeout`, if there is one, although there was something to take,
    /// or until the memory of the rest must be released.
    pub(crate) async fn given_up(&self, timeout: impl Into<Option<Duration>>, memory: &Memory) {
        let timeout = timeout.into();
        loop {
            let Some(since) = self.waits_since() else {
                self.waits.notified().await;
                continue;
            };
            tokio::select! {
                () = sleep_until(since + timeout.unwrap_or_default()), if timeout.is_some() => {}
                () = memory.must_release(since) => {}
            }
            if self.waits_since() == Some(since) {
                return;
            }
        }
    }

    fn waits_since(&self) -> Option<Instant> {
        *self.waits_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, waits_since: Option<Instant>) {
        let mut place = self.waits_since.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() && waits_since.is_some() {
            self.waits.notify_one();
        }
        *place = waits_since;
    }
}

/// Returns a body that reports its pace, and keeps `guard` until all but its last byte was taken.
pub(crate) fn paced(body: Body, pace: Arc<Pace>, guard: impl Send + Unpin + 'static) -> Body {
    paced_in(PIECE_BYTES_MAX, body, pace, guard)
}

/// Returns the same body in pieces of at most this many bytes.
pub(crate) fn paced_in(
    piece_bytes_max: usize,
    body: Body,
    pace: Arc<Pace>,
    guard: impl Send + Unpin + 'static,
) -> Body {
    pace.set(Some(Instant::now()));
    pieces(Paced { body, piece: Bytes::new(), piece_bytes_max, pace, _guard: guard })
}

struct Paced<G> {
    body: Body,
    /// The rest of the current piece.
    piece: Bytes,
    piece_bytes_max: usize,
    pace: Arc<Pace>,
    _guard: G,
}

impl<G: Unpin> http_body::Body for Paced<G> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Self { body, piece, piece_bytes_max, pace, .. } = self.get_mut();
        if piece.is_empty() {
            // The client has taken everything so far.
            pace.set(None);
            let Some(frame) = ready!(Pin::new(&mut *body).poll_frame(cx)) else {
                return Poll::Ready(None);
            };
            *piece = match frame.map(Frame::into_data) {
                Ok(Ok(data)) => data,
                Ok(Err(trailers)) => return Poll::Ready(Some(Ok(trailers))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
        }
        pace.set(Some(Instant::now()));
        let is_last = body.is_end_stream();
        let len = match piece.len() {
            len if len > *piece_bytes_max => *piece_bytes_max,
            // The last byte comes alone. It is polled when there is room for it, and so for everything before.
            len if len > 1 && is_last => len - 1,
            len => len,
        };
        Poll::Ready(Some(Ok(Frame::data(piece.split_to(len)))))
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, left) = (self.body.size_hint(), self.piece.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + left);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + left);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};
    use http_body::Body as _;
    use http_body_util::BodyExt;
    use tokio::time::sleep;

    use super::*;
    use crate::reply::body;

    const TIMEOUT: Duration = Duration::from_secs(30);

    async fn next(body: &mut Body) -> Option<Bytes> {
        Some(body.frame().await?.unwrap().into_data().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_comes_in_small_pieces_and_its_last_byte_alone() {
        for (len, pieces) in
            [(1, vec![1]), (2, vec![1, 1]), (40_000, vec![16_384, 16_384, 7231, 1])]
        {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mut body = paced(body::full(bytes.clone()), Arc::default(), ());
            assert_eq!(body.size_hint().exact(), Some(len));
            let (mut received, mut lens) = (Vec::new(), Vec::new());
            while !body.is_end_stream() {
                let piece = next(&mut body).await.unwrap();
                lens.push(piece.len());
                received.extend_from_slice(&piece);
                assert_eq!(body.size_hint().exact(), Some(len - received.len() as u64));
            }
            assert_eq!((received, lens), (bytes, pieces));
            assert_eq!(next(&mut body).await, None);
        }
        assert!(paced(body::full(""), Arc::default(), ()).is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_lost_when_nothing_is_taken_for_too_long() {
        let pace = Arc::<Pace>::default();
        let begun = Instant::now();
        let mut body = paced(body::full(vec![0; 100_000]), Arc::clone(&pace), ());
        let client = async {
            for _ in 0..5 {
                next(&mut body).await.unwrap();
                sleep(Duration::from_secs(20)).await;
            }
        };
        let memory = Memory::default();
        tokio::join!(client, pace.given_up(TIMEOUT, &memory));
        assert_eq!(begun.elapsed().as_secs(), 80 + 30);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_not_lost_while_there_is_nothing_to_take() {
        let pace = Arc::<Pace>::default();
        let events = stream::unfold((), |()| async {
            sleep(Duration::from_secs(600)).await;
            Some((Bytes::from_static(b"event"), ()))
        });
        let mut body = paced(body::stream(events), Arc::clone(&pace), ());
        let begun = Instant::now();
        let client = async {
            for _ in 0..3 {
                assert_eq!(next(&mut body).await.unwrap(), "event");
            }
            assert_eq!(body.frame().now_or_never().map(|_| ()), None);
            sleep(Duration::from_secs(100)).await;
            next(&mut body).await.unwrap();
        };
        let memory = Memory::default();
        tokio::join!(client, pace.given_up(TIMEOUT, &memory));
        assert_eq!(begun.elapsed().as_secs(), 4 * 600 + 30);
    }
}
