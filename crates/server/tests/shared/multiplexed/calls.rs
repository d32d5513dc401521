//! Calls of services: their answers, streams, ends and limits.

mod ends;
mod limits;
pub(crate) mod routes;

use anemone_hub::Retention;
use anemone_server::Limits;
use anemone_testing::Fixture;
use anemone_testing::multiplexed::{BOTH, Carrier, Client, Reply};
use anemone_ws::proto::{Message, Time};

use crate::multiplexed::start;
use routes::Service;

fn serve(service: &Service, change: impl FnOnce(&mut Limits)) -> Fixture {
    let change = |options: &mut anemone_server::Options| {
        options.mounts.push(service.mount());
        change(&mut options.limits);
    };
    start(change, Retention::default())
}

/// Asserts the one reply to a call.
#[track_caller]
fn answer(client: &mut Client, message: &str, line: &str, payload: &str) {
    client.send(message);
    let expected = if payload.is_empty() { line.to_owned() } else { format!("{line}\n{payload}") };
    assert_eq!(client.message(), Some(expected), "{message}");
}

#[test]
fn a_service_gets_method_target_fields_and_payload_and_its_reply_has_fields() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for (carrier, transport) in BOTH.into_iter().zip(["multiplexed", "tcp"]) {
        let client = &mut Client::open(carrier, &fixture);
        answer(
            client,
            "GET 7 /svc/hello",
            "200 7 content-type=text/plain;%20charset%3Dutf-8",
            "hello",
        );
        for (message, payload) in [
            ("GET 7 /svc/seen?a=%31&b", "GET /svc/seen?a=%31&b - - "),
            ("GET 7 /svc/%73een?a=%31", "GET /svc/seen?a=%31 - - "),
            ("PUT 7 /svc/seen\n{}", "PUT /svc/seen application/json - {}"),
            (
                "PATCH 7 /svc/seen content-type=text/plain x-own=a%20b%3D\nx",
                "PATCH /svc/seen text/plain a b= x",
            ),
            ("DELETE 7 /svc/seen", "DELETE /svc/seen - - "),
            ("QUERY 7 /svc/seen\n\n", "QUERY /svc/seen application/json - \n"),
        ] {
            answer(client, message, "200 7", &serde_json::to_string(payload).unwrap());
        }
        answer(client, "GET 7 /svc/who", "200 7", &format!("\"{transport} true Local true\""));
        answer(
            client,
            "GET 7 /svc/fields",
            "201 7 etag=%224%22 link=<a>,%20<b> location=../records/4",
            "",
        );
        answer(client, "HEAD 7 /svc/hello", "200 7 content-type=text/plain;%20charset%3Dutf-8", "");
        answer(client, "GET 7 /svc/empty", "204 7", "");
        answer(client, "GET 7 /svc/partial", "200 7", "\"part\"");
        let reply = client.ask("GET 7 /svc/conflict");
        assert_eq!(reply.problem(409, "7", "conflict"), "there is a record 7");
        client.ask("GET 7 /svc2").problem(404, "7", "unknown-path");
        // Pages are only for HTTP.
        client.ask("GET 7 /").problem(404, "7", "unknown-path");
    }
}

#[test]
fn a_body_is_one_payload_and_a_stream_has_a_reply_for_each_item() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let client = &mut Client::open(carrier, &fixture);
        let lines = |replies: &[Reply]| -> Vec<(u16, String)> {
            replies.iter().map(|reply| (reply.status, reply.payload.clone())).collect()
        };
        let item = |text: &str| (206, text.to_owned());
        let end = (200, String::new());
        let replies = client.call("GET s /svc/count/3");
        let expected = [item("1"), item("2"), item("3"), end.clone()];
        assert_eq!(lines(&replies), expected);
        assert_eq!(lines(&client.call("GET s /svc/count/0"))[..], expected[3..]);
        assert_eq!(client.call("HEAD s /svc/count/3").len(), 1);
        let replies = client.call("GET s /svc/parts");
        assert_eq!(lines(&replies), [item("one"), item("two"), end.clone()]);
        assert_eq!(replies[0].fields, ["content-type=text/plain"]);
        assert!(replies[1..].iter().all(|reply| reply.fields.is_empty()));
        let replies = client.call("GET s /svc/json-parts");
        assert_eq!(lines(&replies), [item("[1,"), item("2]"), end.clone()]);
        assert_eq!(replies[0].fields, ["content-type=application/json"], "they are no items");
        assert_eq!(client.ask("GET s /svc/big").payload.len(), 1 << 20);
        let replies = client.call("GET s /svc/bigger");
        let bytes: usize = replies.iter().map(|reply| reply.payload.len()).sum();
        assert_eq!((bytes, replies.len()), ((1 << 20) + 1, 18));
        let replies = client.call("GET s /svc/broken");
        assert_eq!(lines(&replies[..2]), [item("1"), item("2")]);
        replies[2].problem(500, "s", "internal");
    }
}

