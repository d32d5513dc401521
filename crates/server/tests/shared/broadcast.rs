//! `/broadcast`: every member gets the messages of all.
#![allow(clippy::unwrap_used)]

use std::num::NonZero;

use anemone_hub::Retention;
use anemone_server::Limits;
use anemone_testing::{Fixture, HANDSHAKE, Socket};
use anemone_ws::proto::{CloseCode, CloseFrame, Message};

fn start(threads: usize, change: impl FnOnce(&mut Limits)) -> Fixture {
    Fixture::with(
        |options| {
            options.threads = NonZero::new(threads);
            change(&mut options.limits);
        },
        Retention::default(),
    )
}

fn join(fixture: &Fixture, count: usize) -> Vec<Socket> {
    (0..count).map(|_| fixture.websocket("/broadcast", &[], &[])).collect()
}

/// A message that no other number gives.
fn pattern(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251 + number * 7) as u8).collect()
}

#[test]
fn everyone_gets_everything_in_the_same_order_the_sender_too() {
    for threads in [1, 3] {
        let fixture = start(threads, |_| {});
        let mut sockets = join(&fixture, 12);
        for number in 0..50 {
            for sender in [3, 7] {
                sockets[sender].send(Message::Text(&format!("{sender}: {number}")));
            }
        }
        let orders = sockets.iter_mut().map(|socket| {
            let order: Vec<_> = (0..100).map(|_| socket.next()).collect();
            for sender in [3, 7] {
                let prefix = format!("{sender}: ");
                let numbers = order.iter().filter_map(|text| text.strip_prefix(&prefix));
                let numbers: Vec<usize> = numbers.map(|number| number.parse().unwrap()).collect();
                assert_eq!(numbers, (0..50).collect::<Vec<_>>(), "{threads} threads");
            }
            order
        });
        let mut orders: Vec<_> = orders.collect();
        orders.dedup();
        assert_eq!(orders.len(), 1, "{threads} threads");
    }
}

#[test]
fn messages_of_every_size_and_kind_come_as_they_are() {
    let fixture = start(1, |_| {});
    let mut sockets = join(&fixture, 3);
    for len in [0, 1, 125, 126, 4091, 4092, 65_536] {
        let bytes = pattern(len, len);
        sockets[0].send(Message::Binary(&bytes));
        let text = "ä".repeat(len / 2);
        sockets[1].send(Message::Text(&text));
        for socket in &mut sockets {
            let mut came = [socket.next(), socket.next()];
            came.sort_by_key(|event| event != "binary");
            assert_eq!(came, ["binary", &*text], "{len} bytes");
            assert!(socket.take_binary() == bytes, "{len} bytes");
        }
    }
}

#[test]
fn who_comes_later_gets_what_comes_after() {
    let fixture = start(1, |_| {});
    let mut early = join(&fixture, 2);
    early[0].send(Message::Text("before"));
    for socket in &mut early {
        assert_eq!(socket.next(), "before");
    }
    let mut late = fixture.websocket("/broadcast", &[], &[]);
    early[1].send(Message::Text("after"));
    for socket in early.iter_mut().chain([&mut late]) {
        assert_eq!(socket.next(), "after");
    }
}

#[test]
fn who_comes_after_messages_to_nobody_is_told_of_the_next() {
    // On all threads, most of which have no member yet when the first message comes.
    let fixture = start(3, |_| {});
    let mut sockets = join(&fixture, 1);
    sockets[0].send(Message::Text("to myself"));
    assert_eq!(sockets[0].next(), "to myself");
    for number in 0..12 {
        sockets.extend(join(&fixture, 1));
        let text = format!("message {number}");
        sockets[0].send(Message::Text(&text));
        for socket in &mut sockets {
            // Whoever joined on a thread that the message before was still on its way to gets that, too.
            let mut message = socket.next();
            if message != text {
                message = socket.next();
            }
            assert_eq!(message, text);
        }
    }
}

#[test]
fn who_leaves_is_missed_by_nobody() {
    let fixture = start(1, |_| {});
    let mut sockets = join(&fixture, 10);
    let polite = CloseFrame::new(CloseCode::NORMAL, "");
    sockets[9].connection.sender().close(Some(&polite)).unwrap();
    sockets[9].flush();
    assert_eq!(sockets[9].next(), "close 1000 ");
    sockets.truncate(5);
    for number in 0..3 {
        let text = format!("message {number}");
        sockets[number].send(Message::Text(&text));
        for socket in &mut sockets {
            assert_eq!(socket.next(), text);
        }
    }
}

