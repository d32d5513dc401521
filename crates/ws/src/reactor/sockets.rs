//! The sockets of a thread, and who is served when.
//!
//! Each socket is noted once, whatever there is to do for it, and served in the order of the notes. A turn has
//! a share of time for those of whom something is new, one for those who were woken, and one for those who have
//! had a slice and were not done with what came: so nobody waits for all that another has to do.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anemone_proto::{CloseFrame, Time};
use slab::Slab;

use super::Waker;
use super::budget::{FIRST_SLICE, SLICE};
use super::concerned::Concerned;
use super::protocol::{Next, Protocol};
use super::scratch::Scratch;
use super::socket::{Readiness, Socket, Verdict};
use super::stream::Stream;
use super::timers::Timers;
use super::waker::{Bell, Token};
use crate::Memory;

/// All sockets, and the notes of what there is to do for them.
pub(super) struct Sockets<S> {
    table: Slab<Socket<S>>,
    generation: u32,
    /// The memory in which counts what they hold for their peers.
    memory: Memory,
    scratch: Scratch,
    timers: Timers,
    /// There is news of these.
    told: VecDeque<Token>,
    woken: VecDeque<Token>,
    /// These may have more to read than their last slice took: epoll tells only of what is new.
    waiting: VecDeque<Token>,
    /// More are due than there was time for.
    is_late: bool,
    gone: Vec<Gone<S>>,
}

/// A socket that is no longer here.
pub(super) enum Gone<S> {
    Ended,
    /// Somebody else takes it.
    Left(S, Option<Next>),
}

impl<S: Stream> Sockets<S> {
    pub(super) fn new(scratch: Scratch, memory: Memory) -> Self {
        Self {
            table: Slab::new(),
            generation: 0,
            memory,
            scratch,
            timers: Timers::default(),
            told: VecDeque::new(),
            woken: VecDeque::new(),
            waiting: VecDeque::new(),
            is_late: false,
            gone: Vec::new(),
        }
    }

    /// Begins a turn.
    pub(super) fn begin_turn(&mut self) -> Instant {
        self.scratch.budget.begin_turn();
        self.scratch.budget.begin_share();
        self.scratch.budget.read_at()
    }

    /// The last reading of the clock.
    pub(super) fn read_at(&self) -> Instant {
        self.scratch.budget.read_at()
    }

    /// The key of the next one that comes.
    pub(super) fn next_key(&self) -> usize {
        self.table.vacant_key()
    }

    /// Takes one in and opens it. `first` came with the handshake.
    pub(super) fn open(
        &mut self,
        stream: S,
        protocol: Box<dyn Protocol>,
        waker: impl FnOnce(Token) -> Waker,
        now: Time,
        first: &mut [u8],
    ) {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let key = self.table.insert(Socket::new(stream, protocol, generation, self.memory.share()));
        let token = Token { key: key as u32, generation };
        let waker = waker(token);
        self.serve(key, FIRST_SLICE, |socket, scratch| socket.open(waker, now, first, scratch));
    }

    /// Notes what epoll told of a socket.
    pub(super) fn tell(&mut self, key: usize, ready: Readiness) {
        let Some(socket) = self.table.get_mut(key) else { return };
        let is_new = !socket.notes.is_noted;
        socket.notes.told(ready);
        if is_new {
            self.told.push_back(Token { key: key as u32, generation: socket.generation() });
        }
    }

    /// Whether there is something to do that nobody will tell of.
    pub(super) fn have_work(&self) -> bool {
        let queues = [&self.told, &self.woken, &self.waiting];
        self.is_late || queues.iter().any(|queue| !queue.is_empty())
    }

    /// Serves each of whom something is new, then those who were woken, then those who have waited, as far as
    /// their shares of the turn go.
    pub(super) fn turn(&mut self, now: Time, bell: &Bell) {
        while let Some(token) = self.next_told() {
            self.serve_noted(token, FIRST_SLICE, now);
        }
        self.scratch.budget.begin_share();
        while let Some(token) = self.next_woken(bell) {
            let Some(socket) = self.get_mut(token) else { continue };
            socket.notes.is_woken = false;
            let key = token.key as usize;
            self.serve(key, FIRST_SLICE, |socket, scratch| socket.ready(now, scratch));
        }
        self.scratch.budget.begin_share();
        // A socket that waits again waits for the next turn.
        for _ in 0..self.waiting.len() {
            if self.scratch.budget.is_share_over() {
                break;
            }
            if let Some(token) = self.waiting.pop_front() {
                self.serve_noted(token, SLICE, now);
            }
        }
        self.scratch.budget.begin_share();
    }

