//! Panics of code that is not the server's own.

use std::error::Error;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::reply::body::BoxError;

/// A panic, which the panic hook has reported.
#[derive(Debug, thiserror::Error)]
#[error("it panicked")]
pub(super) struct Panicked;

/// Calls code that may panic. The values that it used must not be used after a panic.
pub(super) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        // The payload is a value of that code, too. What a second panic leaves is never dropped.
        catch_unwind(AssertUnwindSafe(|| drop(payload))).unwrap_or_else(mem::forget);
        Panicked
    })
}

/// The words of an error and its causes. They are written at once, since the code of an error may panic.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct ServiceError {
    text: String,
    source: Option<Box<Self>>,
}

impl ServiceError {
    pub(super) fn of(error: impl Into<BoxError>) -> Self {
        let written = Caught::new(error.into()).ask(|error| Self::write(&**error));
        let text = || "it failed, and its error panicked".to_owned();
        written.unwrap_or_else(|Panicked| Self { text: text(), source: None })
    }

    fn write(error: &dyn Error) -> Self {
        let source = error.source().map(|source| Box::new(Self::write(source)));
        Self { text: error.to_string(), source }
    }
}

/// A value, such as a future, that may panic, also when it is dropped.
#[derive(Debug)]
pub(super) struct Caught<T>(
    /// `None` only while it is dropped.
    Option<T>,
);

impl<T> Caught<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Returns the value. It is `None` only while it is dropped.
    pub(super) fn into_inner(mut self) -> Option<T> {
        self.0.take()
    }

    pub(super) fn call<R>(&mut self, call: impl FnOnce(&mut T) -> R) -> Result<R, Panicked> {
        let value = self.0.as_mut().ok_or(Panicked)?;
        catch(|| call(value))
    }

    pub(super) fn ask<R>(&self, ask: impl FnOnce(&T) -> R) -> Result<R, Panicked> {
        let value = self.0.as_ref().ok_or(Panicked)?;
        catch(|| ask(value))
    }
}

impl<T> Drop for Caught<T> {
    fn drop(&mut self) {
        // The panic hook has reported a panic, and nobody waits for the value.
        let _ = catch(|| drop(self.0.take()));
    }
}

impl<F: Future + Unpin> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.call(|future| Pin::new(future).poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    }
}
