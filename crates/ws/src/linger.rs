//! The end of a stream without a reset: a socket that is closed with unread input resets its connection, and the peer may
//! lose what was written last.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The most bytes that a peer may send on.
const BYTES_MAX: usize = 64 << 10;

/// The time that a refused client has to read the response and end its side.
pub(crate) const REFUSED_LINGER: Duration = Duration::from_secs(1);

/// A stream whose shutdown ends this side, and then waits for the peer to end its own. It waits for `time_max`, or 64 KiB
/// that the peer sends meanwhile.
#[derive(Debug)]
pub struct Linger<S> {
    stream: S,
    time_max: Duration,
    /// Once our side is ended: until when, and for how many more bytes.
    left: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S> Linger<S> {
    /// A stream that is shut down in this way.
    pub fn new(stream: S, time_max: Duration) -> Self {
        Self { stream, time_max, left: None }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Linger<S> {
    /// Writes the last bytes and shuts the stream down.
    ///
    /// # Errors
    /// When the bytes cannot be written, or the stream cannot be shut down.
    ///
    /// # Cancel safety
    /// Dropping the future drops the stream.
    pub async fn finish(mut self, last: &[u8]) -> io::Result<()> {
        self.write_all(last).await?;
        self.shutdown().await
    }
}

/// Reads on until the peer ends its side, or until `is_enough` of the number of bytes that a read has brought.
pub(crate) fn poll_drain<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    mut is_enough: impl FnMut(usize) -> bool,
) -> Poll<io::Result<()>> {
    loop {
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut buffer = ReadBuf::uninit(&mut bytes);
        ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer))?;
        if buffer.filled().is_empty() || is_enough(buffer.filled().len()) {
            return Poll::Ready(Ok(()));
        }
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
        let Self { stream, time_max, left } = self.get_mut();
        if left.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let (timer, bytes_left) =
            left.get_or_insert_with(|| (Box::pin(sleep(*time_max)), BYTES_MAX));
        let deadline = timer.deadline();
        let drained = poll_drain(stream, cx, |len| {
            *bytes_left = bytes_left.saturating_sub(len);
            *bytes_left == 0 || deadline <= Instant::now()
        });
        // After the peer has gone, nothing more can be delivered.
        if drained.is_ready() { Poll::Ready(Ok(())) } else { timer.as_mut().poll(cx).map(Ok) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, duplex};

    const TIME_MAX: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn the_end_waits_for_the_peer_s() {
        let (mut client, server) = duplex(1 << 20);
        let mut server = Linger::new(server, TIME_MAX);
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
        Linger::new(server, TIME_MAX).shutdown().await.unwrap();
        assert_eq!(begun.elapsed(), TIME_MAX);
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);

        let (mut client, server) = duplex(1 << 20);
        client.write_all(&[0; 2 * BYTES_MAX]).await.unwrap();
        let begun = Instant::now();
        Linger::new(server, TIME_MAX).shutdown().await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
