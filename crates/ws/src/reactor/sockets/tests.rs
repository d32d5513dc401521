use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::LazyLock;

use anemone_proto::{Message, Sender};

use super::super::budget::{SLICE_UNITS, UNITS_MOST};
use super::super::protocol::WebSocketProtocol;
use super::super::{Handler, SendWaker};
use super::*;
use crate::Negotiated;

const NOW: Time = Time::ZERO;

thread_local! {
    /// The time that has passed since the tests began.
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A clock that only tests move.
fn clock() -> Instant {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BEGIN + PASSED.get()
}

fn pass(time: Duration) {
    PASSED.set(PASSED.get() + time);
}

type Log = Rc<RefCell<Vec<&'static str>>>;

/// A peer that has sent so many messages of one byte. A flood never ends.
struct Peer {
    messages: Rc<Cell<usize>>,
    reads: Rc<Cell<usize>>,
    /// The number of bytes of a message that the last read has cut.
    cut: usize,
}

const FRAME: [u8; 7] = [0x82, 0x81, 0, 0, 0, 0, b'x'];
const FLOOD: usize = usize::MAX / 16;

impl NonBlocking for Peer {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.reads.set(self.reads.get() + 1);
        let left = self.messages.get() * FRAME.len() - self.cut;
        let len = left.min(bytes.len());
        if len == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        for (at, byte) in (self.cut..).zip(&mut bytes[..len]) {
            *byte = FRAME[at % FRAME.len()];
        }
        let done = self.cut + len;
        self.messages.set(self.messages.get() - done / FRAME.len());
        self.cut = done % FRAME.len();
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

/// Logs each message, which takes it some time.
struct Logs {
    name: &'static str,
    log: Log,
    each: Duration,
    waker: Option<SendWaker>,
    wakes_itself: bool,
    /// True if it says that its messages have caused work.
    says_so: bool,
}

impl Handler for Logs {
    fn on_open(&mut self, waker: SendWaker, _sender: &mut Sender) {
        self.waker = Some(waker);
    }

    fn on_message(&mut self, _message: Message<'_>, _sender: &mut Sender) {
        pass(self.each);
        self.log.borrow_mut().push(self.name);
    }

    fn has_worked(&mut self) -> bool {
        self.says_so
    }

    fn on_ready(&mut self, _sender: &mut Sender) {
        pass(self.each);
        self.log.borrow_mut().push(self.name);
        if let Some(waker) = self.waker.iter().find(|_| self.wakes_itself) {
            waker.wake();
        }
    }
}

struct Fixture {
    sockets: Sockets<Peer>,
    wakes: Rc<WakeQueue>,
    log: Log,
}

/// One in the fixture.
struct Handle {
    key: usize,
    messages: Rc<Cell<usize>>,
    reads: Rc<Cell<usize>>,
}

impl Fixture {
    fn new() -> Self {
        let sockets = Sockets::new(Scratch::new(clock), Memory::default());
        Self { sockets, wakes: Rc::default(), log: Log::default() }
    }

    fn open(&mut self, name: &'static str, messages: usize, each: Duration) -> Handle {
        self.open_with(messages, |logs| Logs { name, each, ..logs })
    }

    /// Opens one whose messages are dear, as it says.
    fn open_dear(&mut self, name: &'static str) -> Handle {
        self.open_with(FLOOD, |logs| Logs { name, each: 10 * SLICE, says_so: true, ..logs })
    }

    fn open_with(&mut self, messages: usize, handler: impl FnOnce(Logs) -> Logs) -> Handle {
        let (messages, reads) = (Rc::new(Cell::new(messages)), Rc::<Cell<usize>>::default());
        let key = self.sockets.next_key();
        let (peer_messages, peer_reads) = (Rc::clone(&messages), Rc::clone(&reads));
        let stream = Peer { messages: peer_messages, reads: peer_reads, cut: 0 };
        let log = Rc::clone(&self.log);
        let (name, each) = ("", Duration::ZERO);
        let handler =
            handler(Logs { name, log, each, waker: None, wakes_itself: false, says_so: false });
        let protocol = WebSocketProtocol::boxed(Negotiated::default(), handler, NOW);
        let wakes = Rc::clone(&self.wakes);
        self.sockets.open(stream, protocol, |token| SendWaker::new(&wakes, token), NOW, &mut []);
        Handle { key, messages, reads }
    }

    fn tell(&mut self, handle: &Handle) {
        self.sockets.notify(handle.key, Readiness { read: true, ..Readiness::default() });
    }

    fn turn(&mut self) -> Vec<&'static str> {
        self.sockets.begin_turn();
        self.sockets.turn(NOW, &self.wakes);
        self.log.take()
    }
}

fn count(done: &[&str], name: &str) -> usize {
    done.iter().filter(|done| **done == name).count()
}

#[test]
fn a_flood_is_noted_once_and_has_one_slice_a_turn_however_often_it_is_told_of() {
    let mut fixture = Fixture::new();
    let flood = fixture.open("flood", FLOOD, Duration::ZERO);
    let (mut reads, mut messages) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        for _ in 0..3 {
            fixture.tell(&flood);
        }
        flood.reads.set(0);
        let done = fixture.turn();
        assert_eq!(fixture.sockets.waiting.len() + fixture.sockets.told.len(), 1);
        reads.push(flood.reads.get());
        messages.push(done.len());
    }
    // It waits during its first turn, and so has two slices.
    let most = (SLICE_UNITS + UNITS_MOST) as usize;
    assert!(messages[0] <= 2 * most && messages[1..].iter().all(|&len| len <= most));
    // Nor does the number of its reads grow with the turns.
    assert!(reads.iter().all(|&reads| reads <= 8), "{reads:?}");
}

