//! Sequences of operations on a client and a server with a link between them.
//!
//! Input: setup (see [`Setup`]), then operations (see [`Op`]) until the input ends. A model notes what
//! each end is to receive. As long as nothing was tampered with, that is what must arrive, in order and
//! nothing else; with foreign bytes on the link there is still no panic, no message above the limit, no
//! event after the end, no output that nobody asked for, and no memory without a bound.

mod end;
mod model;
mod op;

use anemone_proto::{CloseFrame, Message, MessageKind, MisuseError, Time};
use arbitrary::{Result, Unstructured};

use crate::payload::{Payload, pieces};
use crate::seen::Seen;
use end::{End, Setup};
use op::Op;

/// Runs one input; panics on a fault.
pub fn run(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // An error is an input that ends early, and so ends the run.
    let _ = steps(&mut u);
}

/// Operations in one run.
const OPS_MAX: usize = 100;
/// Payload in one run, in bytes.
const PAYLOAD_BYTES_MAX: usize = 128 << 10;

fn steps(u: &mut Unstructured<'_>) -> Result<()> {
    let setup: Setup = u.arbitrary()?;
    let mut world = World { ends: setup.0, now: Time::ZERO, payload_bytes: 0 };
    for _ in 0..OPS_MAX {
        if u.is_empty() || world.payload_bytes > PAYLOAD_BYTES_MAX {
            break;
        }
        let (first, op): (u8, Op) = (u.arbitrary()?, u.arbitrary()?);
        world.step(usize::from(first & 1), op);
        end::check_memory(&mut world.ends);
    }
    world.settle();
    Ok(())
}

/// Both ends, the client first. The link from each is kept by the end that receives.
struct World {
    ends: [End; 2],
    now: Time,
    payload_bytes: usize,
}

impl World {
    /// One operation of, or for, the end at this place.
    fn step(&mut self, at: usize, op: Op) {
        match op {
            Op::Send(payload) => self.send(at, &payload),
            Op::Fragment(payload, fin) => self.fragment(at, &payload, fin),
            Op::Fragments(payload, cuts) => {
                if self.ends[at].model.fragmented.is_none() {
                    let cuts = cuts.of(payload.bytes.len());
                    let number = cuts.len();
                    for (i, piece) in pieces(&payload.bytes, &cuts).enumerate() {
                        // Cut within a character, maybe, which only the whole message must not be.
                        let part = Payload { is_text: payload.is_text, bytes: piece.to_vec() };
                        self.fragment(at, &part, i + 1 == number);
                    }
                }
            }
            Op::Ping(payload) => self.control(at, &payload, true),
            Op::Pong(payload) => self.control(at, &payload, false),
            Op::Close(frame) => self.close(at, frame.as_ref()),
            Op::Transmit(len) => self.transmit(at, usize::from(len)),
            Op::Receive(len) => self.receive(at, usize::from(len)),
            Op::Exchange(step) => {
                self.transmit(1 - at, usize::MAX);
                while !self.ends[at].link.is_empty() {
                    // In 64 pieces at most, so that time is not spent on this alone.
                    let len = (usize::from(step) + 1).max(self.ends[at].link.len() / 64);
                    self.receive(at, len);
                }
            }
            Op::Corrupt { at: place, by } => self.ends[at].corrupt(usize::from(place), by),
            Op::Inject(bytes) => self.ends[at].inject(&bytes),
            Op::Wait(millis) => {
                self.now = Time::from_millis(self.now.as_millis() + u64::from(millis));
            }
            Op::HandleTimeout => {
                let now = self.now;
                let (end, peer) = self.pair(at);
                end.handle_timeout(now, peer);
            }
            Op::Progressed => self.ends[at].progressed(self.now),
            Op::Echo(len) => self.echo(at, usize::from(len)),
        }
    }

