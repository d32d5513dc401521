//! Publishing by plain WebSocket: each message is an event.

use std::io::Write;

use anemone_server::{PublishRight, TopicRule, TopicRules};
use anemone_testing::HANDSHAKE;
use anemone_ws::proto::Message;

use super::{Post, rule, start, start_with};

#[test]
fn each_message_is_an_event_and_comes_back_as_one() {
    let fixture = start();
    let mut stream = fixture.events("/topics/chat", &[]);
    stream.block().unwrap();
    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    let mut other = fixture.websocket("/topics/chat", &["anemone.events"], &[]);
    other.next();
    for (offset, (message, data)) in (1..).zip([
        (Message::Text("{\"n\": 1.50}"), "{\"n\": 1.50}"),
        (Message::Text("hello \"you\""), "\"hello \\\"you\\\"\""),
        (Message::Text("1 2"), "\"1 2\""),
        (Message::Text(""), "\"\""),
        (Message::Text("naïve 🌬"), "\"naïve 🌬\""),
        (Message::Binary(&[0, 255]), "{\"base64\":\"AP8=\"}"),
        (Message::Binary(&[]), "{\"base64\":\"\"}"),
    ]) {
        socket.send(message);
        assert_eq!(socket.next(), data);
        assert_eq!(stream.event(), format!("id: ya-{offset}\ndata: {data}\n"));
        assert_eq!(other.json()["position"], format!("ya-{offset}"));
    }
}

#[test]
fn messages_sent_in_a_row_keep_their_order() {
    let fixture = start();
    fixture.post("/topics/scratch-ws", &[], b"0");
    let mut socket = fixture.websocket("/topics/scratch-ws", &[], &[]);
    for number in 1..=500 {
        socket.connection.sender().send(Message::Text(&number.to_string())).unwrap();
    }
    socket.flush();
    for number in 1..=500 {
        assert_eq!(socket.next(), number.to_string());
    }
    assert_eq!(fixture.get("/topics/scratch-ws", &[]).next(), "ya-501");
}

#[test]
fn a_compressed_message_is_published_too() {
    let fixture = start();
    let mut socket = fixture.compressed("/topics/chat");
    let text = format!("\"{}\"", "wind ".repeat(1000));
    socket.send(Message::Text(&text));
    assert_eq!(socket.next(), text);
}

#[test]
fn who_may_not_publish_may_read_and_is_closed_with_1008_when_it_tries() {
    let fixture = start();
    fixture.post("/topics/scratch-ws", &[], b"0");
    let proxied = [("X-Forwarded-For", "192.0.2.7")];
    for (target, fields, reason) in [
        ("/topics/wind", &[][..], "this topic accepts no messages"),
        ("/topics/quiet", &[], "this topic accepts no messages"),
        (
            "/topics/scratch-ws",
            &proxied,
            "only clients on the server's own machine may publish to this topic; this one has a field of a proxy",
        ),
    ] {
        let mut socket = fixture.websocket(target, &[], fields);
        socket.send(Message::Text("1"));
        assert_eq!(socket.next(), format!("close 1008 {reason}"));
        assert_eq!(socket.next(), "end of stream");
    }
    let mut reader = fixture.websocket("/topics/scratch-ws", &[], &proxied);
    fixture.post("/topics/scratch-ws", &[], b"1");
    assert_eq!(reader.next(), "1");
    fixture.get("/topics/none", &HANDSHAKE).problem(404, "unknown-topic");
}

#[test]
fn after_a_message_that_is_refused_none_is_published() {
    let rules = [TopicRule { event_bytes_max: 10, ..rule("chat", PublishRight::Anyone) }];
    let fixture = start_with(|options| options.topics = TopicRules::new(rules).unwrap());
    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    for text in ["1234567890", "12345678901", "3"] {
        socket.connection.sender().send(Message::Text(text)).unwrap();
    }
    socket.flush();
    let mut next = socket.next();
    if next == "1234567890" {
        next = socket.next(); // it was written before it was closed
    }
    assert_eq!(next, "close 1009 the event has 11 bytes as JSON, at most 10 are allowed");
    assert_eq!(fixture.data("/topics/chat"), [1_234_567_890_u64]);
}

#[test]
fn a_message_may_be_as_large_as_an_event_and_no_larger() {
    let fixture = start();
    let message = |len: usize| "x".repeat(len);
    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    socket.send(Message::Text(&message(65_534)));
    assert_eq!(socket.next().len(), 65_536);
    socket.send(Message::Text(&message(65_535)));
    assert!(socket.next().starts_with("close 1009 the event has 65537 bytes"));
    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    socket.send(Message::Binary(message(49_140).as_bytes()));
    assert_eq!(socket.next().len(), 65_533);
    socket.send(Message::Binary(message(49_143).as_bytes()));
    assert!(socket.next().starts_with("close 1009 "));
    let mut socket = fixture.websocket("/topics/chat", &[], &[]);
    // According to the header alone, it is too large for any event.
    socket.stream.write_all(&[0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]).unwrap();
    assert!(socket.next().starts_with("close 1009 "));
}

#[test]
fn pages_of_other_origins_get_no_websocket() {
    let fixture = start();
    let fields = [&HANDSHAKE[..], &[("Origin", "http://evil.example")]].concat();
    fixture.get("/topics/chat", &fields).problem(403, "origin-refused");
}
