//! The work of an application with the connections of a loop.

use std::time::Duration;

use anemone_proto::{CloseFrame, Message, Output, Piece, Sender};

use super::waker::Waker;
use crate::Error;

/// The work of an application with one connection: the four events of a WebSocket, and one more for
/// those who send on their own account. Messages are borrowed from the read buffer; replies are
/// queued on the spot, without allocation.
///
/// No method may block: every socket of the thread waits.
pub trait Handler {
    /// The connection is open.
    fn on_open(&mut self, waker: Waker, sender: &mut Sender) {
        let _ = (waker, sender);
    }

    /// Hands out messages that do not come whole in pieces as they come, instead of collecting them. Asked once.
    fn takes_pieces(&self) -> bool {
        false
    }

    /// A piece of a message came; only where [`takes_pieces`](Self::takes_pieces) says so, and not
    /// for messages that came whole. A compressed one is cut into pieces of 32 KiB.
    fn on_piece(&mut self, piece: Piece<'_>, sender: &mut Sender) {
        let _ = (piece, sender);
    }

    /// A message came.
    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender);

    /// Somebody called [`Waker::wake`], or everything that was stuck has been written. A good sender
    /// queues more only while [`Sender::queued_bytes`] is low.
    fn on_ready(&mut self, sender: &mut Sender) {
        let _ = sender;
    }

    /// The peer has ended its side without a close frame, and sends nothing more. Whether there is something to say
    /// to it yet: then this is asked again after each turn, and else the connection is over.
    fn on_end(&mut self, sender: &mut Sender) -> bool {
        let _ = sender;
        false
    }

    /// The bytes that it has counted in the loop's [`Memory`](crate::Memory) for what is open on the connection though nothing moves:
    /// requests, readers. Asked only when too much is held in all: then the connections on which most is open are closed
    /// (1013).
    fn open_bytes(&self) -> usize {
        0
    }

    /// The peer has answered a keep-alive ping, so long after it was sent, to the millisecond.
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

/// The work of an application with the bytes of a connection that is not a WebSocket. The loop writes what a method appends
/// to `output`. While a write is stuck, the loop reads nothing and does not call [`on_ready`](Self::on_ready).
pub trait StreamHandler {
    /// The connection is open.
    fn on_open(&mut self, waker: Waker) {
        let _ = waker;
    }

    /// Bytes came.
    fn on_bytes(&mut self, bytes: &[u8], output: &mut Output);

    /// Most bytes that [`on_bytes`](Self::on_bytes) is given at once. Others have their turn in between, so a
    /// handler for which there may be much work in few bytes wants few. Asked before each read.
    fn receive_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Somebody called [`Waker::wake`], or everything that was stuck has been written.
    fn on_ready(&mut self, output: &mut Output) {
        let _ = output;
    }

    /// The peer has ended its side, and sends nothing more. Whether there is something to say to it yet: then this
    /// is asked again after each turn, and else the connection is over once all is written.
    fn on_end(&mut self, output: &mut Output) -> bool {
        let _ = output;
        false
    }

    /// The loop [closes](super::Reactor::close_all) its connections: the last that is written.
    fn on_close(&mut self, output: &mut Output) {
        let _ = output;
    }

    /// The number of bytes that it keeps of what has not come whole.
    fn held_bytes(&self) -> usize {
        0
    }

    /// As [`Handler::open_bytes`].
    fn open_bytes(&self) -> usize {
        0
    }

    /// The time that the peer may take to read the rest and to end its side, once the stream is to be closed.
    fn linger(&self) -> Option<Duration> {
        None
    }
}
