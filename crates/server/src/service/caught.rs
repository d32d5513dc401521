//! Panics of code that is not the server's own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A panic, which the panic hook has reported.
#[derive(Debug, thiserror::Error)]
#[error("it panicked")]
pub(super) struct Panicked;

/// Calls code that may panic. The values that it used must not be used after a panic.
pub(super) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| Panicked)
}

/// A future that may panic.
pub(super) struct Caught<F>(pub(super) F);

impl<F: Future + Unpin> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match catch(|| Pin::new(&mut self.0).poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    }
}
