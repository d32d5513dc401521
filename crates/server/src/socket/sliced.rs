//! A stream that is read for a slice of time at once.
//!
//! An HTTP/2 connection reads in each turn as long as there is input, and a few bytes of it can be much work: a byte of a
//! header block may stand for a field of some thousands. So its reads end with the slice, and go on in its next turn.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::turn::TURN_TIME;

/// The slice of a connection's turn.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    clock: fn() -> Instant,
    /// The time of the first read in this turn.
    begun: Rc<Cell<Option<Instant>>>,
}

impl Slice {
    pub(crate) fn new() -> Self {
        Self { clock: Instant::now, begun: Rc::default() }
    }

    pub(crate) fn begin(&self) {
        self.begun.set(None);
    }

    /// Returns true if the connection is to read on in its next turn.
    fn is_over(&self) -> bool {
        let now = (self.clock)();
        let begun = self.begun.get().unwrap_or(now);
        self.begun.set(Some(begun));
        now - begun >= TURN_TIME
    }
}

/// A stream whose reads end with the slice.
#[derive(Debug)]
pub(crate) struct Sliced<S> {
    stream: S,
    slice: Slice,
}

impl<S> Sliced<S> {
    pub(crate) fn new(stream: S, slice: &Slice) -> Self {
        Self { stream, slice: slice.clone() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Sliced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.slice.is_over() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sliced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, repeat};

    use super::*;

    thread_local! {
        static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    /// A clock that only the test moves.
    fn clock() -> Instant {
        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        *BEGIN + PASSED.get()
    }

    #[test]
    fn a_connection_that_always_has_input_reads_for_a_slice_of_each_turn() {
        let slice = Slice { clock, ..Slice::new() };
        let mut endless = Sliced::new(repeat(7), &slice);
        for _ in 0..3 {
            slice.begin();
            let mut reads = 0;
            while endless.read_u8().now_or_never().is_some() {
                PASSED.set(PASSED.get() + TURN_TIME / 10);
                reads += 1;
            }
            assert_eq!(reads, 10);
            assert!(endless.read_u8().now_or_never().is_none(), "it has to wait for its next turn");
        }
        // Work that takes longer than a slice is the last of its turn.
        slice.begin();
        assert_eq!(endless.read_u8().now_or_never().unwrap().unwrap(), 7);
        PASSED.set(PASSED.get() + 100 * TURN_TIME);
        assert!(endless.read_u8().now_or_never().is_none());
    }
}
