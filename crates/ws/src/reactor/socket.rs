//! One socket's share of a turn.

use std::io::{self, ErrorKind};

use anemone_proto::{CloseFrame, Time};

use super::Waker;
use super::concerned::Concerned;
use super::protocol::{Ending, Next, Protocol, State};
use super::scratch::Scratch;
use super::stream::{Appended, Stream};
use super::stuck::Stuck;
use crate::{Held, Lost};

/// A socket in the loop, or what stands in for one.
pub(super) struct Socket<S> {
    stream: S,
    protocol: Box<dyn Protocol>,
    /// Output that the stream did not take.
    stuck: Stuck,
    phase: Phase,
    generation: u32,
    /// The peer has ended its side. That is told once, and maybe long before all was read.
    is_ended: bool,
    /// All that the peer sent was read, up to its end.
    is_exhausted: bool,
    /// Its protocol has input left, and nothing is read until that is done with.
    is_behind: bool,
    /// Most bytes of its next read.
    read_bytes: ReadBytes,
    /// The memory that it holds for its peer, and since when it has held some.
    held: Held,
    held_since: Time,
    /// The time at which it wants to be looked at, as of the end of its last turn.
    due: Time,
    pub(super) notes: Notes,
    /// The entry among the timers that counts.
    pub(super) timer_at: Time,
}

/// The work that there is for a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notes {
    /// It has a place among those who are served because of what was told of them.
    pub(super) is_noted: bool,
    told: Readiness,
    /// It has one among those who were woken.
    pub(super) is_woken: bool,
}

impl Notes {
    /// Adds to what is to be done once its place comes up.
    pub(super) fn told(&mut self, ready: Readiness) {
        self.is_noted = true;
        self.told.read |= ready.read;
        self.told.end |= ready.end;
        self.told.write |= ready.write;
    }

    /// Its place has come up.
    pub(super) fn take_told(&mut self) -> Readiness {
        self.is_noted = false;
        std::mem::take(&mut self.told)
    }
}

/// The size of a socket's next read: nearly as much as it can be done with in a slice, for what is left is
/// kept, and each read is a write as well.
#[derive(Clone, Copy, Debug)]
struct ReadBytes(usize);

impl ReadBytes {
    const FIRST: Self = Self(32 << 10);
    const LEAST: usize = 4 << 10;

    /// After a read of `len` bytes of which so many were done with when so much of the slice was over.
    fn after(self, consumed: usize, len: usize, slice_eighths: u32) -> Self {
        let next = match slice_eighths {
            _ if consumed < len => consumed.max(len / 4) / 8 * 7,
            ..4 => 2 * self.0,
            4..6 => self.0 / 8 * 9,
            _ => self.0,
        };
        Self(next.clamp(Self::LEAST, Scratch::INPUT_BYTES))
    }
}

/// The news of epoll about a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Readiness {
    pub(super) read: bool,
    /// The peer has ended its side, or the connection is lost.
    pub(super) end: bool,
    pub(super) write: bool,
}

/// The progress of the end of the stream.
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

/// The change in what a socket holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Growth {
    Fine,
    /// It is more, and all hold too much.
    TooMuch,
}

/// The verdict on a socket after its turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It waits for the next event.
    Keep,
    /// It may have more to read than one turn takes.
    ReadAgain,
    /// It is for somebody else.
    Leave,
    /// It is done.
    Drop,
}

impl<S: Stream> Socket<S> {
    pub(super) fn new(stream: S, protocol: Box<dyn Protocol>, generation: u32, held: Held) -> Self {
        Self {
            stream,
            protocol,
            stuck: Stuck::default(),
            phase: Phase::Open,
            generation,
            is_ended: false,
            is_exhausted: false,
            is_behind: false,
            read_bytes: ReadBytes::FIRST,
            held,
            held_since: Time::MAX,
            due: Time::ZERO,
            notes: Notes::default(),
            timer_at: Time::MAX,
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
        self.stuck.is_empty()
            || self.protocol.reads_on(self.stuck.len()) && !self.held.memory().is_exceeded()
    }

    /// Whether it has something to do that nobody tells of.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind && self.is_reading()
    }