#[test]
fn a_flood_has_a_slice_and_then_others_have_theirs() {
    let mut fixture = Fixture::new();
    let flood = fixture.open("flood", FLOOD, Duration::ZERO);
    let quiet = fixture.open("quiet", 0, Duration::ZERO);
    fixture.tell(&flood);
    fixture.turn();
    for _ in 0..20 {
        quiet.messages.set(1);
        fixture.tell(&flood);
        fixture.tell(&quiet);
        let done = fixture.turn();
        // The flood, which has had its first slice, waits behind sockets that had none.
        assert_eq!(done[0], "quiet");
        let most = (SLICE_UNITS + UNITS_MOST) as usize;
        assert!(count(&done, "flood") <= most, "{}", done.len());
        assert!(count(&done, "flood") > 0);
    }
}

#[test]
fn a_quiet_socket_waits_for_no_more_than_one_slice_of_ten_floods() {
    let mut fixture = Fixture::new();
    // A message of a flood takes so long that a slice has some 400 of them.
    let floods: Vec<_> =
        (0..10).map(|_| fixture.open("flood", FLOOD, Duration::from_micros(1))).collect();
    let quiet = fixture.open("quiet", 0, Duration::from_micros(1));
    let mut before = 0;
    for turn in 0..100 {
        floods.iter().for_each(|flood| fixture.tell(flood));
        quiet.messages.set(1);
        fixture.tell(&quiet);
        let done = fixture.turn();
        let at = done.iter().position(|name| *name == "quiet");
        // Once the floods have had their first slices nothing of theirs comes before it in a turn.
        if turn >= 10 {
            assert_eq!(at, Some(0), "turn {turn}");
            assert!(before + done.len() < 1000, "{} messages", done.len());
        }
        before = done.len();
    }
}

#[test]
fn floods_take_turns() {
    let mut fixture = Fixture::new();
    let each = Duration::from_micros(1);
    let floods = ["one", "two", "three"].map(|name| fixture.open(name, FLOOD, each));
    floods.iter().for_each(|flood| fixture.tell(flood));
    let done: Vec<_> = (0..60).flat_map(|_| fixture.turn()).collect();
    let counts = ["one", "two", "three"].map(|name| count(&done, name));
    let [least, most] = [counts.iter().min(), counts.iter().max()].map(|count| *count.unwrap());
    assert!(most - least <= 1000, "{counts:?}");
    assert!(least >= 6000, "{counts:?}");
}

#[test]
fn a_turn_ends_though_a_socket_wakes_itself_for_ever() {
    let mut fixture = Fixture::new();
    let (name, each) = ("waking", Duration::from_micros(1));
    let waking = fixture.open_with(0, |logs| Logs { name, each, wakes_itself: true, ..logs });
    let flood = fixture.open("flood", FLOOD, Duration::from_micros(1));
    fixture.tell(&flood);
    let token = Token { key: waking.key as u32, generation: 1 };
    SendWaker::new(&fixture.wakes, token).wake();
    for _ in 0..10 {
        let done = fixture.turn();
        assert!((1..1000).contains(&count(&done, "waking")), "{}", done.len());
        assert!((1..1000).contains(&count(&done, "flood")), "{}", done.len());
    }
    assert!(fixture.sockets.have_work() || fixture.wakes.has_woken());
}

#[test]
fn what_a_slice_left_is_done_in_the_next_without_another_read() {
    let mut fixture = Fixture::new();
    let bursts = fixture.open("bursts", 4000, Duration::from_micros(1));
    fixture.tell(&bursts);
    let mut done = 0;
    let mut turns = 0;
    while done < 4000 {
        let messages = fixture.turn().len();
        assert!(messages <= 700, "{messages}");
        done += messages;
        turns += 1;
        assert!(turns < 100);
    }
    assert!(turns >= 6, "{turns}");
    assert!(bursts.reads.get() <= turns + 2, "{} reads in {turns} turns", bursts.reads.get());
    fixture.turn();
    assert!(!fixture.sockets.have_work());
}

#[test]
fn a_dear_message_is_the_last_of_its_slice_and_a_quiet_socket_comes_between_two() {
    let mut fixture = Fixture::new();
    let dear: Vec<_> = (0..10).map(|_| fixture.open_dear("dear")).collect();
    let quiet = fixture.open("quiet", 0, Duration::ZERO);
    for turn in 0..100 {
        dear.iter().for_each(|dear| fixture.tell(dear));
        quiet.messages.set(1);
        fixture.tell(&quiet);
        let done = fixture.turn();
        // One of those with new events, and one of those that have waited.
        assert!(count(&done, "dear") <= 2, "turn {turn}: {done:?}");
        if turn >= 10 {
            assert_eq!(done[0], "quiet", "turn {turn}");
        }
    }
}

#[test]
fn a_share_ends_with_the_first_socket_that_was_woken_and_works_for_longer() {
    let mut fixture = Fixture::new();
    let (name, each) = ("dear", 10 * SLICE);
    let woken: Vec<_> = (0..10)
        .map(|_| fixture.open_with(0, |logs| Logs { name, each, wakes_itself: true, ..logs }))
        .collect();
    for (handle, generation) in woken.iter().zip(1..) {
        SendWaker::new(&fixture.wakes, Token { key: handle.key as u32, generation }).wake();
    }
    for _ in 0..20 {
        assert_eq!(fixture.turn(), ["dear"]);
    }
}
