//! The connection, its stream and its timers, as functions to poll.
//!
//! Owns the order of reading, writing, waiting and ending. The tasks that poll are in [`super`] and [`super::split`].

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anemone_proto::{
    CloseCode, CloseFrame, Connection, Event, Message, NegotiatedDeflate, Role, Sender, Time,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Incoming, Turn};
use crate::clock::Clock;
use crate::linger::poll_drain;
use crate::{Error, Lost, codecs};

/// The most bytes taken from the stream by one read.
pub(super) const READ_BYTES_MAX: usize = 16 << 10;
/// A sender waits while more than this is queued. Nothing is read while answers take more than this, so a peer that
/// sends without reading is slowed down by its own unread answers.
pub(super) const HIGH_MARK_BYTES: usize = 64 << 10;

/// If a timer is late by more than this, the connection was not awaited meanwhile.
const UNWATCHED: Duration = Duration::from_secs(1);

/// One connection over `S`. It [wakes](std::task::Waker) the task that polled it last.
#[derive(Debug)]
pub(super) struct Driver<S> {
    stream: S,
    role: Role,
    connection: Connection,
    clock: Clock,
    /// Bytes read and not yet decoded.
    input: Vec<u8>,
    decoded: usize,
    /// A decoded message that was not taken yet. Nothing more is read until it is taken.
    waiting: Option<Incoming>,
    /// True if nobody takes messages, so that they are discarded.
    discards: bool,
    /// Nothing is read while more than this is queued. It exceeds [`HIGH_MARK_BYTES`] only while the caller's own
    /// last message is queued: otherwise two ends that both send something long and then receive would wait for each
    /// other.
    read_mark_bytes: usize,
    /// True if the stream took no more at the last write.
    is_stuck: bool,
    /// True if the stream has passed on everything that it took.
    is_flushed: bool,
    /// The timer of the connection, and then of the closing stream.
    timer: Option<Pin<Box<Sleep>>>,
    state: StreamState,
    /// The reason for the end of the connection, until it is returned.
    error: Option<Error>,
    close_frame: Option<CloseFrame>,
    /// The last ping of [`ping`](Self::ping), until its pong comes.
    ping: Option<(u64, Instant)>,
    round_trip: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StreamState {
    Open,
    /// The peer has only to read the rest and to end its side.
    Ending(Shutdown),
    Over,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Shutdown {
    is_shut: bool,
}

/// The state whose change makes the other half look again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stage {
    is_closing: bool,
    state: StreamState,
    has_message: bool,
}

impl<S> Driver<S> {
    pub(super) fn new(
        stream: S,
        role: Role,
        make: impl FnOnce(Time) -> Connection,
        first: Vec<u8>,
    ) -> Self {
        let clock = Clock::start();
        Self {
            stream,
            role,
            connection: make(clock.now()),
            clock,
            input: first,
            decoded: 0,
            waiting: None,
            discards: false,
            read_mark_bytes: HIGH_MARK_BYTES,
            is_stuck: false,
            is_flushed: true,
            timer: None,
            state: StreamState::Open,
            error: None,
            close_frame: None,
            ping: None,
            round_trip: None,
        }
    }

    pub(super) fn with_deflate(self, negotiated: &NegotiatedDeflate) -> Self {
        Self { connection: self.connection.with_deflate(negotiated, codecs::exchange), ..self }
    }

    pub(super) fn sender(&mut self) -> &mut Sender {
        self.connection.sender()
    }

    pub(super) fn close_frame(&self) -> Option<&CloseFrame> {
        self.close_frame.as_ref()
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    pub(super) fn stage(&mut self) -> Stage {
        Stage {
            is_closing: self.connection.sender().is_closing(),
            state: self.state,
            has_message: self.waiting.is_some(),
        }
    }

    pub(super) fn discard_messages(&mut self) {
        self.discards = true;
        self.waiting = None;
    }

    /// Queues a close frame, unless one was queued before.
    pub(super) fn begin_close(&mut self, frame: Option<&CloseFrame>) {
        // Fails only when the closing handshake has begun, and then there is nothing to do.
        let _ = self.connection.sender().close(frame);
    }

    /// Queues a close frame with 1000, unless one was queued before.
    pub(super) fn begin_normal_close(&mut self) {
        self.begin_close(Some(&CloseFrame::new(CloseCode::NORMAL, "")));
    }

    fn close_timeout(&self) -> Duration {
        self.connection.config().close_timeout
    }

    fn queued_bytes(&mut self) -> usize {
        self.connection.sender().queued_bytes()
    }

    fn is_written(&mut self) -> bool {
        self.queued_bytes() == 0 && self.is_flushed
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.state == StreamState::Open { Ok(()) } else { Err(Error::Closed) }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    /// Receives the next message or the end, and returns when all queued output has been written.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<Turn, Error>> {
        loop {
            self.decode();
            if let Some(message) = self.waiting.take() {
                return Poll::Ready(Ok(Turn::Message(message)));
            }
            if self.state != StreamState::Open {
                ready!(self.poll_over(cx));
                return Poll::Ready(self.error.take().map_or(Ok(Turn::Closed), Err));
            }
            let had_output = self.queued_bytes() > 0;
            ready!(self.poll_work(cx));
            if had_output && self.queued_bytes() == 0 && self.state == StreamState::Open {
                return Poll::Ready(Ok(Turn::Drained));
            }
        }
    }

    /// Returns the next message, or `None` at the end.
    pub(super) fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Incoming>, Error>> {
        loop {
            match ready!(self.poll_turn(cx))? {
                Turn::Message(message) => return Poll::Ready(Ok(Some(message))),
                Turn::Drained => {}
                Turn::Closed => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Waits until there is room for a message.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            self.check_open()?;
            if self.queued_bytes() <= HIGH_MARK_BYTES {
                return Poll::Ready(Ok(()));
            }
            // A part may have been written before the stream took no more.
            if self.poll_work(cx).is_pending() && self.queued_bytes() > HIGH_MARK_BYTES {
                return Poll::Pending;
            }
        }
    }

    /// Waits until everything queued is written.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            if self.is_written() {
                return Poll::Ready(Ok(()));
            }
            let worked = match self.state {
                StreamState::Open => self.poll_work(cx),
                StreamState::Ending(_) => self.poll_over(cx),
                StreamState::Over => return Poll::Ready(Err(Error::Closed)),
            };
            if worked.is_pending() && !self.is_written() {
                return Poll::Pending;
            }
        }
    }

