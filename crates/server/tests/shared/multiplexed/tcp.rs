//! The matters of TCP alone: framing, time-outs and the end.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_server::{Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::multiplexed::{Carrier, Client, framed};
use anemone_testing::{Fixture, PATIENCE, connect};
use anemone_ws::proto::Config;

use crate::multiplexed::{start, started, with_limits};

#[test]
fn messages_may_be_cut_at_every_place() {
    let fixture = started();
    let mut bytes = framed(b"GET a /nothing\npayload");
    bytes.extend(framed(b""));
    bytes.extend(framed(b"CANCEL b"));
    bytes.extend(framed(b"GET b /nothing"));
    for cut in 1..bytes.len() {
        let mut stream = connect(fixture.tcp());
        stream.write_all(&bytes[..cut]).unwrap();
        // Complete messages are answered, so the server has seen the cut.
        let mut client = Client::Tcp(stream.try_clone().unwrap());
        let first = cut >= framed(b"GET a /nothing\npayload").len();
        if first {
            client.next().problem(404, "a", "unknown-path");
        }
        stream.write_all(&bytes[cut..]).unwrap();
        if !first {
            client.next().problem(404, "a", "unknown-path");
        }
        client.next().problem(400, "-", "bad-message");
        client.next().problem(404, "b", "unknown-path");
    }
}

