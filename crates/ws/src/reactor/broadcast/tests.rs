use std::sync::Arc;

use anemone_proto::{Connection, Header, Message, Time};

use super::super::waker::{Token, WakeQueue};
use super::*;

/// A broadcast, and the loop's wakes that its members are woken by.
struct Fixture {
    broadcast: Broadcast,
    wakes: Rc<WakeQueue>,
    joined: u32,
}

/// A member and its connection.
struct Reader {
    member: Member,
    connection: Connection,
    token: Token,
}

impl Fixture {
    fn new(bytes_max: usize) -> Self {
        Self {
            broadcast: Broadcast::new(&Memory::default(), bytes_max),
            wakes: Rc::default(),
            joined: 0,
        }
    }

    fn join(&mut self) -> Reader {
        self.joined += 1;
        let token = Token { key: self.joined, generation: self.joined };
        let member = self.broadcast.join(SendWaker::new(&self.wakes, token));
        Reader { member, connection: Connection::server(Arc::default(), Time::ZERO), token }
    }

    /// Sends texts of one byte, `0` to `9` over and over, that take three on the wire.
    fn send(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let text = (number % 10).to_string();
            self.broadcast.send(Rc::new(Prepared::new(Message::Text(&text))));
        }
    }

    fn woken(&self) -> Vec<u32> {
        self.wakes.take().iter().map(|token| token.key).collect()
    }
}

impl Reader {
    /// The texts that one turn delivers.
    fn deliver(&mut self) -> Result<String, DeliverError> {
        self.member.deliver(self.connection.sender())?;
        let (mut texts, sender) = (String::new(), self.connection.sender());
        let mut bytes = sender.transmit();
        while let Some((header, len)) = Header::decode(bytes).unwrap() {
            let (payload, rest) = bytes[len..].split_at(header.payload_len as usize);
            texts.push_str(str::from_utf8(payload).unwrap());
            bytes = rest;
        }
        sender.transmitted(usize::MAX);
        Ok(texts)
    }

    /// The number of bytes that one turn queues; they are written before the next.
    fn deliver_bytes(&mut self) -> usize {
        self.member.deliver(self.connection.sender()).unwrap();
        let bytes = self.connection.sender().queued_bytes();
        self.connection.sender().transmitted(usize::MAX);
        bytes
    }
}

fn missed(missed: u64) -> Result<String, DeliverError> {
    Err(DeliverError::Missed { missed })
}

#[test]
fn members_get_what_is_sent_after_they_have_joined_in_order() {
    let mut fixture = Fixture::new(1000);
    let mut early = fixture.join();
    fixture.send(0..3);
    let mut late = fixture.join();
    fixture.send(3..5);
    assert_eq!(early.deliver().unwrap(), "01234");
    assert_eq!(late.deliver().unwrap(), "34");
    fixture.send(5..6);
    assert_eq!([&mut early, &mut late].map(|reader| reader.deliver().unwrap()), ["5", "5"]);
    assert_eq!(early.deliver().unwrap(), "");
}

#[test]
fn up_to_the_limit_nothing_is_dropped() {
    let mut fixture = Fixture::new(30);
    let mut reader = fixture.join();
    fixture.send(0..10);
    assert_eq!(reader.deliver().unwrap(), "0123456789");
}

#[test]
fn one_byte_more_drops_the_oldest_and_no_other() {
    let mut fixture = Fixture::new(30);
    let mut reader = fixture.join();
    fixture.send(0..9);
    fixture.broadcast.send(Rc::new(Prepared::new(Message::Text("ab"))));
    assert_eq!(reader.deliver(), missed(1));
    assert_eq!(reader.deliver().unwrap(), "12345678ab");
}

#[test]
fn the_newest_is_kept_whatever_its_size() {
    let mut fixture = Fixture::new(30);
    let mut reader = fixture.join();
    fixture.send(0..2);
    let text = "x".repeat(100);
    fixture.broadcast.send(Rc::new(Prepared::new(Message::Text(&text))));
    assert_eq!(reader.deliver(), missed(2));
    assert_eq!(reader.deliver().unwrap(), text);
    fixture.send(0..1);
    assert_eq!(reader.deliver().unwrap(), "0");
}

#[test]
fn who_is_too_slow_is_told_how_much_it_missed_once_and_then_goes_on() {
    let mut fixture = Fixture::new(9);
    let (mut slow, mut quick) = (fixture.join(), fixture.join());
    fixture.send(0..1);
    assert_eq!(slow.deliver().unwrap(), "0");
    for number in 0..10 {
        fixture.send(number..number + 1);
        quick.deliver().unwrap();
    }
    assert_eq!(slow.deliver(), missed(7));
    assert_eq!(slow.deliver().unwrap(), "789");
    fixture.send(0..2);
    assert_eq!([&mut slow, &mut quick].map(|reader| reader.deliver().unwrap()), ["01", "01"]);
}

