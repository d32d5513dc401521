//! A stream that ends without a reset.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// The peer may go on sending for so long, and so many bytes.
const TIME_MAX: Duration = Duration::from_secs(2);
const BYTES_MAX: usize = 64 << 10;

/// Once our side is ended, waits for the peer to end its own: closing a socket with unread input
/// resets it, and what we wrote last could be lost with it.
#[derive(Debug)]
pub(crate) struct Linger<S> {
    stream: S,
    /// Once our side is ended: until when, and for how many more bytes.
    left: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S> Linger<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, left: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Linger<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Linger<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, left } = self.get_mut();
        if left.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let (timer, bytes_left) =
            left.get_or_insert_with(|| (Box::pin(tokio::time::sleep(TIME_MAX)), BYTES_MAX));
        while *bytes_left > 0 && timer.as_mut().poll(cx).is_pending() {
            let mut bytes = [0; 1024];
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            *bytes_left = bytes_left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_waits_for_the_peer_s() {
        let (mut client, server) = duplex(1 << 20);
        let mut server = Linger::new(server);
        server.write_all(b"last").await.unwrap();
        let peer = async {
            let mut last = String::new();
            client.read_to_string(&mut last).await.unwrap();
            client.write_all(b"something more").await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(client);
            last
        };
        let begun = Instant::now();
        let (ended, last) = tokio::join!(server.shutdown(), peer);
        ended.unwrap();
        assert_eq!((&*last, begun.elapsed().as_secs()), ("last", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_end_is_not_waited_for_for_ever() {
        let (mut client, server) = duplex(1 << 20);
        let begun = Instant::now();
        Linger::new(server).shutdown().await.unwrap();
        assert_eq!(begun.elapsed(), TIME_MAX);
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);

        let (mut client, server) = duplex(1 << 20);
        client.write_all(&[0; 2 * BYTES_MAX]).await.unwrap();
        let begun = Instant::now();
        Linger::new(server).shutdown().await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
