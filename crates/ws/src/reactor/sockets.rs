//! The sockets of a thread, and the order in which they are served.
//!
//! A socket is queued at most once, however much work it has, and queues are served in order. A turn has one share of
//! time for the sockets with new events, one for those that were woken, and one for those that did not finish in an
//! earlier slice. No socket therefore waits for all the work of another.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anemone_proto::{CloseFrame, Time};
use slab::Slab;

use super::SendWaker;
use super::budget::{FIRST_SLICE, SLICE};
use super::protocol::{Protocol, Successor};
use super::release::LoopRelease;
use super::scratch::Scratch;
use super::socket::{Readiness, Socket, Verdict};
use super::stream::NonBlocking;
use super::survey::{ConnectionId, LoopFigures, SurveyedConnection, look_through};
use super::timers::Timers;
use super::waker::{Token, WakeQueue};
use crate::Memory;

pub(super) struct Sockets<S> {
    table: Slab<Socket<S>>,
    generation: u32,
    memory: Memory,
    scratch: Scratch,
    timers: Timers,
    /// Sockets with new events.
    told: VecDeque<Token>,
    woken: VecDeque<Token>,
    /// Sockets that may have more to read than their last slice took. epoll reports only new events.
    waiting: VecDeque<Token>,
    /// True if more timers are due than there was time for.
    is_late: bool,
    gone: Vec<Gone<S>>,
}

/// A socket that has left the loop.
pub(super) enum Gone<S> {
    Ended,
    /// The stream continues elsewhere.
    Left(S, Option<Successor>),
}

impl<S: NonBlocking> Sockets<S> {
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

    pub(super) fn begin_turn(&mut self) -> Instant {
        self.scratch.budget.begin_turn();
        self.scratch.budget.begin_share();
        self.scratch.budget.read_at()
    }

    /// Returns the last reading of the clock.
    pub(super) fn read_at(&self) -> Instant {
        self.scratch.budget.read_at()
    }

    pub(super) fn next_key(&self) -> usize {
        self.table.vacant_key()
    }

    /// Adds a socket and opens its protocol. `first` are the bytes that came with the handshake.
    pub(super) fn open(
        &mut self,
        stream: S,
        protocol: Box<dyn Protocol>,
        waker: impl FnOnce(Token) -> SendWaker,
        now: Time,
        first: &mut [u8],
    ) {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let held = self.memory.reservation();
        let key = self.table.insert(Socket::new(stream, protocol, generation, held, now));
        let token = Token { key: key as u32, generation };
        let waker = waker(token);
        self.serve(key, FIRST_SLICE, |socket, scratch| socket.open(waker, now, first, scratch));
    }

    /// Queues a socket for its events from epoll.
    pub(super) fn notify(&mut self, key: usize, ready: Readiness) {
        let Some(socket) = self.table.get_mut(key) else { return };
        let is_new = !socket.notes.is_noted;
        socket.notes.add(ready);
        if is_new {
            self.told.push_back(Token { key: key as u32, generation: socket.generation() });
        }
    }

    /// Returns true if there is work left that no event will announce.
    pub(super) fn have_work(&self) -> bool {
        let queues = [&self.told, &self.woken, &self.waiting];
        self.is_late || queues.iter().any(|queue| !queue.is_empty())
    }

