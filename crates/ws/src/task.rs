//! One connection over any byte stream, driven by the tasks that hold it.
//!
//! [`WebSocket`] is the whole of it, [`SendHalf`] and [`ReceiveHalf`] are its two sides, and
//! `driver` does the work for all three.

mod driver;
mod message;
mod sink;
mod split;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use anemone_proto::{CloseFrame, Config, Connection, MaskKey, NegotiatedDeflate, Role, Sender};
use driver::Driver;
pub use message::{AsMessage, Incoming, IncomingPiece, Turn};
pub use split::{ReceiveHalf, SendHalf};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Error;

/// A WebSocket connection over `S`, either end of it.
///
/// It has no task of its own: whichever of its functions is being awaited reads, writes, answers
/// pings, and keeps time. [`recv`](Self::recv) is the one for it, and should be called in a loop, by
/// those who only send too. To send and receive from two tasks, [`split`](Self::split) it.
///
/// # Pings and time-outs
/// A peer from which nothing came for [`Config::ping_interval`] is pinged, one that stays quiet for
/// [`Config::idle_timeout`] is given up. One that takes what it is sent, however slowly, is not quiet.
/// Nor is one judged by a time in which nothing was awaited, and so nobody pinged it.
///
/// # `Stream` and `Sink`
/// As a `Stream` it yields what [`recv`](Self::recv) does and ends where that returns `None`. As a
/// `Sink` of anything that is [`AsMessage`] it is ready when [`send`](Self::send) would not wait, and
/// closing it is [`close`](Self::close) with 1000.
///
/// # Dropping
/// A dropped connection is aborted: its stream is dropped with what was not written, and the peer
/// finds it lost (close code 1006). [`close`](Self::close) is the polite way.
#[derive(Debug)]
pub struct WebSocket<S> {
    driver: Driver<S>,
    subprotocol: Option<String>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// The server's end, over a stream whose handshake is done. `first` are the bytes that came
    /// after the handshake, if any.
    #[must_use]
    pub fn server(stream: S, config: Arc<Config>, first: Vec<u8>) -> Self {
        let make = |now| Connection::server(config, now);
        Self::new(Driver::new(stream, Role::Server, make, first))
    }

    /// The client's end, over a stream whose handshake is done. `first` are the bytes that came
    /// after the handshake, if any. [`connect`](crate::connect()) does all of it.
    ///
    /// Masking keys come from the thread's generator, ChaCha with a seed of the operating system
    /// that is renewed every 64 KiB: nobody can foresee them (section 10.3), and one costs a few
    /// nanoseconds.
    #[must_use]
    pub fn client(stream: S, config: Arc<Config>, first: Vec<u8>) -> Self {
        let keys = Box::new(|| MaskKey(rand::random::<u32>().to_ne_bytes()));
        let make = |now| Connection::client(config, now, keys);
        Self::new(Driver::new(stream, Role::Client, make, first))
    }

    fn new(driver: Driver<S>) -> Self {
        Self { driver, subprotocol: None }
    }

    /// Compresses and inflates messages as the opening handshake agreed. To be called before
    /// anything else; [`Accept`](crate::Accept) and [`Connect`](crate::Connect) do. The thread's
    /// connections share one compressor and one inflater, unless they take context over.
    #[must_use]
    pub fn with_deflate(self, negotiated: &NegotiatedDeflate) -> Self {
        Self { driver: self.driver.with_deflate(negotiated), ..self }
    }

    /// Has messages that do not come whole handed out by [`recv_piece`](Self::recv_piece) as they
    /// come, at most 16 KiB a piece, 32 KiB of a compressed one, so that a message of any size takes no
    /// memory; the limits on messages hold all the same. To be called before anything else.
    #[must_use]
    pub fn with_pieces(mut self) -> Self {
        self.driver.take_pieces();
        self
    }

    /// Takes over what the opening handshake agreed on.
    pub(crate) fn agreed(
        self,
        subprotocol: Option<String>,
        deflate: Option<&NegotiatedDeflate>,
    ) -> Self {
        let socket = match deflate {
            Some(negotiated) => self.with_deflate(negotiated),
            None => self,
        };
        Self { subprotocol, ..socket }
    }

    /// The subprotocol that the opening handshake agreed on, if any.
    #[must_use]
    pub fn subprotocol(&self) -> Option<&str> {
        self.subprotocol.as_deref()
    }

