//! A connection in two halves, for two tasks.
//!
//! A stream remembers one waker for reading and one for writing, but each half both reads and writes. So the stream
//! gets a waker that wakes both tasks.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use anemone_proto::CloseFrame;
use tokio::io::{AsyncRead, AsyncWrite};

use super::driver::Driver;
use super::{AsMessage, Incoming};
use crate::Error;

/// The sending half of a [split](super::WebSocket::split) connection.
///
/// Dropping it neither closes nor aborts the connection: [`close`](Self::close) does.
#[derive(Debug)]
pub struct SendHalf<S>(Half<S>);

/// The receiving half of a [split](super::WebSocket::split) connection.
///
/// While [`recv`](Self::recv) is awaited, it drives the connection for both halves. Once this half is dropped,
/// incoming messages are discarded.
#[derive(Debug)]
pub struct ReceiveHalf<S>(Half<S>);

pub(super) fn split<S>(driver: Driver<S>) -> (SendHalf<S>, ReceiveHalf<S>) {
    let wakers = Arc::new(Wakers::default());
    let shared = Arc::new(SplitState {
        driver: Mutex::new(driver),
        waker: Waker::from(Arc::clone(&wakers)),
        wakers,
    });
    let half = |side| Half { shared: Arc::clone(&shared), side };
    (SendHalf(half(Side::Send)), ReceiveHalf(half(Side::Receive)))
}

impl<S: AsyncRead + AsyncWrite + Unpin> SendHalf<S> {
    /// As [`WebSocket::send`](super::WebSocket::send).
    ///
    /// # Errors
    /// As [`WebSocket::send`](super::WebSocket::send).
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends nothing.
    pub async fn send(&mut self, message: impl AsMessage) -> Result<(), Error> {
        poll_fn(|cx| self.poll_ready(cx)).await?;
        poll_fn(|cx| self.0.poll(cx, |driver, cx| driver.send(cx, message.as_message()).into()))
            .await
    }

    /// As [`WebSocket::flush`](super::WebSocket::flush). The other half writes everything too, while its
    /// [`recv`](ReceiveHalf::recv) is awaited.
    ///
    /// # Errors
    /// As [`WebSocket::flush`](super::WebSocket::flush).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; call it again to wait on.
    pub async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// As [`WebSocket::ping`](super::WebSocket::ping).
    ///
    /// # Errors
    /// As [`WebSocket::ping`](super::WebSocket::ping).
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends nothing.
    pub async fn ping(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_ready(cx)).await?;
        poll_fn(|cx| self.0.poll(cx, |driver, cx| driver.ping(cx).into())).await
    }

    /// As [`WebSocket::close`](super::WebSocket::close), except that the other half gets the messages that still
    /// arrive. It must go on receiving, or be dropped, for the closing handshake to finish in time.
    ///
    /// # Errors
    /// As [`WebSocket::close`](super::WebSocket::close), unless the other half gets the error first.
    ///
    /// # Cancel safety
    /// Once polled, the close frame is queued; call it again to keep waiting.
    pub async fn close(&mut self, frame: Option<&CloseFrame>) -> Result<(), Error> {
        poll_fn(|cx| {
            self.0.poll(cx, |driver, cx| {
                driver.begin_close(frame);
                driver.poll_closed(cx)
            })
        })
        .await
    }

    /// As [`WebSocket::round_trip`](super::WebSocket::round_trip).
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.0.shared.driver().round_trip()
    }

    /// Returns the number of bytes queued and not written.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.0.shared.driver().sender().queued_bytes()
    }

    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.0.poll(cx, Driver::poll_ready)
    }

    pub(super) fn queue(&self, message: &impl AsMessage) -> Result<(), Error> {
        self.0.shared.driver().queue(message.as_message())
    }

    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.0.poll(cx, Driver::poll_flush)
    }

    pub(super) fn poll_normal_close(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.0.poll(cx, |driver, cx| {
            driver.begin_normal_close();
            driver.poll_closed(cx)
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ReceiveHalf<S> {
    /// As [`WebSocket::recv`](super::WebSocket::recv).
    ///
    /// # Errors
    /// As [`WebSocket::recv`](super::WebSocket::recv), unless [`SendHalf::close`] has returned the error.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Result<Option<Incoming>, Error> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`WebSocket::close_frame`](super::WebSocket::close_frame).
    #[must_use]
    pub fn close_frame(&self) -> Option<CloseFrame> {
        self.0.shared.driver().close_frame().cloned()
    }

    /// As [`WebSocket::round_trip`](super::WebSocket::round_trip).
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.0.shared.driver().round_trip()
    }

    pub(super) fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Incoming>, Error>> {
        self.0.poll(cx, Driver::poll_recv)
    }
}

#[derive(Debug)]
struct SplitState<S> {
    /// Locked only during a poll, never while a task waits.
    driver: Mutex<Driver<S>>,
    wakers: Arc<Wakers>,
    /// The waker given to the stream and the timer; it wakes `wakers`.
    waker: Waker,
}

impl<S> SplitState<S> {
    fn driver(&self) -> MutexGuard<'_, Driver<S>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Half<S> {
    shared: Arc<SplitState<S>>,
    side: Side,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Send,
    Receive,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Send => Self::Receive,
            Self::Receive => Self::Send,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Half<S> {
    /// Polls the connection, and wakes the other half after a change that it may be waiting for.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Driver<S>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.shared.wakers.set(self.side, cx.waker());
        let mut driver = self.shared.driver();
        let before = driver.stage();
        let polled = poll(&mut driver, &mut Context::from_waker(&self.shared.waker));
        let has_changed = driver.stage() != before;
        drop(driver);
        if has_changed {
            self.shared.wakers.wake_one(self.side.other());
        }
        polled
    }
}

impl<S> Drop for ReceiveHalf<S> {
    fn drop(&mut self) {
        self.0.shared.driver().discard_messages();
        // The other half may be waiting for this one to take a message.
        self.0.shared.wakers.wake_one(Side::Send);
    }
}

/// The waiting tasks, one for each side.
#[derive(Debug, Default)]
struct Wakers(Mutex<[Option<Waker>; 2]>);

impl Wakers {
    fn set(&self, side: Side, waker: &Waker) {
        let slot = &mut self.lock()[side as usize];
        match slot {
            Some(known) => known.clone_from(waker),
            None => *slot = Some(waker.clone()),
        }
    }

    fn wake_one(&self, side: Side) {
        let waker = self.lock()[side as usize].take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Waker>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_one(Side::Send);
        self.wake_one(Side::Receive);
    }
}
