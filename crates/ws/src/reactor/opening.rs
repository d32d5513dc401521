//! A connection whose protocol is not decided yet, or whose requests are answered one by one.

use std::net::TcpStream;
use std::time::Duration;

use anemone_proto::{CloseFrame, Output, Time};

use super::budget::Budget;
use super::protocol::{
    Ending, Left, Protocol, Queued, State, StreamProtocol, Successor, WebSocketProtocol,
};
use super::survey::{ConnectionId, Speaks, SurveyedConnection};
use super::{Handler, SendWaker, StreamHandler};
use crate::linger::REFUSED_LINGER;
use crate::{Lost, Negotiated};

/// A peer that sends requests without reading the replies gets no more of them while this many bytes are queued.
const UNREAD_BYTES_MAX: usize = 64 << 10;

/// A decision about a connection, made from its first bytes.
pub struct Opening(Becomes);

enum Becomes {
    Undecided { bytes_max: usize, decide: Decide },
    Answered { request_bytes: usize, reply: Vec<u8>, decide: Decide },
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

    /// Answers a request, which is the first `request_bytes` bytes, and stays undecided; `decide` then gets the bytes
    /// after it, once there are any. The timeout of [`adopt_opening`](super::Reactor::adopt_opening) begins anew, and
    /// again whenever the peer takes a part of a reply that it did not take at once.
    ///
    /// The loop writes the replies to the requests of one read together. It asks for no more replies while 64 KiB of
    /// them are queued, while the peer does not take them, or while other connections have their turn. When the loop
    /// [closes](super::Reactor::close_all) its connections, the peer has the timeout to take the queued replies; requests
    /// without a reply are dropped.
    pub fn answered(
        request_bytes: usize,
        reply: Vec<u8>,
        decide: impl FnOnce(&[u8]) -> Self + 'static,
    ) -> Self {
        Self(Becomes::Answered { request_bytes, reply, decide: Box::new(decide) })
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

    /// Leaves the loop, once all replies are written: `take` gets the stream, which is non-blocking.
    pub fn elsewhere(take: impl FnOnce(TcpStream) + 'static) -> Self {
        Self(Becomes::Elsewhere(Box::new(take)))
    }
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Becomes::Undecided { .. } => "Opening::more",
            Becomes::Answered { .. } => "Opening::answered",
            Becomes::Protocol { .. } => "Opening::web_socket, Opening::stream or Opening::reply",
            Becomes::Elsewhere(_) => "Opening::elsewhere",
        })
    }
}

/// A refused peer; its input is ignored.
struct Refused;

impl StreamHandler for Refused {
    fn on_bytes(&mut self, bytes: &[u8], _output: &mut Output) -> usize {
        bytes.len()
    }

    fn linger(&self) -> Option<Duration> {
        Some(REFUSED_LINGER)
    }
}

pub(super) type Decide = Box<dyn FnOnce(&[u8]) -> Opening>;

/// The protocol of an undecided connection: waits for the first bytes, or for the next request.
pub(super) struct FirstBytes {
    decide: Option<Decide>,
    /// Received bytes that were not enough to decide, or not decided yet.
    left: Left,
    /// True if `left` waits for a turn of the loop, and not for more bytes.
    is_behind: bool,
    has_answered: bool,
    timeout: Duration,
    until: Time,
    waker: Option<SendWaker>,
    next: Option<Successor>,
    ending: Option<Ending>,
}

impl FirstBytes {
    pub(super) fn new(decide: Decide, now: Time, timeout: Duration) -> Self {
        Self {
            decide: Some(decide),
            left: Left::default(),
            is_behind: false,
            has_answered: false,
            timeout,
            until: now + timeout,
            waker: None,
            next: None,
            ending: None,
        }
    }

