//! A connection after its opening handshake (RFC 6455 sections 5 to 7), as a state machine.
//!
//! Owns the order of events: what is allowed when, automatic answers, the closing handshake, keep-alive pings, and
//! timeouts.

mod deflate;
mod output;
mod prepared;
mod receiver;
mod sender;

use std::sync::Arc;
use std::time::Duration;

use deflate::{Incoming, Outgoing};
pub use output::Output;
pub use prepared::Prepared;
pub use receiver::Rest;
use receiver::{PayloadPlace, Receiver, Step};
pub use sender::{MaskKeys, Sender};

use crate::frame::Control;
use crate::{
    CloseFrame, Config, ExchangeCodecs, Message, MessageKind, NegotiatedDeflate, Piece,
    ProtocolError, Role, Time,
};

/// One end of a WebSocket connection. The [crate documentation](crate) describes how to drive it.
///
/// ```
/// use std::sync::Arc;
/// use anemone_proto::{CloseCode, CloseFrame, Config, Connection, Event, MaskKey, Time};
///
/// let config = Arc::new(Config::default());
/// let mut client = Connection::client(config.clone(), Time::ZERO, Box::new(|| MaskKey([7; 4])));
/// let mut server = Connection::server(config, Time::ZERO);
///
/// let frame = CloseFrame::new(CloseCode::NORMAL, "done");
/// client.sender().close(Some(&frame))?;
/// let mut bytes = client.sender().transmit().to_vec();
/// let received = server.receive(Time::ZERO, &mut bytes);
/// assert_eq!(received.event, Some(Event::Close(Some(frame))));
/// assert!(server.sender().queued_bytes() > 0, "it has answered");
/// # Ok::<(), anemone_proto::MisuseError>(())
/// ```
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    receiver: Receiver,
    sender: Sender,
    phase: Phase,
    /// The time of the last byte from the peer.
    received_at: Time,
    awaited: Awaited,
    round_trip: Option<RoundTrip>,
}

/// An outstanding answer of the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Awaited {
    Nothing,
    /// A pong to our last ping, which was sent at this time.
    Pong(Time),
    /// The peer's close frame; ours was found queued at this time.
    Close(Time),
}

/// Milliseconds, in half the size of a `Duration`.
#[derive(Clone, Copy, Debug)]
struct RoundTrip(u32);

impl RoundTrip {
    fn between(sent: Time, now: Time) -> Self {
        Self(u32::try_from(now.since(sent).as_millis()).unwrap_or(u32::MAX))
    }
}

/// The state of the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// More frames are expected.
    Open,
    /// The peer's close frame came, or the connection failed. Further input is discarded.
    Ended,
}

