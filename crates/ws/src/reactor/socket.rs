//! One socket and its part of a turn.

use std::io::{self, ErrorKind};
use std::time::Duration;

use anemone_proto::{CloseFrame, Time};

use super::SendWaker;
use super::pending::PendingOutput;
use super::protocol::{Ending, Protocol, State, Successor};
use super::release::LoopRelease;
use super::scratch::Scratch;
use super::stream::{Appended, NonBlocking};
use super::survey::{ConnectionId, SurveyedConnection};
use crate::{Lost, Reservation};

/// A socket in the loop, or a stream in place of one.
pub(super) struct Socket<S> {
    stream: S,
    protocol: Box<dyn Protocol>,
    /// Output that the stream did not take.
    pending: PendingOutput,
    phase: Phase,
    generation: u32,
    /// The time when it came, in seconds, so that an idle connection takes no more memory for it.
    since_secs: u32,
    /// True once the peer has ended its side. epoll reports that once, maybe long before all input was read.
    is_ended: bool,
    /// True once all input was read, up to its end.
    is_exhausted: bool,
    /// True once the connection is reported as lost. After the end of the input, no read says so (tcp(7)).
    is_lost: bool,
    /// True while the protocol has input left. Nothing is read until that is consumed.
    is_behind: bool,
    read_bytes: ReadBytes,
    /// The memory held for the peer, and the time since when there has been some.
    held: Reservation,
    held_since: Time,
    received_bytes: u64,
    /// The bytes of output, written or pending.
    output_bytes: u64,
    /// The time of the next [`expire`](Self::expire), as of the end of the last turn.
    due: Time,
    pub(super) notes: Notes,
    /// The time of this socket's valid entry among the timers.
    pub(super) timer_at: Time,
}

/// The pending work of a socket, and its places in the queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notes {
    /// True while the socket is in the queue of those with events.
    pub(super) is_noted: bool,
    told: Readiness,
    /// True while the socket is in the queue of those that were woken.
    pub(super) is_woken: bool,
}

impl Notes {
    /// Adds events to be served when the socket's place in the queue comes up.
    pub(super) fn add(&mut self, ready: Readiness) {
        self.is_noted = true;
        self.told.read |= ready.read;
        self.told.end |= ready.end;
        self.told.write |= ready.write;
        self.told.lost |= ready.lost;
    }

    /// Takes the events when the socket's place in the queue comes up.
    pub(super) fn take_told(&mut self) -> Readiness {
        self.is_noted = false;
        std::mem::take(&mut self.told)
    }
}

/// The size of a socket's next read: nearly as much as fits a slice. Input beyond the slice must be kept, and each
/// read causes a write, so neither more nor less is good.
#[derive(Clone, Copy, Debug)]
struct ReadBytes(u32);

impl ReadBytes {
    const FIRST: Self = Self(32 << 10);
    const LEAST: usize = 4 << 10;

    fn get(self) -> usize {
        self.0 as usize
    }

    /// Returns the next size after a read of `len` bytes of which `consumed` took `slice_eighths` of the slice.
    fn after(self, consumed: usize, len: usize, slice_eighths: u32) -> Self {
        let next = match slice_eighths {
            _ if consumed < len => consumed.max(len / 4) / 8 * 7,
            ..4 => 2 * self.get(),
            4..6 => self.get() / 8 * 9,
            _ => self.get(),
        };
        Self(next.clamp(Self::LEAST, Scratch::INPUT_BYTES) as u32)
    }
}

fn secs(time: Time) -> u32 {
    u32::try_from(time.as_millis() / 1000).unwrap_or(u32::MAX)
}

/// The events of epoll for a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Readiness {
    pub(super) read: bool,
    /// The peer has ended its side, or the connection is lost.
    pub(super) end: bool,
    pub(super) write: bool,
    pub(super) lost: bool,
}