    /// Decides about these bytes, request by request. Returns the number of bytes that need no further decision.
    fn decide(
        &mut self,
        now: Time,
        bytes: &[u8],
        output: &mut Queued,
        budget: &mut Budget,
    ) -> usize {
        let mut rest = bytes;
        self.is_behind = false;
        while let Some(decide) = self.decide.take_if(|_| !rest.is_empty()) {
            match decide(rest).0 {
                Becomes::Undecided { bytes_max, .. } if rest.len() > bytes_max => self.end(),
                Becomes::Undecided { decide, .. } => {
                    self.decide = Some(decide);
                    break;
                }
                Becomes::Answered { request_bytes, reply, decide } => {
                    self.has_answered = true;
                    let output = output.get_or_insert_default();
                    output.extend_from_slice(&reply);
                    rest = rest.get(request_bytes..).unwrap_or_default();
                    self.decide = Some(decide);
                    self.until = now + self.timeout;
                    self.is_behind = !rest.is_empty() && output.len() >= UNREAD_BYTES_MAX;
                }
                Becomes::Protocol { response, first, make } => {
                    output.get_or_insert_default().extend_from_slice(&response);
                    let waker = self.waker.take();
                    self.next = waker.map(|waker| Successor::Protocol {
                        protocol: make(now),
                        waker,
                        first,
                    });
                }
                Becomes::Elsewhere(take) => self.next = Some(Successor::Elsewhere(take)),
            }
            // A decision takes as long as some dozens of messages, and an answer as long as its service.
            budget.read_clock();
            self.is_behind |= !rest.is_empty() && budget.is_slice_over();
            if self.is_behind {
                break;
            }
        }
        // What comes after the last decision is not for this protocol.
        if self.decide.is_some() { bytes.len() - rest.len() } else { bytes.len() }
    }

    /// Ends the connection without a word.
    fn end(&mut self) {
        self.end_by(Ending { linger: Duration::ZERO, is_clean: true });
    }

    fn end_by(&mut self, ending: Ending) {
        self.ending = Some(ending);
        (self.decide, self.next, self.left) = Default::default();
        self.is_behind = false;
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
        let mut left = std::mem::take(&mut self.left);
        if !left.is_empty() {
            left.extend(input);
            let decided = self.decide(now, left.rest(), output, budget);
            self.left = left.after(decided);
            return input.len();
        }
        let decided = self.decide(now, input, output, budget);
        if decided < input.len() {
            self.left = Left::of(&input[decided..]);
        }
        if self.is_behind { decided } else { input.len() }
    }

    fn resume(&mut self, now: Time, output: &mut Queued, budget: &mut Budget) {
        let left = std::mem::take(&mut self.left);
        let decided = self.decide(now, left.rest(), output, budget);
        self.left = left.after(decided);
    }

    fn ready(&mut self, _now: Time, _output: &mut Queued) {}

    fn describe(&self, id: ConnectionId) -> SurveyedConnection {
        let speaks = if self.has_answered { Speaks::Requests } else { Speaks::Undecided };
        SurveyedConnection::new(id, speaks, None)
    }

    fn reads_on(&self, _stuck_bytes: usize) -> bool {
        false
    }

    fn progressed(&mut self, now: Time) {
        self.until = now + self.timeout;
    }

    /// The peer still gets the replies that are queued. If it may be sending, it also has time to read them: closing a
    /// socket with unread input resets it.
    fn close(&mut self, _frame: &CloseFrame, is_busy: bool, _output: &mut Queued) {
        let is_clean = !is_busy && self.left.is_empty() && self.next.is_none();
        self.end_by(Ending { linger: self.timeout, is_clean });
    }

    fn held_bytes(&self) -> usize {
        self.left.capacity()
    }

    fn on_lost(&mut self, _lost: Lost) {
        self.end();
    }

    fn state(&self) -> State {
        match (&self.next, self.ending) {
            (_, Some(ending)) => State::Over(ending),
            (Some(Successor::Protocol { .. }), None) => State::Switching,
            (Some(Successor::Elsewhere(_)), None) => State::Leaving,
            (None, None) if self.is_behind => State::Behind,
            (None, None) => State::Open,
        }
    }

    fn due(&self) -> Time {
        self.until
    }

    fn expire(&mut self, _now: Time, _output: &mut Queued) {
        self.end();
    }

    fn next(&mut self) -> Option<Successor> {
        self.next.take()
    }
}
