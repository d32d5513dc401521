//! Starts of runs by requests, on every transport.

use std::convert::Infallible;
use std::io::{BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anemone_hub::Data;
use anemone_hub::run::{RunContext, RunInput, RunOutcome, RunRefusal, RunService, RunWork};
use anemone_server::{Caller, Callers, Limits, Mount, Options};
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::process::Logging;
use anemone_testing::ways::{SSE, Told, Way};
use anemone_testing::{Endpoint, EventStream, Fixture, Reply, request, try_line, wait_until};
use anemone_ws::proto::Message;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use futures_util::stream;
use serde_json::{Value, json};

use crate::driven::rest;

const ASYNC: (&str, &str) = ("Prefer", "respond-async");

/// Counts to the number in the body. Above a thousand it waits until it is stopped, and says when that was.
struct Counting {
    stopped: Arc<AtomicU64>,
    begun: Instant,
}

impl RunService for Counting {
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal> {
        if input.content_type.as_deref() == Some("text/plain") {
            return Err(RunRefusal::UnsupportedType("expected application/json".to_owned()));
        }
        if input.query.is_some() {
            return Err(RunRefusal::BadParameter("there are no parameters".to_owned()));
        }
        let last: u64 = serde_json::from_slice(&input.body)
            .map_err(|error| RunRefusal::BadBody(error.to_string()))?;
        if last == 0 {
            let (pointer, detail) = (Some("/last".to_owned()), "must be 1 or more".to_owned());
            return Err(RunRefusal::Unprocessable { pointer, detail });
        }
        let (stopped, begun) = (Arc::clone(&self.stopped), self.begun);
        Ok(RunWork::new(move |run| {
            count(run, last).inspect_err(|_| {
                let millis = begun.elapsed().as_millis() as u64;
                stopped.store(millis, Ordering::SeqCst);
            })
        }))
    }
}

fn count(run: &RunContext, last: u64) -> RunOutcome {
    let data = |value: Value| Data::json(&value).unwrap();
    for number in 1..=last.min(1_000) {
        run.partial(&data(number.into()))?;
    }
    if last > 1_000 {
        loop {
            run.sleep(Duration::from_millis(5))?;
        }
    }
    Ok(Some(data("counted".into())))
}

/// Counts the bytes of the body, if there is no word about its type.
struct CountingBytes;

impl RunService for CountingBytes {
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal> {
        assert_eq!(input.content_type, None);
        let len = Data::json(&input.body.len()).unwrap();
        Ok(RunWork::new(move |_| Ok(Some(len))))
    }
}

/// A server with a run service, which everybody may use, and one that only streams.
struct Served {
    fixture: Fixture,
    /// The time at which a work was stopped, in milliseconds.
    stopped: Arc<AtomicU64>,
    begun: Instant,
}

impl Served {
    fn start() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Limits)) -> Self {
        Self::of(|options| change(&mut options.limits))
    }

    fn of(change: impl FnOnce(&mut Options)) -> Self {
        let (stopped, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let counting = Counting { stopped: Arc::clone(&stopped), begun };
        let fixture = Fixture::with(
            |options| {
                let run = Mount::run("/math/count", counting).unwrap().callers(Callers::Anyone);
                options.mounts.push(run);
                options.mounts.push(Mount::run("/bytes", CountingBytes).unwrap());
                options.mounts.push(Mount::new("/plain", routes()).unwrap());
                change(options);
            },
            Default::default(),
        );
        Self { fixture, stopped, begun }
    }

    fn post(&self, target: &str, fields: &[(&str, &str)], body: &str) -> Reply {
        post_to(&self.fixture, target, fields, body)
    }

    /// Starts a run and returns its path.
    fn run(&self, body: &str) -> String {
        let reply = self.post("/math/count", &[ASYNC], body);
        assert_eq!(reply.status, 202, "{reply:?}");
        let location = reply.field("location").unwrap();
        location.strip_prefix("..").unwrap().to_owned()
    }

    fn state(&self, run: &str) -> Value {
        self.fixture.get(&format!("{run}?state"), &[]).json()
    }

    fn watch(&self, way: &Way, run: &str) -> Vec<Value> {
        rest(&mut *way.read_path(way.connect(&self.fixture), run, "").unwrap())
    }

    /// Waits until the run is in this state.
    fn until(&self, run: &str, state: &str) {
        wait_until("it is so", || self.state(run)["state"] == state);
    }
}

