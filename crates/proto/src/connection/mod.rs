//! A connection after its opening handshake (RFC 6455 sections 5 to 7), as a state machine.
//!
//! Owns the order of things: what may come when, what is answered without asking, how the closing
//! handshake goes, when a quiet peer is pinged and when it is given up.

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
use receiver::{Place, Receiver, Step};
pub use sender::{MaskKeys, Sender};

use crate::frame::Control;
use crate::{
    CloseFrame, Config, ExchangeCodecs, Message, MessageKind, NegotiatedDeflate, Piece,
    ProtocolError, Role, Time,
};

/// One end of a WebSocket connection. See the [crate documentation](crate) for how it is driven.
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    receiver: Receiver,
    sender: Sender,
    phase: Phase,
    /// The time at which the last byte came from the peer.
    received_at: Time,
    awaited: Awaited,
    round_trip: Option<RoundTrip>,
}

/// The answer that the peer owes us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Awaited {
    Nothing,
    /// A pong; our last ping went out then.
    Pong(Time),
    /// Its close frame; ours was seen to be queued then.
    Close(Time),
}

/// In milliseconds, and in half the room of a `Duration`.
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
    /// Frames are expected.
    Open,
    /// The peer's close frame came, or the connection failed: nothing more is read.
    Ended,
}

