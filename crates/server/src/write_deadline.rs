//! A stream whose writes may not be stuck for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_ws::Memory;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

/// Fails a write that could not go on for `timeout`, or for so long that what waits is wanted back. Keeps a timer only
/// while one is stuck.
pub(crate) struct WriteDeadline<S> {
    stream: S,
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
            timeout: Some(timeout),
            stuck: None,
            is_given_up: false,
            memory: memory.clone(),
        }
    }

    pub(crate) fn get_ref(&self) -> &S {
        &self.stream
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }

    /// From now on a write may take as long as it takes.
    pub(crate) fn lift(&mut self) {
        (self.timeout, self.stuck) = (None, None);
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Some(timeout) = self.timeout.filter(|_| written.is_pending()) else {
            (self.stuck, self.is_given_up) = (None, false);
            return written;
        };
        let stuck = self.stuck.get_or_insert_with(|| {
            let memory = self.memory.clone();
            Box::pin(async move {
                let since = Instant::now();
                tokio::select! {
                    () = sleep(timeout) => {}
                    () = memory.wanted_back(since) => {}
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
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.watch(cx, written)
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
}
