//! A stream that limits how long a write may be stuck, and counts its waiting bytes if nothing else does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_ws::{Memory, Reservation};
use rustix::net::{SendFlags, send};
use tokio::io::{AsyncRead, AsyncWrite, Join, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::{Instant, sleep};

use crate::socket::ahead::SeesEnd;

/// A stream to which bytes can be written before the runtime reports it writable: the system reports that only when a
/// third of its buffer is free, and a slow reader may take longer than the timeout to free that much.
pub(crate) trait TakeNow {
    /// Returns the number of bytes that it took.
    fn take_now(&self, bytes: &[u8]) -> io::Result<usize>;
}

#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::empty();

impl TakeNow for TcpStream {
    fn take_now(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self, bytes, SEND_FLAGS)?)
    }
}

impl<R: AsyncRead> TakeNow for Join<R, OwnedWriteHalf> {
    fn take_now(&self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().as_ref().take_now(bytes)
    }
}

/// A stuck write is tried again this many times within the timeout.
const TRIES: u32 = 4;

/// Fails a write that makes no progress for `timeout`, or whose memory must be released. Has a timer only while a
/// write is stuck.
pub(crate) struct WriteDeadline<S> {
    stream: S,
    /// Counts the bytes that the layer above cannot write yet, if nothing else counts them.
    waiting: Option<Reservation>,
    /// `None` after [`WriteDeadline::lift`].
    timeout: Option<Duration>,
    stuck: Option<Stuck>,
    /// The time between two tries of a stuck write.
    pause: Duration,
    /// True after a write has failed, until one makes progress.
    is_given_up: bool,
    memory: Memory,
}

struct Stuck {
    since: Instant,
    /// Ready at the next attempt; true if the memory must be released.
    pause: Pin<Box<dyn Future<Output = bool> + Send>>,
}

impl<S> WriteDeadline<S> {
    pub(crate) fn new(stream: S, timeout: Duration, memory: &Memory) -> Self {
        Self {
            stream,
            waiting: None,
            timeout: Some(timeout),
            stuck: None,
            pause: timeout / TRIES,
            is_given_up: false,
            memory: memory.clone(),
        }
    }

    /// Counts the bytes that are offered and not written. For TLS, which always offers all of its unwritten output.
    pub(crate) fn counting(self) -> Self {
        Self { waiting: Some(self.memory.reservation()), ..self }
    }

    pub(crate) fn get_ref(&self) -> &S {
        &self.stream
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }

    /// Removes the time limit. A write then fails only if its memory is counted here and must be released.
    pub(crate) fn lift(&mut self) {
        (self.timeout, self.stuck) = (None, None);
    }

    /// Begins the pause before the next try of a write that has been stuck since then.
    fn pause(&self, since: Instant) -> Stuck {
        let (memory, pause) = (self.memory.clone(), self.pause);
        let pause = Box::pin(async move {
            tokio::select! {
                () = sleep(pause) => false,
                () = memory.must_release(since) => true,
            }
        });
        Stuck { since, pause }
    }
}

