//! A stream whose first bytes were read already.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Returns these first bytes, and then those of the stream.
#[derive(Debug)]
pub(crate) struct Prefixed<R> {
    first: Vec<u8>,
    given: usize,
    stream: R,
}

impl<R> Prefixed<R> {
    pub(crate) fn new(first: Vec<u8>, stream: R) -> Self {
        Self { first, given: 0, stream }
    }

    /// Returns the rest of the first bytes, and the stream.
    pub(crate) fn into_parts(mut self) -> (Vec<u8>, R) {
        (self.first.split_off(self.given), self.stream)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Prefixed<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.first[self.given..];
        if rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let len = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..len]);
        self.given += len;
        if self.given == self.first.len() {
            // The connection may live long.
            (self.first, self.given) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn what_was_read_first_comes_first_and_takes_no_memory_after() {
        let mut stream = Prefixed::new(b"first ".to_vec(), &b"then"[..]);
        let mut two = [0; 2];
        stream.read_exact(&mut two).await.unwrap();
        assert_eq!((&two, stream.first.len()), (b"fi", 6));
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!((&*rest, stream.first.capacity()), ("rst then", 0));
    }

    #[tokio::test]
    async fn what_was_not_given_is_handed_back() {
        let mut stream = Prefixed::new(b"first".to_vec(), &b"then"[..]);
        stream.read_exact(&mut [0; 3]).await.unwrap();
        assert_eq!(stream.into_parts(), (b"st".to_vec(), &b"then"[..]));
    }
}