/// The progress of ending the stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Open,
    /// The protocol is over; pending output is written until this time.
    Over {
        until: Time,
        is_clean: bool,
    },
    /// Our side of the stream has ended; the peer has until this time to end its own.
    Lingering(Time),
}

/// The change in the memory of a socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Growth {
    Fine,
    /// The socket holds more, and the process holds too much.
    TooMuch,
}

/// The result of serving a socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// The socket waits for the next event.
    Keep,
    ReadAgain,
    Leave,
    /// The connection is over.
    Drop,
}

impl<S: NonBlocking> Socket<S> {
    pub(super) fn new(
        stream: S,
        protocol: Box<dyn Protocol>,
        generation: u32,
        held: Reservation,
        now: Time,
    ) -> Self {
        Self {
            stream,
            protocol,
            pending: PendingOutput::default(),
            phase: Phase::Open,
            generation,
            since_secs: secs(now),
            is_ended: false,
            is_exhausted: false,
            is_lost: false,
            is_behind: false,
            read_bytes: ReadBytes::FIRST,
            held,
            held_since: Time::MAX,
            received_bytes: 0,
            output_bytes: 0,
            due: Time::ZERO,
            notes: Notes::default(),
            timer_at: Time::MAX,
        }
    }

    pub(super) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    pub(super) fn describe(&self, id: ConnectionId, now: Time) -> SurveyedConnection {
        SurveyedConnection {
            is_closing: self.phase != Phase::Open || self.protocol.state() == State::Closing,
            age: Duration::from_secs(secs(now).saturating_sub(self.since_secs).into()),
            queued_bytes: self.pending.len(),
            held_bytes: self.held.bytes(),
            received_bytes: self.received_bytes,
            sent_bytes: self.output_bytes - self.pending.len() as u64,
            peer: self.stream.peer(),
            ..self.protocol.describe(id)
        }
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns true if the socket takes input. While output is pending, it usually does not.
    pub(super) fn is_reading(&self) -> bool {
        self.pending.is_empty()
            || self.protocol.reads_on(self.pending.len()) && !self.held.memory().is_exceeded()
    }

    /// Returns true if there is work left that no event will announce.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind && self.is_reading()
    }

    /// Returns the time of the next [`expire`](Self::expire). It may be too early, but never too late.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Serves the first turn.
    pub(super) fn open(
        &mut self,
        waker: SendWaker,
        now: Time,
        first: &mut [u8],
        scratch: &mut Scratch,
    ) -> Verdict {
        let Scratch { output, budget, .. } = scratch;
        self.received_bytes = first.len() as u64;
        self.protocol.open(waker, now, first, output, budget);
        self.finish(now, scratch, Verdict::Keep)
    }

    pub(super) fn event(&mut self, ready: Readiness, now: Time, scratch: &mut Scratch) -> Verdict {
        let mut verdict = Verdict::Keep;
        if ready.write && !self.pending.is_empty() {
            verdict = self.writable(now, scratch);
        }
        self.is_ended |= ready.end;
        self.is_lost |= ready.lost;
        if (ready.read || ready.end) && !matches!(verdict, Verdict::Drop | Verdict::Leave) {
            verdict = self.readable(now, scratch);
        }
        verdict
    }