/// An event from the peer. Payloads are borrowed from the input or the connection.
#[derive(Debug, Eq, PartialEq)]
pub enum Event<'a> {
    /// A whole message.
    Message(Message<'a>),
    /// A part of an incomplete message, only after [`Connection::take_pieces`].
    Piece(Piece<'a>),
    /// A ping; it has been answered.
    Ping(&'a [u8]),
    /// A pong, solicited or not.
    Pong {
        /// Its payload.
        payload: &'a [u8],
        /// The time since the keep-alive ping that it answers, if it has the payload of one (RFC 6455 section 5.5.3).
        round_trip: Option<Duration>,
    },
    /// The peer's close frame; it has been answered. No event follows.
    Close(Option<CloseFrame>),
    /// The peer violated the protocol or a limit; a close frame has been queued. No event follows.
    Failed(ProtocolError),
}

/// The result of [`Connection::receive`].
#[derive(Debug)]
pub struct Received<'a> {
    /// The number of consumed input bytes. Without an event these are all bytes, unless the connection
    /// [pauses](Connection::pause_often).
    pub consumed: usize,
    /// The first event in the input.
    pub event: Option<Event<'a>>,
    /// The sender, for an answer while `event` is still borrowed.
    pub sender: &'a mut Sender,
}

impl Connection {
    /// Creates the server's end, right after the handshake.
    #[must_use]
    pub fn server(config: Arc<Config>, now: Time) -> Self {
        Self::new(Role::Server, config, now, None)
    }

    /// Creates the client's end. `mask_keys` must be unpredictable (section 10.3).
    #[must_use]
    pub fn client(config: Arc<Config>, now: Time, mask_keys: MaskKeys) -> Self {
        Self::new(Role::Client, config, now, Some(mask_keys))
    }

    fn new(role: Role, config: Arc<Config>, now: Time, mask_keys: Option<MaskKeys>) -> Self {
        Self {
            config,
            receiver: Receiver::new(role),
            sender: Sender::new(mask_keys),
            phase: Phase::Open,
            received_at: now,
            awaited: Awaited::Nothing,
            round_trip: None,
        }
    }

    /// Compresses and inflates messages as the handshake negotiated. Call it right after the handshake, before any
    /// bytes. `exchange` lends the calling thread's codecs.
    #[must_use]
    pub fn with_deflate(
        mut self,
        negotiated: &NegotiatedDeflate,
        exchange: ExchangeCodecs,
    ) -> Self {
        self.receiver.set_deflate(Incoming::new(negotiated, exchange));
        self.sender.set_deflate(Outgoing::new(negotiated, exchange));
        self
    }

    /// Returns incomplete messages in pieces, as [`Event::Piece`], instead of collecting them: a message of any size
    /// then takes little memory. The limits apply as for whole messages. A compressed message comes in pieces of at
    /// most 32 KiB, or whole if it is shorter and arrived at once. Call it before any bytes come.
    pub fn take_pieces(&mut self) {
        self.receiver.take_pieces();
    }

    /// Makes [`receive`](Self::receive) return after inflating 32 KiB, without an event and with input left, so that
    /// a driver can serve other connections. Call it before any bytes come.
    pub fn pause_often(&mut self) {
        self.receiver.pause();
    }

    /// Returns true if a message has begun and not ended.
    #[must_use]
    pub fn is_amid_message(&self) -> bool {
        self.receiver.is_amid_message()
    }

    /// Returns the number of bytes kept of an incomplete message.
    #[must_use]
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.receiver.held_bytes()
    }

    /// Ends the connection at once and discards an incomplete message. Nothing more is expected from the peer. Sends
    /// `frame` as the close frame, unless one was queued before.
    pub fn abandon(&mut self, frame: &CloseFrame) {
        self.phase = Phase::Ended;
        self.receiver.abandon();
        let _ = self.sender.close(Some(frame));
    }

    /// Takes bytes from the peer, up to and including the first event. Call it again with the rest until all bytes
    /// are consumed. It never fails: a violation becomes [`Event::Failed`].
    ///
    /// Unmasks `input` in place. After the end of the connection, discards all input.
    #[inline]
    pub fn receive<'a>(&'a mut self, now: Time, input: &'a mut [u8]) -> Received<'a> {
        self.received_at = now;
        if self.phase == Phase::Open
            && let Some(whole) = self.receiver.whole_message(&self.config, input)
        {
            let payload = &input[whole.payload];
            let event = match message(whole.kind, payload) {
                Ok(message) => Event::Message(message),
                Err(error) => fail(&mut self.phase, &mut self.sender, error),
            };
            let (consumed, event) = (whole.consumed, Some(event));
            return Received { consumed, event, sender: &mut self.sender };
        }
        self.receive_other(now, input)
    }

    /// Takes input that does not begin with a whole message.
    #[inline(never)]
    fn receive_other<'a>(&'a mut self, now: Time, input: &'a mut [u8]) -> Received<'a> {
        if self.phase == Phase::Ended {
            return Received { consumed: input.len(), event: None, sender: &mut self.sender };
        }
        let (consumed, step) = self.receiver.step(&self.config, now, input);
        self.received(now, consumed, step, input)
    }

    fn received<'a>(
        &'a mut self,
        now: Time,
        consumed: usize,
        step: Result<Option<Step>, ProtocolError>,
        input: &'a [u8],
    ) -> Received<'a> {
        let event = match step {
            Ok(None) => None,
            Ok(Some(Step::Message(kind, place))) => {
                let payload = match place {
                    PayloadPlace::Input(range) => &input[range],
                    PayloadPlace::Collected => self.receiver.take_message(),
                };
                match message(kind, payload) {
                    Ok(message) => Some(Event::Message(message)),
                    Err(error) => Some(fail(&mut self.phase, &mut self.sender, error)),
                }
            }
            Ok(Some(Step::Piece { kind, place, is_first, is_last })) => {
                let bytes = match place {
                    PayloadPlace::Input(range) => &input[range],
                    PayloadPlace::Collected => self.receiver.take_piece(is_last),
                };
                Some(Event::Piece(Piece { kind, bytes, is_first, is_last }))
            }
            Ok(Some(Step::Control(control, place))) => {
                let payload = match place {
                    PayloadPlace::Input(range) => &input[range],
                    PayloadPlace::Collected => self.receiver.control(),
                };
                match control {
                    Control::Ping => {
                        // Fails only after our close frame, when nothing may follow it.
                        let _ = self.sender.pong(payload);
                        Some(Event::Ping(payload))
                    }
                    Control::Pong => {
                        let round_trip = match self.awaited {
                            Awaited::Pong(sent) if *payload == ping_payload(sent) => {
                                self.awaited = Awaited::Nothing;
                                self.round_trip = Some(RoundTrip::between(sent, now));
                                self.round_trip()
                            }
                            _ => None,
                        };
                        Some(Event::Pong { payload, round_trip })
                    }
                    Control::Close => {
                        Some(handle_close(&mut self.phase, &mut self.sender, payload))
                    }
                }
            }
            Err(error) => Some(fail(&mut self.phase, &mut self.sender, error)),
        };
        Received { consumed, event, sender: &mut self.sender }
    }

    /// Returns a buffer into which the next bytes can be read directly: the rest of a large frame (from 64 KiB) of a
    /// collected message. Returns `None` if the bytes must go to [`receive`](Self::receive). After appending bytes,
    /// call [`rest_received`](Self::rest_received) with the previous length.
    pub fn rest(&mut self) -> Option<Rest<'_>> {
        if self.phase == Phase::Ended { None } else { self.receiver.rest() }
    }

    /// Takes bytes that were appended to [`rest`](Self::rest), which had `begin` bytes before.
    pub fn rest_received(&mut self, now: Time, begin: usize) -> Received<'_> {
        self.received_at = now;
        let step = self.receiver.rest_received(&self.config, begin);
        self.received(now, 0, step, &[])
    }

    /// Returns the sending half.
    #[inline]
    pub fn sender(&mut self) -> &mut Sender {
        // No event is borrowed any more. Every driver makes this call after the last event of an input, so an idle
        // connection does not keep its last message.
        self.receiver.forget_message();
        &mut self.sender
    }

    /// Returns the limits and timeouts.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Reports that the peer took bytes that had been pending, which shows that it is alive. A slow reader whose
    /// pongs are not read meanwhile is not considered dead.
    pub fn progressed(&mut self, now: Time) {
        self.received_at = now;
    }

    /// Returns the time of the next [`handle_timeout`](Self::handle_timeout), if no bytes come before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.is_closed() {
            return None;
        }
        if let Awaited::Close(since) = self.awaited {
            return Some(since + self.config.close_timeout);
        }
        if self.sender.is_closing() {
            return Some(Time::ZERO); // the caller has just queued the close frame: check at once
        }
        let idle_at = self.received_at + self.config.idle_timeout;
        let quiet_since = match self.awaited {
            Awaited::Pong(sent) => sent.max(self.received_at),
            _ => self.received_at,
        };
        let ping_interval = self.config.ping_interval.max(Duration::from_millis(1));
        let due = idle_at.min(quiet_since + ping_interval);
        Some(self.message_due().map_or(due, |message_due| message_due.min(due)))
    }

    /// Returns the time by which the current message must be complete.
    fn message_due(&self) -> Option<Time> {
        self.receiver.message_began_at().map(|began_at| began_at + self.config.message_timeout)
    }

    /// Handles timeouts that are due at `now`: pings a quiet peer, or fails the connection. It may be called at any
    /// time.
    pub fn handle_timeout(&mut self, now: Time) -> Option<Event<'static>> {
        if self.is_closed() {
            return None;
        }
        if self.sender.is_closing() {
            match self.awaited {
                Awaited::Close(since) if now >= since + self.config.close_timeout => {
                    self.phase = Phase::Ended;
                }
                Awaited::Close(_) => {}
                _ => self.awaited = Awaited::Close(now),
            }
            return None;
        }
        if self.message_due().is_some_and(|due| now >= due) {
            let millis = self.config.message_timeout.as_millis();
            let error = ProtocolError::MessageTimeout { millis };
            return Some(fail(&mut self.phase, &mut self.sender, error));
        }
        if now >= self.received_at + self.config.idle_timeout {
            let error = ProtocolError::IdleTimeout { millis: self.config.idle_timeout.as_millis() };
            return Some(fail(&mut self.phase, &mut self.sender, error));
        }
        if self.poll_timeout().is_some_and(|due| now >= due) {
            // Fails only while closing, which was ruled out above.
            let _ = self.sender.ping(&ping_payload(now));
            self.awaited = Awaited::Pong(now);
        }
        None
    }

    /// Returns true if nothing more is expected from the peer. The driver then writes the queued output and closes
    /// its stream, the server first (section 7.1.1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Returns true if this end has queued or sent its close frame.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.sender.is_closing()
    }

    /// Returns true if messages are compressed, as the handshake has negotiated.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.sender.is_compressed()
    }

    /// Returns the last measured time from a ping to its pong.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.map(|RoundTrip(millis)| Duration::from_millis(millis.into()))
    }
}

