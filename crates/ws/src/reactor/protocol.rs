//! The protocols of sockets: WebSocket, or plain bytes.

use std::net::TcpStream;
use std::time::Duration;

use anemone_proto::{CloseCode, CloseFrame, Connection, Event, Output, Rest, Time};

use super::budget::Budget;
use super::survey::{ConnectionId, Speaks, SurveyedConnection};
use super::{Handler, SendWaker, StreamHandler};
use crate::{Error, Lost, Negotiated};

/// The loop's output, lent to the connection whose turn it is.
pub(super) type Queued = Option<Box<Output>>;

/// The protocol of one connection, as the loop drives it. It appends output to the loop's buffer.
pub(super) trait Protocol {
    /// Begins; `first` are the bytes that came with the handshake.
    fn open(
        &mut self,
        waker: SendWaker,
        now: Time,
        first: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    );
    /// Handles input and returns the number of bytes consumed. The protocol keeps the rest for its next slice.
    fn receive(
        &mut self,
        now: Time,
        input: &mut [u8],
        output: &mut Queued,
        budget: &mut Budget,
    ) -> usize;
    /// Continues with kept input, in [`State::Behind`].
    fn resume(&mut self, _now: Time, _output: &mut Queued, _budget: &mut Budget) {}
    /// Returns the buffer for the next bytes, if not the loop's.
    fn rest(&mut self) -> Option<Rest<'_>> {
        None
    }
    /// Handles bytes that a read appended to [`rest`](Self::rest) after its first `begin` bytes.
    fn rest_received(
        &mut self,
        _now: Time,
        _begin: usize,
        _output: &mut Queued,
        _budget: &mut Budget,
    ) {
    }
    fn ready(&mut self, now: Time, output: &mut Queued);
    /// Returns true if the protocol takes input while this much output is pending.
    fn reads_on(&self, pending_bytes: usize) -> bool;
    /// The peer took bytes that had been pending.
    fn progressed(&mut self, now: Time);
    /// Begins to end the connection. It is busy if output is pending, or input may be unread.
    fn close(&mut self, frame: &CloseFrame, is_busy: bool, output: &mut Queued);
    /// The peer sends nothing more. Returns true while there is more to send; called again after each turn.
    fn on_peer_end(&mut self, _output: &mut Queued) -> bool {
        false
    }
    /// Returns the number of bytes held of incomplete input.
    fn held_bytes(&self) -> usize {
        0
    }
    fn open_bytes(&self) -> usize {
        0
    }
    /// Describes the connection as far as it is known here; `id` is its identity.
    fn describe(&self, id: ConnectionId) -> SurveyedConnection;
    /// Ends the connection and frees its memory, because the process holds too much.
    fn abandon(&mut self, _output: &mut Queued) {
        self.on_lost(Lost::Overloaded);
    }
    fn on_lost(&mut self, lost: Lost);
    fn state(&self) -> State;
    /// Returns the time of the next [`expire`](Self::expire). In [`State::Open`] this only moves later.
    fn due(&self) -> Time;
    fn expire(&mut self, now: Time, output: &mut Queued);
    /// Returns the next protocol, in [`State::Switching`] or [`State::Leaving`].
    fn next(&mut self) -> Option<Successor> {
        None
    }
}

/// The next protocol of a connection.
pub(super) enum Successor {
    /// Another protocol, which gets the rest of the input.
    Protocol { protocol: Box<dyn Protocol>, waker: SendWaker, first: Vec<u8> },
    /// None in this loop.
    Elsewhere(Box<dyn FnOnce(TcpStream)>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Open,
    /// Input is left for the next slice; the protocol takes no more until then.
    Behind,
    /// A message is incomplete, and must be complete by some time.
    Amid,
    /// The protocol has announced its end.
    Closing,
    /// Another protocol takes over.
    Switching,
    Leaving,
    Over(Ending),
}

/// The way to end the stream of a protocol that is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ending {
    /// The time that the peer has to read the rest and end its side.
    pub(super) linger: Duration,
    /// The peer has announced that it sends nothing more.
    pub(super) is_clean: bool,
}

