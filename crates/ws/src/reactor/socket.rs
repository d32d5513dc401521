//! One socket's share of a turn.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

use anemone_proto::{CloseFrame, Time};
use mio::net::TcpStream;

use super::Token;
use super::protocol::{Ending, Protocol};
use crate::Lost;

/// What all sockets of a thread share, one at a time.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) input: Box<[u8]>,
    pub(super) output: Vec<u8>,
}

impl Scratch {
    /// Most bytes taken from a socket in one turn. Large enough that a busy socket seldom needs a
    /// second read, small enough to stay in the processor's cache.
    const INPUT_BYTES: usize = 256 << 10;
    /// Output capacity that is kept from turn to turn.
    const OUTPUT_KEPT_BYTES: usize = 1 << 20;

    pub(super) fn new() -> Self {
        Self { input: vec![0; Self::INPUT_BYTES].into_boxed_slice(), output: Vec::new() }
    }

    fn clear_output(&mut self) {
        self.output.clear();
        self.output.shrink_to(Self::OUTPUT_KEPT_BYTES);
    }
}

/// A socket in the loop.
pub(super) struct Socket {
    stream: TcpStream,
    protocol: Box<dyn Protocol>,
    /// Output that the stream did not take.
    stuck: Vec<u8>,
    phase: Phase,
    generation: u32,
    /// The entry among the timers that counts.
    pub(super) timer_at: Option<Time>,
}

/// How far the end of the stream is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Open,
    /// The protocol is over; output may be left to write, until then.
    Over {
        until: Time,
        is_clean: bool,
    },
    /// Our side of the stream is ended; the peer's end is waited for until then.
    Lingering(Time),
}

/// What is to become of a socket after its turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It waits for the next event.
    Keep,
    /// It may have more to read than one turn takes.
    ReadAgain,
    /// It is done.
    Drop,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, protocol: Box<dyn Protocol>, generation: u32) -> Self {
        Self { stream, protocol, stuck: Vec::new(), phase: Phase::Open, generation, timer_at: None }
    }

    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// When it wants to be looked at, if nothing happens before.
    pub(super) fn due(&self) -> Option<Time> {
        match self.phase {
            Phase::Open => self.protocol.due(),
            Phase::Over { until, .. } | Phase::Lingering(until) => Some(until),
        }
    }

    /// Its first turn.
    pub(super) fn open(&mut self, token: Token, now: Time, scratch: &mut Scratch) -> Verdict {
        self.protocol.open(token, now, &mut scratch.output);
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Reads once and handles all that came, unless output is stuck.
    pub(super) fn readable(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if !self.stuck.is_empty() {
            return Verdict::Keep; // read once it has drained
        }
        let verdict = match self.stream.read(&mut scratch.input) {
            Ok(0) => self.lost(Lost::Ended),
            Ok(_) if self.phase != Phase::Open => Verdict::ReadAgain,
            Ok(len) => {
                self.protocol.receive(now, &mut scratch.input[..len], &mut scratch.output);
                if len == scratch.input.len() { Verdict::ReadAgain } else { Verdict::Keep }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Verdict::Keep,
            Err(error) if error.kind() == ErrorKind::Interrupted => Verdict::ReadAgain,
            Err(error) => self.lost(error.into()),
        };
        self.finish(now, scratch, verdict)
    }

    /// Writes what was stuck. Once all is gone the protocol may send and the socket is read again.
    pub(super) fn writable(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if self.stuck.is_empty() {
            return Verdict::Keep;
        }
        let stuck = std::mem::take(&mut self.stuck);
        let verdict = self.write(&stuck);
        if !self.stuck.is_empty() || verdict == Verdict::Drop {
            return verdict;
        }
        match self.ready(now, scratch) {
            Verdict::Keep => Verdict::ReadAgain,
            verdict => verdict,
        }
    }

    /// Lets the protocol send, unless output is stuck.
    pub(super) fn ready(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if self.stuck.is_empty() && self.phase == Phase::Open {
            self.protocol.ready(&mut scratch.output);
        }
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Begins to end it politely, unless that has begun.
    pub(super) fn close(
        &mut self,
        now: Time,
        frame: &CloseFrame,
        scratch: &mut Scratch,
    ) -> Verdict {
        if self.phase == Phase::Open {
            self.protocol.close(frame, &mut scratch.output);
        }
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        match self.phase {
            Phase::Over { until, .. } | Phase::Lingering(until) if now >= until => Verdict::Drop,
            _ => self.finish(now, scratch, Verdict::Keep),
        }
    }

    /// Ends a turn: does what is due, writes what was queued, and sees whether it is over.
    fn finish(&mut self, now: Time, scratch: &mut Scratch, mut verdict: Verdict) -> Verdict {
        if self.phase == Phase::Open && self.protocol.due().is_some_and(|due| due <= now) {
            self.protocol.expire(now, &mut scratch.output);
        }
        if verdict != Verdict::Drop
            && !scratch.output.is_empty()
            && self.write(&scratch.output) == Verdict::Drop
        {
            verdict = Verdict::Drop;
        }
        scratch.clear_output();
        if verdict == Verdict::Drop {
            return verdict;
        }
        if self.phase == Phase::Open
            && let Some(Ending { linger, is_clean }) = self.protocol.ending()
        {
            self.phase = Phase::Over { until: now + linger, is_clean };
        }
        match self.phase {
            Phase::Over { until, is_clean } if self.stuck.is_empty() => self.end(until, is_clean),
            _ => verdict,
        }
    }

    /// The stream ended or failed.
    fn lost(&mut self, lost: Lost) -> Verdict {
        if self.phase == Phase::Open {
            self.protocol.lost(lost);
        }
        Verdict::Drop
    }

    /// Writes in order; what the stream does not take is kept.
    fn write(&mut self, mut output: &[u8]) -> Verdict {
        while self.stuck.is_empty() && !output.is_empty() {
            match self.stream.write(output) {
                Ok(len) => output = &output[len..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.lost(error.into()),
            }
        }
        self.stuck.extend_from_slice(output);
        Verdict::Keep
    }

    /// The protocol is over and all is written: ends our side of the stream.
    fn end(&mut self, until: Time, is_clean: bool) -> Verdict {
        // Input may come yet, and a socket that is closed with unread input is reset: the last we
        // wrote could be lost with it.
        if is_clean || self.stream.shutdown(Shutdown::Write).is_err() {
            return Verdict::Drop;
        }
        self.phase = Phase::Lingering(until);
        Verdict::Keep
    }
}
