//! States, cancelling, and the ends of runs.

use std::io::{BufReader, Write};

use anemone_hub::run::{RunWork, StartRun};
use anemone_server::{Options, ViewRight};
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::ways::{ALL, LONG_POLL, SSE, Told, WEBSOCKET, each};
use anemone_testing::{Fixture, Reply, send};
use anemone_ws::proto::Message;
use serde_json::{Value, json};

use crate::runs::driven::{Driven, number, rest};

fn state(fixture: &Fixture, run: &Driven) -> Value {
    fixture.get(&format!("{}?state", run.path()), &[]).json()
}

/// Waits for the first partial result.
fn until_partial(fixture: &Fixture, run: &Driven) {
    let mut reader = run.open(fixture, &SSE, "");
    loop {
        if let Told::Event { data, .. } = reader.next()
            && number(&data).is_some()
        {
            return;
        }
    }
}

#[test]
fn a_state_says_how_far_a_run_is_without_its_events() {
    let fixture = Fixture::start();
    let run = Driven::start(&fixture);
    run.progress(0.5);
    run.partials(1..=1);
    until_partial(&fixture, &run);
    let path = run.path();
    let reply = fixture.get(&format!("{path}?state"), &[]);
    let said = reply.json();
    assert_eq!((reply.status, reply.field("cache-control")), (200, Some("no-store")));
    assert_eq!((&said["state"], &said["progress"]), (&json!("running"), &json!(0.5)));
    assert_eq!((&said["service"], &said["place"]), (&json!("/driven"), &Value::Null));
    assert_eq!((&said["ended"], &said["result"]), (&Value::Null, &Value::Null));
    assert_eq!(format!("/runs/{}", said["key"].as_str().unwrap()), path);
    for carrier in BOTH {
        let reply = Client::open(carrier, &fixture).ask(&format!("GET s {path}?state"));
        assert_eq!((reply.status, &reply.json()["state"]), (200, &json!("running")));
    }
    run.done(&json!([1, 2]));
    rest(&mut *run.open(&fixture, &SSE, ""));
    let said = state(&fixture, &run);
    assert_eq!((&said["state"], &said["result"]), (&json!("done"), &json!([1, 2])));
    assert!(said["ended"].is_number(), "{said}");
}

#[test]
fn a_delete_cancels_a_run_once_and_its_watchers_see_the_end() {
    let fixture = Fixture::start();
    let run = Driven::start(&fixture);
    run.partials(1..=1);
    let mut reader = run.open(&fixture, &SSE, "");
    until_partial(&fixture, &run);
    let reply = fixture.request("DELETE", &run.path(), &[]);
    assert_eq!((reply.status, &reply.json()["state"]), (200, &json!("cancelled")));
    let events = rest(&mut *reader);
    assert_eq!(events.last(), Some(&json!({ "state": "cancelled" })));
    fixture.request("DELETE", &run.path(), &[]).problem(409, "run-ended");
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.ask(&format!("DELETE d {}", run.path())).problem(409, "d", "run-ended");
        let other = Driven::start(&fixture);
        let reply = client.ask(&format!("DELETE e {}", other.path()));
        assert_eq!((reply.status, &reply.json()["state"]), (200, &json!("cancelled")));
    }
}

#[test]
fn a_request_that_a_run_does_not_take_is_refused() {
    let fixture = Fixture::start();
    let run = Driven::start(&fixture);
    let path = run.path();
    for method in ["POST", "PUT", "PATCH"] {
        let reply = fixture.request(method, &path, &[]);
        reply.problem(405, "method-not-allowed");
        assert_eq!(reply.field("allow"), Some("GET, HEAD, DELETE"), "{method}");
    }
    let from_elsewhere = [("Sec-Fetch-Site", "cross-site")];
    fixture.request("DELETE", &path, &from_elsewhere).problem(403, "origin-refused");
    fixture.request("DELETE", &format!("{path}?x"), &[]).problem(400, "bad-parameter");
    fixture.request("DELETE", &path, &[("If-Match", "*")]).problem(400, "bad-parameter");
    fixture.get(&format!("{path}?state&after=latest"), &[]).problem(400, "bad-parameter");
    let mut socket = fixture.websocket(&path, &[], &[]);
    socket.send(Message::Text("1"));
    let end = loop {
        let text = socket.next();
        if text.starts_with("close") {
            break text;
        }
    };
    assert_eq!(end, "close 1008 this path does not accept a message");
    for carrier in BOTH {
        let reply = Client::open(carrier, &fixture).ask(&format!("POST p {path}\n1"));
        reply.problem(405, "p", "method-not-allowed");
    }
}

