use std::cell::Cell;
use std::io::IoSlice;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anemone_proto::Output;

use super::super::budget::SLICE;
use super::super::opening::{FirstBytes, Opening};
use super::super::waker::Token;
use super::super::{StreamHandler, protocol};
use super::*;
use crate::Memory;

/// Has so many bytes for the reader, and then the end.
struct Script(usize);

impl NonBlocking for Script {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.0.min(bytes.len());
        self.0 -= len;
        Ok(len)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(slices.iter().map(|slice| slice.len()).sum())
    }

    fn end(&mut self, _is_last: bool) -> io::Result<()> {
        Ok(())
    }
}

struct Silent;

impl StreamHandler for Silent {
    fn on_bytes(&mut self, bytes: &[u8], _output: &mut Output) -> usize {
        bytes.len()
    }
}

#[test]
fn an_end_that_was_told_of_is_found_behind_any_number_of_bytes() {
    let ended = Readiness { read: true, end: true, ..Readiness::default() };
    for len in [0, 1, Scratch::INPUT_BYTES, Scratch::INPUT_BYTES + 1, 3 * Scratch::INPUT_BYTES + 1]
    {
        let mut scratch = Scratch::new(Instant::now);
        let protocol = protocol::StreamProtocol::boxed(Silent, Duration::from_secs(60), Time::ZERO);
        let mut socket =
            Socket::new(Script(len), protocol, 0, Memory::default().reservation(), Time::ZERO);
        // epoll reports it once; then the loop continues while there is more.
        let mut verdict = socket.event(ended, Time::ZERO, &mut scratch);
        let mut left = len.div_ceil(ReadBytes::LEAST) + 1;
        while left > 0 && verdict != Verdict::Drop {
            assert_eq!(verdict, Verdict::ReadAgain, "{len} bytes");
            verdict = socket.readable(Time::ZERO, &mut scratch);
            left -= 1;
        }
        assert_eq!((verdict, socket.stream.0), (Verdict::Drop, 0), "{len} bytes");
    }
}

#[test]
fn what_a_slice_leaves_counts_until_it_is_done_with() {
    thread_local! {
        static NOW: Cell<Instant> = Cell::new(Instant::now());
    }
    /// Takes a byte at a time, each for longer than a slice.
    struct Slow;

    impl StreamHandler for Slow {
        fn on_bytes(&mut self, bytes: &[u8], _output: &mut Output) -> usize {
            NOW.set(NOW.get() + SLICE);
            bytes.len()
        }

        fn receive_bytes_max(&self) -> usize {
            1
        }
    }

    const LEN: usize = 1000;
    let memory = Memory::new(1 << 20);
    let mut scratch = Scratch::new(|| NOW.get());
    let protocol = protocol::StreamProtocol::boxed(Slow, Duration::from_secs(60), Time::ZERO);
    let mut socket = Socket::new(Script(LEN), protocol, 0, memory.reservation(), Time::ZERO);
    scratch.budget.begin_slice(SLICE);
    assert_eq!(socket.readable(Time::ZERO, &mut scratch), Verdict::ReadAgain);
    assert_eq!(memory.held_bytes(), LEN - 1);
    for _ in 0..LEN - 1 {
        assert!(memory.held_bytes() > 0);
        scratch.budget.begin_slice(SLICE);
        socket.readable(Time::ZERO, &mut scratch);
    }
    assert_eq!(memory.held_bytes(), 0);
}

