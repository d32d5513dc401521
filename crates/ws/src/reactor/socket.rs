//! One socket's share of a turn.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;

use anemone_proto::{CloseFrame, Output, Time};
use mio::net::TcpStream;

use super::Waker;
use super::protocol::{Ending, Protocol, Queued};
use crate::Lost;

/// Most slices given to the system at once.
const SLICES_MAX: usize = 32;

/// What all sockets of a thread share, one at a time.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) input: Box<[u8]>,
    pub(super) output: Queued,
}

impl Scratch {
    /// Most bytes taken from a socket in one turn. Large enough that a busy socket seldom needs a
    /// second read, small enough to stay in the processor's cache.
    const INPUT_BYTES: usize = 256 << 10;
    /// Output capacity that is kept from turn to turn.
    const OUTPUT_KEPT_BYTES: usize = 1 << 20;

    pub(super) fn new() -> Self {
        Self { input: vec![0; Self::INPUT_BYTES].into_boxed_slice(), output: None }
    }

    /// Lets what is queued in this turn refer to the input instead of copying it.
    fn lend_input(&mut self) {
        self.output.get_or_insert_default().lend(&self.input);
    }

    fn clear_output(&mut self) {
        if let Some(output) = &mut self.output {
            output.clear(Self::OUTPUT_KEPT_BYTES);
        }
    }
}

/// What a socket is made of: calls that never block.
pub(super) trait Stream: Read + Write {
    /// Ends our side; would block while that takes. With `is_last` the stream is dropped right after.
    fn end(&mut self, is_last: bool) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn end(&mut self, is_last: bool) -> io::Result<()> {
        if is_last { Ok(()) } else { self.shutdown(Shutdown::Write) }
    }
}

/// A socket in the loop, or what stands in for one.
pub(super) struct Socket<S> {
    stream: S,
    protocol: Box<dyn Protocol>,
    /// Output that the stream did not take.
    stuck: VecDeque<u8>,
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

impl<S: Stream> Socket<S> {
    pub(super) fn new(stream: S, protocol: Box<dyn Protocol>, generation: u32) -> Self {
        Self {
            stream,
            protocol,
            stuck: VecDeque::new(),
            phase: Phase::Open,
            generation,
            timer_at: None,
        }
    }

    pub(super) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether it takes input: not while output is stuck, as a rule.
    pub(super) fn is_reading(&self) -> bool {
        self.stuck.is_empty() || self.protocol.reads_on(self.stuck.len())
    }

    /// When it wants to be looked at, if nothing happens before.
    pub(super) fn due(&self) -> Option<Time> {
        match self.phase {
            Phase::Open => self.protocol.due(),
            Phase::Over { until, .. } | Phase::Lingering(until) => Some(until),
        }
    }

    /// Its first turn.
    pub(super) fn open(
        &mut self,
        waker: Waker,
        now: Time,
        first: &mut [u8],
        scratch: &mut Scratch,
    ) -> Verdict {
        self.protocol.open(waker, now, first, &mut scratch.output);
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Reads once and handles all that came, unless output is stuck.
    pub(super) fn readable(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if !self.is_reading() {
            return Verdict::Keep; // read once it has drained
        }
        let verdict = match self.stream.read(&mut scratch.input) {
            Ok(0) => self.lost(Lost::Ended),
            Ok(_) if self.phase != Phase::Open => Verdict::ReadAgain,
            Ok(len) => {
                scratch.lend_input();
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
        match self.unstick() {
            Ok(0) => return Verdict::Keep,
            Ok(_) if self.phase == Phase::Open => self.protocol.progressed(now),
            Ok(_) => {}
            Err(error) => return self.lost(error.into()),
        }
        if !self.stuck.is_empty() {
            return Verdict::Keep;
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
            && let Some(output) = scratch.output.as_ref().filter(|output| !output.is_empty())
            && let Err(error) = self.write(output, &scratch.input)
        {
            verdict = self.lost(error.into());
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
    pub(super) fn lost(&mut self, lost: Lost) -> Verdict {
        if self.phase == Phase::Open {
            self.protocol.lost(lost);
        }
        Verdict::Drop
    }

    /// Writes in order; what the stream does not take is kept.
    fn write(&mut self, output: &Output, input: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while self.stuck.is_empty() && written < output.len() {
            let (slices, count) = rest(output, input, written);
            let taken = match &slices[..count] {
                [slice] => self.stream.write(slice),
                slices => self.stream.write_vectored(slices),
            };
            match taken {
                Ok(len) => written += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        for slice in output.slices(input) {
            let skip = slice.len().min(written);
            self.stuck.extend(&slice[skip..]);
            written -= skip;
        }
        Ok(())
    }

    /// Writes what was stuck; returns how much of it.
    fn unstick(&mut self) -> io::Result<usize> {
        let mut written = 0;
        while !self.stuck.is_empty() {
            match self.stream.write(self.stuck.as_slices().0) {
                Ok(len) => {
                    self.stuck.drain(..len);
                    written += len;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.stuck.is_empty() {
            self.stuck = VecDeque::new();
        }
        Ok(written)
    }

    /// The protocol is over and all is written: ends our side of the stream.
    fn end(&mut self, until: Time, is_clean: bool) -> Verdict {
        // Input may come yet, and a socket that is closed with unread input is reset: the last we
        // wrote could be lost with it.
        match self.stream.end(is_clean) {
            Ok(()) if !is_clean => {
                self.phase = Phase::Lingering(until);
                Verdict::Keep
            }
            // Tried again in the next turn, until the time is up.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Verdict::Keep,
            Ok(()) | Err(_) => Verdict::Drop,
        }
    }
}

/// What is left to write, as slices for one call.
fn rest<'a>(
    output: &'a Output,
    input: &'a [u8],
    mut written: usize,
) -> ([IoSlice<'a>; SLICES_MAX], usize) {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let mut count = 0;
    for slice in output.slices(input) {
        if written < slice.len() {
            slices[count] = IoSlice::new(&slice[written..]);
            written = 0;
            count += 1;
            if count == SLICES_MAX {
                break;
            }
        } else {
            written -= slice.len();
        }
    }
    (slices, count)
}
