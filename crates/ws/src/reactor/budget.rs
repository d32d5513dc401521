//! Limits the work that a socket does before others have their turn, in messages and in time.
//!
//! A slice belongs to one socket. A share belongs to all sockets of one queue. Reading the clock costs as much as
//! handling a small message, so the budget reads it once for some dozens of messages, or every ten microseconds. Work is
//! charged by what it has cost: the clock is read after each socket, and after each message whose handler says that it
//! [has worked](super::Handler::has_worked).

use std::time::{Duration, Instant};

/// The first slice of a socket with new events. It is short, so a socket with little to do does not wait long behind
/// many busy ones.
pub(super) const FIRST_SLICE: Duration = Duration::from_micros(100);
/// Each later slice of a socket with work left. It is longer, because switching sockets and writing output takes as
/// long as some hundreds of small messages.
pub(super) const SLICE: Duration = Duration::from_micros(400);
/// A slice ends after this many units, however fast they are done. A message is one unit plus one for each
/// [`UNIT_BYTES`].
pub(super) const SLICE_UNITS: u32 = 1 << 15;
const UNIT_BYTES: usize = 256;
/// The time in a turn for all sockets of one queue together. The last slice may exceed it.
const SHARE: Duration = Duration::from_micros(200);

/// The clock is read after this many units at first, then more or less often, depending on the time that passed.
const UNITS: u32 = 64;
const UNITS_LEAST: u32 = 8;
pub(super) const UNITS_MOST: u32 = 512;
const READ_AFTER: Duration = Duration::from_micros(10);

/// The remainder of a slice and of a share.
#[derive(Debug)]
pub(super) struct Budget {
    clock: fn() -> Instant,
    /// The last reading of the clock, the units done since then, and the units after which the next reading is due.
    read_at: Instant,
    units: u32,
    units_max: u32,
    share_from: Instant,
    slice_from: Instant,
    slice: Duration,
    slice_units: u32,
    is_slice_over: bool,
}

impl Budget {
    pub(super) fn new(clock: fn() -> Instant) -> Self {
        let now = clock();
        Self {
            clock,
            read_at: now,
            units: 0,
            units_max: UNITS,
            share_from: now,
            slice_from: now,
            slice: SLICE,
            slice_units: 0,
            is_slice_over: false,
        }
    }

    pub(super) fn begin_turn(&mut self) {
        self.read_clock();
    }

    pub(super) fn begin_share(&mut self) {
        self.share_from = self.read_at;
    }

    pub(super) fn begin_slice(&mut self, slice: Duration) {
        self.units_max = UNITS;
        self.slice_from = self.read_at;
        self.slice = slice;
        self.slice_units = 0;
        self.is_slice_over = false;
    }

    pub(super) fn spend(&mut self, bytes: usize) {
        self.spend_units(Self::units(bytes));
    }

    /// Returns the units of a message of `bytes` bytes.
    #[inline]
    pub(super) fn units(bytes: usize) -> usize {
        1 + bytes / UNIT_BYTES
    }

    /// Returns the units until the next reading of the clock. A caller that handles many small messages counts them
    /// itself and reports them together, before this many.
    pub(super) fn units_left(&self) -> usize {
        (self.units_max - self.units) as usize
    }

    pub(super) fn spend_units(&mut self, units: usize) {
        self.add(units.min(SLICE_UNITS as usize) as u32);
    }

    #[inline(never)]
    pub(super) fn read_clock(&mut self) {
        let before = std::mem::replace(&mut self.read_at, (self.clock)());
        self.slice_units += self.units;
        self.units = 0;
        let is_early = self.read_at - before < READ_AFTER;
        let units_max = if is_early { self.units_max * 2 } else { self.units_max / 2 };
        self.units_max = units_max.clamp(UNITS_LEAST, UNITS_MOST);
        let has_no_time = self.read_at - self.slice_from >= self.slice;
        self.is_slice_over |= has_no_time || self.slice_units >= SLICE_UNITS;
    }

    /// Returns true if the socket has to wait for its next slice.
    #[inline]
    pub(super) fn is_slice_over(&self) -> bool {
        self.is_slice_over
    }

    /// Returns the used part of the slice in eighths: of its time or of its units, whichever is more.
    pub(super) fn slice_eighths(&self) -> u32 {
        let time = (self.read_at - self.slice_from).as_nanos() * 8 / self.slice.as_nanos().max(1);
        let units = (self.slice_units + self.units) * 8 / SLICE_UNITS;
        if self.is_slice_over { 8 } else { (time as u32).max(units).min(8) }
    }

    /// Returns true if the sockets of this queue have to wait for the next turn.
    pub(super) fn is_share_over(&self) -> bool {
        self.read_at - self.share_from >= SHARE
    }

    /// The last reading of the clock.
    pub(super) fn read_at(&self) -> Instant {
        self.read_at
    }

    fn add(&mut self, units: u32) {
        self.units += units;
        if self.units >= self.units_max {
            self.read_clock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::LazyLock;

    use super::*;

    thread_local! {
        static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
        static READINGS: Cell<usize> = const { Cell::new(0) };
    }

    /// A clock that stands still until a test sets it.
    fn clock() -> Instant {
        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        READINGS.set(READINGS.get() + 1);
        *BEGIN + PASSED.get()
    }

    /// The number of messages of so many bytes in a slice, each of which takes so long.
    fn messages(bytes: usize, each: Duration) -> u32 {
        let mut budget = Budget::new(clock);
        budget.begin_turn();
        budget.begin_slice(SLICE);
        let mut messages = 0;
        while !budget.is_slice_over() {
            PASSED.set(PASSED.get() + each);
            budget.spend(bytes);
            messages += 1;
        }
        messages
    }

    #[test]
    fn a_slice_ends_after_so_many_messages_or_bytes_of_them() {
        let small = messages(0, Duration::ZERO);
        assert!((SLICE_UNITS - UNITS..=SLICE_UNITS + UNITS_MOST).contains(&small), "{small}");
        assert!(messages(1 << 20, Duration::ZERO) <= 9);
        assert_eq!(messages(8 << 20, Duration::ZERO), 1);
    }

    #[test]
    fn a_slice_of_slow_messages_ends_in_time() {
        // Time is looked at after some dozens of messages, so it may pass by as much as they take.
        let quick = messages(10, Duration::from_micros(1));
        assert!((400..=400 + UNITS).contains(&quick), "{quick}");
        let slow = messages(10, Duration::from_micros(20));
        assert!((20..=20 + UNITS).contains(&slow), "{slow}");
    }

    #[test]
    fn the_clock_is_read_once_for_dozens_of_small_messages() {
        READINGS.set(0);
        let messages = messages(125, Duration::ZERO) as usize;
        let readings = READINGS.get();
        assert!(readings <= messages / 400, "{readings} readings for {messages} messages");
    }

    #[test]
    fn a_slice_begins_anew_and_a_share_goes_on() {
        let mut budget = Budget::new(clock);
        budget.begin_turn();
        budget.begin_share();
        let mut slices = 0;
        while !budget.is_share_over() {
            budget.begin_slice(FIRST_SLICE);
            assert!(!budget.is_slice_over());
            PASSED.set(PASSED.get() + FIRST_SLICE);
            budget.read_clock();
            assert!(budget.is_slice_over());
            slices += 1;
        }
        assert_eq!(slices, 2);
    }
}
