//! The protocols that are spoken over a socket: WebSocket, or bytes as they are.

use std::net::TcpStream;
use std::time::Duration;

use anemone_proto::{CloseCode, CloseFrame, Connection, Event, Output, Rest, Time};

use super::budget::Budget;
use super::{Handler, StreamHandler, Waker};
use crate::{Agreed, Error, Lost};

/// The loop's output, lent to whichever connection has its turn.
pub(super) type Queued = Option<Box<Output>>;

/// One connection's protocol, as the loop drives it. Output is appended to the loop's buffer.
pub(super) trait Protocol {
    /// Begins; `first` came with the handshake.
    fn open(
        &mut self,
        waker: Waker,
        now: Time,
        first: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    );
    /// Returns how much it is done with. The rest it has kept for its next slice.
    fn receive(
        &mut self,
        now: Time,
        input: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    ) -> usize;
    /// Goes on with input that was left, for those that say [`State::Behind`].
    fn resume(&mut self, _now: Time, _output: &mut Queued, _budget: &mut Budget) {}
    /// The buffer that the next bytes are to be read to, if not the loop's.
    fn rest(&mut self) -> Option<Rest<'_>> {
        None
    }
    /// Something was appended there, to `begin` bytes.
    fn rest_received(
        &mut self,
        _now: Time,
        _begin: usize,
        _output: &mut Queued,
        _budget: &mut Budget,
    ) {
    }
    fn ready(&mut self, now: Time, output: &mut Queued);
    /// Whether to read though this much output is stuck.
    fn reads_on(&self, stuck_bytes: usize) -> bool;
    /// The peer took bytes that had been stuck.
    fn progressed(&mut self, now: Time);
    fn close(&mut self, frame: &CloseFrame, output: &mut Queued);
    /// The peer sends nothing more. Whether there is something to say to it yet; asked again after each turn.
    fn ended(&mut self, _output: &mut Queued) -> bool {
        false
    }
    /// The number of bytes that it holds of what has not come whole.
    fn held_bytes(&self) -> usize {
        0
    }
    /// The bytes that are open though nothing moves, as its handler counts them.
    fn open_bytes(&self) -> usize {
        0
    }
    /// Ends and lets go of all that, for too much is held in all.
    fn abandon(&mut self, _output: &mut Queued) {
        self.lost(Lost::Overloaded);
    }
    fn lost(&mut self, lost: Lost);
    /// Its state.
    fn state(&self) -> State;
    /// The time at which [`expire`](Self::expire) has something to do. While it is [`State::Open`] this moves only later.
    fn due(&self) -> Time;
    fn expire(&mut self, now: Time, output: &mut Queued);
    /// Its successor, for those that say [`State::Turning`] or [`State::Leaving`].
    fn next(&mut self) -> Option<Next> {
        None
    }
}

/// The successor of a protocol.
pub(super) enum Next {
    /// Another one, which has the rest of what came.
    Protocol { protocol: Box<dyn Protocol>, waker: Waker, first: Vec<u8> },
    /// Nothing in this loop.
    Elsewhere(Box<dyn FnOnce(TcpStream)>),
}

/// The state of a protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Open,
    /// It has left input for its next slice, and takes no more until then.
    Behind,
    /// A message has begun to come, and is due some time.
    Amid,
    /// It has said that it ends.
    Closing,
    /// Another protocol takes its place.
    Turning,
    /// The stream leaves the loop.
    Leaving,
    Over(Ending),
}

/// The way in which a protocol that is over wants its stream ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ending {
    /// The time that the peer may take to read the rest and end its side.
    pub(super) linger: Duration,
    /// The peer has said that it sends nothing more.
    pub(super) is_clean: bool,
}

/// Input that a protocol was not done with when its slice was over. At most a read's.
#[derive(Debug, Default)]
struct Left {
    bytes: Vec<u8>,
    /// With so much of it it is done since.
    done: usize,
}

impl Left {
    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), done: 0 }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The rest after some more of it.
    fn after(self, consumed: usize) -> Self {
        let done = self.done + consumed;
        if done < self.bytes.len() { Self { done, ..self } } else { Self::default() }
    }
}

/// A WebSocket and its handler.
pub(super) struct WebSocket<H> {
    connection: Connection,
    handler: H,
    left: Left,
    end: End,
}

/// The end, as far as the handler knows of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    NotYet,
    /// The peer's close frame came.
    Closed,
    /// Something went wrong, or took too long.
    Failed,
}

impl<H: Handler + 'static> WebSocket<H> {
    /// One that begins now.
    pub(super) fn boxed(agreed: Agreed, handler: H, now: Time) -> Box<dyn Protocol> {
        let connection = agreed.connection(now);
        Box::new(Self { connection, handler, left: Left::default(), end: End::NotYet })
    }
}

impl<H: Handler> WebSocket<H> {
    /// Runs `work` with the connection's output going to the loop's buffer.
    fn lend<T>(&mut self, output: &mut Queued, work: impl FnOnce(&mut Self) -> T) -> T {
        self.connection.sender().exchange_output(output);
        let done = work(self);
        self.connection.sender().exchange_output(output);
        done
    }

