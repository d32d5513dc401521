//! `/echo` and the bare TCP echo: the loop that serves all of a thread's sockets.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_hub::Retention;
use anemone_server::{Limits, Options};
use anemone_testing::{Fixture, HANDSHAKE, PATIENCE, Reply, Socket};
use anemone_ws::proto::{CloseCode, CloseFrame, Config, Message, MessageKind};

/// One thread, so that every connection of a test is in the same loop.
fn start(change: impl FnOnce(&mut Options)) -> Fixture {
    Fixture::with(
        |options| {
            options.threads = NonZero::new(1);
            options.limits.echo = Arc::default(); // messages of 16 MiB
            options.tcp_echo = Some("127.0.0.1:0".parse().unwrap());
            change(options);
        },
        Retention::default(),
    )
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[test]
fn messages_of_every_size_come_back_as_they_are() {
    let fixture = start(|_| {});
    let mut socket = fixture.websocket("/echo", &[], &[]);
    for len in [0, 1, 125, 126, 65_535, 65_536, 262_144, 1 << 20, 16 << 20] {
        let message = pattern(len);
        socket.send(Message::Binary(&message));
        assert_eq!(socket.binary(), message, "{len} bytes");
        let text = "ä".repeat(len / 2);
        socket.send(Message::Text(&text));
        assert_eq!(socket.next(), text, "{len} bytes of text");
    }
}

#[test]
fn fragments_come_back_as_one_message() {
    let fixture = start(|_| {});
    let mut socket = fixture.websocket("/echo", &[], &[]);
    let sender = socket.connection.sender();
    sender.send_fragment(MessageKind::Text, "€".as_bytes().split_at(1).0, false).unwrap();
    sender.ping(b"between").unwrap();
    sender.send_fragment(MessageKind::Text, "€".as_bytes().split_at(1).1, true).unwrap();
    socket.flush();
    assert_eq!(socket.next(), "€");
}

#[test]
fn many_messages_in_one_write_all_come_back_in_order() {
    let fixture = start(|_| {});
    let mut socket = fixture.websocket("/echo", &[], &[]);
    for number in 0..10_000 {
        socket.connection.sender().send(Message::Text(&format!("message {number}"))).unwrap();
    }
    let mut writer = socket.stream.try_clone().unwrap();
    let bytes = socket.connection.sender().transmit().to_vec();
    let write = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    socket.connection.sender().transmitted(usize::MAX);
    for number in 0..10_000 {
        assert_eq!(socket.next(), format!("message {number}"));
    }
    write.join().unwrap();
}

#[test]
fn a_message_in_single_bytes_comes_back() {
    let fixture = start(|_| {});
    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.connection.sender().send(Message::Text("one byte at a time")).unwrap();
    let bytes = socket.connection.sender().transmit().to_vec();
    socket.connection.sender().transmitted(bytes.len());
    for byte in bytes {
        socket.stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(socket.next(), "one byte at a time");
}

#[test]
fn frames_that_come_with_the_handshake_are_not_lost() {
    let fixture = start(|_| {});
    let mut stream = fixture.connect();
    let handshake = "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let frame = [0x81, 0x82, 0, 0, 0, 0, b'h', b'i'];
    stream.write_all(&[handshake.as_bytes(), &frame].concat()).unwrap();
    let mut reply = Vec::new();
    while !reply.ends_with(&[0x81, 2, b'h', b'i']) {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&reply));
        reply.push(byte[0]);
    }
}

#[test]
fn a_peer_that_never_reads_holds_nobody_up_and_is_given_up() {
    let config = Config {
        ping_interval: Duration::from_millis(100),
        // So long that no machine is late to say the next word.
        idle_timeout: Duration::from_secs(3),
        // During this time it reads and discards all bytes after the end, as fast as they come.
        close_timeout: Duration::from_millis(1),
        ..Config::default()
    };
    let fixture = start(|options| options.limits.echo = Arc::new(config));
    let mut stuck = fixture.websocket("/echo", &[], &[]);
    stuck.connection.sender().send(Message::Binary(&pattern(16 << 20))).unwrap();
    let message = stuck.connection.sender().transmit().to_vec();
    // The server stops reading when its answers are not read, and later closes the connection.
    let writer = std::thread::spawn(move || {
        let mut sent = 0;
        while stuck.stream.write_all(&message).is_ok() {
            sent += message.len();
        }
        sent
    });
    let mut other = fixture.websocket("/echo", &[], &[]);
    let begun = Instant::now();
    while !writer.is_finished() {
        other.send(Message::Text("still served"));
        assert_eq!(other.next(), "still served");
        assert!(begun.elapsed() < PATIENCE, "the stuck connection is still held");
    }
    // The server holds one message and its answer; the kernel holds the rest for both ends, up to 33 MB for each by
    // its own rule.
    assert!(writer.join().unwrap() < 128 << 20, "the server went on reading");
}

#[test]
fn a_quiet_peer_is_pinged_and_one_that_does_not_answer_is_given_up() {
    // So long that no machine is late to answer.
    const IDLE: Duration = Duration::from_millis(1500);
    let config = Config {
        ping_interval: Duration::from_millis(20),
        idle_timeout: IDLE,
        ..Config::default()
    };
    let fixture = start(|options| options.limits.echo = Arc::new(config));
    let mut answering = fixture.websocket("/echo", &[], &[]);
    let mut quiet = fixture.websocket("/echo", &[], &[]);
    let watch = std::thread::spawn(move || {
        let mut received = Vec::new();
        quiet.stream.read_to_end(&mut received).unwrap();
        received
    });
    let begun = Instant::now();
    while begun.elapsed() < 2 * IDLE {
        assert_eq!(answering.event(), "ping", "answering keeps it open past its idle time-out");
    }
    let received = watch.join().unwrap();
    assert_eq!(received[0], 0x89, "a ping");
    assert!(
        received.windows(4).any(|bytes| bytes[0] == 0x88 && bytes[2..] == 1011_u16.to_be_bytes())
    );
}