#[test]
fn what_decides_nothing_yet_counts_until_it_is_decided() {
    fn decide(first: &[u8]) -> Opening {
        if first.len() < 1 << 20 {
            Opening::more(usize::MAX, decide)
        } else {
            Opening::refuse(Vec::new())
        }
    }
    let memory = Memory::new(usize::MAX);
    let mut scratch = Scratch::new(Instant::now);
    let opening = FirstBytes::new(Box::new(decide), Time::ZERO, Duration::from_secs(60));
    let mut socket =
        Socket::new(Script(usize::MAX), Box::new(opening), 0, memory.reservation(), Time::ZERO);
    let waker = SendWaker::new(&Rc::default(), Token::default());
    socket.open(waker, Time::ZERO, &mut [], &mut scratch);
    let mut read = 0;
    while socket.protocol.held_bytes() > 0 || read == 0 {
        socket.readable(Time::ZERO, &mut scratch);
        read = usize::MAX - socket.stream.0;
        assert!(memory.held_bytes() >= read || read >= 1 << 20, "{read} bytes");
    }
    assert_eq!(memory.held_bytes(), 0);
}

thread_local! {
    static NOW: Cell<Instant> = Cell::new(Instant::now());
    static ANSWERED: Cell<usize> = const { Cell::new(0) };
}

const REPLY_BYTES: usize = 10_000;

/// Answers each byte at length, which takes so long.
fn answer(took: Duration) -> impl FnOnce(&[u8]) -> Opening {
    move |_| {
        NOW.set(NOW.get() + took);
        ANSWERED.set(ANSWERED.get() + 1);
        Opening::answered(1, vec![7; REPLY_BYTES], answer(took))
    }
}

/// Has so many requests of a byte. The reader takes so many bytes of the replies.
struct Asking {
    requests: usize,
    takes: usize,
}

impl NonBlocking for Asking {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.requests.min(bytes.len());
        self.requests -= len;
        if len == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(len) }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.takes.min(bytes.len());
        self.takes -= len;
        if len == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(len) }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(slices.first().map_or(&[], |slice| slice))
    }

    fn end(&mut self, _is_last: bool) -> io::Result<()> {
        Ok(())
    }
}

const TIMEOUT: Duration = Duration::from_secs(60);

fn asking(
    requests: usize,
    takes: usize,
    decide: super::super::opening::Decide,
) -> (Socket<Asking>, Scratch) {
    let mut scratch = Scratch::new(|| NOW.get());
    let opening = FirstBytes::new(decide, Time::ZERO, TIMEOUT);
    let held = Memory::default().reservation();
    let mut socket =
        Socket::new(Asking { requests, takes }, Box::new(opening), 0, held, Time::ZERO);
    let waker = SendWaker::new(&Rc::default(), Token::default());
    socket.open(waker, Time::ZERO, &mut [], &mut scratch);
    scratch.budget.begin_slice(SLICE);
    ANSWERED.set(0);
    (socket, scratch)
}

#[test]
fn requests_that_take_long_are_answered_one_in_a_slice() {
    let (mut socket, mut scratch) = asking(5, usize::MAX, Box::new(answer(SLICE)));
    for answered in 1..=5 {
        assert_eq!(socket.readable(Time::ZERO, &mut scratch), Verdict::ReadAgain);
        assert_eq!(ANSWERED.get(), answered, "the clock is read after each answer");
        scratch.budget.begin_slice(SLICE);
    }
    assert_eq!(socket.readable(Time::ZERO, &mut scratch), Verdict::Keep);
    assert_eq!(socket.protocol.held_bytes(), 0);
}

#[test]
fn a_peer_that_takes_no_reply_gets_no_more_than_64_kib_of_them() {
    let (mut socket, mut scratch) = asking(100, 0, Box::new(answer(Duration::ZERO)));
    let fitting = (64 << 10) / REPLY_BYTES + 1;
    for _ in 0..3 {
        socket.readable(Time::ZERO, &mut scratch);
        assert_eq!((ANSWERED.get(), socket.pending.len()), (fitting, fitting * REPLY_BYTES));
    }
    // It takes some, which is not all.
    socket.stream.takes = 1;
    assert_eq!(socket.writable(Time::ZERO, &mut scratch), Verdict::Keep);
    assert_eq!(ANSWERED.get(), fitting);
    socket.stream.takes = fitting * REPLY_BYTES - 1;
    assert_eq!(socket.writable(Time::ZERO, &mut scratch), Verdict::ReadAgain);
    socket.readable(Time::ZERO, &mut scratch);
    assert_eq!(ANSWERED.get(), 2 * fitting);
}