fn post_to(endpoint: &Endpoint, target: &str, fields: &[(&str, &str)], body: &str) -> Reply {
    let mut stream = endpoint.connect();
    let len = body.len().to_string();
    let fields = [&[("Content-Length", &*len)], fields].concat();
    stream
        .write_all((request(endpoint.address, "POST", target, &fields) + body).as_bytes())
        .unwrap();
    Reply::read(&mut BufReader::new(stream), "POST")
}

fn routes() -> Router {
    let lines = |lines: &'static [&'static str]| {
        let lines = stream::iter(lines.iter().map(|line| Ok::<_, Infallible>(format!("{line}\n"))));
        ([("content-type", "application/x-ndjson")], Body::from_stream(lines)).into_response()
    };
    let items = move || async move {
        lines(&["1", "progress 0.25 a quarter", "", "{\"progress\":0.5}", "words", "{\"n\": 2.50}"])
    };
    let refused = async || (axum::http::StatusCode::CONFLICT, "already there");
    let problem = async || -> Response {
        let problem = anemone_server::Problem::new(anemone_server::Kind::Conflict, "it exists");
        problem.into_response().into_response()
    };
    let own = async || {
        let fields = [("content-type", "application/problem+json")];
        let problem = r#"{"type":"/problems/own","detail":"an own problem"}"#;
        (axum::http::StatusCode::FORBIDDEN, fields, problem)
    };
    Router::new()
        .route("/plain/items", post(items))
        .route("/plain/own", post(own))
        .route("/plain/read", get(async || "read"))
        .route(
            "/plain/json",
            post(async || ([("content-type", "application/json")], "{\"a\": [1]}")),
        )
        .route("/plain/text", post(async |body: String| format!("you said {body}")))
        .route("/plain/bytes", post(async || vec![0_u8, 255]))
        .route("/plain/refused", post(refused))
        .route("/plain/problem", post(problem))
        .route("/plain/panics", post(async || -> String { panic!("ouch") }))
        .route(
            "/plain/who",
            post(async |Extension(caller): Extension<Caller>| {
                format!("{} {:?}", caller.transport(), caller.identity())
            }),
        )
        .route("/plain/never", any(async || std::future::pending::<String>().await))
}

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
fn without_respond_async_the_reply_has_the_events_and_says_where_the_run_is() {
    let served = Served::start();
    for (accept, media_type) in [
        ("*/*", "application/x-ndjson"),
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream;q=0.5, application/x-ndjson", "application/x-ndjson"),
    ] {
        let mut stream = served.fixture.connect();
        let fields = [("Content-Length", "1"), ("Accept", accept)];
        let head = request(served.fixture.address, "POST", "/math/count", &fields);
        stream.write_all((head + "2").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let head = Reply::read_head(&mut reader);
        assert_eq!((head.status, head.field("content-type")), (200, Some(media_type)));
        let run = head.field("location").unwrap().strip_prefix("..").unwrap().to_owned();
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
            let list = served.fixture.get("/runs?limit=1", &[]).json();
            let run = format!("/runs/{}", list["runs"][0]["key"].as_str().unwrap());
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
        let run = head.field("location").unwrap().strip_prefix("..").unwrap().to_owned();
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
    let list = served.fixture.get("/runs?limit=1", &[]).json();
    let run = format!("/runs/{}", list["runs"][0]["key"].as_str().unwrap());
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
    assert!(explanation.contains("callers = \"anyone\" in the service's [[run]]"), "{explanation}");
    assert_eq!(post("/math/count", &elsewhere, "1").status, 202, "everybody may");
    post("/math/count", &[("Idempotency-Key", "")], "1").problem(400, "bad-parameter");
    let list = served.fixture.get("/runs", &[]).json();
    assert_eq!(list["runs"].as_array().unwrap().len(), 1, "{list}");
}

#[test]
fn a_body_that_is_too_big_starts_nothing() {
    let served = Served::with(|limits| limits.batch_bytes_max = 100);
    let body = " ".repeat(99) + "1";
    assert_eq!(served.post("/math/count", &[ASYNC], &body).status, 202);
    served.post("/math/count", &[ASYNC], &(body.clone() + " ")).problem(413, "body-too-big");
    served.post("/plain/text", &[ASYNC], &(body + " ")).problem(413, "body-too-big");
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
fn runs_wait_in_a_queue_of_a_certain_length_and_know_their_place() {
    let served = Served::with(|limits| {
        limits.runs_running_max = Some(1);
        limits.runs_queued_max = 2;
    });
    let runs = [(); 3].map(|()| served.run("9999"));
    assert_eq!(
        [0, 1, 2].map(|run| served.state(&runs[run])["place"].clone()),
        [json!(null), json!(0), json!(1)]
    );
    let reply = served.post("/math/count", &[ASYNC], "9999");
    reply.problem(503, "too-many-runs");
    assert!(reply.field("retry-after").is_some());
    served.fixture.request("DELETE", &runs[0], &[]);
    served.until(&runs[1], "running");
    assert_eq!(served.state(&runs[2])["place"], 0);
    let events = served.fixture.get(&runs[2], &[]).json();
    let places: Vec<_> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["data"]["place"].clone())
        .collect();
    assert_eq!(places, [json!(1), json!(0)]);
}

#[test]
fn the_queue_has_a_limit_for_each_address_but_not_for_this_machine() {
    let served = Served::with(|limits| {
        limits.runs_running_max = Some(1);
        limits.runs_queued_max = 5;
        limits.runs_queued_per_address_max = Some(2);
    });
    // A field of a proxy that is not trusted: the client counts as another machine's.
    let elsewhere = [ASYNC, ("X-Forwarded-For", "192.0.2.1")];
    let start = || served.post("/math/count", &elsewhere, "9999");
    // The first one works.
    assert_eq!([(); 3].map(|()| start().status), [202; 3]);
    let detail = start().problem(503, "too-many-runs");
    assert_eq!(detail, "this client has too many runs in the queue");
    assert_eq!([(); 3].map(|()| served.post("/math/count", &[ASYNC], "9999").status), [202; 3]);
    let detail = served.post("/math/count", &[ASYNC], "9999").problem(503, "too-many-runs");
    assert_eq!(detail, "the queue of runs is full");
}

#[test]
fn a_run_keeps_as_many_bytes_as_it_may_and_refuses_a_result_that_is_larger() {
    let served = Served::with(|limits| limits.run_bytes_max = 2_000);
    let run = served.run("1000");
    served.until(&run, "done");
    let page = served.fixture.get(&run, &[]).json();
    assert_eq!(page["gap"]["reason"], "retention");
    assert!(page["first"].as_u64().unwrap() > 900, "{page}");
    for (bytes, state) in [(2_000, "done"), (2_001, "failed")] {
        let body = "x".repeat(bytes - "\"you said \"".len());
        let reply = served.post("/plain/text", &[ASYNC], &body);
        let run = reply.field("location").unwrap().strip_prefix("..").unwrap().to_owned();
        served.until(&run, state);
        // The last event is kept, whatever it takes.
        let page = served.fixture.get(&format!("{run}?after=-1"), &[]).json();
        assert_eq!(page["events"][0]["data"]["state"], state);
    }
}

#[test]
fn the_runs_keep_as_much_as_they_may_together_and_the_oldest_go_first() {
    let served = Served::with(|limits| limits.runs_bytes_max = 100_000);
    let first = served.run("1000");
    served.until(&first, "done");
    let second = served.run("1000");
    served.until(&second, "done");
    assert_eq!(served.fixture.get(&first, &[]).status, 404);
    assert_eq!(served.state(&second)["state"], "done");
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
fn a_run_that_ended_too_long_ago_is_gone_and_one_that_takes_too_long_fails() {
    let served = Served::with(|limits| {
        limits.run_retention = Duration::from_millis(500);
        limits.run_time_max = Duration::from_millis(50);
    });
    let run = served.run("9999");
    let events = served.watch(&SSE, &run);
    let problem = &events.last().unwrap()["problem"];
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&json!("/problems/run-timeout"), &json!(504))
    );
    wait_until("it is so", || served.fixture.get(&run, &[]).status == 404);
    served.fixture.get(&format!("{run}?state"), &[]).problem(404, "unknown-run");
}

#[test]
fn the_items_of_any_service_are_partial_results_and_progress() {
    let served = Served::start();
    let reply = served.post("/plain/items", &[ASYNC], "");
    let run = reply.field("location").unwrap().strip_prefix("..").unwrap().to_owned();
    let mut events = served.watch(&SSE, &run);
    for event in &mut events {
        event.as_object_mut().unwrap().remove("left");
    }
    let partials: Vec<_> = events.iter().filter(|event| !event["partial"].is_null()).collect();
    assert_eq!(
        partials,
        [
            &json!({ "partial": 1 }),
            &json!({ "partial": "words" }),
            &json!({ "partial": { "n": 2.5 } })
        ]
    );
    assert!(events.contains(&json!({ "progress": 0.25, "text": "a quarter" })), "{events:?}");
    assert_eq!(events.last(), Some(&json!({ "state": "done" })));
    assert_eq!(served.state(&run)["progress"], 1.0);
}

#[test]
fn the_work_of_a_run_knows_who_started_it_when_that_client_has_gone() {
    let served = Served::with(|limits| limits.runs_running_max = Some(1));
    let before = served.run("9999");
    let reply = served.post("/plain/who", &[ASYNC], "");
    let run = reply.field("location").unwrap().strip_prefix("..").unwrap().to_owned();
    served.fixture.request("DELETE", &before, &[]);
    let end = json!({ "state": "done", "result": "run Local" });
    assert_eq!(served.watch(&SSE, &run).last(), Some(&end));
}

#[test]
fn any_other_reply_of_a_service_is_the_result_or_the_failure() {
    let served = Served::start();
    for (path, end) in [
        ("json", json!({ "state": "done", "result": { "a": [1] } })),
        ("text", json!({ "state": "done", "result": "you said x" })),
        ("bytes", json!({ "state": "done", "result": { "base64": "AP8=" } })),
    ] {
        let reply = served.post(&format!("/plain/{path}"), &[ASYNC], "x");
        let run = reply.field("location").unwrap().strip_prefix("..").unwrap().to_owned();
        assert_eq!(served.watch(&SSE, &run).last(), Some(&end), "{path}");
    }
    // The problem of a run has the status that the service has answered.
    for (path, kind, status, detail) in [
        ("refused", "run-failed", 409, "the service answered 409 Conflict: already there"),
        ("problem", "conflict", 409, "it exists"),
        ("own", "own", 403, "an own problem"),
        ("panics", "internal", 500, "the service at this path failed"),
        ("nothing", "run-failed", 404, "the service answered 404 Not Found: "),
        ("read", "run-failed", 405, "the service answered 405 Method Not Allowed: "),
    ] {
        let reply = served.post(&format!("/plain/{path}"), &[ASYNC], "");
        let run = reply.field("location").unwrap().strip_prefix("..").unwrap().to_owned();
        let problem = served.watch(&SSE, &run).pop().unwrap()["problem"].take();
        assert_eq!(problem["type"], format!("/problems/{kind}"), "{path}: {problem}");
        assert_eq!((&problem["status"], &problem["detail"]), (&json!(status), &json!(detail)));
    }
    let reply = served.post("/plain/never", &[ASYNC], "");
    let run = reply.field("location").unwrap().strip_prefix("..").unwrap().to_owned();
    served.until(&run, "running");
    assert_eq!(served.fixture.request("DELETE", &run, &[]).status, 200);
    assert_eq!(served.watch(&SSE, &run).last(), Some(&json!({ "state": "cancelled" })));
}

#[test]
fn a_server_that_stops_cancels_its_runs() {
    let mut served = Served::start();
    let run = served.run("9999");
    let mut watcher = SSE.read_path(SSE.connect(&served.fixture), &run, "").unwrap();
    watcher.next();
    served.fixture.stop();
    wait_until("it is so", || served.stopped.load(Ordering::SeqCst) > 0);
    while !matches!(watcher.next(), Told::End(_)) {}
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
    example.terminate();
    assert!(example.wait().success());
}
