//! Every bound, at its edge.

use std::num::NonZero;
use std::sync::Arc;

use anemone_testing::multiplexed::{BOTH, Carrier, Client};
use anemone_ws::proto::Config;

use crate::multiplexed::with_limits;

#[test]
fn as_many_requests_may_be_open_as_the_limit_says() {
    let fixture = with_limits(|limits| limits.multiplexed_requests_max = 3);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for id in ["a", "b", "c"] {
            assert_eq!(client.ask(&format!("GET {id} /topics/wind")).status, 100);
        }
        let detail = client.ask("GET d /clock").problem(429, "d", "too-many-requests");
        assert!(detail.contains('3'), "{detail}");
        client.ask("CANCEL b").is_line(204, "b", "");
        assert_eq!(client.ask("GET d /clock").status, 200);
        assert_eq!(client.ask("GET d /topics/wind").status, 100);
        client.ask("GET b /topics/wind").problem(429, "b", "too-many-requests");
    }
}

#[test]
fn a_line_is_as_long_as_the_limit_says() {
    let fixture = with_limits(|limits| limits.multiplexed_line_bytes_max = 64);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let line = |len: usize| format!("GET 7 /{}", "x".repeat(len - 7));
        client.ask(&line(64)).problem(404, "7", "unknown-path");
        client.ask(&(line(64) + "\npayload")).problem(404, "7", "unknown-path");
        let detail = client.ask(&line(65)).problem(400, "7", "bad-message");
        assert!(detail.contains("longer than 64 bytes"), "{detail}");
        client.ask(&"x".repeat(60_000)).problem(400, "-", "bad-message");
    }
}

#[test]
fn a_message_is_as_long_as_the_limit_says() {
    let config = Config { frame_bytes_max: 1000, message_bytes_max: 1000, ..Config::default() };
    let fixture = with_limits(|limits| limits.multiplexed = Arc::new(config));
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let of = |len: usize| format!("GET 7 /nothing\n{}", "x".repeat(len - 15));
        client.ask(&of(1000)).problem(404, "7", "unknown-path");
        client.send(&of(1001));
        match carrier {
            Carrier::WebSocket => {
                let Client::WebSocket(socket) = &mut client else { unreachable!() };
                assert!(socket.next().starts_with("close 1009"));
            }
            Carrier::Tcp => {
                let detail = client.next().problem(400, "-", "bad-message");
                assert!(detail.contains("is 1001, at most 1000"), "{detail}");
                assert_eq!(client.message(), None, "what would come next cannot be told");
            }
        }
    }
}

#[test]
fn connections_count_like_any_other() {
    let fixture = with_limits(|limits| limits.connections_max = 1);
    let mut first = Client::open(Carrier::Tcp, &fixture);
    assert_eq!(first.ask("GET 7 /clock").status, 200);
    let mut second = Client::open(Carrier::Tcp, &fixture);
    second.next().problem(503, "-", "too-many-connections");
    assert_eq!(second.message(), None);
    fixture.get("/clock", &[]).problem(503, "too-many-connections");
    drop(first);
    // The place is free once the server has seen the end.
    loop {
        let mut third = Client::open(Carrier::Tcp, &fixture);
        third.send("GET 7 /clock");
        if third.next().status == 200 {
            break;
        }
    }
}

#[test]
fn threads_share_nothing_but_the_topics() {
    let fixture = crate::multiplexed::start(
        |options| options.threads = NonZero::new(3),
        anemone_hub::Retention::default(),
    );
    let mut clients: Vec<Client> = (0..12).map(|n| Client::open(BOTH[n % 2], &fixture)).collect();
    for client in &mut clients {
        assert_eq!(client.ask("GET r /topics/wind").status, 100);
    }
    fixture.publish(1..=1);
    for client in &mut clients {
        assert_eq!(client.next().number(), 1);
    }
}
