//! Drives the connections of a broadcast from one epoll set. One connection sends the messages, and all get them.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::connection::Refill;
use super::poller::Poller;
use super::{Frames, PATIENCE, is_transient};

const READ_BYTES: usize = 64 << 10;
/// The index of the connection that sends the messages.
const PUBLISHER: usize = 0;

/// Open connections to a broadcast.
pub(crate) struct Audience {
    poller: Poller,
    members: Vec<Member>,
    outstanding: Outstanding,
    frames: Frames,
    /// The place in the ring of the next byte to send.
    send_at: usize,
    buffer: Vec<u8>,
}

impl Audience {
    /// Takes over connections. All of them must have joined, and no message may be under way.
    pub(crate) fn new(streams: Vec<TcpStream>, frames: Frames) -> anyhow::Result<Self> {
        ensure!(!streams.is_empty(), "a broadcast needs a connection");
        ensure!(frames.fragments.is_none(), "broadcast messages are too long to come in one frame");
        let poller = Poller::new()?;
        let mut members = Vec::with_capacity(streams.len());
        for (number, stream) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true)?;
            poller.add(&stream, number)?;
            members.push(Member { stream, received_bytes: 0 });
        }
        let outstanding = Outstanding::new(members.len());
        let buffer = vec![0; READ_BYTES];
        Ok(Self { poller, members, outstanding, frames, send_at: 0, buffer })
    }

    /// Keeps messages under way for `time`, then waits until every connection has the last one. Returns the number of
    /// deliveries: messages times connections.
    pub(crate) fn run(&mut self, time: Duration) -> anyhow::Result<u64> {
        let deadline = Instant::now() + time;
        let before = self.outstanding.done;
        self.publish(self.frames.in_flight)?;
        while !self.outstanding.is_empty() {
            let refill = if Instant::now() < deadline { Refill::Yes } else { Refill::No };
            self.turn(refill)?;
        }
        Ok((self.outstanding.done - before) * self.members.len() as u64)
    }

    /// Sends this number of messages in one write.
    fn publish(&mut self, messages: usize) -> anyhow::Result<()> {
        let len = messages * self.frames.sent.message_bytes();
        let bytes = self.frames.sent.slice(self.send_at, len);
        // Everything before the outstanding messages was read, so there is always room for them.
        (&self.members[PUBLISHER].stream).write_all(bytes).context("writing to the server")?;
        self.send_at = self.frames.sent.advance(self.send_at, len);
        self.outstanding.begin(messages);
        Ok(())
    }

    /// Reads from the connections that are ready.
    fn turn(&mut self, refill: Refill) -> anyhow::Result<()> {
        let ready = self.poller.wait(PATIENCE)?;
        ensure!(ready > 0, "no delivery for {} seconds", PATIENCE.as_secs());
        for index in 0..ready {
            let (number, _) = self.poller.ready(index);
            let begun = self.outstanding.sent();
            let member = &mut self.members[number];
            let messages = member.on_readable(&mut self.buffer, &self.frames, begun)?;
            let done = self.outstanding.delivered(messages);
            if refill == Refill::Yes && done > 0 {
                self.publish(done)?;
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Member<S = TcpStream> {
    stream: S,
    received_bytes: u64,
}

impl<S: Read> Member<S> {
    /// Reads once from a connection, and checks the bytes against the first `begun` messages. Returns the range of
    /// messages that are now complete.
    fn on_readable(
        &mut self,
        buffer: &mut [u8],
        frames: &Frames,
        begun: u64,
    ) -> anyhow::Result<Range<u64>> {
        let message_bytes = frames.expected.message_bytes() as u64;
        let first = self.received_bytes / message_bytes;
        let len = match self.stream.read(buffer) {
            Ok(0) => bail!("the server closed a connection in use"),
            Ok(len) => len,
            Err(error) if is_transient(error.kind()) => return Ok(first..first),
            Err(error) => return Err(error).context("reading from the server"),
        };
        let excess = (self.received_bytes + len as u64).saturating_sub(begun * message_bytes);
        ensure!(excess == 0, "{excess} bytes came that nobody sent");
        let at = frames.expected.place(self.received_bytes);
        let (bytes, expected) = (&buffer[..len], frames.expected.slice(at, len));
        if bytes != expected {
            let same = bytes.iter().zip(expected).take_while(|(a, b)| a == b).count();
            let (came, wanted) = (bytes[same], expected[same]);
            let place = (self.received_bytes + same as u64) % message_bytes;
            bail!("wrong delivery: byte {place} of it is {came:#04x}, not {wanted:#04x}");
        }
        self.received_bytes += len as u64;
        Ok(first..self.received_bytes / message_bytes)
    }
}

/// The messages that have not arrived at all members.
#[derive(Debug)]
struct Outstanding {
    members: usize,
    /// For each of these messages, the number of members that lack it. The oldest message comes first.
    missing: VecDeque<usize>,
    /// The number of older messages. All members have them.
    done: u64,
}

impl Outstanding {
    fn new(members: usize) -> Self {
        Self { members, missing: VecDeque::new(), done: 0 }
    }

    fn is_empty(&self) -> bool {
        self.missing.is_empty()
    }

    /// Returns the number of messages sent so far.
    fn sent(&self) -> u64 {
        self.done + self.missing.len() as u64
    }

    fn begin(&mut self, messages: usize) {
        self.missing.extend(std::iter::repeat_n(self.members, messages));
    }

    /// Notes that one more member has these messages. Returns how many more messages all members have now.
    fn delivered(&mut self, messages: Range<u64>) -> usize {
        for message in messages {
            self.missing[(message - self.done) as usize] -= 1;
        }
        let mut done = 0;
        while self.missing.front() == Some(&0) {
            self.missing.pop_front();
            done += 1;
        }
        self.done += done as u64;
        done
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::super::{Protocol, Shape};
    use super::*;
    use crate::statistics::Random;

    fn frames() -> Frames {
        let shape = Shape { payload_bytes: 10, in_flight: 3 };
        Frames::new(Protocol::WebSocket, shape, &mut Random::new(1))
    }

    /// Returns the messages that a member completes with `len` more bytes. It has all bytes of the broadcast before
    /// `from`.
    fn read(frames: &Frames, from: u64, len: usize, begun: u64) -> anyhow::Result<Range<u64>> {
        let bytes = frames.expected.slice(frames.expected.place(from), len);
        Member { stream: bytes, received_bytes: from }.on_readable(&mut [0; 100], frames, begun)
    }

    #[test]
    fn a_message_is_outstanding_until_everyone_has_it() {
        let mut outstanding = Outstanding::new(2);
        outstanding.begin(3);
        assert_eq!(outstanding.delivered(0..2), 0);
        assert_eq!(outstanding.delivered(0..1), 1);
        assert_eq!(outstanding.delivered(1..1), 0);
        outstanding.begin(1);
        assert_eq!(outstanding.sent(), 4);
        assert_eq!(outstanding.delivered(2..4), 0);
        assert_eq!(outstanding.delivered(1..4), 3);
        assert!(outstanding.is_empty());
        assert_eq!((outstanding.done, outstanding.sent()), (4, 4));
    }

    #[test]
    fn a_read_completes_the_messages_whose_last_byte_it_has() {
        // Twelve bytes each, header and payload.
        let frames = frames();
        assert_eq!(read(&frames, 0, 11, 3).unwrap(), 0..0);
        assert_eq!(read(&frames, 11, 1, 3).unwrap(), 0..1);
        assert_eq!(read(&frames, 11, 14, 3).unwrap(), 0..2);
        assert_eq!(read(&frames, 256 * 12 - 1, 2, 300).unwrap(), 255..256);
    }

    #[test]
    fn what_nobody_sent_a_wrong_byte_and_the_end_are_errors() {
        let frames = frames();
        let error = |result: anyhow::Result<Range<u64>>| result.unwrap_err().to_string();
        assert_eq!(error(read(&frames, 12, 17, 2)), "5 bytes came that nobody sent");
        assert!(error(read(&frames, 12, 0, 2)).contains("closed"));
        let mut bytes = frames.expected.slice(0, 24).to_vec();
        for (at, told) in [(12, "byte 0 "), (23, "byte 11 ")] {
            bytes[at] ^= 1;
            let mut member = Member { stream: &bytes[..], received_bytes: 0 };
            assert!(error(member.on_readable(&mut [0; 100], &frames, 2)).contains(told));
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn nothing_to_read_completes_nothing() {
        struct Blocked;
        impl Read for Blocked {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(ErrorKind::WouldBlock.into())
            }
        }
        let mut member = Member { stream: Blocked, received_bytes: 24 };
        assert_eq!(member.on_readable(&mut [0; 10], &frames(), 3).unwrap(), 2..2);
    }
}