    fn send(&mut self, at: usize, payload: &Payload) {
        self.payload_bytes += payload.bytes.len();
        let (from, to) = self.pair(at);
        let message = match str::from_utf8(&payload.bytes) {
            Ok(text) if payload.is_text => Message::Text(text),
            _ => Message::Binary(&payload.bytes),
        };
        let expected = match () {
            () if from.model.is_closing => Err(MisuseError::Closing),
            () if from.model.fragmented.is_some() => Err(MisuseError::MessageUnfinished),
            () => Ok(()),
        };
        let sent = from.queue(payload.bytes.len(), |sender| sender.send(message));
        assert_eq!(sent, expected);
        if sent.is_ok() {
            to.expect_message(message.kind(), payload.bytes.clone(), 1);
        }
    }

    fn fragment(&mut self, at: usize, payload: &Payload, fin: bool) {
        self.payload_bytes += payload.bytes.len();
        let (from, to) = self.pair(at);
        let kind = if payload.is_text { MessageKind::Text } else { MessageKind::Binary };
        let expected = match &from.model.fragmented {
            _ if from.model.is_closing => Err(MisuseError::Closing),
            Some(message) if message.kind != kind => Err(MisuseError::KindChanged),
            _ => Ok(()),
        };
        let sent = from
            .queue(payload.bytes.len(), |sender| sender.send_fragment(kind, &payload.bytes, fin));
        assert_eq!(sent, expected);
        if sent.is_err() {
            return;
        }
        let message = from.model.fragmented.get_or_insert_with(|| model::Fragmented::new(kind));
        message.add(&payload.bytes);
        // A message that is too long fails before its end.
        to.note_limits(message.bytes.len(), payload.bytes.len(), message.fragments);
        if let Some(message) = from.model.fragmented.take_if(|_| fin) {
            to.model.expect(Seen::Message(message.kind, message.bytes));
        }
    }

    fn control(&mut self, at: usize, payload: &[u8], is_ping: bool) {
        let (from, to) = self.pair(at);
        let expected = match payload.len() {
            _ if from.model.is_closing => Err(MisuseError::Closing),
            len @ 126.. => Err(MisuseError::ControlPayloadTooLong { len }),
            _ => Ok(()),
        };
        let sent = from.queue(payload.len(), |sender| match is_ping {
            true => sender.ping(payload),
            false => sender.pong(payload),
        });
        assert_eq!(sent, expected);
        if sent.is_ok() {
            to.model.expect_control(is_ping, payload);
        }
    }

    fn close(&mut self, at: usize, frame: Option<&CloseFrame>) {
        let (from, to) = self.pair(at);
        let was_closing = from.model.is_closing;
        let closed = from.queue(125, |sender| sender.close(frame));
        assert_eq!(closed, if was_closing { Err(MisuseError::Closing) } else { Ok(()) });
        if closed.is_ok() {
            from.model.is_closing = true;
            to.model.expect_close(frame.cloned());
        }
    }

    /// Writes to the stream, as much as it takes.
    fn transmit(&mut self, at: usize, len: usize) {
        let (from, to) = self.pair(at);
        let bytes = from.transmit(len);
        to.link.extend(bytes);
    }

    fn receive(&mut self, at: usize, len: usize) {
        let now = self.now;
        let (to, from) = self.pair(at);
        let mut input = to.take_input(len);
        to.receive(now, &mut input, from);
    }

    /// Receives as a driver does that lends its output buffer, and sends each message back.
    fn echo(&mut self, at: usize, len: usize) {
        self.transmit(at, usize::MAX); // a driver either lends its output or does not
        let now = self.now;
        let (to, from) = self.pair(at);
        let mut input = to.take_input(len);
        to.echo(now, &mut input, from);
        self.payload_bytes += input.len();
    }

    /// Everything that is under way arrives. Then nothing may be missing.
    fn settle(&mut self) {
        while self.ends.iter_mut().any(|end| end.has_output() || !end.link.is_empty()) {
            for at in [0, 1] {
                self.transmit(at, usize::MAX);
                self.receive(1 - at, usize::MAX);
            }
        }
        for end in &self.ends {
            end.check_all_came();
        }
        end::check_memory(&mut self.ends);
    }

    fn pair(&mut self, at: usize) -> (&mut End, &mut End) {
        let [client, server] = &mut self.ends;
        if at == 0 { (client, server) } else { (server, client) }
    }
}