#[test]
fn the_time_of_an_opening_begins_anew_with_an_answer_and_when_the_peer_takes_a_part() {
    let at = |secs| Time::ZERO + Duration::from_secs(secs);
    let (mut socket, mut scratch) = asking(1, 1, Box::new(answer(Duration::ZERO)));
    socket.readable(at(50), &mut scratch);
    socket.stream.takes = 1;
    assert_eq!(socket.expire(at(100), &mut scratch), Verdict::Keep);
    assert_eq!(socket.expire(at(159), &mut scratch), Verdict::Keep);
    let is_over = |socket: &Socket<_>| matches!(socket.phase, Phase::Over { .. });
    assert!(!is_over(&socket));
    socket.expire(at(160), &mut scratch);
    assert!(is_over(&socket));
}

#[test]
fn replies_that_are_queued_when_the_loop_closes_are_written() {
    let frame = CloseFrame::new(anemone_proto::CloseCode::GOING_AWAY, "");
    let (mut socket, mut scratch) = asking(3, 1, Box::new(answer(Duration::ZERO)));
    socket.readable(Time::ZERO, &mut scratch);
    assert_eq!(socket.close(Time::ZERO, &frame, &mut scratch), Verdict::Keep);
    socket.stream.takes = usize::MAX;
    // Then the peer, which may still be sending, has time to read them.
    assert_eq!(socket.writable(Time::ZERO, &mut scratch), Verdict::ReadAgain);
    assert_eq!((ANSWERED.get(), socket.phase), (3, Phase::Lingering(Time::ZERO + TIMEOUT)));
    assert_eq!(socket.expire(Time::ZERO + TIMEOUT, &mut scratch), Verdict::Drop);

    let (mut socket, mut scratch) = asking(1, usize::MAX, Box::new(answer(Duration::ZERO)));
    socket.readable(Time::ZERO, &mut scratch);
    assert_eq!(socket.close(Time::ZERO, &frame, &mut scratch), Verdict::Drop, "it has all");
}

/// Answers a byte, and leaves the loop with the next.
fn answer_and_leave(_: &[u8]) -> Opening {
    Opening::answered(1, vec![7; REPLY_BYTES], |_| Opening::elsewhere(|_| {}))
}

#[test]
fn a_connection_leaves_the_loop_once_its_replies_are_written() {
    let (mut socket, mut scratch) = asking(2, usize::MAX, Box::new(answer_and_leave));
    assert_eq!(socket.readable(Time::ZERO, &mut scratch), Verdict::Leave);
    assert_eq!(socket.stream.takes, usize::MAX - REPLY_BYTES);

    let (mut socket, mut scratch) = asking(2, 1, Box::new(answer_and_leave));
    let ready = Readiness { read: true, write: true, ..Readiness::default() };
    assert_eq!(socket.readable(Time::ZERO, &mut scratch), Verdict::Keep);
    socket.stream.takes = usize::MAX;
    socket.stream.requests = 9;
    assert_eq!(socket.event(ready, Time::ZERO, &mut scratch), Verdict::Leave);
    assert_eq!(socket.stream.requests, 9, "the rest of its input is for others");

    // It stays to be closed if the loop closes all before.
    let (mut socket, mut scratch) = asking(2, 1, Box::new(answer_and_leave));
    socket.readable(Time::ZERO, &mut scratch);
    let frame = CloseFrame::new(anemone_proto::CloseCode::GOING_AWAY, "");
    socket.close(Time::ZERO, &frame, &mut scratch);
    socket.stream.takes = usize::MAX;
    assert_ne!(socket.writable(Time::ZERO, &mut scratch), Verdict::Leave);
    assert!(matches!(socket.phase, Phase::Lingering(_)));
}