#[test]
fn a_message_may_come_in_single_bytes() {
    let fixture = started();
    let mut stream = connect(fixture.tcp());
    for byte in framed(b"GET a /clock") {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(Client::Tcp(stream).next().status, 200);
}

#[test]
fn who_speaks_http_or_tls_is_told_once_and_closed() {
    let fixture = started();
    for bytes in [
        &b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\nGET a /clock",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ] {
        let mut stream = connect(fixture.tcp());
        stream.write_all(bytes).unwrap();
        let mut client = Client::Tcp(stream);
        let detail = client.next().problem(400, "-", "bad-message");
        assert!(detail.contains("at most 1052672"), "{detail}");
        assert_eq!(client.message(), None);
    }
}

#[test]
fn the_first_word_must_come_in_time() {
    let fixture = with_limits(|limits| limits.header_timeout = Duration::from_millis(50));
    let mut stream = connect(fixture.tcp());
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn who_has_nothing_open_is_closed_when_idle_and_a_reader_is_not() {
    // Long enough that no machine is late to ask.
    const IDLE: Duration = Duration::from_secs(2);
    let config = Config { idle_timeout: IDLE, ..Config::default() };
    let fixture = with_limits(|limits| {
        limits.multiplexed = Arc::new(config);
        limits.heartbeat = Duration::from_millis(50);
    });
    let mut reader = Client::open(Carrier::Tcp, &fixture);
    assert_eq!(reader.ask("GET r /topics/wind").status, 100);
    let begun = Instant::now();
    let mut idle = Client::open(Carrier::Tcp, &fixture);
    assert_eq!(idle.ask("GET 7 /clock").status, 200);
    assert_eq!(idle.message(), None);
    // The server counts whole milliseconds.
    assert!(begun.elapsed() + Duration::from_millis(1) >= IDLE);
    while begun.elapsed() < 2 * IDLE {
        reader.next().is_line(100, "r", "ya-0");
    }
    fixture.publish(1..=1);
    while reader.next().status == 100 {}
    reader.send("CANCEL r");
    while reader.next().status != 204 {}
    assert_eq!(reader.message(), None, "idle once nothing is open");
}

#[test]
fn a_message_that_takes_too_long_is_given_up_though_bytes_keep_coming() {
    let config = Config {
        message_timeout: Duration::from_millis(100),
        close_timeout: Duration::from_millis(50),
        ..Config::default()
    };
    let fixture = with_limits(|limits| limits.multiplexed = Arc::new(config));
    let mut stream = connect(fixture.tcp());
    let mut client = Client::Tcp(stream.try_clone().unwrap());
    let feeder = std::thread::spawn(move || {
        let message = framed(&[b'x'; 60_000]);
        message.iter().any(|byte| {
            std::thread::sleep(Duration::from_millis(5));
            stream.write_all(&[*byte]).is_err()
        })
    });
    let detail = client.next().problem(408, "-", "body-timeout");
    assert!(detail.contains("100ms"), "{detail}");
    drop(client);
    assert!(feeder.join().unwrap(), "the server reads on for ever");
}

/// A server that waits so long for the rest of a message.
fn with_message_timeout(message_timeout: Duration) -> Fixture {
    with_limits(|limits| {
        limits.multiplexed = Arc::new(Config { message_timeout, ..Config::default() });
    })
}

#[test]
fn a_message_of_which_nothing_more_comes_is_given_up_by_time_alone() {
    let rule =
        TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("scratch-*".parse().unwrap()) };
    let config = Config { message_timeout: Duration::from_millis(100), ..Config::default() };
    let change = |options: &mut Options| {
        options.limits.multiplexed = Arc::new(config);
        options.topics = TopicRules::new([rule]).unwrap();
    };
    let fixture = start(change, anemone_hub::Retention::default());
    let post = framed(b"POST p /topics/scratch-late\n1");
    for (begun, has_reader) in [
        (&framed(b"GET 7 /clock")[..8], false),
        (&framed(b"GET 7 /clock")[..2], true),
        (&post[..post.len() - 1], false),
        (&post[..post.len() - 1], true),
    ] {
        let mut stream = connect(fixture.tcp());
        let mut client = Client::Tcp(stream.try_clone().unwrap());
        if has_reader {
            assert_eq!(client.ask("GET r /topics/wind").status, 100);
        }
        stream.write_all(begun).unwrap();
        let detail = client.next().problem(408, "-", "body-timeout");
        assert!(detail.contains("100ms"), "{detail}");
        // The rest is too late; it may find the connection gone.
        let _ = stream.write_all(&post[post.len() - 1..]);
        assert_eq!(client.message(), None);
    }
    assert!(!fixture.has("scratch-late"), "published after all");
}

#[test]
fn each_message_has_its_own_time_though_bytes_of_the_next_came_with_it() {
    const LIMIT: Duration = Duration::from_millis(500);
    let fixture = with_message_timeout(LIMIT);
    let message = framed(b"GET 7 /clock");
    let (first, last) = message.split_at(8);
    // Until one connection has lasted long enough without the machine holding up a single message.
    let patience = Instant::now();
    'connections: loop {
        assert!(patience.elapsed() < PATIENCE, "the machine is too slow for this");
        let mut stream = connect(fixture.tcp());
        let mut client = Client::Tcp(stream.try_clone().unwrap());
        stream.write_all(first).unwrap();
        let begun = Instant::now();
        let mut sent = [begun; 2];
        while begun.elapsed() < 2 * LIMIT {
            let _ = stream.write_all(&[last, first].concat());
            let reply = client.next();
            if reply.status != 200 {
                let took = sent[0].elapsed();
                assert!(took >= LIMIT, "given up {took:?} after its first byte: {reply:?}");
                continue 'connections;
            }
            sent = [sent[1], Instant::now()];
        }
        break;
    }
}

#[test]
fn a_message_that_was_cut_off_does_not_keep_the_replies_to_others() {
    let fixture = with_message_timeout(Duration::from_millis(100));
    let mut stream = connect(fixture.tcp());
    stream
        .write_all(&[framed(b"GET 7 /clock"), framed(b"GET 8 /clock")[..9].to_vec()].concat())
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut client = Client::Tcp(stream);
    assert_eq!(client.next().status, 200);
    assert_eq!(client.message(), None, "it is not told of what it did not wait for");
}

#[test]
fn a_server_that_stops_says_so_on_both_carriers() {
    let mut fixture = start(|_| {}, anemone_hub::Retention::default());
    let mut tcp = Client::open(Carrier::Tcp, &fixture);
    assert_eq!(tcp.ask("GET r /topics/wind").status, 100);
    let mut socket = fixture.websocket("/ws", &["anemone.v1"], &[]);
    fixture.stop_while(move || {
        tcp.next().problem(503, "-", "stopping");
        assert_eq!(tcp.message(), None);
        assert_eq!(socket.next(), "close 1001 the server is stopping");
    });
}
