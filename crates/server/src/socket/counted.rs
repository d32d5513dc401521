//! A stream that counts its bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::socket::ahead::SeesEnd;

/// The bytes of a stream, which only the thread of the stream counts.
#[derive(Debug, Default)]
pub(crate) struct ByteCounts {
    received: AtomicU64,
    sent: AtomicU64,
}

impl ByteCounts {
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// Adds to a counter. Nothing else writes it, so that a plain addition is enough.
fn add(counter: &AtomicU64, bytes: usize) {
    counter.store(counter.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
}

/// A stream that adds to counters what is read from it and written to it.
pub(crate) struct Counted<S> {
    stream: S,
    counts: Arc<ByteCounts>,
}

impl<S> Counted<S> {
    pub(crate) fn new(stream: S, counts: &Arc<ByteCounts>) -> Self {
        Self { stream, counts: Arc::clone(counts) }
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }

    fn count_written(&self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(len)) = written {
            add(&self.counts.sent, *len);
        }
    }
}

impl<S: SeesEnd> SeesEnd for Counted<S> {
    fn sees_end(&self) -> bool {
        self.stream.sees_end()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        add(&self.counts.received, buffer.filled().len() - before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.count_written(&written);
        written
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

    use super::*;

    #[tokio::test]
    async fn bytes_count_once_they_are_read_or_written() {
        let counts = Arc::<ByteCounts>::default();
        let (mut peer, stream) = duplex(10);
        let mut stream = Counted::new(stream, &counts);
        peer.write_all(b"12345").await.unwrap();
        assert_eq!(counts.received(), 0);
        stream.read_exact(&mut [0; 3]).await.unwrap();
        assert_eq!((counts.received(), counts.sent()), (3, 0));
        stream.read_exact(&mut [0; 2]).await.unwrap();
        let slices = [IoSlice::new(b"12"), IoSlice::new(b"3456789")];
        assert_eq!(stream.write_vectored(&slices).await.unwrap(), 9);
        assert_eq!(stream.write(b"12345").await.unwrap(), 1, "there is room for one");
        drop(peer);
        stream.write(b"1").await.unwrap_err();
        assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0);
        assert_eq!((counts.received(), counts.sent()), (5, 10));
    }
}