    /// Serves the sockets with new events, then those that were woken, then those that have waited, each as far as
    /// its share of the turn allows.
    pub(super) fn turn(&mut self, now: Time, wakes: &WakeQueue) {
        while let Some(token) = self.next_told() {
            self.serve_noted(token, FIRST_SLICE, now);
        }
        self.scratch.budget.begin_share();
        while let Some(token) = self.next_woken(wakes) {
            let Some(socket) = self.get_mut(token) else { continue };
            socket.notes.is_woken = false;
            let key = token.key as usize;
            self.serve(key, FIRST_SLICE, |socket, scratch| socket.ready(now, scratch));
        }
        self.scratch.budget.begin_share();
        // A socket that is queued again waits for the next turn.
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

    /// Returns the next socket that was woken. Sockets that are woken again meanwhile follow in the same turn, so
    /// that readers keep up with senders.
    fn next_woken(&mut self, wakes: &WakeQueue) -> Option<Token> {
        if self.scratch.budget.is_share_over() {
            return None;
        }
        if self.woken.is_empty() {
            for token in wakes.take() {
                if let Some(socket) = self.get_mut(token)
                    && !std::mem::replace(&mut socket.notes.is_woken, true)
                {
                    self.woken.push_back(token);
                }
            }
        }
        self.woken.pop_front()
    }

    /// Returns true if the rest of the work has to wait for the next turn.
    pub(super) fn is_turn_over(&self) -> bool {
        self.scratch.budget.is_share_over()
    }

    pub(super) fn shutdown(&mut self, now: Time, frame: &CloseFrame) {
        let keys: Vec<usize> = self.table.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.serve(key, FIRST_SLICE, |socket, scratch| socket.close(now, frame, scratch));
        }
    }

    /// Ends the connections that must release memory.
    pub(super) fn relieve(&mut self, release: LoopRelease, now: Time) {
        let sockets = self.table.iter().filter(|(_, socket)| socket.is_affected(release));
        let keys: Vec<usize> = sockets.map(|(key, _)| key).collect();
        for key in keys {
            self.serve(key, FIRST_SLICE, |socket, scratch| socket.let_go(release, now, scratch));
        }
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Handles the timers that are due.
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

    pub(super) fn figures(&mut self) -> &mut LoopFigures {
        &mut self.scratch.figures
    }

    pub(super) fn told_figures(&self) -> LoopFigures {
        let waiting = self.told.len() + self.woken.len() + self.waiting.len();
        LoopFigures { waiting, ..self.scratch.figures }
    }

    /// Describes at most `most` sockets from a key on. Returns the next key, unless that was all.
    pub(super) fn describe(
        &self,
        from: u32,
        most: usize,
        now: Time,
        found: &mut Vec<SurveyedConnection>,
    ) -> Option<u32> {
        look_through(from, most, self.table.capacity(), |key| {
            let socket = self.table.get(key as usize)?;
            let id = ConnectionId::of_loop(Token { key, generation: socket.generation() });
            found.push(socket.describe(id, now));
            Some(())
        })
    }

    pub(super) fn take_gone(&mut self) -> Vec<Gone<S>> {
        std::mem::take(&mut self.gone)
    }

    fn get_mut(&mut self, token: Token) -> Option<&mut Socket<S>> {
        let socket = self.table.get_mut(token.key as usize);
        socket.filter(|socket| socket.generation() == token.generation)
    }

    fn serve_noted(&mut self, token: Token, slice: Duration, now: Time) {
        let Some(socket) = self.get_mut(token) else { return };
        let ready = socket.notes.take_told();
        self.serve(token.key as usize, slice, |socket, scratch| {
            let mut verdict = socket.event(ready, now, scratch);
            // A larger read would bring input that does not fit the slice and must be kept.
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
        let verdict = work(socket, &mut self.scratch);
        // Only the clock can tell how long that took.
        self.scratch.budget.read_clock();
        match verdict {
            Verdict::Drop => {
                // epoll removes a closed descriptor by itself.
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
                socket.notes.add(Readiness { read: true, ..Readiness::default() });
                if is_new {
                    let generation = socket.generation();
                    self.waiting.push_back(Token { key: key as u32, generation });
                }
            }
            Verdict::Keep => {}
        }
        // A due time that has moved later is corrected when the entry comes up.
        let due = socket.due();
        if due < socket.timer_at {
            socket.timer_at = due;
            self.timers.insert(due, key as u32);
        }
    }
}

#[cfg(test)]
mod tests;