#[test]
fn a_key_that_belongs_to_no_run_is_not_found_in_any_way() {
    let fixture = &Fixture::start();
    let run = Driven::start(fixture);
    let key = run.run.key().to_string();
    let other = if key.starts_with('0') { "1" } else { "0" };
    let other = format!("{other}{}", &key[1..]);
    each(|way| {
        for key in [&*other, &key[..31], &key.to_uppercase(), "", "x/y"] {
            if key != run.run.key().to_string() {
                let detail = way.problem(fixture, &format!("/runs/{key}"), 404, "unknown-run");
                assert_eq!(detail, "there is no run with this key");
            }
        }
        for below in ["/", "/state"] {
            let path = format!("/runs/{key}{below}");
            let detail = way.problem(fixture, &path, 404, "unknown-run");
            assert!(detail.starts_with("a run has no paths below its own"), "{detail}");
        }
    });
    for target in [format!("/runs/{other}"), format!("/runs/{other}?state")] {
        fixture.get(&target, &[]).problem(404, "unknown-run");
    }
    fixture.request("DELETE", &format!("/runs/{other}"), &[]).problem(404, "unknown-run");
}

#[test]
fn a_run_that_has_ended_makes_nobody_wait() {
    let fixture = Fixture::start();
    let run = Driven::start(&fixture);
    run.done(&json!(7));
    rest(&mut *run.open(&fixture, &SSE, ""));
    let page = fixture.get(&format!("{}?wait=100", run.path()), &[]);
    let next = page.next();
    assert!(page.body.find("\"end\":{\"reason\":\"ended\"}") < page.body.find("\"events\""));
    let begun = std::time::Instant::now();
    let page = fixture.get(&format!("{}?wait=100&after={next}", run.path()), &[]).json();
    assert_eq!((&page["end"], &page["events"]), (&json!({ "reason": "ended" }), &json!([])));
    assert!(begun.elapsed().as_secs() < 50);

    let resumed = [("Last-Event-ID", &*next)];
    for media_type in ["text/event-stream", "application/x-ndjson"] {
        let fields = [&resumed[..], &[("Accept", media_type)]].concat();
        let reply = fixture.get(&run.path(), &fields);
        assert_eq!((reply.status, reply.field("content-type")), (204, None), "{media_type}");
        let target = format!("{}?lastEventId={next}", run.path());
        assert_eq!(fixture.get(&target, &[("Accept", media_type)]).status, 204, "{media_type}");
    }
    let mut stream = fixture.events(&format!("{}?after={next}", run.path()), &[]);
    assert!(rest(&mut stream).is_empty());
}

#[test]
fn the_page_of_a_run_has_another_tag_once_the_run_has_ended() {
    let fixture = Fixture::start();
    let run = Driven::start(&fixture);
    run.partials(1..=1);
    until_partial(&fixture, &run);
    let target = format!("{}?limit=1", run.path());
    let tag = |fields: &[(&str, &str)]| {
        let reply = fixture.get(&target, fields);
        (reply.status, reply.field("etag").unwrap().to_owned())
    };
    let (_, first) = tag(&[]);
    assert_eq!(tag(&[("If-None-Match", &first)]).0, 304);
    run.done(&Value::Null);
    rest(&mut *run.open(&fixture, &SSE, ""));
    let last = fixture.get(&run.path(), &[]);
    let tag = last.field("etag").unwrap();
    assert!(tag.ends_with(".end\""), "{tag}");
    let head = fixture.request("HEAD", &run.path(), &[]);
    assert_eq!((head.status, head.field("etag")), (200, Some(tag)));
}

