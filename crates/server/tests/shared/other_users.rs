//! Limits for other users of this machine. The tests need root, which alone can act for another user.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::fchown;

use anemone_hub::Retention;
use anemone_server::{Limits, Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::{Fixture, Reply, send, wait_until};
use socket2::{Domain, Socket, Type};

/// Connects as the user with this number, as far as the kernel tells.
fn connect_as(user: u32, fixture: &Fixture) -> TcpStream {
    let socket = Socket::new(Domain::for_address(fixture.address), Type::STREAM, None).unwrap();
    fchown(&socket, Some(user), None).unwrap();
    socket.connect(&fixture.address.into()).unwrap();
    socket.into()
}

/// Asks on a connection, and returns the status of the reply, if there is one.
fn status(stream: &mut TcpStream) -> Option<u16> {
    // Fails if the connection was refused and has ended.
    let _ = stream.write_all(b"GET /clock HTTP/1.1\r\nHost: localhost\r\n\r\n");
    Reply::try_read_head(&mut BufReader::new(stream)).ok().map(|reply| reply.status)
}

/// Returns true if the server refuses a connection before any request.
fn is_refused(mut stream: TcpStream) -> bool {
    Reply::read_head(&mut BufReader::new(&mut stream)).status == 503
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root can act for other users");
    }
    is_root
}

fn start(change: impl FnOnce(&mut Limits)) -> Fixture {
    let rule =
        TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("open-*".parse().unwrap()) };
    let with = |options: &mut Options| {
        options.topics = TopicRules::new([rule]).unwrap();
        change(&mut options.limits);
    };
    Fixture::with(with, Retention::default())
}

#[test]
fn each_other_user_has_a_share_of_the_connections_and_an_operator_gets_in_beside_all_of_them() {
    if !is_root() {
        return;
    }
    // One of the twenty is reserved, and a tenth of them is for one client.
    let fixture = start(|limits| limits.connections_max = 20);
    let users = (1..=9).flat_map(|user| [user, user]).chain([10]);
    let mut others: Vec<_> = users.map(|user| connect_as(user, &fixture)).collect();
    assert!(others.iter_mut().all(|stream| status(stream) == Some(200)));
    for (user, reason) in [(1, "it has two"), (9, "it has two"), (10, "all others are taken")] {
        assert!(is_refused(connect_as(user, &fixture)), "user {user}: {reason}");
    }
    assert_eq!(status(&mut fixture.connect()), Some(200), "the operator's own");
    drop(others.swap_remove(0));
    wait_until("the place of a connection that has ended is not free", || {
        status(&mut connect_as(1, &fixture)) == Some(200)
    });
}

#[test]
fn another_user_awaits_no_more_topics_than_one_client_may() {
    if !is_root() {
        return;
    }
    let fixture = start(|limits| limits.awaited_topics_per_address_max = Some(1));
    let follow = |user, topic: &str| {
        let mut stream = connect_as(user, &fixture);
        send(&mut stream, "GET", &format!("/topics/{topic}"), &[("Accept", "text/event-stream")]);
        let status = Reply::read_head(&mut BufReader::new(&mut stream)).status;
        (stream, status)
    };
    let awaited = [(1, "open-a", 200), (1, "open-b", 503), (2, "open-b", 200), (0, "open-c", 200)];
    let mut streams = Vec::new();
    for (user, topic, expected) in awaited.into_iter().chain([(0, "open-d", 200)]) {
        let (stream, status) = follow(user, topic);
        assert_eq!(status, expected, "{topic} for user {user}");
        streams.push(stream);
    }
}
