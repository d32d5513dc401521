//! Starts of runs by requests, on every transport.

use std::io::{BufReader, Write};
use std::sync::atomic::Ordering;

use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::process::Logging;
use anemone_testing::ways::{SSE, Told};
use anemone_testing::{Endpoint, EventStream, Reply, request, try_line, wait_until};
use anemone_ws::proto::Message;
use serde_json::json;

use crate::runs::driven::rest;
use crate::runs::served::{ASYNC, Served, post_to, run_of};

#[test]
fn a_run_is_started_and_found_at_its_location() {
    let served = Served::start();
    let reply = served.post("/math/count", &[ASYNC], "3");
    assert_eq!((reply.status, reply.field("preference-applied")), (202, Some("respond-async")));
    let state = reply.json();
    assert_eq!(state["service"], "/math/count");
    let key = state["key"].as_str().unwrap();
    assert_eq!(reply.field("location"), Some(&*format!("../runs/{key}")));
    let events = served.watch(&SSE, &format!("/runs/{key}"));
    assert_eq!(
        events,
        [
            json!({ "state": "running" }),
            json!({ "partial": 1 }),
            json!({ "partial": 2 }),
            json!({ "partial": 3 }),
            json!({ "state": "done", "result": "counted" }),
        ]
    );
}

#[test]
fn a_run_shows_its_name_and_the_input_of_its_start() {
    let served = Served::start();
    let json_type = ("Content-Type", "application/json");
    let target = "/math/count?name=up%20to+3&attach";
    let mut stream = served.fixture.connect();
    let fields = [("Content-Length", "1"), json_type];
    let head = request(served.fixture.address, "POST", target, &fields);
    stream.write_all((head + "3").as_bytes()).unwrap();
    let attached = run_of(&Reply::read_head(&mut BufReader::new(stream)));
    let named = run_of(&served.post("/math/count?name=up%20to+3", &[ASYNC, json_type], "3"));
    for run in [attached, named] {
        let state = served.state(&run);
        assert_eq!(state["name"], "up to 3");
        let expected = json!({"path": "/math/count", "query": null, "type": "application/json", "body": "3", "bytes": 1});
        assert_eq!(state["input"], expected);
    }
    let list = served.fixture.get("/runs?limit=1", &[]).json();
    assert_eq!(
        (&list["runs"][0]["name"], &list["runs"][0]["input"]["body"]),
        (&json!("up to 3"), &json!("3"))
    );
    // The query of a service that is no run service is its own.
    let state = served.post("/plain/items?name=a%0ab&attach=1", &[ASYNC], "x").json();
    assert_eq!(
        (&state["name"], &state["input"]["query"]),
        (&json!(null), &json!("name=a%0ab&attach=1"))
    );
    served.post("/math/count?name=a%0ab", &[ASYNC], "3").problem(400, "bad-parameter");
    let socket = "/math/count?name=by%20socket";
    let mut socket = served.fixture.websocket(socket, &[], &[]);
    socket.send(Message::Text("2"));
    // It is queued while the place of an ended run is not free yet.
    assert!(["queued", "running"].contains(&socket.json()["state"].as_str().unwrap()));
    // If it has ended, those that have not stand above it.
    let list = served.fixture.get("/runs", &[]).json();
    let runs = list["runs"].as_array().unwrap();
    assert!(runs.iter().any(|run| run["name"] == "by socket"), "{list}");
}