#[test]
fn a_compressing_and_a_plain_connection_get_the_same_text() {
    let fixture = start(1, |_| {});
    let mut plain = fixture.websocket("/broadcast", &[], &[]);
    let mut compressing = [(); 2].map(|()| fixture.compressed("/broadcast"));
    let text = "all the same ".repeat(40);
    assert!(text.len() >= 512);
    plain.send(Message::Text(&text));
    // A whole text message, with RSV1 where it is compressed (RFC 7692 section 6).
    assert_eq!(first_byte(&plain), 0x81);
    assert_eq!(plain.next(), text);
    for socket in &mut compressing {
        assert_eq!(first_byte(socket), 0xc1);
        assert_eq!(socket.next(), text);
    }
    // Also for a message that was compressed on its way here.
    compressing[0].send(Message::Text(&text));
    assert_eq!(first_byte(&plain), 0x81);
    for socket in compressing.iter_mut().chain([&mut plain]) {
        assert_eq!(socket.next(), text);
    }
}

/// Returns the next byte, which is not read; nothing has been read after the last message.
fn first_byte(socket: &Socket) -> u8 {
    let mut byte = [0];
    assert_eq!(socket.stream.peek(&mut byte).unwrap(), 1);
    byte[0]
}

#[test]
fn large_messages_which_many_connections_share_come_whole() {
    let fixture = start(1, |_| {});
    let mut sockets = join(&fixture, 20);
    for number in 0..5 {
        sockets[0].send(Message::Binary(&pattern(number, 60_000)));
        sockets[0].send(Message::Text("between"));
    }
    for socket in &mut sockets {
        for number in 0..5 {
            assert!(socket.binary() == pattern(number, 60_000), "message {number}");
            assert_eq!(socket.next(), "between");
        }
    }
}

#[test]
fn one_who_does_not_read_is_closed_and_the_others_get_everything() {
    let fixture = start(1, |limits| limits.broadcast_bytes_max = 200_000);
    let mut stuck = fixture.websocket("/broadcast", &[], &[]);
    let mut others = join(&fixture, 3);
    let (mut sent, mut received) = (0, 0);
    // The kernel's buffers for a client that does not read differ in size, so each attempt sends twice as much.
    for messages in [200, 400, 800, 1600] {
        for _ in 0..messages {
            let message = pattern(sent, 60_000);
            others[0].send(Message::Binary(&message));
            for socket in &mut others {
                assert!(socket.binary() == message, "message {sent}");
            }
            sent += 1;
        }
        while received < sent {
            let event = stuck.next();
            if event != "binary" {
                assert!(event.starts_with("close 1008 too slow: "), "{event}");
                assert_eq!(stuck.next(), "end of stream");
                return;
            }
            assert!(stuck.take_binary() == pattern(received, 60_000), "message {received}");
            received += 1;
        }
    }
    panic!("the one who did not read got all {sent} messages");
}

#[test]
fn many_messages_in_one_write_come_to_everyone() {
    let fixture = start(1, |_| {});
    let mut sockets = join(&fixture, 3);
    let sender = sockets[0].connection.sender();
    for number in 0..2000 {
        sender.send(Message::Text(&number.to_string())).unwrap();
    }
    sockets[0].flush();
    for socket in &mut sockets {
        for number in 0..2000 {
            assert_eq!(socket.next(), number.to_string());
        }
    }
}

#[test]
fn a_request_without_an_upgrade_is_told_what_is_missing() {
    let fixture = start(1, |_| {});
    let reply = fixture.get("/broadcast", &[]);
    let detail = reply.problem(426, "bad-handshake");
    assert!(detail.to_lowercase().contains("upgrade"), "{detail}");
    assert_eq!(reply.field("upgrade"), Some("websocket"));
}

#[test]
fn pages_of_other_origins_may_not_join() {
    let allowed = "https://app.example";
    let fixture = Fixture::with(
        |options| options.allowed_origins = vec![allowed.parse().unwrap()],
        Retention::default(),
    );
    let own = format!("http://{}", fixture.address);
    for path in ["/broadcast", "/topics/wind"] {
        for origin in ["http://evil.example", "http://localhost", "null"] {
            let fields = [&HANDSHAKE[..], &[("Origin", origin)]].concat();
            let detail = fixture.get(path, &fields).problem(403, "origin-refused");
            assert!(detail.contains(origin), "{path}: {detail}");
        }
        for origin in [&*own, allowed] {
            fixture.websocket(path, &[], &[("Origin", origin)]);
        }
    }
}