#[test]
fn reads_grow_to_what_fits_a_slice_and_shrink_with_what_does_not() {
    let mut read = ReadBytes::FIRST;
    for _ in 0..8 {
        read = read.after(read.get(), read.get(), 1);
    }
    assert_eq!(read.get(), Scratch::INPUT_BYTES, "as much as there is room for");
    // Four fifths of it fit.
    let fitting = read.get() / 5 * 4;
    for _ in 0..8 {
        let eighths = (read.get() * 8 / fitting).min(8) as u32;
        read = read.after(read.get().min(fitting), read.get(), eighths);
    }
    assert!((fitting / 8 * 6..=fitting).contains(&read.get()), "{read:?} of {fitting}");
    for _ in 0..20 {
        read = read.after(0, read.get(), 8);
    }
    assert_eq!(read.get(), ReadBytes::LEAST);
}

/// Takes as many bytes as there is room for, but never becomes writable again: the system reports room when a third
/// of its buffer is free.
struct Crowded {
    room: usize,
}

impl NonBlocking for Crowded {
    fn read(&mut self, _bytes: &mut [u8]) -> io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.room.min(bytes.len());
        self.room -= len;
        Ok(len)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(slices.first().map_or(&[], |slice| slice))
    }

    fn end(&mut self, _is_last: bool) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_reader_is_kept_while_bytes_move_and_dropped_once_they_do_not() {
    /// Has many messages to send.
    struct Wordy;

    impl StreamHandler for Wordy {
        fn on_bytes(&mut self, bytes: &[u8], _output: &mut Output) -> usize {
            bytes.len()
        }

        fn on_ready(&mut self, output: &mut Output) {
            output.extend_from_slice(&[0; 1000]);
        }
    }

    const TIMEOUT: Duration = Duration::from_secs(30);
    let mut scratch = Scratch::new(Instant::now);
    let protocol = protocol::StreamProtocol::boxed(Wordy, TIMEOUT, Time::ZERO);
    let mut socket =
        Socket::new(Crowded { room: 0 }, protocol, 0, Memory::default().reservation(), Time::ZERO);
    assert_eq!(socket.ready(Time::ZERO, &mut scratch), Verdict::Keep);
    let mut now = Time::ZERO;
    for _ in 0..5 {
        now = now + TIMEOUT;
        socket.stream.room = 100;
        assert_eq!(socket.expire(now, &mut scratch), Verdict::Keep, "{now:?}");
        assert_eq!((socket.stream.room, socket.due()), (0, now + TIMEOUT));
    }
    now = now + TIMEOUT;
    socket.expire(now, &mut scratch);
    assert_eq!(socket.expire(now, &mut scratch), Verdict::Drop, "nothing moved");
}

#[test]
fn bytes_count_as_sent_once_the_stream_has_taken_them() {
    let told = |socket: &Socket<Asking>| {
        let told = socket.describe(ConnectionId::from_bits(0), Time::ZERO);
        (told.received_bytes, told.sent_bytes, told.queued_bytes)
    };
    let (mut socket, mut scratch) = asking(2, 1, Box::new(answer(Duration::ZERO)));
    assert_eq!(told(&socket), (0, 0, 0));
    socket.readable(Time::ZERO, &mut scratch);
    let (_, sent, queued) = told(&socket);
    assert_eq!((sent, queued), (1, 2 * REPLY_BYTES - 1));
    socket.stream.takes = usize::MAX;
    socket.writable(Time::ZERO, &mut scratch);
    assert_eq!(told(&socket), (2, 2 * REPLY_BYTES as u64, 0));
}

/// There is one for each connection.
#[test]
fn a_socket_takes_no_more_memory_than_it_has_to() {
    let bytes = size_of::<Socket<mio::net::TcpStream>>();
    assert!(bytes <= 168, "{bytes}");
}
