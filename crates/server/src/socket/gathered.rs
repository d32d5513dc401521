//! A stream that gathers written bytes, so that replies to requests that arrived together leave together.
//!
//! The HTTP server writes each reply separately, which takes twice as long as making a small one. Its driver writes
//! the gathered bytes whenever the server has nothing more to do.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anemone_ws::{Memory, Reservation};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::socket::ahead::SeesEnd;

/// The most bytes gathered: about a hundred small replies. Larger writes are not copied.
const BYTES_MAX: usize = 16 << 10;

/// A stream with gathered output. Flushing does nothing while there is some.
pub(crate) struct Gathered<S> {
    stream: S,
    bytes: Vec<u8>,
    /// Counts the output while it is stuck.
    held: Reservation,
    /// The number of gathered bytes that are written.
    written: usize,
    /// True if all bytes are written, but the stream may still buffer them.
    is_unflushed: bool,
}

impl<S> Gathered<S> {
    /// Creates a stream whose stuck output counts in `memory`.
    pub(crate) fn new(stream: S, memory: &Memory) -> Self {
        let held = memory.reservation();
        Self { stream, bytes: Vec::new(), held, written: 0, is_unflushed: false }
    }

    /// Returns the stream; unwritten output is lost.
    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    pub(crate) fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.bytes.len() {
            let rest = &self.bytes[self.written..];
            let written = Pin::new(&mut self.stream).poll_write(cx, rest);
            if written.is_pending() {
                self.held.set(self.bytes.capacity());
            }
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                len => self.written += len,
            }
        }
        if !self.bytes.is_empty() {
            // Frees the buffer, since the connection may live long.
            (self.bytes, self.written) = (Vec::new(), 0);
            self.held.set(0);
        }
        if self.is_unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Makes room for `len` bytes. Returns true if they are to be gathered.
    fn poll_room(&mut self, cx: &mut Context<'_>, len: usize) -> Poll<io::Result<bool>> {
        if self.bytes.len() + len > BYTES_MAX {
            ready!(self.poll_out(cx))?;
        }
        self.is_unflushed = true;
        Poll::Ready(Ok(len <= BYTES_MAX))
    }
}

impl<S: SeesEnd> SeesEnd for Gathered<S> {
    fn sees_end(&self) -> bool {
        self.stream.sees_end()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !ready!(self.poll_room(cx, bytes.len()))? {
            return Pin::new(&mut self.stream).poll_write(cx, bytes);
        }
        self.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = slices.iter().map(|slice| slice.len()).sum();
        if !ready!(self.poll_room(cx, len))? {
            return Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        }
        self.bytes.reserve(len);
        slices.iter().for_each(|slice| self.bytes.extend_from_slice(slice));
        Poll::Ready(Ok(len))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() { self.poll_out(cx) } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn small_writes_leave_together() {
        let (mut client, server) = duplex(1 << 20);
        let mut gathered = Gathered::new(server, &Memory::default());
        for reply in ["one", "two", "three"] {
            gathered.write_all(reply.as_bytes()).await.unwrap();
            gathered.flush().await.unwrap();
        }
        let mut bytes = [0; 100];
        assert!(client.read(&mut bytes).now_or_never().is_none());
        poll_fn(|cx| gathered.poll_out(cx)).await.unwrap();
        let len = client.read(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..len], b"onetwothree");
        assert_eq!(gathered.bytes.capacity(), 0);
    }

    #[tokio::test]
    async fn all_comes_in_order_whatever_its_size_and_whatever_fits() {
        let (mut client, server) = duplex(1000);
        let mut gathered = Gathered::new(server, &Memory::default());
        let writes = [10, BYTES_MAX - 10, 1, BYTES_MAX, BYTES_MAX + 1, 70_000, 5, 0, 7];
        let total: usize = writes.iter().sum();
        let all: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
        let write = async {
            let mut rest = &all[..];
            for len in writes {
                let (bytes, others) = rest.split_at(len);
                gathered.write_all(bytes).await.unwrap();
                assert!(gathered.bytes.len() <= BYTES_MAX);
                rest = others;
            }
            gathered.shutdown().await.unwrap();
        };
        let mut came = Vec::new();
        let (_, read) = tokio::join!(write, client.read_to_end(&mut came));
        read.unwrap();
        assert!(came == all);
    }

    #[tokio::test]
    async fn it_counts_while_it_is_stuck() {
        let memory = Memory::default();
        let (mut client, server) = duplex(10);
        let mut gathered = Gathered::new(server, &memory);
        gathered.write_all(&[7; 100]).await.unwrap();
        assert_eq!(memory.held_bytes(), 0);
        assert!(poll_fn(|cx| gathered.poll_out(cx)).now_or_never().is_none());
        assert!(memory.held_bytes() >= 100);
        let mut bytes = [0; 100];
        let out = poll_fn(|cx| gathered.poll_out(cx));
        let (out, read) = tokio::join!(out, client.read_exact(&mut bytes));
        out.unwrap();
        read.unwrap();
        assert_eq!(memory.held_bytes(), 0);
    }
}