    /// Reads once and handles the input, unless output is pending.
    pub(super) fn readable(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if !self.is_reading() {
            return Verdict::Keep; // is read after the output has drained
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
        let input = &mut input[..self.read_bytes.get()];
        let read = self.stream.read(input);
        let received = *read.as_ref().unwrap_or(&0);
        let verdict = match read {
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
            Err(error) => self.on_lost(error.into()),
        };
        self.received_bytes += received as u64;
        scratch.figures.received_bytes += received as u64;
        self.finish(now, scratch, verdict)
    }

    /// Handles bytes that were appended to a large frame.
    fn appended(
        &mut self,
        begin: usize,
        read: io::Result<Appended>,
        now: Time,
        scratch: &mut Scratch,
    ) -> Verdict {
        let verdict = match read {
            Ok(Appended { len: 0, .. }) => self.exhausted(),
            Ok(Appended { len, may_have_more, beyond }) => {
                let Scratch { output, budget, figures, .. } = scratch;
                self.received_bytes += len as u64;
                figures.received_bytes += len as u64;
                self.protocol.rest_received(now, begin, output, budget);
                if let Some(mut beyond) = beyond {
                    self.protocol.receive(now, &mut beyond, output, budget);
                }
                if may_have_more || self.is_ended { Verdict::ReadAgain } else { Verdict::Keep }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Verdict::Keep,
            Err(error) if error.kind() == ErrorKind::Interrupted => Verdict::ReadAgain,
            Err(error) => self.on_lost(error.into()),
        };
        self.finish(now, scratch, verdict)
    }

    /// Writes pending output. After the last of it, the protocol may send and the socket is read again.
    pub(super) fn writable(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if self.pending.is_empty() {
            return Verdict::Keep;
        }
        match self.pending.write_on(&mut self.stream) {
            Ok(0) => return Verdict::Keep,
            Ok(_) if self.phase == Phase::Open => self.protocol.progressed(now),
            Ok(_) => {}
            Err(error) => return self.on_lost(error.into()),
        }
        if !self.pending.is_empty() {
            return Verdict::Keep;
        }
        match self.ready(now, scratch) {
            Verdict::Keep => Verdict::ReadAgain,
            verdict => verdict,
        }
    }

    /// Lets the protocol send, unless output is pending.
    pub(super) fn ready(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if self.pending.is_empty() && self.phase == Phase::Open {
            self.protocol.ready(now, &mut scratch.output);
        }
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Begins the closing handshake, unless it has begun.
    pub(super) fn close(
        &mut self,
        now: Time,
        frame: &CloseFrame,
        scratch: &mut Scratch,
    ) -> Verdict {
        if self.phase == Phase::Open {
            let is_busy = !self.pending.is_empty() || self.notes.is_noted;
            self.protocol.close(frame, is_busy, &mut scratch.output);
        }
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Handles timeouts that are due.
    pub(super) fn expire(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        // The system tells of room once a third of its buffer is free. A slow reader may need longer for that.
        let written = self.writable(now, scratch);
        match self.phase {
            _ if written != Verdict::Keep => written,
            Phase::Over { until, .. } | Phase::Lingering(until) if now >= until => Verdict::Drop,
            _ => self.finish(now, scratch, Verdict::Keep),
        }
    }

    /// Ends a turn: handles timeouts, writes queued output, and determines whether the connection is over.
    fn finish(&mut self, now: Time, scratch: &mut Scratch, mut verdict: Verdict) -> Verdict {
        // It leaves once all output is written.
        let is_leaving = self.phase == Phase::Open && self.attend(now, scratch) == State::Leaving;
        let is_done = self.is_exhausted
            && !is_leaving
            && self.phase == Phase::Open
            && self.pending.is_empty()
            && !self.protocol.on_peer_end(&mut scratch.output);
        if let Some(output) = scratch.output.as_ref().filter(|output| !output.is_empty()) {
            if verdict != Verdict::Drop
                && let Err(error) = self.pending.write(&mut self.stream, output, scratch.input())
            {
                verdict = self.on_lost(error.into());
            }
            self.output_bytes += output.len() as u64;
            scratch.figures.sent_bytes += output.len() as u64;
            scratch.clear_output();
        }
        if verdict != Verdict::Drop && self.count(now) == Growth::TooMuch {
            return self.abandon(now, scratch);
        }
        match self.phase {
            _ if verdict == Verdict::Drop => verdict,
            Phase::Open if is_leaving && self.pending.is_empty() => Verdict::Leave,
            Phase::Open if self.is_lost && self.is_exhausted => {
                self.on_lost(io::Error::from(ErrorKind::ConnectionReset).into())
            }
            Phase::Open if is_done && self.pending.is_empty() => self.on_lost(Lost::Ended),
            Phase::Over { until, is_clean } if self.pending.is_empty() => self.end(until, is_clean),
            Phase::Open if self.is_behind() => Verdict::ReadAgain,
            _ => verdict,
        }
    }

    fn count(&mut self, now: Time) -> Growth {
        let of_protocol = if self.phase == Phase::Open { self.protocol.held_bytes() } else { 0 };
        let (before, bytes) = (self.held.bytes(), self.pending.capacity() + of_protocol);
        if bytes == before {
            return Growth::Fine;
        }
        if before == 0 {
            self.held_since = now;
        }
        self.held.set(bytes);
        // More bytes of the message could only be kept. Pending output does not grow meanwhile, because nothing is
        // read.
        let is_too_much = of_protocol > 0 && bytes > before && self.held.memory().is_exceeded();
        if is_too_much { Growth::TooMuch } else { Growth::Fine }
    }

    pub(super) fn is_affected(&self, release: LoopRelease) -> bool {
        match release {
            LoopRelease::Since(cutoff) => self.held.bytes() > 0 && self.held_since <= cutoff,
            LoopRelease::Open(least) => {
                self.phase == Phase::Open && self.protocol.open_bytes() >= least
            }
        }
    }

    /// Ends the connection if it is to release its memory.
    pub(super) fn let_go(
        &mut self,
        release: LoopRelease,
        now: Time,
        scratch: &mut Scratch,
    ) -> Verdict {
        // Other connections may have released enough meanwhile.
        if !self.is_affected(release) || !self.held.memory().wants_relief() {
            return Verdict::Keep;
        }
        if self.phase != Phase::Open || !self.pending.is_empty() {
            return self.on_lost(Lost::Overloaded); // the peer would not read a close frame
        }
        self.abandon(now, scratch)
    }

    fn abandon(&mut self, now: Time, scratch: &mut Scratch) -> Verdict {
        if !self.pending.is_empty() {
            return self.on_lost(Lost::Overloaded);
        }
        self.protocol.abandon(&mut scratch.output);
        self.finish(now, scratch, Verdict::Keep)
    }

    /// Handles timeouts that are due and returns the state of the protocol.
    fn attend(&mut self, now: Time, scratch: &mut Scratch) -> State {
        let mut state = self.protocol.state();
        if state == State::Switching {
            self.switch(now, scratch);
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

    /// Switches to the next protocol.
    fn switch(&mut self, now: Time, scratch: &mut Scratch) {
        if let Some(Successor::Protocol { protocol, waker, mut first }) = self.protocol.next() {
            self.protocol = protocol;
            self.due = Time::ZERO;
            let Scratch { output, budget, .. } = scratch;
            self.protocol.open(waker, now, &mut first, output, budget);
        }
    }

    /// Returns the stream and the function that takes it.
    pub(super) fn leave(mut self) -> (S, Option<Successor>) {
        (self.stream, self.protocol.next())
    }

    /// The peer sends nothing more. The protocol may still answer what it received.
    fn exhausted(&mut self) -> Verdict {
        if self.phase != Phase::Open {
            return Verdict::Drop;
        }
        self.is_exhausted = true;
        Verdict::Keep
    }

    /// The stream ended or failed.
    pub(super) fn on_lost(&mut self, lost: Lost) -> Verdict {
        if self.phase == Phase::Open {
            self.protocol.on_lost(lost);
        }
        Verdict::Drop
    }

    /// Ends our side of the stream, once the protocol is over and all output is written.
    fn end(&mut self, until: Time, is_clean: bool) -> Verdict {
        // The peer may still send, and closing a socket with unread input resets it: the peer could lose the last
        // bytes that we wrote.
        match self.stream.end(is_clean) {
            Ok(()) if !is_clean => {
                self.phase = Phase::Lingering(until);
                Verdict::Keep
            }
            // The next turn tries again, until the time is up.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Verdict::Keep,
            Ok(()) | Err(_) => Verdict::Drop,
        }
    }
}

#[cfg(test)]
mod tests;
