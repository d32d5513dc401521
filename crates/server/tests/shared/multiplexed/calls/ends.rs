//! The ends of calls: by their service, their client, or the server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use anemone_testing::seed;
use fastrand::Rng;
use rustix::net::sockopt::set_socket_linger;

use super::*;

#[test]
fn a_cancel_ends_the_work_at_once_and_frees_the_id() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for target in ["/svc/never", "/svc/gate/a", "/svc/ticks"] {
            client.send(&format!("GET a {target}"));
            service.open.wait(1);
            client.ask("GET a /svc/empty").problem(400, "-", "bad-message");
            client.ask("CANCEL a").is_line(204, "a", "");
            service.open.wait(0);
            // It has had its final status, and gets no other.
            client.send("CANCEL a");
            answer(&mut client, "GET a /svc/empty", "204 a", "");
        }
    }
}

#[test]
fn a_change_that_a_service_finishes_cannot_be_cancelled() {
    let service = Service::default();
    let change = |options: &mut anemone_server::Options| {
        options.mounts.push(service.mount().finishes_changes());
    };
    let fixture = start(change, Retention::default());
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send("GET a /svc/gate/a");
        client.ask("CANCEL a").is_line(204, "a", "");
        client.send("POST a /svc/gate/a");
        client.send("CANCEL a");
        answer(&mut client, "GET b /svc/empty", "204 b", "");
        service.gate.open("a");
        assert_eq!(client.message().as_deref(), Some("200 a\n\"a\""));
    }
}

#[test]
fn a_service_that_panics_or_takes_too_long_ends_its_own_call_only() {
    let service = Service::default();
    let fixture = serve(&service, |limits| limits.service_timeout = Duration::from_millis(200));
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send("GET s /svc/ticks");
        service.open.wait(1);
        client.ask("GET a /svc/panic").problem(500, "a", "internal");
        client.ask("GET a /svc/late-panic").problem(500, "a", "internal");
        let detail = client.ask("GET a /svc/never").problem(504, "a", "service-timeout");
        assert!(detail.contains("200ms"), "{detail}");
        service.open.wait(1);
        client.ask("CANCEL s").is_line(204, "s", "");
        service.open.wait(0);
    }
}

#[test]
fn a_client_that_goes_takes_its_calls_with_it() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send_all(
            &["GET a /svc/never", "GET b /svc/gate/a", "GET c /svc/ticks"].map(str::to_owned),
        );
        service.open.wait(3);
        reset(client);
        service.open.wait(0);
        // Nobody has passed the gate.
        service.gate.open("a");
        let mut other = Client::open(carrier, &fixture);
        answer(&mut other, "GET a /svc/gate/a", "200 a", "\"a\"");
    }
}

/// Drops a client and its connection. An end without a reset would look like the end of its side alone.
fn reset(client: Client) {
    set_socket_linger(stream(&client), Some(Duration::ZERO)).unwrap();
    drop(client);
}

fn stream(client: &Client) -> &TcpStream {
    match client {
        Client::WebSocket(socket) => &socket.stream,
        Client::Tcp(stream) => stream,
    }
}

#[test]
fn a_client_that_ends_its_side_gets_its_answers() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send("GET a /svc/gate/a");
        client.send("GET s /svc/ticks");
        service.open.wait(2);
        stream(&client).shutdown(Shutdown::Write).unwrap();
        service.gate.open("tick");
        assert_eq!(client.message().as_deref(), Some("206 s\n1"));
        service.gate.open("a");
        assert_eq!(client.message().as_deref(), Some("200 a\n\"a\""));
        reset(client);
        service.open.wait(0);
    }
}

#[test]
fn a_close_frame_ends_the_calls_of_its_connection() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    let mut client = Client::open(Carrier::WebSocket, &fixture);
    client.send_all(&["GET a /svc/never", "GET b /svc/ticks"].map(str::to_owned));
    service.open.wait(2);
    let Client::WebSocket(socket) = &mut client else { panic!("it is a WebSocket") };
    socket.connection.sender().close(None).unwrap();
    socket.flush();
    service.open.wait(0);
}

#[test]
fn a_client_that_has_ended_its_side_is_not_waited_for_without_end() {
    let service = Service::default();
    let fixture = serve(&service, |limits| limits.write_timeout = Duration::from_millis(300));
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send("GET a /svc/never");
        client.send("GET s /svc/ticks");
        service.gate.open("tick");
        assert_eq!(client.next().id, "s");
        stream(&client).shutdown(Shutdown::Write).unwrap();
        for id in ["a", "s"] {
            client.next().problem(504, id, "internal");
        }
        assert_eq!(client.message(), None);
        service.open.wait(0);
    }
}

#[test]
fn a_server_that_stops_waits_for_no_call() {
    for carrier in BOTH {
        let service = Service::default();
        let mut fixture = serve(&service, |_| {});
        let mut client = Client::open(carrier, &fixture);
        client.send("GET a /svc/never");
        service.open.wait(1);
        fixture.stop_while(move || {
            assert!(client.message().is_none_or(|message| message.starts_with("503 -")));
        });
        service.open.wait(0);
    }
}

/// The calls that are open at the same time.
const CALLS: usize = 1000;

#[test]
fn a_thousand_calls_side_by_side_are_each_answered_once_whatever_is_cancelled() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut random = Rng::with_seed(seed());
        let mut client = Client::open(carrier, &fixture);
        let mut open = BTreeMap::new();
        let target = |id: usize| match id % 5 {
            0 => "/svc/never".to_owned(),
            1 => "/svc/sleep".to_owned(),
            2 => "/svc/ticks".to_owned(),
            _ => format!("/svc/gate/{}", id % 7),
        };
        let calls: Vec<String> = (0..CALLS).map(|id| format!("GET {id} {}", target(id))).collect();
        for (id, call) in calls.iter().enumerate() {
            open.insert(id.to_string(), call.clone());
        }
        client.send_all(&calls);
        let mut cancelled = BTreeSet::new();
        let mut answered = 0;
        while !open.is_empty() {
            for name in ["0", "1", "2", "3", "4", "5", "6", "tick"] {
                (0..random.usize(..30)).for_each(|_| service.gate.open(name));
            }
            let ids: Vec<String> = open.keys().cloned().collect();
            let some: Vec<&String> = ids.iter().filter(|_| random.u8(..8) == 0).collect();
            client.send_all(&some.iter().map(|id| format!("CANCEL {id}")).collect::<Vec<_>>());
            cancelled.extend(some.into_iter().cloned());
            // All that came before this.
            client.send("GET last /svc/empty");
            loop {
                let reply = client.next();
                if !reply.is_final() {
                    assert!(open.contains_key(&reply.id), "it was over: {reply:?}");
                } else if reply.id == "last" {
                    break;
                } else {
                    let call = open.remove(&reply.id);
                    let call = call.unwrap_or_else(|| panic!("answered twice: {reply:?}"));
                    assert!(
                        reply.status == 200 || cancelled.contains(&reply.id),
                        "{call}: {reply:?}"
                    );
                    answered += 1;
                }
            }
        }
        assert_eq!(answered, CALLS);
        service.open.wait(0);
    }
}
