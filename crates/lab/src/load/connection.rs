//! A connection of the generator. It keeps its messages in flight, and checks the replies.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, bail, ensure};

use super::fragments::Fragments;
use super::{Frames, is_transient};

/// The decision to send another message after each reply, or none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refill {
    Yes,
    No,
}

#[derive(Debug)]
pub(super) struct Connection<S = TcpStream> {
    pub(super) stream: S,
    /// The place in the ring of [`Frames`] of the next byte to send; below, that of the next byte to expect.
    send_at: usize,
    expect_at: usize,
    /// The number of bytes of begun messages that are still to be written.
    to_send: usize,
    /// The number of bytes of replies that are still to come; below, the number of bytes of the next reply that have
    /// come.
    to_receive: usize,
    into_reply: usize,
    /// The checker of replies that may come in fragments; `None` if replies have one frame each.
    fragments: Option<Fragments>,
}

impl<S: Read + Write> Connection<S> {
    /// Takes over a non-blocking stream. No message may be under way on it.
    pub(super) fn new(stream: S, number: usize, frames: &Frames) -> Self {
        let message = frames.first_message(number);
        Self {
            stream,
            send_at: message * frames.sent.message_bytes(),
            expect_at: message * frames.expected.message_bytes(),
            to_send: 0,
            to_receive: 0,
            into_reply: 0,
            fragments: frames
                .fragments
                .as_ref()
                .map(|payloads| Fragments::new(message * payloads.message_bytes(), payloads)),
        }
    }

    /// Begins more messages, but no more than `frames` allows in flight.
    pub(super) fn begin(&mut self, messages: usize, frames: &Frames) -> anyhow::Result<()> {
        self.to_send += messages * frames.sent.message_bytes();
        self.to_receive += messages * frames.expected.message_bytes();
        self.flush(frames)
    }

    /// Returns true if a message waits for room in the socket.
    pub(super) fn wants_to_write(&self) -> bool {
        self.to_send > 0
    }

    /// Writes once, as much as the socket takes.
    pub(super) fn flush(&mut self, frames: &Frames) -> anyhow::Result<()> {
        if self.to_send == 0 {
            return Ok(());
        }
        let written = match self.stream.write(frames.sent.slice(self.send_at, self.to_send)) {
            Ok(written) => written,
            Err(error) if is_transient(error.kind()) => 0,
            Err(error) => return Err(error).context("writing to the server"),
        };
        self.to_send -= written;
        self.send_at = frames.sent.advance(self.send_at, written);
        Ok(())
    }

    /// Reads once, and checks the bytes. Returns the number of replies that they complete.
    pub(super) fn on_readable(
        &mut self,
        buffer: &mut [u8],
        frames: &Frames,
        refill: Refill,
    ) -> anyhow::Result<usize> {
        let len = match self.stream.read(buffer) {
            Ok(0) => bail!("the server closed a connection in use"),
            Ok(len) => len,
            Err(error) if is_transient(error.kind()) => return Ok(0),
            Err(error) => return Err(error).context("reading from the server"),
        };
        let replies = match (&mut self.fragments, &frames.fragments) {
            (Some(fragments), Some(payloads)) => fragments.check(&buffer[..len], payloads)?,
            _ => self.check(&buffer[..len], frames)?,
        };
        if refill == Refill::Yes && replies > 0 {
            self.begin(replies, frames)?;
        }
        Ok(replies)
    }

    /// Checks replies of one frame each. Returns the number of replies that these bytes complete.
    fn check(&mut self, bytes: &[u8], frames: &Frames) -> anyhow::Result<usize> {
        let len = bytes.len();
        let excess = len.saturating_sub(self.to_receive);
        ensure!(excess == 0, "{excess} bytes came that answer nothing");
        if let Some(difference) = self.difference(bytes, frames) {
            bail!("wrong reply: {difference}");
        }
        self.to_receive -= len;
        self.expect_at = frames.expected.advance(self.expect_at, len);
        let replies = (self.into_reply + len) / frames.expected.message_bytes();
        self.into_reply = (self.into_reply + len) % frames.expected.message_bytes();
        Ok(replies)
    }

    /// Returns a description of the first byte that is not as expected.
    fn difference(&self, bytes: &[u8], frames: &Frames) -> Option<String> {
        let expected = frames.expected.slice(self.expect_at, bytes.len());
        if bytes == expected {
            return None;
        }
        let in_reply = |at| (self.into_reply + at) % frames.expected.message_bytes();
        let may_change =
            |at| frames.changing.as_ref().is_some_and(|part| part.contains(&in_reply(at)));
        let at = (0..bytes.len()).find(|&at| bytes[at] != expected[at] && !may_change(at))?;
        let (byte, expected) = (bytes[at], expected[at]);
        Some(format!("byte {} of it is {byte:#04x}, not {expected:#04x}", in_reply(at)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io::{self, ErrorKind};

    use super::super::{Protocol, Shape};
    use super::*;
    use crate::statistics::Random;

    /// A socket that takes up to `room` bytes. Its peer sends `replies`.
    #[derive(Default)]
    struct Fake {
        room: usize,
        written: Vec<u8>,
        replies: VecDeque<u8>,
    }

    impl Write for Fake {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.room);
            self.room -= len;
            self.written.extend_from_slice(&bytes[..len]);
            if len == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(len) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Fake {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.replies.read(buffer)
        }
    }

    const SHAPE: Shape = Shape { payload_bytes: 10, in_flight: 3 };

    fn tcp() -> (Frames, Connection<Fake>) {
        let frames = Frames::new(Protocol::Tcp, SHAPE, &mut Random::new(1));
        let connection = Connection::new(Fake { room: 1000, ..Fake::default() }, 5, &frames);
        (frames, connection)
    }

    #[test]
    fn a_partial_write_goes_on_where_it_stopped() {
        let (frames, mut connection) = tcp();
        connection.stream.room = 25;
        connection.begin(3, &frames).unwrap();
        assert!(connection.wants_to_write());
        connection.stream.room = 25;
        connection.flush(&frames).unwrap();
        assert!(!connection.wants_to_write());
        let from = frames.first_message(5) * 10;
        assert_eq!(connection.stream.written, frames.sent.slice(from, 30));
    }

    #[test]
    fn each_reply_is_followed_by_a_message_while_refilling() {
        let (frames, mut connection) = tcp();
        connection.begin(3, &frames).unwrap();
        connection.stream.replies = connection.stream.written.drain(..).collect();
        let mut small = [0; 25];
        assert_eq!(connection.on_readable(&mut small, &frames, Refill::Yes).unwrap(), 2);
        assert_eq!(connection.stream.written.len(), 20);
        assert_eq!(connection.on_readable(&mut small, &frames, Refill::No).unwrap(), 1);
        assert_eq!(connection.stream.written.len(), 20);
    }

    #[test]
    fn a_wrong_byte_an_extra_byte_and_the_end_are_errors() {
        type Spoil = fn(&mut VecDeque<u8>);
        let wrong: Spoil = |replies| replies[11] ^= 1;
        let extra: Spoil = |replies| replies.extend([0; 5]);
        let end: Spoil = VecDeque::clear;
        for (part, spoil) in [("byte 1 of it", wrong), ("5 bytes came", extra), ("closed", end)] {
            let (frames, mut connection) = tcp();
            connection.begin(2, &frames).unwrap();
            connection.stream.replies = connection.stream.written.drain(..).collect();
            spoil(&mut connection.stream.replies);
            let error = connection.on_readable(&mut [0; 100], &frames, Refill::Yes).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