    /// Hands what came to the connection, and what that makes of it to the handler, until the slice is
    /// over. Returns how much that was.
    fn decode(&mut self, now: Time, mut input: &mut [u8], budget: &mut Budget) -> usize {
        let len = input.len();
        if budget.is_slice_over() {
            return 0;
        }
        let (mut units_left, mut units) = (budget.units_left(), 0);
        while !input.is_empty() {
            let available = input.len();
            let received = self.connection.receive(now, input);
            let consumed = received.consumed;
            let mut bytes = consumed;
            match received.event {
                Some(Event::Message(message)) => {
                    // What was inflated may be a thousand times what came.
                    bytes = bytes.max(message.as_bytes().len());
                    self.handler.on_message(message, received.sender);
                }
                Some(Event::Piece(piece)) => {
                    bytes = bytes.max(piece.bytes.len());
                    self.handler.on_piece(piece, received.sender);
                }
                Some(Event::Close(frame)) => self.over(None, Some(frame)),
                Some(Event::Failed(error)) => self.over(Some(error.into()), None),
                Some(Event::Pong { round_trip: Some(round_trip), .. }) => {
                    self.handler.on_pong(round_trip);
                }
                // Much was inflated, and nothing is whole yet.
                None if consumed < available => units = units_left,
                Some(Event::Ping(_) | Event::Pong { .. }) | None => {}
            }
            input = &mut input[consumed..];
            units += Budget::units(bytes);
            if units >= units_left {
                budget.spend_units(units);
                if budget.is_slice_over() {
                    return len - input.len();
                }
                (units_left, units) = (budget.units_left(), 0);
            }
        }
        budget.spend_units(units);
        len - input.len()
    }

    /// Tells the handler, once. `closed` is the peer's close frame, if it sent one.
    fn over(&mut self, error: Option<Error>, closed: Option<Option<CloseFrame>>) {
        if self.end != End::NotYet {
            return;
        }
        self.end = if closed.is_some() { End::Closed } else { End::Failed };
        if let Some(error) = error {
            self.handler.on_error(&error);
        }
        self.handler.on_close(closed.flatten().as_ref());
    }
}

impl<H: Handler> Protocol for WebSocket<H> {
    fn open(
        &mut self,
        waker: Waker,
        now: Time,
        first: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    ) {
        self.connection.pause_often();
        if self.handler.takes_pieces() {
            self.connection.take_pieces();
        }
        self.lend(output, |socket| socket.handler.on_open(waker, socket.connection.sender()));
        self.receive(now, first, output, budget);
    }

    fn receive(
        &mut self,
        now: Time,
        input: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    ) -> usize {
        let consumed = self.lend(output, |socket| socket.decode(now, input, budget));
        if consumed < input.len() {
            self.left = Left::of(&input[consumed..]);
        }
        consumed
    }

    fn resume(&mut self, now: Time, output: &mut Queued, budget: &mut Budget) {
        let mut left = std::mem::take(&mut self.left);
        let rest = &mut left.bytes[left.done..];
        let consumed = self.lend(output, |socket| socket.decode(now, rest, budget));
        self.left = left.after(consumed);
    }

    fn rest(&mut self) -> Option<Rest<'_>> {
        self.connection.rest()
    }

    fn rest_received(&mut self, now: Time, begin: usize, output: &mut Queued, budget: &mut Budget) {
        self.lend(output, |socket| {
            let received = socket.connection.rest_received(now, begin);
            match received.event {
                Some(Event::Message(message)) => {
                    budget.spend(message.as_bytes().len());
                    socket.handler.on_message(message, received.sender);
                }
                Some(Event::Failed(error)) => socket.over(Some(error.into()), None),
                _ => {}
            }
        });
    }

    fn ready(&mut self, _now: Time, output: &mut Queued) {
        self.lend(output, |socket| {
            if !socket.connection.sender().is_closing() {
                socket.handler.on_ready(socket.connection.sender());
            }
        });
    }

    /// To the end of a message that is answered while it comes, as much as one that is collected may
    /// take: its sender may not read before it has sent all of it.
    fn reads_on(&self, stuck_bytes: usize) -> bool {
        let is_within = stuck_bytes as u64 <= self.connection.config().message_bytes_max;
        is_within && self.connection.is_amid_message() && self.handler.takes_pieces()
    }

    fn progressed(&mut self, now: Time) {
        self.connection.progressed(now);
    }

    fn close(&mut self, frame: &CloseFrame, output: &mut Queued) {
        self.lend(output, |socket| {
            // Refused when a close frame is on its way already.
            let _ = socket.connection.sender().close(Some(frame));
        });
    }

    fn ended(&mut self, output: &mut Queued) -> bool {
        let is_open = self.end == End::NotYet && !self.connection.is_closing();
        is_open && self.lend(output, |socket| socket.handler.on_end(socket.connection.sender()))
    }

    fn held_bytes(&self) -> usize {
        self.connection.held_bytes() + self.left.bytes.capacity()
    }

    fn open_bytes(&self) -> usize {
        self.handler.open_bytes()
    }

    fn abandon(&mut self, output: &mut Queued) {
        self.left = Left::default();
        self.lend(output, |socket| {
            let reason = "the server holds too much data for its clients: try again in a moment";
            socket.connection.abandon(&CloseFrame::new(CloseCode::TRY_AGAIN_LATER, reason));
            socket.over(Some(Lost::Overloaded.into()), None);
        });
    }

    fn lost(&mut self, lost: Lost) {
        self.over(Some(lost.into()), None);
    }

    fn due(&self) -> Time {
        self.connection.poll_timeout().unwrap_or(Time::MAX)
    }

    fn expire(&mut self, now: Time, output: &mut Queued) {
        self.lend(output, |socket| {
            if let Some(Event::Failed(error)) = socket.connection.handle_timeout(now) {
                socket.over(Some(error.into()), None);
            } else if socket.connection.is_closed() {
                let millis = socket.connection.config().close_timeout.as_millis();
                socket.over(Some(Lost::CloseUnanswered { millis }.into()), None);
            }
        });
    }

    fn state(&self) -> State {
        match self.end {
            End::NotYet if !self.left.is_empty() => State::Behind,
            End::NotYet if self.connection.is_closing() => State::Closing,
            End::NotYet if self.connection.is_amid_message() => State::Amid,
            End::NotYet => State::Open,
            end => {
                let linger = self.connection.config().close_timeout;
                State::Over(Ending { linger, is_clean: end == End::Closed })
            }
        }
    }
}