#[test]
fn what_was_lost_on_the_way_here_everyone_has_missed() {
    let mut fixture = Fixture::new(1000);
    let (mut slow, mut quick) = (fixture.join(), fixture.join());
    fixture.send(0..3);
    assert_eq!(quick.deliver().unwrap(), "012");
    fixture.woken();
    fixture.broadcast.skip(5);
    assert_eq!(fixture.woken(), [1, 2], "they are told without another message");
    let mut late = fixture.join();
    fixture.send(3..5);
    assert_eq!(slow.deliver(), missed(8), "with those that it had not got yet");
    assert_eq!(quick.deliver(), missed(5));
    let readers = [&mut slow, &mut quick, &mut late];
    assert_eq!(readers.map(|reader| reader.deliver().unwrap()), ["34", "34", "34"]);
}

#[test]
fn a_turn_queues_64_kib_and_the_next_the_rest() {
    let mut fixture = Fixture::new(1 << 20);
    let mut reader = fixture.join();
    // With their headers 1,024 bytes each.
    let message = Rc::new(Prepared::new(Message::Binary(&[7; 1020])));
    for _ in 0..150 {
        fixture.broadcast.send(Rc::clone(&message));
    }
    fixture.woken();
    assert_eq!(reader.deliver_bytes(), 64 << 10);
    assert_eq!(fixture.woken(), [1], "it has another turn");
    assert_eq!(reader.deliver_bytes(), 64 << 10);
    assert_eq!(fixture.woken(), [1]);
    assert_eq!(reader.deliver_bytes(), 22 << 10);
    assert_eq!(fixture.woken(), [0; 0]);
}

#[test]
fn nothing_is_queued_behind_64_kib_that_are_not_written() {
    let mut fixture = Fixture::new(1000);
    let mut reader = fixture.join();
    let sender = reader.connection.sender();
    sender.send(Message::Binary(&[7; 64 << 10])).unwrap();
    let queued = sender.queued_bytes();
    fixture.send(0..1);
    reader.member.deliver(reader.connection.sender()).unwrap();
    assert_eq!(reader.connection.sender().queued_bytes(), queued);
    reader.connection.sender().transmitted(usize::MAX);
    assert_eq!(reader.deliver().unwrap(), "0");
}

#[test]
fn a_burst_wakes_each_member_once_and_the_next_burst_again() {
    let mut fixture = Fixture::new(1000);
    let (mut one, mut other) = (fixture.join(), fixture.join());
    fixture.send(0..3);
    assert_eq!(fixture.woken(), [1, 2]);
    fixture.send(3..4);
    assert_eq!(fixture.woken(), [0; 0], "they have yet to come");
    assert_eq!(one.deliver().unwrap(), "0123");
    fixture.send(4..5);
    assert_eq!(fixture.woken(), [1, 2]);
    assert_eq!(other.deliver().unwrap(), "01234");
}

#[test]
fn a_newcomer_is_woken_though_nobody_came_for_what_was_sent_before() {
    let mut fixture = Fixture::new(1000);
    fixture.send(0..1); // to nobody
    let reader = fixture.join();
    fixture.send(1..2);
    assert_eq!(fixture.woken(), [reader.token.key]);
    drop(reader);
    let mut reader = fixture.join();
    fixture.send(2..3);
    assert_eq!(fixture.woken(), [reader.token.key]);
    assert_eq!(reader.deliver().unwrap(), "2");
}

#[test]
fn a_member_that_is_dropped_has_left() {
    let mut fixture = Fixture::new(1000);
    let readers = [(); 3].map(|()| fixture.join());
    let [one, two, three] = readers;
    drop(two);
    fixture.send(0..1);
    assert_eq!(fixture.woken(), [1, 3]);
    let four = fixture.join();
    drop(one);
    fixture.send(1..2);
    let mut woken = fixture.woken();
    woken.sort_unstable();
    assert_eq!(woken, [3, 4]);
    for (mut reader, texts) in [(three, "01"), (four, "1")] {
        assert_eq!(reader.deliver().unwrap(), texts);
    }
}

#[test]
fn nothing_is_delivered_after_a_close_frame() {
    let mut fixture = Fixture::new(1000);
    let mut reader = fixture.join();
    fixture.send(0..1);
    reader.connection.sender().close(None).unwrap();
    assert_eq!(reader.deliver(), Err(DeliverError::Misuse(MisuseError::Closing)));
    assert_eq!(reader.connection.sender().queued_bytes(), 2, "the close frame alone");
}