#[test]
fn a_panic_is_a_failed_run_with_its_message_and_the_server_goes_on() {
    let fixture = Fixture::start();
    for round in 0..3 {
        let run = Driven::start(&fixture);
        run.panic(&format!("ouch {round}"));
        let events = rest(&mut *run.open(&fixture, &WEBSOCKET, ""));
        let end = events.last().unwrap();
        assert_eq!(
            (&end["state"], &end["problem"]["type"]),
            (&json!("failed"), &json!("/problems/run-failed"))
        );
        let detail = end["problem"]["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("ouch {round}")), "{detail}");
        assert_eq!(state(&fixture, &run)["problem"], end["problem"]);
    }
    let run = Driven::start(&fixture);
    run.fail("no such file");
    let events = rest(&mut *run.open(&fixture, &LONG_POLL, ""));
    assert_eq!(events.last().unwrap()["problem"]["detail"], "no such file");
    assert_eq!(fixture.get("/health", &[]).status, 200);
}

#[test]
fn a_watcher_that_goes_does_not_cancel_and_one_that_ends_its_side_gets_what_there_is() {
    let fixture = Fixture::start();
    let run = Driven::start(&fixture);
    for way in ALL {
        drop(run.open(&fixture, way, ""));
    }
    let mut stream = fixture.connect();
    send(&mut stream, "GET", &run.path(), &[("Accept", "application/x-ndjson")]);
    stream.flush().unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(Reply::read_head(&mut BufReader::new(stream)).status, 200);
    assert_eq!(state(&fixture, &run)["state"], "running");
    run.done(&Value::Null);
    assert_eq!(rest(&mut *run.open(&fixture, &SSE, "")).last().unwrap()["state"], "done");
}

#[test]
fn the_list_has_the_newest_runs_first_without_their_results() {
    let fixture = Fixture::start();
    let runs = [(); 3].map(|()| Driven::start(&fixture));
    runs[0].done(&json!("long"));
    rest(&mut *runs[0].open(&fixture, &SSE, ""));
    for run in &runs[1..] {
        let is_running = || state(&fixture, run)["state"] == "running";
        anemone_testing::wait_until("it is no longer queued", is_running);
    }
    let keys = |target: &str| {
        let list = fixture.get(target, &[]).json();
        let runs = list["runs"].as_array().unwrap().clone();
        assert!(runs.iter().all(|run| run.get("result").is_none()), "{list}");
        runs.iter().map(|run| run["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected: Vec<_> = runs.iter().rev().map(|run| run.run.key().to_string()).collect();
    assert_eq!(keys("/runs"), expected);
    assert_eq!(keys("/runs?limit=2"), expected[..2]);
    assert_eq!(keys("/runs?state=done"), expected[2..]);
    assert_eq!(keys("/runs?state=done,running&limit=1"), expected[..1]);
    for (target, total) in [("", 3), ("?limit=1", 3), ("?state=running", 2), ("?state=failed", 0)] {
        assert_eq!(fixture.get(&format!("/runs{target}"), &[]).json()["total"], total, "{target}");
    }
    assert_eq!(fixture.get("/runs?limit=1", &[]).json()["kept_ms"], 600_000);
    fixture.get("/runs?limit=1001", &[]).problem(400, "bad-parameter");
    fixture.get("/runs?service=driven", &[]).problem(400, "bad-parameter");
    let unknown = fixture.get("/runs?state=odd", &[]).problem(400, "bad-parameter");
    assert!(unknown.contains("queued, running, done, failed, cancelled"), "{unknown}");
    fixture.get("/runs", &[("X-Forwarded-For", "192.0.2.1")]).problem(403, "local-only");
    let open = |options: &mut Options| options.runs_to = ViewRight::Anyone;
    let others = Fixture::with(open, Default::default());
    assert_eq!(others.get("/runs", &[("X-Forwarded-For", "192.0.2.1")]).status, 200);
    fixture.request("POST", "/runs", &[]).problem(405, "method-not-allowed");
    for carrier in BOTH {
        let reply = Client::open(carrier, &fixture).ask("GET l /runs?limit=1");
        assert_eq!(reply.json()["runs"][0]["key"], json!(expected[0]));
        let reply = Client::open(carrier, &fixture).ask("GET l /runs?state=done");
        assert_eq!(reply.json()["runs"][0]["key"], json!(expected[2]));
    }
    let work = RunWork::new(|_| Ok(None));
    let other = fixture.runs.start(StartRun::new("/b/other", work)).unwrap().run.key().to_string();
    assert_eq!(keys("/runs?service=/b/other"), [other]);
    assert_eq!(keys("/runs?service=%2Fdriven"), expected);
    assert_eq!(keys("/runs?service=/driven&state=running&limit=1"), expected[..1]);
    for (service, total) in [("/driven&limit=1", 3), ("/driven&state=done", 1), ("/b", 0)] {
        let list = fixture.get(&format!("/runs?service={service}"), &[]).json();
        assert_eq!(list["total"], total, "{service}");
    }
}
