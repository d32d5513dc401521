//! One connection over any byte stream, driven by the task that holds it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anemone_proto::{CloseFrame, Config, Connection, Event, Message, Sender, Time};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::clock::Clock;
use crate::{Error, Lost};

/// Most bytes taken from the stream by one read.
const READ_BYTES_MAX: usize = 16 << 10;
/// Nothing is read while more than this is queued for writing: a peer that sends and does not read
/// is held back by its own unread answers.
const HIGH_MARK_BYTES: usize = 64 << 10;
/// Most bytes thrown away while a closed stream is waited for to end.
const DRAINED_BYTES_MAX: usize = 1 << 20;

/// A WebSocket connection over `S`. [`recv`](Self::recv) drives everything: reading, writing what
/// is queued, pings, time-outs and the closing handshake. So it must be called in a loop, by
/// senders too.
#[derive(Debug)]
pub struct WebSocket<S> {
    stream: S,
    connection: Connection,
    clock: Clock,
    close_timeout: Duration,
    /// Bytes read and not yet decoded.
    input: Vec<u8>,
    decoded: usize,
    timer: Option<Pin<Box<Sleep>>>,
    end: Option<End>,
}

/// Something the peer sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Incoming {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
}

impl Incoming {
    /// The message, borrowed.
    #[must_use]
    pub fn message(&self) -> Message<'_> {
        match self {
            Self::Text(text) => Message::Text(text),
            Self::Binary(bytes) => Message::Binary(bytes),
        }
    }
}

/// What [`WebSocket::turn`] came to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Turn {
    /// The peer sent a message.
    Message(Incoming),
    /// Everything queued has been written.
    Drained,
    /// The closing handshake is done.
    Closed,
}

/// How the connection ended, until it is told to the caller.
#[derive(Debug)]
enum End {
    Closed(Option<CloseFrame>),
    Failed(Error),
    Told,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// The server's end, over a stream whose handshake is done. `first` are the bytes that came
    /// after the handshake, if any.
    #[must_use]
    pub fn server(stream: S, config: Arc<Config>, first: Vec<u8>) -> Self {
        let clock = Clock::start();
        let close_timeout = config.close_timeout;
        let connection = Connection::server(config, clock.now());
        Self {
            stream,
            connection,
            clock,
            close_timeout,
            input: first,
            decoded: 0,
            timer: None,
            end: None,
        }
    }