    /// Queues a message and writes what the stream takes at once.
    pub(super) fn send(&mut self, cx: &mut Context<'_>, message: Message<'_>) -> Result<(), Error> {
        self.queue(message)?;
        self.write_some(cx);
        Ok(())
    }

    pub(super) fn queue(&mut self, message: Message<'_>) -> Result<(), Error> {
        self.check_open()?;
        self.connection.sender().send(message)?;
        if self.queued_bytes() > HIGH_MARK_BYTES {
            self.read_mark_bytes = self.queued_bytes() + HIGH_MARK_BYTES;
        }
        Ok(())
    }

    /// Queues a ping whose pong is timed, and writes what the stream takes at once.
    pub(super) fn ping(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        self.check_open()?;
        let number = rand::random::<u64>();
        self.connection.sender().ping(&number.to_be_bytes())?;
        self.ping = Some((number, Instant::now()));
        self.write_some(cx);
        Ok(())
    }

    /// Waits until the connection is over.
    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            self.decode();
            if self.state != StreamState::Open {
                ready!(self.poll_over(cx));
                return Poll::Ready(self.error.take().map_or(Ok(()), Err));
            }
            ready!(self.poll_work(cx));
        }
    }

    /// Decodes input, up to the first message.
    fn decode(&mut self) {
        let now = self.clock.now();
        while self.waiting.is_none() && self.decoded < self.input.len() {
            let received = self.connection.receive(now, &mut self.input[self.decoded..]);
            self.decoded += received.consumed;
            match received.event {
                Some(Event::Message(message)) if !self.discards => {
                    self.waiting = Some(message.into());
                }
                Some(Event::Pong { payload, round_trip }) => {
                    let answered =
                        self.ping.take_if(|(number, _)| *payload == number.to_be_bytes());
                    let measured = answered.map(|(_, sent)| sent.elapsed());
                    self.round_trip = measured.or(round_trip).or(self.round_trip);
                }
                Some(Event::Close(frame)) => {
                    self.close_frame = frame;
                    self.end(None);
                }
                Some(Event::Failed(error)) => self.end(Some(error.into())),
                Some(Event::Message(_) | Event::Piece(_) | Event::Ping(_)) | None => {}
            }
        }
        if self.decoded == self.input.len() {
            // An idle connection holds no buffer.
            self.input = Vec::new();
            self.decoded = 0;
        }
    }

    /// Writes, reads and handles timeouts as far as possible. Returns ready when something has changed, pending when
    /// it has to wait.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let had_output = !self.is_written();
        match self.poll_write(cx) {
            Poll::Ready(Err(error)) => {
                self.end(Some(Lost::Io(error).into()));
                return Poll::Ready(());
            }
            Poll::Ready(Ok(())) if had_output => return Poll::Ready(()),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        let may_read = self.waiting.is_none()
            && self.input.is_empty()
            && self.queued_bytes() <= self.read_mark_bytes;
        if may_read && let Poll::Ready(read) = self.poll_read(cx) {
            match read {
                Ok(()) => self.decode(),
                Err(lost) => self.end(Some(lost.into())),
            }
            return Poll::Ready(());
        }
        self.poll_timer(cx)
    }

    /// Writes without waiting. The next call returns an error of this write.
    fn write_some(&mut self, cx: &mut Context<'_>) {
        if let Poll::Ready(Err(error)) = self.poll_write(cx) {
            self.end(Some(Lost::Io(error).into()));
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.queued_bytes() > 0 {
            self.is_flushed = false;
            let bytes = self.connection.sender().transmit();
            match Pin::new(&mut self.stream).poll_write(cx, bytes)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(written) => self.connection.sender().transmitted(written),
                Poll::Pending => {
                    self.set_stuck(true);
                    return Poll::Pending;
                }
            }
            self.set_stuck(false);
            if self.queued_bytes() <= HIGH_MARK_BYTES {
                self.read_mark_bytes = HIGH_MARK_BYTES;
            }
        }
        if !self.is_flushed {
            self.is_flushed = Pin::new(&mut self.stream).poll_flush(cx)?.is_ready();
            self.set_stuck(!self.is_flushed);
        }
        if self.is_flushed { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Records whether the stream took everything. A change counts as a sign of life: either the peer has read
    /// something, or its time to read begins now.
    ///
    /// A write that did not have to wait says nothing, since the system's buffers take output for a dead peer too.
    /// The time to wait counts from its own beginning, since nothing may have been read for long before it.
    fn set_stuck(&mut self, is_stuck: bool) {
        if std::mem::replace(&mut self.is_stuck, is_stuck) != is_stuck {
            self.connection.progressed(self.clock.now());
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        let mut buffer = [MaybeUninit::uninit(); READ_BYTES_MAX];
        let mut buffer = ReadBuf::uninit(&mut buffer);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        if buffer.filled().is_empty() {
            return Poll::Ready(Err(Lost::Ended));
        }
        self.input.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }

    /// Returns ready when a timeout has ended the connection or queued a frame.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = self.clock.now();
            let mut due = self.connection.poll_timeout();
            if due.is_some_and(|due| due + UNWATCHED <= now) {
                // Nothing was awaited at the due time, so no ping was sent: the wait begins now.
                self.connection.progressed(now);
                due = self.connection.poll_timeout();
            }
            if due.is_some_and(|due| due <= now) {
                let queued_bytes = self.queued_bytes();
                if let Some(Event::Failed(error)) = self.connection.handle_timeout(now) {
                    self.end(Some(error.into()));
                } else if self.connection.is_closed() {
                    let millis = self.close_timeout().as_millis();
                    self.end(Some(Lost::CloseUnanswered { millis }.into()));
                }
                // Unless only the time was recorded, there is an end or a frame to write.
                if self.state != StreamState::Open || self.queued_bytes() > queued_bytes {
                    return Poll::Ready(());
                }
                continue;
            }
            ready!(self.poll_sleep(cx, due));
        }
    }

    fn poll_sleep(&mut self, cx: &mut Context<'_>, due: Option<Time>) -> Poll<()> {
        let Some(due) = due.and_then(|due| self.clock.instant(due)) else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        // The timer moves only to an earlier time. When it fires too early it is set again, so messages do not touch
        // it.
        if due < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx)
    }

    /// Ends the connection, with an error unless by a closing handshake.
    fn end(&mut self, error: Option<Error>) {
        if self.state != StreamState::Open {
            return;
        }
        let is_lost = matches!(error, Some(Error::Lost(Lost::Ended | Lost::Io(_))));
        self.error = error;
        self.state =
            if is_lost { StreamState::Over } else { StreamState::Ending(Shutdown::default()) };
        let deadline = Instant::now().checked_add(self.close_timeout());
        self.timer = deadline.map(|deadline| Box::pin(sleep_until(deadline)));
    }

    /// Writes the rest, ends our side of the stream and waits for the peer to end its own, all within the close
    /// timeout. Closing a socket with unread input resets it, and the peer could lose our close frame.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let StreamState::Ending(mut ending) = self.state else { return Poll::Ready(()) };
        let ended = self.poll_ending(cx, &mut ending);
        self.state = StreamState::Ending(ending);
        // A timeout or failure changes nothing: the connection is over, and its result is known.
        if ended.is_pending()
            && !self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
            && !self.is_late()
        {
            return Poll::Pending;
        }
        self.state = StreamState::Over;
        self.timer = None;
        Poll::Ready(())
    }

    /// Returns true if the time to end is over. While a peer keeps sending, the timer is not polled.
    fn is_late(&self) -> bool {
        self.timer.as_ref().is_some_and(|timer| timer.deadline() <= Instant::now())
    }

    fn poll_ending(
        &mut self,
        cx: &mut Context<'_>,
        ending: &mut Shutdown,
    ) -> Poll<Result<(), Lost>> {
        ready!(self.poll_write(cx))?;
        // The server ends its side first, so that the TIME_WAIT state stays at the server (section 7.1.1).
        if self.role == Role::Server && !ending.is_shut {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            ending.is_shut = true;
        }
        // There is no limit on the bytes: a peer that sends a large message may send all of it before it reads, and
        // after a reset it could not read our close frame.
        let deadline = self.timer.as_ref().map(|timer| timer.deadline());
        let is_late = |_| deadline.is_some_and(|deadline| deadline <= Instant::now());
        ready!(poll_drain(&mut self.stream, cx, is_late))?;
        if self.role == Role::Client {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        Poll::Ready(Ok(()))
    }
}
