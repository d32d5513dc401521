//! One connection over any byte stream, driven by the tasks that hold it.
//!
//! [`WebSocket`] is a whole connection, and [`SendHalf`] and [`ReceiveHalf`] are its two sides. `driver` does the
//! work for all three.

mod driver;
mod message;
mod sink;
mod split;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use anemone_proto::{CloseFrame, Config, Connection, MaskKey, NegotiatedDeflate, Role, Sender};
use driver::Driver;
pub use message::{AsMessage, Incoming, Turn};
pub use split::{ReceiveHalf, SendHalf};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Error;

/// A WebSocket connection over `S`, in either role.
///
/// It has no task of its own: while any of its functions is awaited, that function reads, writes, answers pings, and
/// keeps the timers. Call [`recv`](Self::recv) in a loop, even if the application only sends. To send and receive
/// from two tasks, [`split`](Self::split) the connection.
///
/// # Pings and timeouts
/// A peer that sends nothing for [`Config::ping_interval`] gets a ping; one that sends nothing for
/// [`Config::idle_timeout`] is considered dead. A peer that takes output, however slowly, counts as alive. Time in
/// which the application awaited nothing does not count, since no ping could be sent.
///
/// # `Stream` and `Sink`
/// As a `Stream` it yields the messages of [`recv`](Self::recv), and ends when that returns `None`. As a `Sink` of
/// any [`AsMessage`] it is ready when [`send`](Self::send) would not wait, and closing it is [`close`](Self::close)
/// with 1000.
///
/// # Dropping
/// Dropping aborts the connection: unwritten output is lost, and the peer sees an abnormal closure (close code 1006).
/// Use [`close`](Self::close) for a closing handshake.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), anemone_ws::Error> {
/// use anemone_ws::{Incoming, WebSocket};
///
/// let (ours, theirs) = tokio::io::duplex(4096); // two ends after a handshake
/// let mut server = WebSocket::server(ours, Default::default(), Vec::new());
/// let mut client = WebSocket::client(theirs, Default::default(), Vec::new());
///
/// client.send("hello").await?;
/// assert_eq!(server.recv().await?, Some(Incoming::Text("hello".into())));
/// let (closed, received) = tokio::join!(server.close(None), client.recv());
/// closed?;
/// assert_eq!(received?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WebSocket<S> {
    driver: Driver<S>,
    subprotocol: Option<String>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// Returns the server's end of a connection after the handshake on `stream`. `first` are the bytes that came
    /// after the handshake, if any.
    #[must_use]
    pub fn server(stream: S, config: Arc<Config>, first: Vec<u8>) -> Self {
        let make = |now| Connection::server(config, now);
        Self::new(Driver::new(stream, Role::Server, make, first))
    }

    /// Returns the client's end of a connection after the handshake on `stream`. `first` are the bytes that came
    /// after the handshake, if any. [`connect`](crate::connect()) does all of it.
    ///
    /// Masking keys come from the thread's random generator: ChaCha with a seed of the operating system that is
    /// renewed every 64 KiB. Nobody can predict them (section 10.3), and a key costs a few nanoseconds.
    #[must_use]
    pub fn client(stream: S, config: Arc<Config>, first: Vec<u8>) -> Self {
        let keys = Box::new(|| MaskKey(rand::random::<u32>().to_ne_bytes()));
        let make = |now| Connection::client(config, now, keys);
        Self::new(Driver::new(stream, Role::Client, make, first))
    }

    fn new(driver: Driver<S>) -> Self {
        Self { driver, subprotocol: None }
    }

    /// Compresses and inflates messages as the opening handshake negotiated. Call it before anything else;
    /// [`Accept`](crate::Accept) and [`Connect`](crate::Connect) do. The connections of a thread share one compressor
    /// and one inflater, unless they use context takeover.
    #[must_use]
    pub fn with_deflate(self, negotiated: &NegotiatedDeflate) -> Self {
        Self { driver: self.driver.with_deflate(negotiated), ..self }
    }

    /// Applies the result of the opening handshake.
    pub(crate) fn negotiated(
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

    /// Returns the subprotocol that the opening handshake negotiated, if any.
    #[must_use]
    pub fn subprotocol(&self) -> Option<&str> {
        self.subprotocol.as_deref()
    }

    /// Returns the next message, or `None` once the closing handshake is done.
    ///
    /// # Errors
    /// [`Error::Protocol`] when the peer violated the protocol or a limit, or sent nothing for the idle timeout;
    /// [`Error::Lost`] when the stream failed or the peer did not answer our close frame. After an error, returns
    /// `None`.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Result<Option<Incoming>, Error> {
        poll_fn(|cx| self.driver.poll_recv(cx)).await
    }

    /// Receives as [`recv`](Self::recv), and also returns when all queued output has been written. A task that both
    /// receives and sends can then queue more.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing but a [`Turn::Drained`], which also shows in
    /// [`queued_bytes`](Sender::queued_bytes).
    pub async fn turn(&mut self) -> Result<Turn, Error> {
        poll_fn(|cx| self.driver.poll_turn(cx)).await
    }

    /// Sends one message. Returns once the message is queued, and written as far as the stream takes it at once; the
    /// peer may not have it yet. While more than 64 KiB are queued, waits first, so a slow peer slows down its
    /// sender. While it waits, it receives at most one message and keeps it for [`recv`](Self::recv).
    ///
    /// # Errors
    /// [`Error::Closed`] when the closing handshake has begun or the connection is over, also while waiting;
    /// [`recv`](Self::recv) returns the reason. [`Error::Misuse`] between fragments of another message.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends nothing. Spec: RFC 6455 section 6.1.
    pub async fn send(&mut self, message: impl AsMessage) -> Result<(), Error> {
        poll_fn(|cx| self.driver.poll_ready(cx)).await?;
        poll_fn(|cx| self.driver.send(cx, message.as_message()).into()).await
    }

    /// Waits until everything queued is written to the stream. While it waits, it receives at most one message and
    /// keeps it for [`recv`](Self::recv).
    ///
    /// # Errors
    /// [`Error::Closed`] when the connection ended before that; [`recv`](Self::recv) returns the reason.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; call it again to keep waiting.
    pub async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.driver.poll_flush(cx)).await
    }

    /// Sends a ping, besides those that keep a quiet connection alive. Once its pong has arrived,
    /// [`round_trip`](Self::round_trip) returns the time that it took; if several pings are under way, the last one
    /// counts. Waits as [`send`](Self::send) does.
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

    /// Returns the last measured time from a ping to its pong: to the millisecond for a keep-alive ping, to the
    /// clock's precision for one of [`ping`](Self::ping).
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.driver.round_trip()
    }

    /// Does the closing handshake: sends a close frame after the queued output, waits for the peer's close frame, and
    /// then for the end of its stream. `None` sends a frame without a code. Messages that still arrive are discarded;
    /// to receive them, call [`close`](Sender::close) of [`sender`](Self::sender), and then [`recv`](Self::recv).
    ///
    /// The peer has the [close timeout](Config::close_timeout) to send its close frame, and the same time again to
    /// end its stream.
    ///
    /// # Errors
    /// As [`recv`](Self::recv): [`Lost::CloseUnanswered`](crate::Lost::CloseUnanswered) when the peer
    /// did not answer in time. The connection is over in any case.
    ///
    /// # Cancel safety
    /// Once polled, the close frame is queued; call it again to keep waiting. Spec: RFC 6455 section 7.1.
    pub async fn close(&mut self, frame: Option<&CloseFrame>) -> Result<(), Error> {
        self.driver.begin_close(frame);
        self.driver.discard_messages();
        poll_fn(|cx| self.driver.poll_closed(cx)).await
    }

    /// Returns the peer's close frame, if it came and has a code.
    #[must_use]
    pub fn close_frame(&self) -> Option<&CloseFrame> {
        self.driver.close_frame()
    }

    /// Returns the queue of frames, which takes frames without waiting; the other functions write them. Its users
    /// should queue more only while [`queued_bytes`](Sender::queued_bytes) is low. Nothing is received while more
    /// than 64 KiB are queued.
    pub fn sender(&mut self) -> &mut Sender {
        self.driver.sender()
    }

    /// Splits the connection into two halves, for two tasks: of one thread, or of several if `S` is `Send`.
    ///
    /// Each half drives the connection while it is awaited. The stream is dropped with the second half.
    #[must_use]
    pub fn split(self) -> (SendHalf<S>, ReceiveHalf<S>) {
        split::split(self.driver)
    }
}

#[cfg(test)]
mod tests;