    /// The next message. `None` once the closing handshake is done, for ever after.
    ///
    /// # Errors
    /// [`Error::Protocol`] when the peer broke the protocol or a limit, [`Error::Lost`] when the
    /// stream failed; once, then `None`.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Result<Option<Incoming>, Error> {
        loop {
            match self.turn().await? {
                Turn::Message(message) => return Ok(Some(message)),
                Turn::Drained => {}
                Turn::Closed => return Ok(None),
            }
        }
    }

    /// As [`recv`](Self::recv), and also returns when everything queued has been written: the time
    /// for a sender to queue more.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing but a [`Turn::Drained`], which
    /// [`queued_bytes`](Sender::queued_bytes) tells as well.
    pub async fn turn(&mut self) -> Result<Turn, Error> {
        loop {
            if let Some(message) = self.decode() {
                return Ok(Turn::Message(message));
            }
            if self.connection.is_closed() || self.end.is_some() {
                self.finish().await;
                return match self.end.replace(End::Told) {
                    Some(End::Failed(error)) => Err(error),
                    _ => Ok(Turn::Closed),
                };
            }
            let had_output = self.connection.sender().queued_bytes() > 0;
            match poll_fn(|cx| self.poll_turn(cx, had_output)).await {
                Err(lost) => self.end = Some(End::Failed(lost.into())),
                Ok(())
                    if had_output
                        && self.connection.sender().queued_bytes() == 0
                        && self.input.is_empty() =>
                {
                    return Ok(Turn::Drained);
                }
                Ok(()) => {}
            }
        }
    }

    /// The peer's close frame, once [`recv`](Self::recv) has met it and not yet told of it.
    #[must_use]
    pub fn close_frame(&self) -> Option<&CloseFrame> {
        match &self.end {
            Some(End::Closed(frame)) => frame.as_ref(),
            _ => None,
        }
    }

    /// Where messages are queued for sending; [`recv`](Self::recv) writes them. A good sender queues
    /// more only when [`queued_bytes`](Sender::queued_bytes) is low.
    pub fn sender(&mut self) -> &mut Sender {
        self.connection.sender()
    }

    /// The last measured time from a ping to its pong.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.connection.round_trip()
    }

    /// Decodes what was read, up to the first message.
    fn decode(&mut self) -> Option<Incoming> {
        let now = self.clock.now();
        while self.decoded < self.input.len() {
            let received = self.connection.receive(now, &mut self.input[self.decoded..]);
            self.decoded += received.consumed;
            match received.event {
                Some(Event::Message(Message::Text(text))) => {
                    return Some(Incoming::Text(text.to_owned()));
                }
                Some(Event::Message(Message::Binary(bytes))) => {
                    return Some(Incoming::Binary(bytes.to_vec()));
                }
                Some(Event::Close(frame)) => self.end = Some(End::Closed(frame)),
                Some(Event::Failed(error)) => self.end = Some(End::Failed(error.into())),
                Some(Event::Ping(_) | Event::Pong(_)) | None => {}
            }
        }
        // An idle connection holds no buffer.
        self.input = Vec::new();
        self.decoded = 0;
        None
    }

    /// Writes what can be written, reads what can be read, does what is due; waits when there is
    /// nothing of these.
    fn poll_turn(&mut self, cx: &mut Context<'_>, had_output: bool) -> Poll<Result<(), Lost>> {
        if self.poll_write(cx)?.is_ready() && had_output {
            return Poll::Ready(Ok(()));
        }
        let writes_stuck = self.connection.sender().queued_bytes() > HIGH_MARK_BYTES;
        if !writes_stuck && self.poll_read(cx)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        self.poll_timer(cx).map(Ok)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.connection.sender().queued_bytes() > 0 {
            let bytes = self.connection.sender().transmit();
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.connection.sender().transmitted(written);
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); READ_BYTES_MAX];
        let mut buffer = ReadBuf::uninit(&mut buffer);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        if buffer.filled().is_empty() {
            return Poll::Ready(Err(Lost::Ended));
        }
        self.input.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }

    /// Ready when something was done that may have ended the connection or queued a frame.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = self.clock.now();
            let due = self.connection.poll_timeout();
            if due.is_some_and(|due| due <= now) {
                if let Some(Event::Failed(error)) = self.connection.handle_timeout(now) {
                    self.end = Some(End::Failed(error.into()));
                }
                // Unless it only took note of the time, there is a frame to write or an end.
                if self.connection.is_closed() || self.connection.sender().queued_bytes() > 0 {
                    return Poll::Ready(());
                }
                continue;
            }
            ready!(self.poll_sleep(cx, due));
        }
    }

    /// Waits for the connection's next due time.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, due: Option<Time>) -> Poll<()> {
        let Some(due) = due.and_then(|due| self.clock.instant(due)) else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        // Only ever moved to an earlier time: one that fires too early is set anew, and so no timer
        // is touched for each message.
        if due < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx)
    }

    /// Writes what is left, ends our side of the stream and waits for the peer to end its own,
    /// all within the close time-out: closing a socket with unread input would reset it, and our
    /// close frame could be lost with it.
    async fn finish(&mut self) {
        if matches!(self.end, Some(End::Told | End::Failed(Error::Lost(_)))) {
            return;
        }
        let deadline = Instant::now() + self.close_timeout;
        // Time out or failure: the connection is over either way, and its end is known already.
        let _ = tokio::time::timeout_at(deadline, poll_fn(|cx| self.poll_finish(cx))).await;
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        ready!(self.poll_write(cx))?;
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        let mut drained = 0;
        while drained < DRAINED_BYTES_MAX {
            ready!(self.poll_read(cx))?;
            drained += self.input.len();
            self.input.clear();
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