/// Bytes and their handler.
pub(super) struct Stream<H> {
    handler: H,
    left: Left,
    idle_timeout: Duration,
    active_at: Time,
    is_over: bool,
}

impl<H: StreamHandler + 'static> Stream<H> {
    /// One that begins now.
    pub(super) fn boxed(handler: H, idle_timeout: Duration, now: Time) -> Box<dyn Protocol> {
        let left = Left::default();
        Box::new(Self { handler, left, idle_timeout, active_at: now, is_over: false })
    }
}

impl<H: StreamHandler> Stream<H> {
    /// Hands what came to the handler, until the slice is over. Returns how much that was.
    fn hand_over(&mut self, input: &[u8], output: &mut Queued, budget: &mut Budget) -> usize {
        let bytes_max = self.handler.receive_bytes_max().max(1);
        let mut rest = input;
        while !rest.is_empty() && !budget.is_slice_over() {
            let (bytes, others) = rest.split_at(rest.len().min(bytes_max));
            self.handler.on_bytes(bytes, output.get_or_insert_default());
            budget.spend(bytes.len());
            rest = others;
            if !rest.is_empty() {
                // How much work there is in these bytes only the clock can tell.
                budget.look();
            }
        }
        input.len() - rest.len()
    }
}

impl<H: StreamHandler> Protocol for Stream<H> {
    fn open(
        &mut self,
        waker: Waker,
        now: Time,
        first: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    ) {
        self.handler.on_open(waker);
        self.receive(now, first, output, budget);
    }

    fn receive(
        &mut self,
        now: Time,
        input: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    ) -> usize {
        self.active_at = now;
        let consumed = self.hand_over(input, output, budget);
        if consumed < input.len() {
            self.left = Left::of(&input[consumed..]);
        }
        consumed
    }

    fn resume(&mut self, now: Time, output: &mut Queued, budget: &mut Budget) {
        self.active_at = now;
        let left = std::mem::take(&mut self.left);
        let consumed = self.hand_over(&left.bytes[left.done..], output, budget);
        self.left = left.after(consumed);
    }

    /// Only called when nothing is stuck, so who is woken now and then is not idle.
    fn ready(&mut self, now: Time, output: &mut Queued) {
        self.active_at = now;
        self.handler.on_ready(output.get_or_insert_default());
    }

    fn reads_on(&self, _stuck_bytes: usize) -> bool {
        false
    }

    fn progressed(&mut self, now: Time) {
        self.active_at = now;
    }

    fn close(&mut self, _frame: &CloseFrame, output: &mut Queued) {
        self.handler.on_close(output.get_or_insert_default());
        self.is_over = true;
    }

    fn ended(&mut self, output: &mut Queued) -> bool {
        self.handler.on_end(output.get_or_insert_default())
    }

    fn held_bytes(&self) -> usize {
        self.handler.held_bytes() + self.left.bytes.capacity()
    }

    fn open_bytes(&self) -> usize {
        self.handler.open_bytes()
    }

    fn lost(&mut self, _lost: Lost) {
        self.is_over = true;
    }

    fn due(&self) -> Time {
        self.active_at + self.idle_timeout
    }

    fn expire(&mut self, _now: Time, _output: &mut Queued) {
        self.is_over = true;
    }

    fn state(&self) -> State {
        match self.handler.linger() {
            Some(linger) => State::Over(Ending { linger, is_clean: false }),
            None if self.is_over => State::Over(Ending { linger: Duration::ZERO, is_clean: true }),
            None if !self.left.is_empty() => State::Behind,
            None => State::Open,
        }
    }
}
