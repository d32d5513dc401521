//! What is spoken over a socket: WebSocket, or bytes as they are.

use std::time::Duration;

use anemone_proto::{CloseFrame, Connection, Event, Time};

use super::{Handler, StreamHandler, Token};
use crate::{Error, Lost};

/// One connection's protocol, as the loop drives it. Output is appended to the loop's buffer.
pub(super) trait Protocol {
    fn open(&mut self, token: Token, now: Time, output: &mut Vec<u8>);
    fn receive(&mut self, now: Time, input: &mut [u8], output: &mut Vec<u8>);
    fn ready(&mut self, output: &mut Vec<u8>);
    fn close(&mut self, frame: &CloseFrame, output: &mut Vec<u8>);
    fn lost(&mut self, lost: Lost);
    /// When [`expire`](Self::expire) has something to do.
    fn due(&self) -> Option<Time>;
    fn expire(&mut self, now: Time, output: &mut Vec<u8>);
    /// How it ends, once it is over.
    fn ending(&self) -> Option<Ending>;
}

/// How a protocol that is over wants its stream ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ending {
    /// How long the peer may take to read the rest and end its side.
    pub(super) linger: Duration,
    /// The peer has said that it sends nothing more.
    pub(super) is_clean: bool,
}

/// A WebSocket and its handler.
pub(super) struct WebSocket<H> {
    pub(super) connection: Connection,
    pub(super) handler: H,
    /// What came after the handshake, until the first turn.
    pub(super) first: Vec<u8>,
    pub(super) close_timeout: Duration,
    pub(super) ending: Option<Ending>,
}

impl<H: Handler> WebSocket<H> {
    /// Runs `work` with the connection's output going to the loop's buffer.
    fn lend<T>(&mut self, output: &mut Vec<u8>, work: impl FnOnce(&mut Self) -> T) -> T {
        self.connection.sender().exchange_output(output);
        let done = work(self);
        self.connection.sender().exchange_output(output);
        done
    }

    /// Hands what came to the connection, and what that makes of it to the handler.
    fn decode(&mut self, now: Time, mut input: &mut [u8]) {
        while !input.is_empty() {
            let received = self.connection.receive(now, input);
            let consumed = received.consumed;
            match received.event {
                Some(Event::Message(message)) => self.handler.message(message, received.sender),
                Some(Event::Close(frame)) => self.over(None, Some(frame)),
                Some(Event::Failed(error)) => self.over(Some(error.into()), None),
                Some(Event::Ping(_) | Event::Pong(_)) | None => {}
            }
            input = &mut input[consumed..];
        }
    }

    /// Tells the handler, once. `closed` is the peer's close frame, if it sent one.
    fn over(&mut self, error: Option<Error>, closed: Option<Option<CloseFrame>>) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(Ending { linger: self.close_timeout, is_clean: closed.is_some() });
        if let Some(error) = error {
            self.handler.error(&error);
        }
        self.handler.close(closed.flatten().as_ref());
    }
}

impl<H: Handler> Protocol for WebSocket<H> {
    fn open(&mut self, token: Token, now: Time, output: &mut Vec<u8>) {
        let mut first = std::mem::take(&mut self.first);
        self.lend(output, |socket| {
            socket.handler.open(token, socket.connection.sender());
            socket.decode(now, &mut first);
        });
    }

    fn receive(&mut self, now: Time, input: &mut [u8], output: &mut Vec<u8>) {
        self.lend(output, |socket| socket.decode(now, input));
    }

    fn ready(&mut self, output: &mut Vec<u8>) {
        self.lend(output, |socket| {
            if !socket.connection.sender().is_closing() {
                socket.handler.ready(socket.connection.sender());
            }
        });
    }

    fn close(&mut self, frame: &CloseFrame, output: &mut Vec<u8>) {
        self.lend(output, |socket| {
            // Refused when a close frame is on its way already.
            let _ = socket.connection.sender().close(Some(frame));
        });
    }

    fn lost(&mut self, lost: Lost) {
        self.over(Some(lost.into()), None);
    }

    fn due(&self) -> Option<Time> {
        self.connection.poll_timeout()
    }

    fn expire(&mut self, now: Time, output: &mut Vec<u8>) {
        self.lend(output, |socket| {
            if let Some(Event::Failed(error)) = socket.connection.handle_timeout(now) {
                socket.over(Some(error.into()), None);
            } else if socket.connection.is_closed() {
                socket.over(None, None);
            }
        });
    }

    fn ending(&self) -> Option<Ending> {
        self.ending
    }
}

/// Bytes and their handler.
pub(super) struct Stream<H> {
    pub(super) handler: H,
    pub(super) idle_timeout: Duration,
    pub(super) received_at: Time,
    pub(super) is_over: bool,
}

impl<H: StreamHandler> Protocol for Stream<H> {
    fn open(&mut self, _token: Token, now: Time, _output: &mut Vec<u8>) {
        self.received_at = now;
    }

    fn receive(&mut self, now: Time, input: &mut [u8], output: &mut Vec<u8>) {
        self.received_at = now;
        self.handler.receive(input, output);
    }

    fn ready(&mut self, _output: &mut Vec<u8>) {}

    fn close(&mut self, _frame: &CloseFrame, _output: &mut Vec<u8>) {
        self.is_over = true;
    }

    fn lost(&mut self, _lost: Lost) {
        self.is_over = true;
    }

    fn due(&self) -> Option<Time> {
        Some(self.received_at + self.idle_timeout)
    }

    fn expire(&mut self, _now: Time, _output: &mut Vec<u8>) {
        self.is_over = true;
    }

    fn ending(&self) -> Option<Ending> {
        self.is_over.then_some(Ending { linger: Duration::ZERO, is_clean: true })
    }
}