#[test]
fn each_end_may_close() {
    let fixture = start(|_| {});
    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.connection.sender().close(Some(&CloseFrame::new(CloseCode::NORMAL, "done"))).unwrap();
    socket.flush();
    assert_eq!(socket.next(), "close 1000 ");
    assert_eq!(socket.next(), "end of stream");
}

#[test]
fn a_violation_is_told_though_the_peer_is_still_sending() {
    let fixture = start(|_| {});
    let mut socket = fixture.websocket("/echo", &[], &[]);
    let violation = [&[0x83, 0x80, 0, 0, 0, 0][..], &[0; 300_000]].concat();
    socket.stream.write_all(&violation).unwrap();
    assert!(socket.next().starts_with("close 1002 "), "a reset would have lost this");
}

#[test]
fn echo_and_broadcast_are_there_only_where_they_were_asked_for() {
    let by_default = Options::new("127.0.0.1:0".parse().unwrap());
    assert!(!by_default.echo && !by_default.broadcast);
    for (echo, broadcast) in [(false, false), (true, false), (false, true)] {
        let fixture = start(|options| (options.echo, options.broadcast) = (echo, broadcast));
        for (path, is_offered) in [("/echo", echo), ("/broadcast", broadcast)] {
            for fields in [&[][..], &HANDSHAKE] {
                let reply = fixture.get(path, fields);
                match (is_offered, fields.is_empty()) {
                    (true, true) => _ = reply.problem(426, "bad-handshake"),
                    (true, false) => assert_eq!(reply.status, 101),
                    (false, _) => _ = reply.problem(404, "unknown-path"),
                }
            }
        }
        let status = fixture.request("POST", "/echo", &[("Content-Length", "0")]).status;
        assert_eq!(status, if echo { 200 } else { 404 });
    }
}

#[test]
fn by_default_a_message_may_have_ten_mebibytes() {
    let fixture = start(|options| options.limits.echo = Limits::default().echo);
    let mut socket = fixture.websocket("/echo", &[], &[]);
    let message = pattern(10 << 20);
    socket.send(Message::Binary(&message));
    assert_eq!(socket.binary(), message);
    socket.send(Message::Binary(&[&message[..], &[0]].concat()));
    assert_eq!(socket.next(), "close 1009 frame payload is 10485761 bytes, limit is 10485760");
    assert_eq!(Limits::default().echo.message_timeout, Duration::from_secs(30));
}

#[test]
fn post_gives_the_body_back_and_get_asks_for_an_upgrade() {
    let fixture = start(|options| {
        options.limits.echo = Arc::new(Config { message_bytes_max: 1000, ..Config::default() });
    });
    let post = |body: &str| {
        let mut stream = fixture.connect();
        let len = body.len();
        let request = format!(
            "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: {len}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Reply::read(&mut std::io::BufReader::new(stream), "POST")
    };
    let reply = post("hello");
    let octets = Some("application/octet-stream");
    assert_eq!((reply.status, &*reply.body, reply.field("content-type")), (200, "hello", octets));
    assert_eq!(post(&"x".repeat(1000)).status, 200);
    post(&"x".repeat(1001)).problem(413, "body-too-big");
    fixture.get("/echo", &[]).problem(426, "bad-handshake");
}

#[test]
fn bare_bytes_come_back_too() {
    let fixture = start(|_| {});
    let mut stream = TcpStream::connect(fixture.tcp_echo()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let bytes = pattern(3 << 20);
    let mut writer = stream.try_clone().unwrap();
    let sent = bytes.clone();
    let write = std::thread::spawn(move || writer.write_all(&sent).unwrap());
    let mut received = vec![0; bytes.len()];
    stream.read_exact(&mut received).unwrap();
    write.join().unwrap();
    assert_eq!(received, bytes);
}

#[test]
fn hundreds_of_connections_are_served_by_one_thread() {
    let fixture = start(|_| {});
    let mut sockets: Vec<Socket> = (0..300).map(|_| fixture.websocket("/echo", &[], &[])).collect();
    for round in 0..3 {
        for (index, socket) in sockets.iter_mut().enumerate() {
            socket.send(Message::Text(&format!("{index} {round}")));
        }
        for (index, socket) in sockets.iter_mut().enumerate() {
            assert_eq!(socket.next(), format!("{index} {round}"));
        }
    }
    let half = sockets.split_off(150);
    drop(half);
    for socket in &mut sockets {
        socket.send(Message::Text("after others left"));
        assert_eq!(socket.next(), "after others left");
    }
}

#[test]
fn a_body_that_never_ends_is_given_up_and_does_not_hold_up_a_stop() {
    let mut fixture = start(|options| options.limits.body_timeout = Duration::from_millis(50));
    let stall = |fixture: &Fixture, body: &str| {
        let mut stream = fixture.connect();
        let request = format!(
            "POST /echo HTTP/1.1\r\nHost: {}\r\nContent-Length: 10\r\n\r\n{body}",
            fixture.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        std::io::BufReader::new(stream)
    };
    for body in ["", "123456789"] {
        Reply::read(&mut stall(&fixture, body), "POST").problem(408, "body-timeout");
    }
    let mut reader = {
        let patient = start(|_| {});
        let reader = stall(&patient, "");
        // Another request on the one thread is answered, so this one has been read.
        assert_eq!(patient.get("/clock", &[]).status, 200);
        drop(patient);
        reader
    };
    Reply::read(&mut reader, "POST").problem(503, "stopping");
    fixture.stop();
}
