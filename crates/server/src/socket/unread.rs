//! The unread input of an HTTP/2 connection.
//!
//! The windows allow it to arrive. It is in the HTTP server's own buffers, where its size is not visible. So a stream
//! that is not read counts with the most that may have arrived, and all streams of a connection with at most its
//! window.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use anemone_ws::{Memory, Reservation};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The unread bytes of one connection. Clones are handles to the same count.
#[derive(Clone, Debug)]
pub(crate) struct Unread(Rc<RefCell<UnreadCount>>);

#[derive(Debug)]
struct UnreadCount {
    held: Reservation,
    /// The sum of the bytes that may have arrived on each stream.
    bytes: usize,
    bytes_max: usize,
}

impl Unread {
    pub(crate) fn new(memory: &Memory, bytes_max: usize) -> Self {
        Self(Rc::new(RefCell::new(UnreadCount { held: memory.reservation(), bytes: 0, bytes_max })))
    }

    /// Counts the bytes that may arrive on one stream until the guard is dropped.
    pub(crate) fn wait(&self, bytes: usize) -> UnreadStream {
        self.0.borrow_mut().change(|sum| sum.saturating_add(bytes));
        UnreadStream { unread: self.clone(), bytes }
    }
}

impl UnreadCount {
    fn change(&mut self, change: impl FnOnce(usize) -> usize) {
        self.bytes = change(self.bytes);
        self.held.set(self.bytes.min(self.bytes_max));
    }
}

#[derive(Debug)]
pub(crate) struct UnreadStream {
    unread: Unread,
    bytes: usize,
}

impl Drop for UnreadStream {
    fn drop(&mut self) {
        let bytes = self.bytes;
        self.unread.0.borrow_mut().change(|sum| sum.saturating_sub(bytes));
    }
}

/// The stream of a WebSocket. While a write is stuck, it is not read, and counts.
#[derive(Debug)]
pub(crate) struct Carried<S> {
    stream: S,
    unread: Unread,
    window_bytes: usize,
    waiting: Option<UnreadStream>,
}

impl<S> Carried<S> {
    pub(crate) fn new(stream: S, unread: Unread, window_bytes: usize) -> Self {
        Self { stream, unread, window_bytes, waiting: None }
    }

    fn count<T>(&mut self, written: Poll<T>) -> Poll<T> {
        if written.is_ready() {
            self.waiting = None;
        } else if self.waiting.is_none() {
            self.waiting = Some(self.unread.wait(self.window_bytes));
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Carried<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Carried<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count(written)
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

    #[test]
    fn streams_count_together_at_most_the_window_of_their_connection() {
        let memory = Memory::new(1000);
        let unread = Unread::new(&memory, 500);
        let (one, other) = (unread.wait(300), unread.wait(300));
        assert_eq!(memory.held_bytes(), 500);
        drop(one);
        assert_eq!(memory.held_bytes(), 300);
        drop(other);
        assert_eq!(memory.held_bytes(), 0);
    }

    #[tokio::test]
    async fn a_web_socket_counts_while_its_writes_are_stuck() {
        let memory = Memory::new(1000);
        let (mut client, server) = duplex(10);
        let mut server = Carried::new(server, Unread::new(&memory, 500), 300);
        server.write_all(&[0; 10]).await.unwrap();
        assert_eq!(memory.held_bytes(), 0);
        let stuck = tokio::time::timeout(std::time::Duration::ZERO, server.write_all(&[0; 10]));
        assert!(stuck.await.is_err());
        assert_eq!(memory.held_bytes(), 300);
        client.read_exact(&mut [0; 10]).await.unwrap();
        server.write_all(&[0; 10]).await.unwrap();
        assert_eq!(memory.held_bytes(), 0);
    }
}