/// Something that came from the peer. Payloads are borrowed from the input or the connection.
#[derive(Debug, Eq, PartialEq)]
pub enum Event<'a> {
    /// A whole message.
    Message(Message<'a>),
    /// Part of a message that did not come whole; only after [`Connection::take_pieces`].
    Piece(Piece<'a>),
    /// A ping; it has been answered.
    Ping(&'a [u8]),
    /// A pong, asked for or not.
    Pong {
        /// Its payload.
        payload: &'a [u8],
        /// The time since the keep-alive ping was sent that it answers, if it answers one: it carries
        /// what that did (RFC 6455 section 5.5.3).
        round_trip: Option<Duration>,
    },
    /// The peer's close frame; it has been answered. Nothing comes after it.
    Close(Option<CloseFrame>),
    /// The peer violated the protocol or a limit; a close frame that says so has been queued.
    /// Nothing comes after it.
    Failed(ProtocolError),
}

/// The result of [`Connection::receive`].
#[derive(Debug)]
pub struct Received<'a> {
    /// The number of bytes of the input that were used. All of them when `event` is `None`, unless the connection
    /// [pauses](Connection::pause_often).
    pub consumed: usize,
    /// The first thing that the input held.
    pub event: Option<Event<'a>>,
    /// For an answer while `event` is still borrowed.
    pub sender: &'a mut Sender,
}

impl Connection {
    /// The accepting end, right after the handshake.
    #[must_use]
    pub fn server(config: Arc<Config>, now: Time) -> Self {
        Self::new(Role::Server, config, now, None)
    }

    /// The connecting end. `mask_keys` must be unpredictable (section 10.3).
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

    /// Compresses and inflates messages from now on as the handshake agreed: right after it, before
    /// any bytes. `exchange` lends the calling thread's codecs.
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

    /// Has messages that do not come whole handed out in pieces, as [`Event::Piece`], instead of
    /// collected: so a message of any size takes no memory. The limits hold as for whole ones. A
    /// compressed message comes in pieces of at most 32 KiB, or whole if it is no longer and came at
    /// once. To be called before any bytes come.
    pub fn take_pieces(&mut self) {
        self.receiver.take_pieces();
    }

    /// Has [`receive`](Self::receive) return once it has inflated 32 KiB, for a driver that has others to
    /// turn to: without an event then, and with input left. To be called before any bytes come.
    pub fn pause_often(&mut self) {
        self.receiver.pause();
    }

    /// Whether a message has begun to come, and not ended.
    #[must_use]
    pub fn is_amid_message(&self) -> bool {
        self.receiver.is_amid_message()
    }

    /// The number of bytes kept here of a message that has not come whole.
    #[must_use]
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.receiver.held_bytes()
    }

    /// Ends the connection at once, for a reason of this end's own, and forgets what came of a message. Nothing more is
    /// expected from the peer; it is told with `frame`, unless our close frame is on its way already.
    pub fn abandon(&mut self, frame: &CloseFrame) {
        self.phase = Phase::Ended;
        self.receiver.abandon();
        let _ = self.sender.close(Some(frame));
    }

    /// Takes bytes from the peer, up to and including the first event among them. Call it again
    /// with the rest until all is consumed. Never fails: a violation becomes [`Event::Failed`].
    ///
    /// `input` is unmasked in place. Once nothing more is expected all input is discarded.
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

    /// Takes what is not a whole message at the front of the input.
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
                    Place::Input(range) => &input[range],
                    Place::Collected => self.receiver.take_message(),
                };
                match message(kind, payload) {
                    Ok(message) => Some(Event::Message(message)),
                    Err(error) => Some(fail(&mut self.phase, &mut self.sender, error)),
                }
            }
            Ok(Some(Step::Piece { kind, place, is_first, is_last })) => {
                let bytes = match place {
                    Place::Input(range) => &input[range],
                    Place::Collected => self.receiver.take_piece(is_last),
                };
                Some(Event::Piece(Piece { kind, bytes, is_first, is_last }))
            }
            Ok(Some(Step::Control(control, place))) => {
                let payload = match place {
                    Place::Input(range) => &input[range],
                    Place::Collected => self.receiver.control(),
                };
                match control {
                    Control::Ping => {
                        // Refused only after our close frame, when nothing may follow it.
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
                    Control::Close => Some(closed(&mut self.phase, &mut self.sender, payload)),
                }
            }
            Err(error) => Some(fail(&mut self.phase, &mut self.sender, error)),
        };
        Received { consumed, event, sender: &mut self.sender }
    }

    /// The buffer that the next bytes can be read to at once, instead of into an input: the rest of a large frame
    /// (from 64 KiB) of a message that is collected. `None` when they are to be given to
    /// [`receive`](Self::receive). When something was appended, call
    /// [`rest_received`](Self::rest_received) with the length from before.
    pub fn rest(&mut self) -> Option<Rest<'_>> {
        if self.phase == Phase::Ended { None } else { self.receiver.rest() }
    }

    /// Takes what was appended to [`rest`](Self::rest), which held `begin` bytes before.
    pub fn rest_received(&mut self, now: Time, begin: usize) -> Received<'_> {
        self.received_at = now;
        let step = self.receiver.rest_received(&self.config, begin);
        self.received(now, 0, step, &[])
    }

    /// The sending half.
    #[inline]
    pub fn sender(&mut self) -> &mut Sender {
        // No event is borrowed any more. After the last one of an input this is the call that every
        // driver makes, so that an idle connection does not keep its last message.
        self.receiver.forget_message();
        &mut self.sender
    }

    /// The limits and times it keeps.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The peer took bytes that had been stuck, which shows that it is there: a slow reader whose
    /// pongs are not read meanwhile is not taken for a dead one.
    pub fn progressed(&mut self, now: Time) {
        self.received_at = now;
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) has something to do next, if nothing comes
    /// before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.is_closed() {
            return None;
        }
        if let Awaited::Close(since) = self.awaited {
            return Some(since + self.config.close_timeout);
        }
        if self.sender.is_closing() {
            return Some(Time::ZERO); // the caller has just queued the close frame: look at once
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

    /// The time by which the message that has begun must be whole.
    fn message_due(&self) -> Option<Time> {
        self.receiver.message_began_at().map(|began_at| began_at + self.config.message_timeout)
    }

    /// Does what is due at `now`: a ping to a quiet peer, the end of one that stayed quiet. Safe to
    /// call at any time.
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
            // Refused only once closing, which was ruled out above.
            let _ = self.sender.ping(&ping_payload(now));
            self.awaited = Awaited::Pong(now);
        }
        None
    }

    /// Whether both ends are done: nothing more is expected from the peer. The driver writes what
    /// is queued and then closes its stream, a server first (section 7.1.1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether this end has queued or sent its close frame.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.sender.is_closing()
    }

    /// The last measured time from a ping to its pong.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.map(|RoundTrip(millis)| Duration::from_millis(millis.into()))
    }
}

/// The payload of a keep-alive ping of this time.
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

/// The peer's close frame: answers with its code (section 5.5.1).
fn closed(phase: &mut Phase, sender: &mut Sender, payload: &[u8]) -> Event<'static> {
    match CloseFrame::decode(payload) {
        Err(error) => fail(phase, sender, error),
        Ok(frame) => {
            *phase = Phase::Ended;
            let answer = frame.as_ref().map(|frame| CloseFrame::new(frame.code, ""));
            // Refused when our own close frame is on its way: then this was the answer to it.
            let _ = sender.close(answer.as_ref());
            Event::Close(frame)
        }
    }
}

/// Fails the connection (section 7.1.7).
#[cold]
fn fail(phase: &mut Phase, sender: &mut Sender, error: ProtocolError) -> Event<'static> {
    *phase = Phase::Ended;
    // Refused when our own close frame is on its way: the peer gets no second one.
    let _ = sender.close(Some(&CloseFrame::new(error.close_code(), &error.to_string())));
    Event::Failed(error)
}

#[cfg(test)]
mod tests;