    /// The next message. `None` once the closing handshake is done, for ever after. Of a message that
    /// [`recv_piece`](Self::recv_piece) has begun the rest is thrown away.
    ///
    /// # Errors
    /// [`Error::Protocol`] when the peer broke the protocol or a limit, or was quiet for the idle
    /// time-out; [`Error::Lost`] when the stream failed or our close frame was not answered. Once,
    /// then `None`.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Result<Option<Incoming>, Error> {
        poll_fn(|cx| self.driver.poll_recv(cx)).await
    }

    /// The next piece of a message, where [`with_pieces`](Self::with_pieces) asks for them. A message
    /// that came whole is one piece, which is first and last.
    ///
    /// # Errors
    /// As [`recv`](Self::recv). An error ends the message, too: no last piece follows.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv_piece(&mut self) -> Result<Option<IncomingPiece>, Error> {
        poll_fn(|cx| self.driver.poll_recv_piece(cx)).await
    }

    /// As [`recv`](Self::recv), and also returns when everything queued has been written: the time
    /// to queue more, for a task that receives and sends.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing but a [`Turn::Drained`], which
    /// [`queued_bytes`](Sender::queued_bytes) tells as well.
    pub async fn turn(&mut self) -> Result<Turn, Error> {
        poll_fn(|cx| self.driver.poll_turn(cx)).await
    }

    /// Sends one message; returns once it is queued for writing and as much as the stream takes at
    /// once is written, not once the peer has it. Waits first while more than 64 KiB are queued:
    /// that is how a sender feels a slow peer. While it waits, at most one message is received and
    /// kept for [`recv`](Self::recv).
    ///
    /// # Errors
    /// [`Error::Closed`] once the closing handshake has begun or the connection is over, also while
    /// waiting; [`recv`](Self::recv) tells why. [`Error::Misuse`] between fragments of another message.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends nothing. Spec: RFC 6455 section 6.1.
    pub async fn send(&mut self, message: impl AsMessage) -> Result<(), Error> {
        poll_fn(|cx| self.driver.poll_ready(cx)).await?;
        poll_fn(|cx| self.driver.send(cx, message.as_message()).into()).await
    }

    /// Waits until everything queued is written to the stream. While it waits, at most one message
    /// is received and kept for [`recv`](Self::recv).
    ///
    /// # Errors
    /// [`Error::Closed`] when the connection was over before; [`recv`](Self::recv) tells why.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; call it again to wait on.
    pub async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.driver.poll_flush(cx)).await
    }

    /// Sends a ping of our own, beside those that keep a quiet connection alive. Once its pong has
    /// been received, [`round_trip`](Self::round_trip) tells how long that took; of several pings under
    /// way the last one counts. Waits as [`send`](Self::send) does.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends nothing. Spec: RFC 6455 section 5.5.2.
    pub async fn ping(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.driver.poll_ready(cx)).await?;
        poll_fn(|cx| self.driver.ping(cx).into()).await
    }

    /// The last measured time from a ping to its pong: a keep-alive ping to the millisecond, one of
    /// [`ping`](Self::ping) as exact as the clock is.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.driver.round_trip()
    }

    /// Closes politely: sends a close frame after what is queued, waits for the peer's, and for
    /// the end of its stream. `None` sends a frame without a code. Messages that still come are thrown
    /// away; to receive them, call [`close`](Sender::close) of [`sender`](Self::sender) and
    /// [`recv`](Self::recv) on.
    ///
    /// Takes at most the [close time-out](Config::close_timeout) for the peer's close frame, and once
    /// more for the end of its stream.
    ///
    /// # Errors
    /// As [`recv`](Self::recv): [`Lost::CloseUnanswered`](crate::Lost::CloseUnanswered) when the peer
    /// did not answer in time. The connection is over in any case.
    ///
    /// # Cancel safety
    /// Once polled the close frame is queued; call it again to wait on. Spec: RFC 6455 section 7.1.
    pub async fn close(&mut self, frame: Option<&CloseFrame>) -> Result<(), Error> {
        self.driver.begin_close(frame);
        self.driver.discard_messages();
        poll_fn(|cx| self.driver.poll_closed(cx)).await
    }

    /// The peer's close frame, once it came and if it has a code.
    #[must_use]
    pub fn close_frame(&self) -> Option<&CloseFrame> {
        self.driver.close_frame()
    }

    /// The queue of frames, which takes them without waiting; the other functions write them. Whoever sends this
    /// way queues more only while [`queued_bytes`](Sender::queued_bytes) is low. Nothing is received
    /// while more than 64 KiB are queued.
    pub fn sender(&mut self) -> &mut Sender {
        self.driver.sender()
    }

    /// Two halves, for two tasks: of one thread, or of several when `S` is `Send`.
    ///
    /// Either drives the connection while it is being awaited. The stream is dropped with the second
    /// of them.
    #[must_use]
    pub fn split(self) -> (SendHalf<S>, ReceiveHalf<S>) {
        split::split(self.driver)
    }
}

#[cfg(test)]
mod tests;