    /// The time at which it wants to be looked at, if nothing happens before. Too early is possible, never too late.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Its first turn.
    pub(super) fn open(
        &mut self,
        waker: Waker,
        now: Time,
        first: &mut [u8],
        scratch: &mut Scratch,
    ) -> Verdict {
        let Scratch { output, budget, .. } = scratch;
        self.protocol.open(waker, now, first, output, budget);
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Does what epoll says can be done.
    pub(super) fn event(&mut self, ready: Readiness, now: Time, scratch: &mut Scratch) -> Verdict {
        let mut verdict = Verdict::Keep;
        if ready.write && !self.stuck.is_empty() {
            verdict = self.writable(now, scratch);
        }
        self.is_ended |= ready.end;
        if (ready.read || ready.end) && verdict != Verdict::Drop {
            verdict = self.readable(now, scratch);
        }
        verdict
    }

    /// Reads once and handles all that came, unless output is stuck.
    pub(super) fn readable(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if !self.is_reading() {
            return Verdict::Keep; // read once it has drained
        }
        if self.is_behind {
            self.protocol.resume(now, &mut scratch.output, &mut scratch.budget);
            return self.finish(now, scratch, Verdict::ReadAgain);
        }
        if self.phase == Phase::Open
            && S::APPENDS
            && let Some(rest) = self.protocol.rest()
        {
            let begin = rest.bytes.len();
            let read = self.stream.append(rest);
            return self.appended(begin, read, now, scratch);
        }
        let (input, output, budget) = scratch.lend_input();
        let input = &mut input[..self.read_bytes.0];
        let verdict = match self.stream.read(input) {
            Ok(0) => self.exhausted(),
            Ok(len) if self.phase != Phase::Open => {
                budget.spend(len);
                Verdict::ReadAgain
            }
            Ok(len) => {
                let is_full = len == input.len();
                let consumed = self.protocol.receive(now, &mut input[..len], output, budget);
                if is_full || consumed < len {
                    self.read_bytes = self.read_bytes.after(consumed, len, budget.slice_eighths());
                }
                if is_full || self.is_ended { Verdict::ReadAgain } else { Verdict::Keep }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Verdict::Keep,
            Err(error) if error.kind() == ErrorKind::Interrupted => Verdict::ReadAgain,
            Err(error) => self.lost(error.into()),
        };
        self.finish(now, scratch, verdict)
    }

    /// Handles what came of the rest of a large frame.
    fn appended(
        &mut self,
        begin: usize,
        read: io::Result<Appended>,
        now: Time,
        scratch: &mut Scratch,
    ) -> Verdict {
        let verdict = match read {
            Ok(Appended { len: 0, .. }) => self.exhausted(),
            Ok(Appended { may_have_more, beyond, .. }) => {
                let Scratch { output, budget, .. } = scratch;
                self.protocol.rest_received(now, begin, output, budget);
                if let Some(mut beyond) = beyond {
                    self.protocol.receive(now, &mut beyond, output, budget);
                }
                if may_have_more || self.is_ended { Verdict::ReadAgain } else { Verdict::Keep }
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
        match self.stuck.write_on(&mut self.stream) {
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
            self.protocol.ready(now, &mut scratch.output);
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
        if self.phase == Phase::Open && self.attend(now, scratch) == State::Leaving {
            return Verdict::Leave;
        }
        let is_done = self.is_exhausted
            && self.phase == Phase::Open
            && self.stuck.is_empty()
            && !self.protocol.ended(&mut scratch.output);
        if let Some(output) = scratch.output.as_ref().filter(|output| !output.is_empty()) {
            if verdict != Verdict::Drop
                && let Err(error) = self.stuck.write(&mut self.stream, output, scratch.input())
            {
                verdict = self.lost(error.into());
            }
            scratch.clear_output();
        }
        if verdict != Verdict::Drop && self.count(now) == Growth::TooMuch {
            return self.abandon(now, scratch);
        }
        match self.phase {
            _ if verdict == Verdict::Drop => verdict,
            Phase::Open if is_done && self.stuck.is_empty() => self.lost(Lost::Ended),
            Phase::Over { until, is_clean } if self.stuck.is_empty() => self.end(until, is_clean),
            Phase::Open if self.is_behind() => Verdict::ReadAgain,
            _ => verdict,
        }
    }

    /// Counts what it holds now.
    fn count(&mut self, now: Time) -> Growth {
        let of_protocol = if self.phase == Phase::Open { self.protocol.held_bytes() } else { 0 };
        let (before, bytes) = (self.held.bytes(), self.stuck.capacity() + of_protocol);
        if bytes == before {
            return Growth::Fine;
        }
        if before == 0 {
            self.held_since = now;
        }
        self.held.set(bytes);
        // A message's next bytes could only be kept. What is stuck does not grow: nothing is read meanwhile.
        let is_too_much = of_protocol > 0 && bytes > before && self.held.memory().is_exceeded();
        if is_too_much { Growth::TooMuch } else { Growth::Fine }
    }

    /// Whether it is to let go of what it holds.
    pub(super) fn is_concerned(&self, concerned: Concerned) -> bool {
        match concerned {
            Concerned::Since(cutoff) => self.held.bytes() > 0 && self.held_since <= cutoff,
            Concerned::Open(least) => {
                self.phase == Phase::Open && self.protocol.open_bytes() >= least
            }
        }
    }

    /// Ends it, if it is concerned.
    pub(super) fn let_go(
        &mut self,
        concerned: Concerned,
        now: Time,
        scratch: &mut Scratch,
    ) -> Verdict {
        // Maybe others have let go of enough meanwhile.
        if !self.is_concerned(concerned) || !self.held.memory().wants_relief() {
            return Verdict::Keep;
        }
        if self.phase != Phase::Open || !self.stuck.is_empty() {
            return self.lost(Lost::Overloaded); // it reads no last words
        }
        self.abandon(now, scratch)
    }

    fn abandon(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if !self.stuck.is_empty() {
            return self.lost(Lost::Overloaded);
        }
        self.protocol.abandon(&mut scratch.output);
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Does what is due, and sees how far the protocol is.
    fn attend(&mut self, now: Time, scratch: &mut Scratch) -> State {
        let mut state = self.protocol.state();
        if state == State::Turning {
            self.turn(now, scratch);
            state = self.protocol.state();
        }
        if state != State::Open || self.due <= now {
            self.due = self.protocol.due();
            if self.due <= now {
                self.protocol.expire(now, &mut scratch.output);
                self.due = self.protocol.due();
                state = self.protocol.state();
            }
        }
        self.is_behind = state == State::Behind;
        if let State::Over(Ending { linger, is_clean }) = state {
            self.due = now + linger;
            self.phase = Phase::Over { until: self.due, is_clean };
        }
        state
    }

    /// Goes on with the next protocol.
    fn turn(&mut self, now: Time, scratch: &mut Scratch) {
        if let Some(Next::Protocol { protocol, waker, mut first }) = self.protocol.next() {
            self.protocol = protocol;
            self.due = Time::ZERO;
            let Scratch { output, budget, .. } = scratch;
            self.protocol.open(waker, now, &mut first, output, budget);
        }
    }

    /// The stream, and what somebody else does with it.
    pub(super) fn leave(mut self) -> (S, Option<Next>) {
        (self.stream, self.protocol.next())
    }

    /// The peer sends nothing more. What it asked for is answered yet.
    fn exhausted(&mut self) -> Verdict {
        if self.phase != Phase::Open {
            return Verdict::Drop;
        }
        self.is_exhausted = true;
        Verdict::Keep
    }

    /// The stream ended or failed.
    pub(super) fn lost(&mut self, lost: Lost) -> Verdict {
        if self.phase == Phase::Open {
            self.protocol.lost(lost);
        }
        Verdict::Drop
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

#[cfg(test)]
mod tests;