    fn next_told(&mut self) -> Option<Token> {
        if self.scratch.budget.is_share_over() { None } else { self.told.pop_front() }
    }

    /// Lets those send who were woken, again while they have more, so that who reads keeps up with
    /// who sends.
    fn next_woken(&mut self, bell: &Bell) -> Option<Token> {
        if self.scratch.budget.is_share_over() {
            return None;
        }
        if self.woken.is_empty() {
            for token in bell.take() {
                if let Some(socket) = self.get_mut(token)
                    && !std::mem::replace(&mut socket.notes.is_woken, true)
                {
                    self.woken.push_back(token);
                }
            }
        }
        self.woken.pop_front()
    }

    /// Whether the rest of this turn's work is for the next.
    pub(super) fn is_turn_over(&self) -> bool {
        self.scratch.budget.is_share_over()
    }

    /// Says the last to all.
    pub(super) fn farewell(&mut self, now: Time, frame: &CloseFrame) {
        let keys: Vec<usize> = self.table.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.serve(key, FIRST_SLICE, |socket, scratch| socket.close(now, frame, scratch));
        }
    }

    /// Ends those whom it concerns.
    pub(super) fn relieve(&mut self, concerned: Concerned, now: Time) {
        let sockets = self.table.iter().filter(|(_, socket)| socket.is_concerned(concerned));
        let keys: Vec<usize> = sockets.map(|(key, _)| key).collect();
        for key in keys {
            self.serve(key, FIRST_SLICE, |socket, scratch| socket.let_go(concerned, now, scratch));
        }
    }

    /// The time at which the next is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Time) {
        self.is_late = false;
        while let Some((timer_at, key)) = self.timers.pop_due(now) {
            let key = key as usize;
            match self.table.get_mut(key) {
                Some(socket) if socket.timer_at == timer_at => socket.timer_at = Time::MAX,
                _ => continue,
            }
            self.serve(key, FIRST_SLICE, |socket, scratch| socket.expire(now, scratch));
            if self.scratch.budget.is_share_over() {
                self.is_late = true;
                break;
            }
        }
    }

    /// Those who are no longer here.
    pub(super) fn take_gone(&mut self) -> Vec<Gone<S>> {
        std::mem::take(&mut self.gone)
    }

    fn get_mut(&mut self, token: Token) -> Option<&mut Socket<S>> {
        let socket = self.table.get_mut(token.key as usize);
        socket.filter(|socket| socket.generation() == token.generation)
    }

    /// Does what was noted.
    fn serve_noted(&mut self, token: Token, slice: Duration, now: Time) {
        let Some(socket) = self.get_mut(token) else { return };
        let ready = socket.notes.take_told();
        self.serve(token.key as usize, slice, |socket, scratch| {
            let mut verdict = socket.event(ready, now, scratch);
            // The rest of a read that does not fit the slice would have to be kept.
            while verdict == Verdict::ReadAgain && scratch.budget.slice_eighths() < 4 {
                verdict = socket.readable(now, scratch);
            }
            verdict
        });
    }

    fn serve(
        &mut self,
        key: usize,
        slice: Duration,
        work: impl FnOnce(&mut Socket<S>, &mut Scratch) -> Verdict,
    ) {
        let Some(socket) = self.table.get_mut(key) else { return };
        self.scratch.budget.begin_slice(slice);
        match work(socket, &mut self.scratch) {
            Verdict::Drop => {
                // The set forgets a closed descriptor by itself.
                self.table.remove(key);
                self.gone.push(Gone::Ended);
                return;
            }
            Verdict::Leave => {
                let (stream, next) = self.table.remove(key).leave();
                self.gone.push(Gone::Left(stream, next));
                return;
            }
            Verdict::ReadAgain => {
                let is_new = !socket.notes.is_noted;
                socket.notes.told(Readiness { read: true, ..Readiness::default() });
                if is_new {
                    let generation = socket.generation();
                    self.waiting.push_back(Token { key: key as u32, generation });
                }
            }
            Verdict::Keep => {}
        }
        // A due time that moved later is found out when the entry comes up.
        let due = socket.due();
        if due < socket.timer_at {
            socket.timer_at = due;
            self.timers.insert(due, key as u32);
        }
    }
}

#[cfg(test)]
mod tests;
