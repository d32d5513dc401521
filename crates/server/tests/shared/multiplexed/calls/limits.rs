//! The bounds of calls: payloads, memory, open requests, and clients that read slowly or not at all.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anemone_testing::wait_until;
use anemone_ws::proto::Config;

use super::*;

#[test]
fn a_payload_may_be_as_long_as_a_body() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let of = |len: usize| format!("POST a /svc/length\n{}", "x".repeat(len));
        assert_eq!(client.ask(&of(1 << 20)).payload, "1048576");
        let detail = client.ask(&of((1 << 20) + 1)).problem(413, "a", "body-too-big");
        assert!(detail.contains("at most 1048576"), "{detail}");
    }
}

#[test]
fn payloads_of_open_calls_may_have_so_many_bytes_and_count_until_the_end() {
    let service = Service::default();
    let fixture = serve(&service, |limits| limits.multiplexed_waiting_bytes_max = 100_000);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.ask("GET b /svc/empty");
        let before = fixture.held_bytes();
        let call = |id: &str, len: usize| format!("POST {id} /svc/never\n{}", "x".repeat(len));
        client.send(&call("a", 60_000));
        service.open.wait(1);
        assert!(fixture.held_bytes() >= before + 60_000);
        client.ask(&call("b", 40_001)).problem(429, "b", "too-many-requests");
        client.send(&call("b", 40_000));
        service.open.wait(2);
        client.ask("CANCEL a").is_line(204, "a", "");
        client.send(&call("a", 60_000));
        service.open.wait(2);
        for id in ["a", "b"] {
            client.ask(&format!("CANCEL {id}")).is_line(204, id, "");
        }
        // One that is longer than the limit is let in alone.
        client.send(&call("a", 100_001));
        service.open.wait(1);
        client.ask(&call("b", 1)).problem(429, "b", "too-many-requests");
        client.ask("CANCEL a").is_line(204, "a", "");
        wait_until("payloads are still held", || fixture.held_bytes() <= before);
    }
}

#[test]
fn as_many_calls_may_be_open_as_requests() {
    let service = Service::default();
    let fixture = serve(&service, |limits| limits.multiplexed_requests_max = 2);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send_all(&["a", "b"].map(|id| format!("GET {id} /svc/never")));
        client.ask("GET c /svc/empty").problem(429, "c", "too-many-requests");
        client.ask("CANCEL a").is_line(204, "a", "");
        answer(&mut client, "GET c /svc/empty", "204 c", "");
    }
}

#[test]
fn a_client_that_does_not_read_holds_its_own_services_back_and_no_other() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut slow = Client::open(carrier, &fixture);
        let mut other = Client::open(carrier, &fixture);
        service.made.store(0, Ordering::Relaxed);
        slow.send_all(&["a", "b"].map(|id| format!("GET {id} /svc/endless")));
        let mut before = 0;
        wait_until("the service does not wait", || {
            for _ in 0..20 {
                answer(&mut other, "GET a /svc/empty", "204 a", "");
            }
            let made = service.made.load(Ordering::Relaxed);
            let is_settled = made > 0 && made == before;
            before = made;
            is_settled
        });
        // The buffers of two sockets take a few MiB.
        assert!(before < 16 << 10, "{before} KiB were made for a client that reads nothing");
        assert!(fixture.held_bytes() < 1 << 20, "{} bytes are held", fixture.held_bytes());
        // Both streams take turns, and go on once they are read.
        let mut counts = [0, 0];
        for _ in 0..before + 1000 {
            let reply = slow.next();
            assert_eq!(reply.payload.len(), 1023);
            counts[usize::from(reply.id == "b")] += 1;
        }
        let [a, b] = counts;
        assert!(a.min(b) * 10 > a.max(b) * 7, "{counts:?}");
        drop(slow);
        service.open.wait(0);
    }
}

#[test]
fn a_connection_that_waits_for_a_service_is_not_idle() {
    let service = Service::default();
    // Long enough that no machine is late to ask.
    let config = Config { idle_timeout: Duration::from_secs(2), ..Config::default() };
    let fixture = serve(&service, |limits| {
        limits.multiplexed = Arc::new(config);
        limits.heartbeat = Duration::from_millis(50);
    });
    let mut waiting = Client::open(Carrier::Tcp, &fixture);
    waiting.send("GET a /svc/gate/a");
    service.open.wait(1);
    // Others are closed one after the other, each when it was idle for that time.
    for _ in 0..2 {
        let mut idle = Client::open(Carrier::Tcp, &fixture);
        answer(&mut idle, "GET a /svc/empty", "204 a", "");
        assert_eq!(idle.message(), None);
    }
    service.gate.open("a");
    assert_eq!(waiting.message().as_deref(), Some("200 a\n\"a\""));
    assert_eq!(waiting.message(), None, "idle once nothing is open");
}