#[test]
fn without_respond_async_the_reply_has_the_events_and_says_where_the_run_is() {
    let served = Served::start();
    for (accept, media_type) in [
        ("*/*", "application/x-ndjson"),
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream;q=0.5, application/x-ndjson", "application/x-ndjson"),
    ] {
        let mut stream = served.fixture.connect();
        let fields = [("Content-Length", "1"), ("Accept", accept), ("If-None-Match", "*")];
        let head = request(served.fixture.address, "POST", "/math/count", &fields);
        stream.write_all((head + "2").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let head = Reply::read_head(&mut reader);
        assert_eq!((head.status, head.field("content-type")), (200, Some(media_type)));
        let run = run_of(&head);
        let mut lines = Vec::new();
        while let Some(line) = try_line(&mut reader).unwrap() {
            lines.push(line);
        }
        let text = lines.concat();
        assert!(text.contains("\"partial\":2") && text.contains("\"reason\":\"ended\""), "{text}");
        assert_eq!(served.state(&run)["state"], "done");
    }
}

#[test]
fn a_plain_websocket_starts_a_run_with_its_first_message_and_gets_each_event() {
    let served = Served::start();
    let mut socket = served.fixture.websocket("/math/count", &[], &[]);
    socket.send(Message::Text("2"));
    let events = [(); 4].map(|()| socket.json());
    assert_eq!(events[0], json!({ "state": "running" }));
    assert_eq!(events[3], json!({ "state": "done", "result": "counted" }));
    assert!(socket.next().starts_with("close 1000"));

    let mut socket = served.fixture.websocket("/bytes", &[], &[]);
    socket.send(Message::Text(""));
    let events = [(); 2].map(|()| socket.json());
    assert_eq!(events[1], json!({ "state": "done", "result": 0 }), "an empty body");
}

#[test]
fn a_plain_websocket_at_a_run_service_may_have_positions_and_notices() {
    let served = Served::start();
    let mut socket = served.fixture.websocket("/math/count", &["anemone.events"], &[]);
    socket.send(Message::Text("1"));
    let begin = socket.json();
    let epoch = begin["position"].as_str().unwrap().strip_suffix("-0").unwrap();
    for (offset, data) in (1..).zip([
        json!({ "state": "running" }),
        json!({ "partial": 1 }),
        json!({ "state": "done", "result": "counted" }),
    ]) {
        let event = socket.json();
        assert_eq!(event["position"], format!("{epoch}-{offset}"));
        assert_eq!(event["data"], data);
    }
    assert_eq!(socket.json(), json!({ "end": { "reason": "ended" } }));
    assert_eq!(socket.next(), "close 1000 the run has ended");

    let mut socket = served.fixture.websocket("/math/count", &[], &[]);
    socket.send(Message::Text("9999"));
    socket.next();
    socket.send(Message::Text("1"));
    let end = std::iter::repeat_with(|| socket.next()).find(|next| next.starts_with("close "));
    assert!(end.unwrap().starts_with("close 1008 a call takes one message"));
}

#[test]
fn a_multiplexed_request_starts_a_run_too() {
    // No run waits until the thread of another has returned.
    let served = Served::with(|limits| limits.runs_running_max = Some(9));
    for carrier in BOTH {
        let mut client = Client::open(carrier, &served.fixture);
        let reply = client.ask("POST a /math/count prefer=respond-async\n2");
        assert_eq!((reply.status, &*reply.id), (202, "a"));
        let state = reply.json();
        let location = format!("location=../runs/{}", state["key"].as_str().unwrap());
        assert!(reply.fields.contains(&location), "{reply:?}");
        assert!(reply.fields.contains(&"preference-applied=respond-async".to_owned()), "{reply:?}");

        // As a reader of the run gets them, with its location first.
        client.send("POST b /math/count\n2");
        let begin = client.next();
        assert_eq!((begin.status, &*begin.id), (100, "b"));
        let epoch = begin.position.as_deref().unwrap().strip_suffix("-0").unwrap();
        let run = begin.fields[0].strip_prefix("location=..").unwrap();
        let events = [(); 4].map(|()| client.next());
        assert!(events.iter().all(|event| (event.status, &*event.id) == (206, "b")), "{events:?}");
        let positions = events.each_ref().map(|event| event.position.clone().unwrap());
        assert_eq!(positions, [1, 2, 3, 4].map(|offset| format!("{epoch}-{offset}")));
        assert_eq!(events[1].json(), json!({ "partial": 1 }));
        assert_eq!(events[3].json(), json!({ "state": "done", "result": "counted" }));
        let end = client.next();
        assert_eq!((end.status, end.json()), (110, json!({ "end": { "reason": "ended" } })));
        client.next().is_line(200, "b", "");
        assert_eq!(served.state(run)["state"], "done");

        client.ask("POST c /math/count prefer=respond-async\n0").problem(422, "c", "unprocessable");
        client.ask("GET d /math/count").problem(405, "d", "method-not-allowed");
    }
}

#[test]
fn a_multiplexed_request_that_is_cancelled_takes_only_an_attached_run_with_it() {
    let served = Served::start();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &served.fixture);
        for (target, state) in [("/math/count?attach", "cancelled"), ("/math/count", "running")] {
            assert_eq!(client.ask(&format!("POST a {target}\n9999")).status, 100);
            // It may wait for the end of the one before.
            while client.next().json()["state"] != "running" {}
            client.send("CANCEL a");
            while client.next().status != 204 {}
            let run = served.newest();
            if state == "cancelled" {
                served.until(&run, state);
            } else {
                assert_eq!(served.state(&run)["state"], state);
                assert_eq!(served.fixture.request("DELETE", &run, &[]).status, 200);
            }
        }
    }
}

