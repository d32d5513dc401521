//! A connection of which it is not decided yet what it becomes.

use std::net::TcpStream;
use std::time::Duration;

use anemone_proto::{CloseFrame, Time};

use super::budget::Budget;
use super::protocol::{Ending, Next, Protocol, Queued, State, Stream, WebSocket};
use super::{Handler, StreamHandler, Waker};
use crate::{Agreed, Lost};

/// The decision of a connection's first bytes about what becomes of it.
pub struct Opening(Becomes);

enum Becomes {
    Protocol { response: Vec<u8>, first: Vec<u8>, make: Box<dyn FnOnce(Time) -> Box<dyn Protocol>> },
    Elsewhere(Box<dyn FnOnce(TcpStream)>),
}

impl Opening {
    /// A WebSocket: `response` is what ends its opening handshake.
    pub fn web_socket<H>(response: Vec<u8>, mut agreed: Agreed, handler: H) -> Self
    where
        H: Handler + 'static,
    {
        let first = std::mem::take(&mut agreed.first);
        let make = Box::new(move |now| WebSocket::boxed(agreed, handler, now));
        Self(Becomes::Protocol { response, first, make })
    }

    /// A stream of bytes, as [`adopt_stream`](super::Reactor::adopt_stream) has it: `first` were read
    /// already.
    pub fn stream<H>(first: Vec<u8>, idle_timeout: Duration, handler: H) -> Self
    where
        H: StreamHandler + 'static,
    {
        let make = Box::new(move |now| Stream::boxed(handler, idle_timeout, now));
        Self(Becomes::Protocol { response: Vec::new(), first, make })
    }

    /// A stream of bytes, as [`adopt_stream`](super::Reactor::adopt_stream) has it, on which `response` is sent
    /// first.
    pub fn reply<H>(response: Vec<u8>, idle_timeout: Duration, handler: H) -> Self
    where
        H: StreamHandler + 'static,
    {
        let make = Box::new(move |now| Stream::boxed(handler, idle_timeout, now));
        Self(Becomes::Protocol { response, first: Vec::new(), make })
    }

    /// Something that is not for the loop: `take` gets the stream, which is non-blocking.
    pub fn elsewhere(take: impl FnOnce(TcpStream) + 'static) -> Self {
        Self(Becomes::Elsewhere(Box::new(take)))
    }
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Becomes::Protocol { .. } => "Opening::web_socket, Opening::stream or Opening::reply",
            Becomes::Elsewhere(_) => "Opening::elsewhere",
        })
    }
}

/// The function that decides.
pub(super) type Decide = Box<dyn FnOnce(&[u8]) -> Opening>;

/// Waits for the first bytes.
pub(super) struct Awaited {
    decide: Option<Decide>,
    until: Time,
    waker: Option<Waker>,
    next: Option<Next>,
    is_over: bool,
}

impl Awaited {
    pub(super) fn new(decide: Decide, until: Time) -> Self {
        Self { decide: Some(decide), until, waker: None, next: None, is_over: false }
    }
}

impl Protocol for Awaited {
    fn open(
        &mut self,
        waker: Waker,
        _now: Time,
        _first: &mut [u8],
        _output: &mut Queued,
        _budget: &mut Budget,
    ) {
        self.waker = Some(waker);
    }

    fn receive(
        &mut self,
        now: Time,
        input: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    ) -> usize {
        let (Some(decide), Some(waker)) = (self.decide.take(), self.waker.take()) else {
            return input.len();
        };
        self.next = Some(match decide(input).0 {
            Becomes::Protocol { response, first, make } => {
                output.get_or_insert_default().extend_from_slice(&response);
                Next::Protocol { protocol: make(now), waker, first }
            }
            Becomes::Elsewhere(take) => Next::Elsewhere(take),
        });
        // It takes as long as some dozens of messages.
        budget.look();
        input.len()
    }

    fn ready(&mut self, _now: Time, _output: &mut Queued) {}

    fn reads_on(&self, _stuck_bytes: usize) -> bool {
        false
    }

    fn progressed(&mut self, _now: Time) {}

    fn close(&mut self, _frame: &CloseFrame, _output: &mut Queued) {
        self.is_over = true;
    }

    fn lost(&mut self, _lost: Lost) {
        self.is_over = true;
    }

    fn state(&self) -> State {
        match &self.next {
            Some(Next::Protocol { .. }) => State::Turning,
            Some(Next::Elsewhere(_)) => State::Leaving,
            None if self.is_over => State::Over(Ending { linger: Duration::ZERO, is_clean: true }),
            None => State::Open,
        }
    }

    fn due(&self) -> Time {
        self.until
    }

    fn expire(&mut self, _now: Time, _output: &mut Queued) {
        self.is_over = true;
    }

    fn next(&mut self) -> Option<Next> {
        self.next.take()
    }
}