/// Input that was left when the slice was over, at most one read.
#[derive(Debug, Default)]
pub(super) struct Left {
    bytes: Vec<u8>,
    /// The number of bytes consumed since then.
    done: usize,
}

impl Left {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), done: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.done..]
    }

    pub(super) fn extend(&mut self, input: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.done));
        self.bytes.extend_from_slice(input);
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn after(self, consumed: usize) -> Self {
        let done = self.done + consumed;
        if done < self.bytes.len() { Self { done, ..self } } else { Self::default() }
    }
}

pub(super) struct WebSocketProtocol<H> {
    connection: Connection,
    handler: H,
    left: Left,
    end: End,
}

/// The end of the connection, as the handler has learned it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    NotYet,
    /// The peer's close frame came.
    Closed,
    /// An error or a timeout ended the connection.
    Failed,
}

impl<H: Handler + 'static> WebSocketProtocol<H> {
    pub(super) fn boxed(negotiated: Negotiated, handler: H, now: Time) -> Box<dyn Protocol> {
        let connection = negotiated.connection(now);
        Box::new(Self { connection, handler, left: Left::default(), end: End::NotYet })
    }
}

impl<H: Handler> WebSocketProtocol<H> {
    /// Runs `work` with the connection's output directed to the loop's buffer.
    fn lend<T>(&mut self, output: &mut Queued, work: impl FnOnce(&mut Self) -> T) -> T {
        self.connection.sender().exchange_output(output);
        let done = work(self);
        self.connection.sender().exchange_output(output);
        done
    }