impl<S: TakeNow> WriteDeadline<S> {
    /// Applies the limit to a write of these bytes; `offered_bytes` includes those that are offered after them.
    fn watch(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        offered_bytes: usize,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Some(waiting) = &mut self.waiting {
            waiting.set(if written.is_pending() { offered_bytes } else { 0 });
        }
        if written.is_ready() || self.timeout.is_none() && self.waiting.is_none() {
            (self.stuck, self.is_given_up) = (None, false);
            return written;
        }
        // TLS writes an alert after its write has failed, so this may be called again.
        while !self.is_given_up {
            let mut stuck = self.stuck.take().unwrap_or_else(|| self.pause(Instant::now()));
            let Poll::Ready(must_release) = stuck.pause.as_mut().poll(cx) else {
                self.stuck = Some(stuck);
                return Poll::Pending;
            };
            let taken = if must_release { Ok(0) } else { self.stream.take_now(bytes) };
            if let Ok(1..) = taken {
                return self.watch(cx, bytes, offered_bytes, Poll::Ready(taken));
            }
            let is_late = self.timeout.is_some_and(|timeout| stuck.since.elapsed() >= timeout);
            self.is_given_up = must_release || is_late;
            self.stuck = Some(self.pause(stuck.since));
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: SeesEnd> SeesEnd for WriteDeadline<S> {
    fn sees_end(&self) -> bool {
        self.stream.sees_end()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + TakeNow + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, bytes, bytes.len(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        let first = pieces.iter().find(|piece| !piece.is_empty()).map_or(&[][..], |piece| piece);
        let offered_bytes = pieces.iter().map(|piece| piece.len()).sum();
        self.watch(cx, first, offered_bytes, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    impl TakeNow for DuplexStream {
        fn take_now(&self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_is_given_up_and_a_slow_one_is_not() {
        let (mut client, server) = duplex(10);
        let mut server = WriteDeadline::new(server, Duration::from_secs(30), &Memory::default());
        let begun = Instant::now();
        let slow = async {
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                client.read_exact(&mut [0; 10]).await.unwrap();
            }
            client
        };
        let write = async {
            let error = server.write_all(&[0; 1000]).await.unwrap_err();
            (error.kind(), begun.elapsed().as_secs())
        };
        let (_client, ended) = tokio::join!(slow, write);
        assert_eq!(ended, (io::ErrorKind::TimedOut, 130));
    }

    /// Takes one byte at each of this many tries. The runtime never reports it writable.
    struct Crowded(AtomicUsize);

    impl TakeNow for Crowded {
        fn take_now(&self, _bytes: &[u8]) -> io::Result<usize> {
            let has_room = |left: usize| left.checked_sub(1);
            let taken = self.0.fetch_update(Relaxed, Relaxed, has_room);
            taken.map(|_| 1).map_err(|_| io::ErrorKind::WouldBlock.into())
        }
    }

    impl AsyncWrite for Crowded {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_too_slow_for_the_system_to_tell_of_room_is_kept_while_bytes_move() {
        let stream = Crowded(AtomicUsize::new(20));
        let mut server = WriteDeadline::new(stream, Duration::from_secs(30), &Memory::default());
        let begun = Instant::now();
        let error = server.write_all(&[0; 1000]).await.unwrap_err();
        // 20 tries, 7.5 s apart, and then no progress for the whole timeout.
        let ended = (error.kind(), begun.elapsed().as_secs());
        assert_eq!(ended, (io::ErrorKind::TimedOut, 150 + 30));
    }

    #[tokio::test(start_paused = true)]
    async fn once_lifted_it_waits_for_a_reader_that_stops() {
        let (mut client, server) = duplex(10);
        let mut server = WriteDeadline::new(server, Duration::from_secs(30), &Memory::default());
        server.lift();
        let late = async {
            tokio::time::sleep(Duration::from_secs(300)).await;
            client.read_exact(&mut [0; 20]).await.unwrap();
        };
        let (written, ()) = tokio::join!(server.write_all(&[0; 20]), late);
        written.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_tls_keeps_counts_while_it_is_stuck_and_is_let_go_even_of_a_web_socket() {
        let memory = Memory::new(100);
        let (mut client, server) = duplex(10);
        let mut server = WriteDeadline::new(server, Duration::from_secs(30), &memory).counting();
        server.lift();
        let mut write = tokio::spawn(async move {
            server.write_all(&[0; 10]).await?;
            server.write_all(&[0; 60]).await
        });
        let is_stuck = async |bytes| {
            // Lets the other task run; no time passes.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(memory.held_bytes(), bytes);
        };
        is_stuck(60).await;
        client.read_exact(&mut [0; 10]).await.unwrap();
        is_stuck(50).await;
        let late = tokio::time::timeout(Duration::from_secs(3600), &mut write).await;
        assert!(late.is_err(), "there is room, and so it waits");
        let other = memory.reserve(51);
        tokio::select! {
            _ = memory.relieve() => {}
            ended = &mut write => {
                assert_eq!(ended.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
        }
        drop(other);
        assert_eq!(memory.held_bytes(), 0);
    }
}