#[test]
fn a_client_that_goes_takes_only_an_attached_run_with_it() {
    let served = Served::start();
    let start = |target: &str| {
        let mut stream = served.fixture.connect();
        let head = request(served.fixture.address, "POST", target, &[("Content-Length", "4")]);
        stream.write_all((head + "9999").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let head = Reply::read_head(&mut reader);
        let run = run_of(&head);
        // The run works.
        while !try_line(&mut reader).unwrap().unwrap().contains("partial") {}
        run
    };
    let (detached, attached) = (start("/math/count"), start("/math/count?attach"));
    served.until(&attached, "cancelled");
    assert_eq!(served.state(&detached)["state"], "running");

    let mut socket = served.fixture.websocket("/math/count?attach", &[], &[]);
    socket.send(Message::Text("9999"));
    socket.next();
    let run = served.newest();
    drop(socket);
    served.until(&run, "cancelled");
    assert_eq!(served.state(&detached)["state"], "running");
}

#[test]
fn work_that_asks_stops_at_once_when_its_run_is_cancelled() {
    let served = Served::start();
    let run = served.run("9999");
    served.until(&run, "running");
    let asked = served.begun.elapsed().as_millis() as u64;
    assert_eq!(served.fixture.request("DELETE", &run, &[]).status, 200);
    wait_until("it is so", || served.stopped.load(Ordering::SeqCst) > 0);
    let took = served.stopped.load(Ordering::SeqCst) - asked;
    println!("stopped {took} ms after the request to cancel, meant to be within 100 ms");
    assert!(took < 5_000, "{took}");
}

#[test]
fn a_start_that_is_refused_says_why_and_there_is_no_run() {
    let served = Served::start();
    let post = |target: &str, fields: &[(&str, &str)], body: &str| {
        served.post(target, &[fields, &[ASYNC]].concat(), body)
    };
    let detail = post("/math/count", &[], "1 2").problem(400, "bad-body");
    assert!(detail.contains("line 1 column 3"), "{detail}");
    post("/math/count", &[("Content-Type", "text/plain")], "1").problem(415, "unsupported-type");
    post("/math/count?x=1", &[], "1").problem(400, "bad-parameter");
    let reply = post("/math/count", &[], "0");
    reply.problem(422, "unprocessable");
    assert_eq!(reply.json()["pointer"], "/last");
    let reply = served.fixture.get("/math/count", &[]);
    let detail = reply.problem(405, "method-not-allowed");
    assert_eq!(detail, "this path does not accept GET; POST starts a run");
    assert_eq!(reply.field("allow"), Some("POST"));
    let from_elsewhere = [("Sec-Fetch-Site", "cross-site")];
    post("/math/count", &from_elsewhere, "1").problem(403, "origin-refused");
    let elsewhere = [("X-Forwarded-For", "192.0.2.1")];
    post("/plain/json", &elsewhere, "").problem(403, "start-refused");
    let explanation = served.fixture.get("/problems/start-refused", &[]).body;
    assert!(explanation.contains("start = \"anyone\" in the service's [[run]]"), "{explanation}");
    assert_eq!(post("/math/count", &elsewhere, "1").status, 202, "everybody may");
    post("/math/count", &[("Idempotency-Key", "")], "1").problem(400, "bad-parameter");
    let list = served.fixture.get("/runs", &[]).json();
    assert_eq!(list["runs"].as_array().unwrap().len(), 1, "{list}");
}

#[test]
fn a_start_is_safe_to_repeat_with_a_key() {
    let served = Served::start();
    let key = ("Idempotency-Key", "a-b");
    let first = served.post("/math/count", &[ASYNC, key], "7");
    let again = served.post("/math/count", &[ASYNC, key], "7");
    assert_eq!((again.status, again.field("idempotent-replayed")), (202, Some("true")));
    assert_eq!(first.field("idempotent-replayed"), None);
    assert_eq!(first.json()["key"], again.json()["key"]);
    served.post("/math/count", &[ASYNC, key], "8").problem(422, "key-reused");
}

#[test]
fn a_page_of_an_allowed_origin_may_start_runs_and_see_where_they_are() {
    let (page, other) = ("https://app.example", "https://evil.example");
    let served = Served::of(|options| options.allowed_origins = vec![page.parse().unwrap()]);
    let preflight = |target: &str| {
        let reply = served.fixture.request("OPTIONS", target, &[("Origin", page)]);
        assert_eq!(reply.status, 204);
        let field = |name| reply.field(name).unwrap().to_owned();
        (field("access-control-allow-methods"), field("access-control-allow-headers"))
    };
    let (methods, fields) = preflight("/math/count");
    assert_eq!((&*methods, &*fields), ("POST", "Content-Type, Idempotency-Key, Prefer"));
    assert_eq!(preflight("/runs/0f").0, "GET, HEAD, DELETE");
    let reply = served.post("/math/count", &[ASYNC, ("Origin", page)], "1");
    assert_eq!((reply.status, reply.field("access-control-allow-origin")), (202, Some(page)));
    assert!(reply.field("access-control-expose-headers").unwrap().contains("Location"));
    served.post("/math/count", &[ASYNC, ("Origin", other)], "1").problem(403, "origin-refused");
}

#[test]
fn a_server_that_stops_cancels_its_runs() {
    let mut served = Served::start();
    let run = served.run("9999");
    let mut watcher = SSE.read_path(SSE.connect(&served.fixture), &run, "").unwrap();
    watcher.next();
    served.fixture.stop_while(move || while !matches!(watcher.next(), Told::End(_)) {});
    wait_until("it is so", || served.stopped.load(Ordering::SeqCst) > 0);
}

#[test]
fn the_example_counts_primes_over_each_transport() {
    let mut example = Logging::example("run");
    let endpoint = Endpoint { address: example.address() };
    let reply = post_to(&endpoint, "/primes", &[ASYNC], "50000");
    assert_eq!(reply.status, 202);
    let run = format!("/{}", reply.field("location").unwrap());
    let mut events: EventStream = endpoint.events(&run, &[]);
    let last = rest(&mut events).pop().unwrap();
    assert_eq!(last, json!({ "state": "done", "result": { "primes": 5133 } }));
    let mut socket = endpoint.websocket("/primes", &[], &[]);
    socket.send(Message::Text("100"));
    let last = loop {
        let event = socket.json();
        if !event["state"].is_null() && event["state"] != "running" {
            break event;
        }
    };
    assert_eq!(last["result"]["primes"], 25);
    post_to(&endpoint, "/primes", &[ASYNC], "ten").problem(400, "bad-body");
    drop((events, socket));
    example.terminate();
    assert!(example.wait().success());
}
