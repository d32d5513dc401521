//! A connection whose protocol is not decided yet.

use std::net::TcpStream;
use std::time::Duration;

use anemone_proto::{CloseFrame, Output, Time};

use super::budget::Budget;
use super::protocol::{
    Ending, Protocol, Queued, State, StreamProtocol, Successor, WebSocketProtocol,
};
use super::{Handler, SendWaker, StreamHandler};
use crate::linger::REFUSED_LINGER;
use crate::{Lost, Negotiated};

/// A decision about a connection, made from its first bytes.
pub struct Opening(Becomes);

enum Becomes {
    Undecided { bytes_max: usize, decide: Decide },
    Protocol { response: Vec<u8>, first: Vec<u8>, make: Box<dyn FnOnce(Time) -> Box<dyn Protocol>> },
    Elsewhere(Box<dyn FnOnce(TcpStream)>),
}

impl Opening {
    /// Waits for more bytes; `decide` then gets all bytes so far. The timeout of
    /// [`adopt_opening`](super::Reactor::adopt_opening) keeps counting from the beginning of the connection.
    ///
    /// The loop closes a connection that sends more than `bytes_max` bytes without a decision, so no peer can make
    /// the loop buffer more. To explain this to the peer, `decide` must check the length itself. For a handshake,
    /// [`HANDSHAKE_BYTES_MAX`](crate::proto::handshake::HANDSHAKE_BYTES_MAX) is enough: the parser refuses longer
    /// ones.
    pub fn more(bytes_max: usize, decide: impl FnOnce(&[u8]) -> Self + 'static) -> Self {
        Self(Becomes::Undecided { bytes_max, decide: Box::new(decide) })
    }

    /// Refuses: the loop writes `response`, and closes the connection when the peer has ended its side, or after a
    /// second.
    pub fn refuse(response: Vec<u8>) -> Self {
        Self::reply(response, REFUSED_LINGER, Refused)
    }

    /// Becomes a WebSocket; `response` completes its opening handshake.
    pub fn web_socket<H>(response: Vec<u8>, mut negotiated: Negotiated, handler: H) -> Self
    where
        H: Handler + 'static,
    {
        let first = std::mem::take(&mut negotiated.first);
        let make = Box::new(move |now| WebSocketProtocol::boxed(negotiated, handler, now));
        Self(Becomes::Protocol { response, first, make })
    }

    /// Becomes a stream of bytes, as with [`adopt_stream`](super::Reactor::adopt_stream); `first` are the bytes that
    /// were read already.
    pub fn stream<H>(first: Vec<u8>, idle_timeout: Duration, handler: H) -> Self
    where
        H: StreamHandler + 'static,
    {
        let make = Box::new(move |now| StreamProtocol::boxed(handler, idle_timeout, now));
        Self(Becomes::Protocol { response: Vec::new(), first, make })
    }

    /// Becomes a stream of bytes, as with [`adopt_stream`](super::Reactor::adopt_stream), and sends `response` first.
    pub fn reply<H>(response: Vec<u8>, idle_timeout: Duration, handler: H) -> Self
    where
        H: StreamHandler + 'static,
    {
        let make = Box::new(move |now| StreamProtocol::boxed(handler, idle_timeout, now));
        Self(Becomes::Protocol { response, first: Vec::new(), make })
    }

    /// Leaves the loop: `take` gets the stream, which is non-blocking.
    pub fn elsewhere(take: impl FnOnce(TcpStream) + 'static) -> Self {
        Self(Becomes::Elsewhere(Box::new(take)))
    }
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Becomes::Undecided { .. } => "Opening::more",
            Becomes::Protocol { .. } => "Opening::web_socket, Opening::stream or Opening::reply",
            Becomes::Elsewhere(_) => "Opening::elsewhere",
        })
    }
}

/// A refused peer; its input is ignored.
struct Refused;

impl StreamHandler for Refused {
    fn on_bytes(&mut self, _bytes: &[u8], _output: &mut Output) {}

    fn linger(&self) -> Option<Duration> {
        Some(REFUSED_LINGER)
    }
}

/// A function that decides.
pub(super) type Decide = Box<dyn FnOnce(&[u8]) -> Opening>;

/// The protocol of an undecided connection: waits for the first bytes.
pub(super) struct FirstBytes {
    decide: Option<Decide>,
    /// Received bytes that were not enough to decide.
    undecided: Vec<u8>,
    until: Time,
    waker: Option<SendWaker>,
    next: Option<Successor>,
    is_over: bool,
}

impl FirstBytes {
    pub(super) fn new(decide: Decide, until: Time) -> Self {
        let (decide, undecided) = (Some(decide), Vec::new());
        Self { decide, undecided, until, waker: None, next: None, is_over: false }
    }
}

impl Protocol for FirstBytes {
    fn open(
        &mut self,
        waker: SendWaker,
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
        let Some(decide) = self.decide.take() else { return input.len() };
        let mut kept = std::mem::take(&mut self.undecided);
        let is_first = kept.is_empty();
        if !is_first {
            kept.extend_from_slice(input);
        }
        let all = if is_first { &*input } else { &*kept };
        match decide(all).0 {
            Becomes::Undecided { bytes_max, .. } if all.len() > bytes_max => self.is_over = true,
            Becomes::Undecided { decide, .. } => {
                self.undecided = if is_first { input.to_vec() } else { kept };
                self.decide = Some(decide);
            }
            Becomes::Protocol { response, first, make } => {
                output.get_or_insert_default().extend_from_slice(&response);
                let waker = self.waker.take();
                self.next =
                    waker.map(|waker| Successor::Protocol { protocol: make(now), waker, first });
            }
            Becomes::Elsewhere(take) => self.next = Some(Successor::Elsewhere(take)),
        }
        // `decide` takes as long as some dozens of messages.
        budget.read_clock();
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

    fn held_bytes(&self) -> usize {
        self.undecided.capacity()
    }

    fn on_lost(&mut self, _lost: Lost) {
        self.is_over = true;
    }

    fn state(&self) -> State {
        match &self.next {
            Some(Successor::Protocol { .. }) => State::Turning,
            Some(Successor::Elsewhere(_)) => State::Leaving,
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

    fn next(&mut self) -> Option<Successor> {
        self.next.take()
    }
}
