//! A stream that is read ahead of its user, to notice when the peer has ended its side.
//!
//! The HTTP server does not read while it makes a reply, so a client that ends its side after its request still gets
//! the reply. A reply that would wait needs to know of the end, since the client may be gone.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anemone_ws::{Memory, Reservation};
use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, Interest, Join, ReadBuf, Ready};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::{Sleep, sleep};

/// The most bytes read ahead, which are further requests. If a client sends more of them, its end is noticed within
/// [`LOOK_AGAIN`].
const BYTES_MAX: usize = 16 << 10;

/// The time between two looks for the end of a peer that has sent more than may be read ahead.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PeerSide {
    /// More may come.
    Open,
    /// Nothing more comes, but the peer may still read.
    Ended,
    /// The connection is broken.
    Lost,
}

/// A stream that can see the end of its peer's side behind bytes that nobody has read.
pub(crate) trait SeesEnd {
    fn sees_end(&self) -> bool;
}

impl SeesEnd for TcpStream {
    fn sees_end(&self) -> bool {
        let ready = self.ready(Interest::READABLE).now_or_never();
        ready.is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed))
    }
}

impl<R: AsyncRead> SeesEnd for Join<R, OwnedWriteHalf> {
    fn sees_end(&self) -> bool {
        self.writer().as_ref().sees_end()
    }
}

/// The state that both ends share.
struct AheadState<S> {
    stream: S,
    ahead: Vec<u8>,
    held: Reservation,
    /// The size of the user's own buffer before anything is read ahead.
    user_bytes: usize,
    /// True if the user has just read, and is woken when more comes.
    is_user_reading: bool,
    peer: PeerSide,
    /// The pause before the next look for an end behind unread bytes.
    pause: Option<Pin<Box<Sleep>>>,
}

/// A stream with bytes that were read ahead of its user.
pub(crate) struct Ahead<S>(Rc<RefCell<AheadState<S>>>);

/// Watches for the end of the same stream, in the same task.
pub(crate) struct End<S>(Rc<RefCell<AheadState<S>>>);

impl<S> Ahead<S> {
    /// Creates both ends. Bytes that are read ahead count in `memory`, together with the user's own buffer.
    pub(crate) fn new(stream: S, memory: &Memory, user_bytes: usize) -> (Self, End<S>) {
        let (ahead, held) = (Vec::new(), memory.reservation());
        let (peer, pause) = (PeerSide::Open, None);
        let is_user_reading = false;
        let shared = AheadState { stream, ahead, held, user_bytes, is_user_reading, peer, pause };
        let shared = Rc::new(RefCell::new(shared));
        (Self(Rc::clone(&shared)), End(shared))
    }

    /// Returns the bytes that were read ahead, and the stream.
    pub(crate) fn into_parts(self, end: End<S>) -> Option<(Vec<u8>, S)> {
        drop(end);
        let Some(shared) = Rc::into_inner(self.0) else {
            tracing::error!("a stream that is read ahead still has another user: it is lost");
            return None;
        };
        let AheadState { stream, ahead, .. } = shared.into_inner();
        Some((ahead, stream))
    }
}

impl<S: AsyncRead + SeesEnd + Unpin> End<S> {
    pub(crate) fn with_stream<T>(&self, work: impl FnOnce(&mut S) -> T) -> T {
        work(&mut self.0.borrow_mut().stream)
    }

    /// Waits until the peer's side is no longer open. Cancel safe.
    pub(crate) async fn reached(&self) -> PeerSide {
        std::future::poll_fn(|cx| self.0.borrow_mut().poll_end(cx)).await
    }
}

impl<S: AsyncRead + SeesEnd + Unpin> AheadState<S> {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<PeerSide> {
        if std::mem::take(&mut self.is_user_reading) {
            return Poll::Pending;
        }
        let mut bytes = [0; 1024];
        while self.peer == PeerSide::Open && self.ahead.len() < BYTES_MAX {
            let mut buffer = ReadBuf::new(&mut bytes);
            match ready!(self.poll_stream(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    self.ahead.extend_from_slice(buffer.filled());
                    self.held.set(self.ahead.capacity() + self.user_bytes);
                    // The user may be waiting for these bytes.
                    cx.waker().wake_by_ref();
                }
                Ok(()) => self.peer = PeerSide::Ended,
                // The next read returns the error.
                Err(_) => self.peer = PeerSide::Lost,
            }
        }
        while self.peer == PeerSide::Open {
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(LOOK_AGAIN)));
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
            if self.stream.sees_end() {
                self.peer = PeerSide::Ended;
            }
        }
        Poll::Ready(self.peer)
    }
}

impl<S: AsyncRead + Unpin> AheadState<S> {
    fn poll_stream(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.stream).poll_read(cx, buffer)) {
            // TLS without close_notify; the protocol above marks its own end.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            read => Poll::Ready(read),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Ahead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut shared = self.0.borrow_mut();
        if shared.ahead.is_empty() {
            let begin = buffer.filled().len();
            let read = shared.poll_stream(cx, buffer);
            shared.is_user_reading = read.is_pending();
            ready!(read)?;
            if buffer.filled().len() == begin {
                shared.peer = PeerSide::Ended;
            }
        } else {
            let len = shared.ahead.len().min(buffer.remaining());
            buffer.put_slice(&shared.ahead[..len]);
            shared.ahead.drain(..len);
            if shared.ahead.is_empty() {
                // Frees the buffer, since the connection may live long.
                shared.ahead = Vec::new();
                shared.held.set(0);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Ahead<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.borrow().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    impl SeesEnd for DuplexStream {
        fn sees_end(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn the_end_is_seen_and_what_came_before_it_is_read_later() {
        let (mut client, server) = duplex(1 << 20);
        let (mut ahead, end) = Ahead::new(server, &Memory::default(), 0);
        assert_eq!(end.reached().now_or_never(), None);
        client.write_all(b"first").await.unwrap();
        assert_eq!(end.reached().now_or_never(), None);
        client.write_all(b"then").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(end.reached().await, PeerSide::Ended);
        let mut all = String::new();
        ahead.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "firstthen");
        ahead.write_all(b"answer").await.unwrap();
        let (rest, server) = ahead.into_parts(end).unwrap();
        assert!(rest.is_empty());
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer");
    }

    #[tokio::test]
    async fn no_more_is_read_ahead_than_may_be() {
        let (mut client, server) = duplex(1 << 20);
        let memory = Memory::default();
        let (mut ahead, end) = Ahead::new(server, &memory, 5000);
        client.write_all(&[7; 100_000]).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(end.reached().now_or_never(), None);
        assert_eq!(ahead.0.borrow().ahead.len(), BYTES_MAX);
        assert!(memory.held_bytes() >= BYTES_MAX + 5000);
        let mut all = Vec::new();
        ahead.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, [7; 100_000]);
        end.reached().await;
        assert_eq!(memory.held_bytes(), 0);
    }
}