#[test]
fn payloads_are_any_bytes() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for payload in [&b"text \xc3\xa9"[..], &[0xff, 0, b'\n'], &[b'x'; 70_000]] {
            let line = b"POST 7 /svc/mirror content-type=application/octet-stream\n";
            client.send_bytes(&[line, payload].concat());
            let line = b"200 7 content-type=application/octet-stream\n";
            assert!(client.bytes() == Some([line, payload].concat()));
        }
    }
}

#[test]
fn calls_wait_side_by_side_and_are_answered_as_each_is_ready() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send_all(&["a", "b", "c"].map(|id| format!("GET {id} /svc/gate/{id}")));
        service.open.wait(3);
        // What is answered at once does not wait for them, nor they for each other.
        client.ask("GET d /svc2").problem(404, "d", "unknown-path");
        answer(&mut client, "GET d /svc/empty", "204 d", "");
        for id in ["b", "c", "a"] {
            service.gate.open(id);
            assert_eq!(client.message(), Some(format!("200 {id}\n\"{id}\"")));
        }
        // Other threads and timers wake it, too.
        for target in ["/svc/thread", "/svc/sleep", "/svc/yield"] {
            assert_eq!(client.ask(&format!("GET t {target}")).payload, "\"done\"", "{target}");
        }
        service.open.wait(0);
    }
}

#[test]
fn a_problem_has_the_fields_that_its_status_requires_and_none_has_a_body_for_head() {
    let change = |options: &mut anemone_server::Options| {
        options.mounts.push(anemone_server::Mount::run("/work", routes::NoWork).unwrap());
    };
    let fixture = start(change, Retention::default());
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let reply = client.ask("GET a /work");
        reply.problem(405, "a", "method-not-allowed");
        assert_eq!(reply.fields, ["allow=POST"]);
        answer(&mut client, "HEAD a /work", "405 a allow=POST", "");
        let reply = client.ask("POST a /work\n{}");
        reply.problem(400, "a", "bad-body");
        assert!(reply.fields.is_empty(), "{reply:?}");
    }
}

#[test]
fn a_call_may_be_started_as_a_run_and_read_to_its_end() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let started = client.ask("POST a /svc/count/3 prefer=respond-async");
        assert_eq!(started.status, 202, "{started:?}");
        let location = started.fields.iter().find_map(|field| field.strip_prefix("location="));
        let (_, key) = location.unwrap().split_once("runs/").unwrap();
        assert_eq!(started.json()["key"], key);
        let replies = client.call(&format!("GET r /runs/{key}"));
        assert_eq!(replies.last().unwrap().status, 200, "{replies:?}");
        let partial = replies.iter().filter(|reply| reply.payload.starts_with(r#"{"partial""#));
        assert_eq!(partial.count(), 3, "{replies:?}");
        client.ask(&format!("DELETE r /runs/{key}")).problem(409, "r", "run-ended");
    }
}

#[test]
fn a_stream_goes_on_beside_calls_and_readers() {
    let service = Service::default();
    let fixture = serve(&service, |_| {});
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let position = client.ask("GET r /topics/wind").position.unwrap();
        client.send("GET s /svc/ticks");
        for number in 1..=20 {
            service.gate.open("tick");
            assert_eq!(client.message(), Some(format!("206 s\n{number}")));
            assert_eq!(client.ask("GET c /svc/empty").status, 204);
            fixture.publish(number..=number);
            let event = client.next();
            assert_eq!((&*event.id, event.number()), ("r", number));
        }
        assert_ne!(client.ask("CANCEL r").position, Some(position));
        client.ask("CANCEL s").is_line(204, "s", "");
        service.open.wait(0);
    }
}

#[test]
fn a_call_and_its_reply_take_at_most_54_bytes_on_a_websocket() {
    let service = Service::default();
    let change = |options: &mut anemone_server::Options| options.mounts.push(service.messages());
    let fixture = start(change, Retention::default());
    let Client::WebSocket(mut socket) = Client::open(Carrier::WebSocket, &fixture) else {
        panic!("it is a WebSocket");
    };
    let sender = socket.connection.sender();
    sender.send(Message::Text("GET 7 /messages/testing")).unwrap();
    let sent = sender.transmit().len();
    socket.flush();
    let mut received = [0; 54];
    let len = std::io::Read::read(&mut socket.stream, &mut received).unwrap();
    assert!(sent + len <= 54, "{sent} and {len} bytes");
    let received = socket.connection.receive(Time::ZERO, &mut received[..len]);
    let Some(anemone_ws::proto::Event::Message(message)) = received.event else {
        panic!("no whole message in the first read");
    };
    assert_eq!(message.as_bytes(), b"200 7\n{\"id\":\"testing\"}");
}