fn ping_payload(sent: Time) -> [u8; 8] {
    sent.as_millis().to_be_bytes()
}

#[inline]
fn message(kind: MessageKind, payload: &[u8]) -> Result<Message<'_>, ProtocolError> {
    match kind {
        MessageKind::Binary => Ok(Message::Binary(payload)),
        MessageKind::Text => {
            std::str::from_utf8(payload).map(Message::Text).map_err(|_| ProtocolError::TextNotUtf8)
        }
    }
}

/// Handles the peer's close frame: answers with its code (section 5.5.1).
fn handle_close(phase: &mut Phase, sender: &mut Sender, payload: &[u8]) -> Event<'static> {
    match CloseFrame::decode(payload) {
        Err(error) => fail(phase, sender, error),
        Ok(frame) => {
            *phase = Phase::Ended;
            let answer = frame.as_ref().map(|frame| CloseFrame::new(frame.code, ""));
            // Fails if our own close frame was queued before: then the peer's was the answer.
            let _ = sender.close(answer.as_ref());
            Event::Close(frame)
        }
    }
}

/// Fails the connection (section 7.1.7).
#[cold]
fn fail(phase: &mut Phase, sender: &mut Sender, error: ProtocolError) -> Event<'static> {
    *phase = Phase::Ended;
    // Fails if our own close frame was queued before: the peer gets no second one.
    let _ = sender.close(Some(&CloseFrame::new(error.close_code(), &error.to_string())));
    Event::Failed(error)
}

#[cfg(test)]
mod tests;
