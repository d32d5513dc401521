//! The interfaces that an application implements for the connections of a loop.

use std::any::Any;
use std::time::Duration;

use anemone_proto::{CloseFrame, Message, Output, Piece, Sender};

use super::waker::SendWaker;
use crate::Error;

/// An application's side of one WebSocket connection.
///
/// Messages are borrowed from the read buffer, and replies are queued in place, so neither allocates. No method may
/// block: every socket of the thread would wait.
pub trait Handler {
    /// The connection is open.
    fn on_open(&mut self, waker: SendWaker, sender: &mut Sender) {
        let _ = (waker, sender);
    }

    /// Returns true to get incomplete messages in pieces as they arrive, instead of whole. Called once. Default:
    /// false.
    fn takes_pieces(&self) -> bool {
        false
    }

    /// Handles a piece of a message. Called only if [`takes_pieces`](Self::takes_pieces) returns true, and not for
    /// messages that arrive whole. A compressed message is cut into pieces of 32 KiB.
    fn on_piece(&mut self, piece: Piece<'_>, sender: &mut Sender) {
        let _ = (piece, sender);
    }

    /// Handles a message.
    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender);

    /// Returns true, once, if the last message or piece has caused work that its length does not tell, such as making
    /// an answer. The loop then looks at the clock at once, and not only after some dozens of messages, so that other
    /// connections have their turn. Default: false.
    fn has_worked(&mut self) -> bool {
        false
    }

    /// Sends more: somebody called [`SendWaker::wake`], or all pending output has been written. A sender should queue
    /// more only while [`Sender::queued_bytes`] is low, and work for no longer than a fraction of a millisecond.
    fn on_ready(&mut self, sender: &mut Sender) {
        let _ = sender;
    }

    /// The peer has ended its side without a close frame, and sends nothing more. Returns true while there is more to
    /// send; the loop then asks again after each turn. On false, the connection is over.
    fn on_end(&mut self, sender: &mut Sender) -> bool {
        let _ = sender;
        false
    }

    /// The loop [closes](super::Reactor::close_all) its connections: the last messages before the close frame.
    fn on_shutdown(&mut self, sender: &mut Sender) {
        let _ = sender;
    }

    /// Returns the bytes that the handler counts in the loop's [`Memory`](crate::Memory) for open requests and
    /// readers. Called only while the memory is exceeded: the loop then closes the connections with the most open
    /// bytes first (1013).
    fn open_bytes(&self) -> usize {
        0
    }

    /// Describes the connection for [`Reactor::survey`](super::Reactor::survey): any value, for the code that asks.
    /// Called only when somebody asks. Default: nothing.
    fn describe(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// The peer has answered a keep-alive ping after `round_trip`, to the millisecond.
    fn on_pong(&mut self, round_trip: Duration) {
        let _ = round_trip;
    }

    /// The connection failed; [`on_close`](Self::on_close) follows.
    fn on_error(&mut self, error: &Error) {
        let _ = error;
    }

    /// The connection is over, with the peer's close frame if it sent one.
    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        let _ = frame;
    }
}

/// An application's side of a connection that is not a WebSocket. The loop writes the bytes that a method appends to
/// `output`. While output is pending, the loop reads nothing and does not call [`on_ready`](Self::on_ready).
pub trait StreamHandler {
    /// The connection is open.
    fn on_open(&mut self, waker: SendWaker) {
        let _ = waker;
    }

    /// Handles received bytes, and returns how many, at least one. Other connections may have their turn before the
    /// others come again, so a handler should return after work that the number of bytes does not tell, such as making
    /// an answer.
    fn on_bytes(&mut self, bytes: &[u8], output: &mut Output) -> usize;

    /// Returns the most bytes for one call of [`on_bytes`](Self::on_bytes). Other connections may have their turn between
    /// two calls, so a handler that does much work for few bytes should return a small number. Called before each
    /// read.
    fn receive_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Sends more: somebody called [`SendWaker::wake`], or all pending output has been written.
    fn on_ready(&mut self, output: &mut Output) {
        let _ = output;
    }

    /// The peer has ended its side, and sends nothing more. Returns true while there is more to send; the loop then
    /// asks again after each turn. On false, the connection is over once all output is written.
    fn on_end(&mut self, output: &mut Output) -> bool {
        let _ = output;
        false
    }

    /// The loop [closes](super::Reactor::close_all) its connections; `output` takes the last bytes to write.
    fn on_close(&mut self, output: &mut Output) {
        let _ = output;
    }

    /// Returns the number of bytes that the handler keeps of incomplete input.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Returns the open bytes, as [`Handler::open_bytes`].
    fn open_bytes(&self) -> usize {
        0
    }

    /// Describes the connection for [`Reactor::survey`](super::Reactor::survey): any value, for the code that asks.
    /// Called only when somebody asks. Default: nothing.
    fn describe(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// Returns the time that the peer has to read the rest and to end its side, once the stream is to be closed.
    fn linger(&self) -> Option<Duration> {
        None
    }
}