    /// Decodes input and passes the events to the handler, until the slice is over. Returns the number of bytes
    /// consumed.
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
                    // Inflating may have made a thousand times as many bytes.
                    bytes = bytes.max(message.as_bytes().len());
                    self.handler.on_message(message, received.sender);
                }
                Some(Event::Piece(piece)) => {
                    bytes = bytes.max(piece.bytes.len());
                    self.handler.on_piece(piece, received.sender);
                }
                Some(Event::Close(frame)) => self.report_end(None, Some(frame)),
                Some(Event::Failed(error)) => self.report_end(Some(error.into()), None),
                Some(Event::Pong { round_trip: Some(round_trip), .. }) => {
                    self.handler.on_pong(round_trip);
                }
                // Much was inflated, but no message is complete yet.
                None if consumed < available => units = units_left,
                Some(Event::Ping(_) | Event::Pong { .. }) | None => {}
            }
            input = &mut input[consumed..];
            units += Budget::units(bytes);
            let has_worked = self.handler.has_worked();
            if has_worked || units >= units_left {
                budget.spend_units(units);
                if has_worked {
                    budget.read_clock();
                }
                if budget.is_slice_over() {
                    return len - input.len();
                }
                (units_left, units) = (budget.units_left(), 0);
            }
        }
        budget.spend_units(units);
        len - input.len()
    }

    /// Reports the end to the handler, once. `closed` holds the peer's close frame, if it sent one.
    fn report_end(&mut self, error: Option<Error>, closed: Option<Option<CloseFrame>>) {
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

impl<H: Handler> Protocol for WebSocketProtocol<H> {
    fn open(
        &mut self,
        waker: SendWaker,
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
                    if socket.handler.has_worked() {
                        budget.read_clock();
                    }
                }
                Some(Event::Failed(error)) => socket.report_end(Some(error.into()), None),
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

    /// A handler of pieces may answer before the message ends, and the peer may not read before it has sent all of
    /// it. So input goes on to the end of the message, while the pending output is no longer than a whole message may
    /// be.
    fn reads_on(&self, pending_bytes: usize) -> bool {
        let is_within = pending_bytes as u64 <= self.connection.config().message_bytes_max;
        is_within && self.connection.is_amid_message() && self.handler.takes_pieces()
    }

    fn progressed(&mut self, now: Time) {
        self.connection.progressed(now);
    }

    fn close(&mut self, frame: &CloseFrame, _is_busy: bool, output: &mut Queued) {
        self.lend(output, |socket| {
            socket.handler.on_shutdown(socket.connection.sender());
            // Fails only when a close frame is queued already.
            let _ = socket.connection.sender().close(Some(frame));
        });
    }

    fn on_peer_end(&mut self, output: &mut Queued) -> bool {
        let is_open = self.end == End::NotYet && !self.connection.is_closing();
        is_open && self.lend(output, |socket| socket.handler.on_end(socket.connection.sender()))
    }

    fn held_bytes(&self) -> usize {
        self.connection.held_bytes() + self.left.capacity()
    }

    fn open_bytes(&self) -> usize {
        self.handler.open_bytes()
    }

    fn describe(&self, id: ConnectionId) -> SurveyedConnection {
        SurveyedConnection {
            is_compressed: self.connection.is_compressed(),
            round_trip: self.connection.round_trip(),
            ..SurveyedConnection::new(id, Speaks::WebSocket, self.handler.describe())
        }
    }

    fn abandon(&mut self, output: &mut Queued) {
        self.left = Left::default();
        self.lend(output, |socket| {
            let reason = "the server holds too much data for its clients: try again in a moment";
            socket.connection.abandon(&CloseFrame::new(CloseCode::TRY_AGAIN_LATER, reason));
            socket.report_end(Some(Lost::Overloaded.into()), None);
        });
    }

    fn on_lost(&mut self, lost: Lost) {
        self.report_end(Some(lost.into()), None);
    }

    fn due(&self) -> Time {
        self.connection.poll_timeout().unwrap_or(Time::MAX)
    }

    fn expire(&mut self, now: Time, output: &mut Queued) {
        self.lend(output, |socket| {
            if let Some(Event::Failed(error)) = socket.connection.handle_timeout(now) {
                socket.report_end(Some(error.into()), None);
            } else if socket.connection.is_closed() {
                let millis = socket.connection.config().close_timeout.as_millis();
                socket.report_end(Some(Lost::CloseUnanswered { millis }.into()), None);
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

pub(super) struct StreamProtocol<H> {
    handler: H,
    left: Left,
    idle_timeout: Duration,
    active_at: Time,
    is_over: bool,
}

impl<H: StreamHandler + 'static> StreamProtocol<H> {
    pub(super) fn boxed(handler: H, idle_timeout: Duration, now: Time) -> Box<dyn Protocol> {
        let left = Left::default();
        Box::new(Self { handler, left, idle_timeout, active_at: now, is_over: false })
    }
}

impl<H: StreamHandler> StreamProtocol<H> {
    /// Passes input to the handler until the slice is over. Returns the number of bytes consumed.
    fn hand_over(&mut self, input: &[u8], output: &mut Queued, budget: &mut Budget) -> usize {
        let bytes_max = self.handler.receive_bytes_max().max(1);
        let mut rest = input;
        while !rest.is_empty() && !budget.is_slice_over() {
            let bytes = &rest[..rest.len().min(bytes_max)];
            let handled = self.handler.on_bytes(bytes, output.get_or_insert_default());
            let handled = handled.clamp(1, bytes.len());
            budget.spend(handled);
            rest = &rest[handled..];
            if !rest.is_empty() {
                // Only the clock can tell how much work these bytes took.
                budget.read_clock();
            }
        }
        input.len() - rest.len()
    }
}

impl<H: StreamHandler> Protocol for StreamProtocol<H> {
    fn open(
        &mut self,
        waker: SendWaker,
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

    /// Called only when no output is pending, so a handler that is woken now and then is not idle.
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

    fn close(&mut self, _frame: &CloseFrame, _is_busy: bool, output: &mut Queued) {
        self.handler.on_close(output.get_or_insert_default());
        self.is_over = true;
    }

    fn on_peer_end(&mut self, output: &mut Queued) -> bool {
        self.handler.on_end(output.get_or_insert_default())
    }

    fn held_bytes(&self) -> usize {
        self.handler.held_bytes() + self.left.capacity()
    }

    fn open_bytes(&self) -> usize {
        self.handler.open_bytes()
    }

    fn describe(&self, id: ConnectionId) -> SurveyedConnection {
        SurveyedConnection::new(id, Speaks::Stream, self.handler.describe())
    }

    fn on_lost(&mut self, _lost: Lost) {
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
