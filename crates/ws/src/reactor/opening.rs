//! A connection of which it is not decided yet what it becomes.

use std::net::TcpStream;
use std::time::Duration;

use anemone_proto::{CloseFrame, Output, Time};

use super::budget::Budget;
use super::protocol::{Ending, Next, Protocol, Queued, State, Stream, WebSocket};
use super::{Handler, StreamHandler, Waker};
use crate::{Agreed, Lost};

/// The time that a refused client may take to read the refusal and end its side.
const LINGER: Duration = Duration::from_secs(1);

/// The decision of a connection's first bytes about what becomes of it.
pub struct Opening(Becomes);

enum Becomes {
    Undecided { bytes_max: usize, decide: Decide },
    Protocol { response: Vec<u8>, first: Vec<u8>, make: Box<dyn FnOnce(Time) -> Box<dyn Protocol>> },
    Elsewhere(Box<dyn FnOnce(TcpStream)>),
}

impl Opening {
    /// Waits for more bytes: `decide` gets all that came so far with them. The time-out of the connection is
    /// that of [`adopt_opening`](super::Reactor::adopt_opening), from its beginning.
    ///
    /// A connection of which more than `bytes_max` bytes have come is closed instead, so that no peer can make
    /// the loop keep more. Whoever wants to say why checks that before.
    /// [`HANDSHAKE_BYTES_MAX`](crate::proto::handshake::HANDSHAKE_BYTES_MAX) is enough for a handshake: the
    /// parser itself refuses what is longer.
    pub fn more(bytes_max: usize, decide: impl FnOnce(&[u8]) -> Self + 'static) -> Self {
        Self(Becomes::Undecided { bytes_max, decide: Box::new(decide) })
    }

    /// Nothing: `response` is written, and the connection closed once the peer has ended its side or had a
    /// second to read it.
    pub fn refuse(response: Vec<u8>) -> Self {
        Self::reply(response, LINGER, Refused)
    }

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
            Becomes::Undecided { .. } => "Opening::more",
            Becomes::Protocol { .. } => "Opening::web_socket, Opening::stream or Opening::reply",
            Becomes::Elsewhere(_) => "Opening::elsewhere",
        })
    }
}

/// A peer that has been told no; what it sends on is not looked at.
struct Refused;

impl StreamHandler for Refused {
    fn on_bytes(&mut self, _bytes: &[u8], _output: &mut Output) {}

    fn linger(&self) -> Option<Duration> {
        Some(LINGER)
    }
}

/// The function that decides.
pub(super) type Decide = Box<dyn FnOnce(&[u8]) -> Opening>;

/// Waits for the first bytes.
pub(super) struct Awaited {
    decide: Option<Decide>,
    /// Bytes that came and decided nothing.
    undecided: Vec<u8>,
    until: Time,
    waker: Option<Waker>,
    next: Option<Next>,
    is_over: bool,
}

impl Awaited {
    pub(super) fn new(decide: Decide, until: Time) -> Self {
        let (decide, undecided) = (Some(decide), Vec::new());
        Self { decide, undecided, until, waker: None, next: None, is_over: false }
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
                self.next = waker.map(|waker| Next::Protocol { protocol: make(now), waker, first });
            }
            Becomes::Elsewhere(take) => self.next = Some(Next::Elsewhere(take)),
        }
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

    fn held_bytes(&self) -> usize {
        self.undecided.capacity()
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
