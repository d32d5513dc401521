//! A stream whose writes may not be stuck for ever, and count meanwhile where nobody else counts them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_ws::{Memory, Reservation};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

/// Fails a write that could not go on for `timeout`, or for so long that what waits is wanted back. Keeps a timer only
/// while one is stuck.
pub(crate) struct WriteDeadline<S> {
    stream: S,
    /// The bytes that wait above to be written while a write is stuck, where nobody else counts them.
    waiting: Option<Reservation>,
    /// `None` once it is lifted.
    timeout: Option<Duration>,
    stuck: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// It was stuck for too long, and still is.
    is_given_up: bool,
    memory: Memory,
}

impl<S> WriteDeadline<S> {
    pub(crate) fn new(stream: S, timeout: Duration, memory: &Memory) -> Self {
        Self {
            stream,
            waiting: None,
            timeout: Some(timeout),
            stuck: None,
            is_given_up: false,
            memory: memory.clone(),
        }
    }

    /// Has what it is offered and cannot write count, as long as that lasts: for TLS, which always offers all that it
    /// has taken and not written.
    pub(crate) fn counting(self) -> Self {
        Self { waiting: Some(self.memory.reservation()), ..self }
    }

    pub(crate) fn get_ref(&self) -> &S {
        &self.stream
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }

    /// From now on a write may take as long as it takes, unless what waits is counted here and wanted back.
    pub(crate) fn lift(&mut self) {
        (self.timeout, self.stuck) = (None, None);
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        offered_bytes: usize,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Some(waiting) = &mut self.waiting {
            waiting.set(if written.is_pending() { offered_bytes } else { 0 });
        }
        if written.is_ready() || self.timeout.is_none() && self.waiting.is_none() {
            (self.stuck, self.is_given_up) = (None, false);
            return written;
        }
        let timeout = self.timeout;
        let stuck = self.stuck.get_or_insert_with(|| {
            let memory = self.memory.clone();
            Box::pin(async move {
                let since = Instant::now();
                tokio::select! {
                    () = expired(timeout) => {}
                    () = memory.must_release(since) => {}
                }
            })
        });
        // It may be asked again once it has given up: TLS has a last word.
        self.is_given_up = self.is_given_up || stuck.as_mut().poll(cx).is_ready();
        if self.is_given_up {
            Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
        } else {
            Poll::Pending
        }
    }
}

/// Returns after this time; never, if there is none.
async fn expired(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => sleep(timeout).await,
        None => std::future::pending().await,
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

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, bytes.len(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.watch(cx, pieces.iter().map(|piece| piece.len()).sum(), written)
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

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
            // Turns of the other task, and no time.
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
