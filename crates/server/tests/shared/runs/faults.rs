//! Run services that fail, and clients that see only a part of a run.

use std::io::{BufReader, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use anemone_hub::Data;
use anemone_hub::run::{RunInput, RunRefusal, RunService, RunWork};
use anemone_server::Mount;
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::{Fixture, Reply, request, try_line, wait_until};
use anemone_ws::proto::Message;
use serde_json::{Value, json};

fn start(mounts: Vec<Mount>) -> Fixture {
    Fixture::with(|options| options.mounts = mounts, Default::default())
}

fn post(fixture: &Fixture, target: &str, fields: &[(&str, &str)]) -> Reply {
    let mut stream = fixture.connect();
    let fields = [&[("Content-Length", "1")], fields].concat();
    let head = request(fixture.address, "POST", target, &fields);
    stream.write_all((head + "1").as_bytes()).unwrap();
    Reply::read(&mut BufReader::new(stream), "POST")
}

#[test]
fn a_panic_in_the_preparation_of_a_run_fails_only_that_start() {
    let prepare = |input: RunInput| -> Result<RunWork, RunRefusal> {
        panic!("a bug for the body {:?}", input.body)
    };
    let fixture = start(vec![Mount::run("/panic", prepare).unwrap()]);
    let failed = "the service at this path failed";
    for fields in [&[][..], &[("Prefer", "respond-async")]] {
        assert_eq!(post(&fixture, "/panic", fields).problem(500, "internal"), failed);
    }
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let detail = client.ask("POST a /panic\n1").problem(500, "a", "internal");
        assert_eq!(detail, failed);
        assert_eq!(client.ask("GET b /health").status, 200);
    }
    let mut socket = fixture.websocket("/panic", &[], &[]);
    socket.send(Message::Text("1"));
    assert!(socket.next().contains("/problems/internal"));
    assert_eq!(socket.next(), format!("close 4500 {failed}"));
    assert_eq!(fixture.get("/health", &[]).status, 200);
}

#[test]
fn a_long_input_is_checked_beside_the_thread_of_its_connection() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let prepare = move |_: RunInput| -> Result<RunWork, RunRefusal> {
        released.lock().unwrap().recv().unwrap();
        Ok(RunWork::new(|_| Ok(None)))
    };
    let fixture = start(vec![Mount::run("/slow", prepare).unwrap()]);
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let input = "1".repeat((4 << 10) + 1);
        client.send(&format!("POST a /slow prefer=respond-async\n{input}"));
        assert_eq!(client.ask("GET b /health").status, 200);
        release.send(()).unwrap();
        assert_eq!(client.next().status, 202);
    }
}

/// Tells so many numbers as partial results.
fn telling(count: u64) -> impl RunService {
    move |_: RunInput| -> Result<RunWork, RunRefusal> {
        Ok(RunWork::new(move |run| {
            for number in 1..=count {
                run.partial(&Data::json(&number).unwrap())?;
            }
            Ok(None)
        }))
    }
}

/// Asserts that these are a gap and then all other events of a run that has told so many numbers.
#[track_caller]
fn assert_gap_and_rest(items: &[Value], count: u64) {
    assert_eq!(items[0]["gap"]["reason"], "retention", "{}", items[0]);
    // The first event has no number.
    let missed = items[0]["gap"]["missed"].as_u64().unwrap();
    assert!(missed > 0 && items.len() as u64 == 1 + count + 2 - missed, "{missed}");
    assert_eq!(items[1], json!({ "partial": missed }));
    assert_eq!(items.last().unwrap(), &json!({ "state": "done" }));
}

#[test]
fn a_reply_with_the_events_of_a_run_tells_a_gap_before_the_events_after_it() {
    const COUNT: u64 = 1_000;
    let fixture = Fixture::with(
        |options| {
            options.mounts = vec![Mount::run("/tell", telling(COUNT)).unwrap()];
            options.limits.run_bytes_max = 2_000;
        },
        Default::default(),
    );
    // The run loses its first events. A repeated start, which gets its events, begins with what is kept.
    let key = ("Idempotency-Key", "k");
    let reply = post(&fixture, "/tell", &[key, ("Prefer", "respond-async")]);
    let run = format!("/{}?state", reply.field("location").unwrap());
    wait_until("it is done", || fixture.get(&run, &[]).json()["state"] == "done");
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let replies = client.call("POST a /tell idempotency-key=k\n1");
        let statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
        let [100, 110, events @ .., 110, 200] = &statuses[..] else { panic!("{statuses:?}") };
        assert!(events.iter().all(|status| *status == 206));
        assert!(replies[0].fields.contains(&"idempotent-replayed=true".to_owned()));
        let items = &replies[1..replies.len() - 2];
        assert_gap_and_rest(&items.iter().map(|item| item.json()).collect::<Vec<_>>(), COUNT);
    }
    let mut socket = fixture.websocket("/tell", &["anemone.events"], &[key]);
    socket.send(Message::Text("1"));
    socket.json();
    let mut items = vec![socket.json()];
    items.extend(std::iter::repeat_with(|| socket.json()).map_while(|mut item| {
        let data = item.get_mut("data").map(Value::take);
        data.or_else(|| {
            assert_eq!(item["end"]["reason"], "ended");
            None
        })
    }));
    assert_gap_and_rest(&items, COUNT);
    assert_eq!(socket.next(), "close 1000 the run has ended");
    // Without positions, the reader is told at the end.
    let mut socket = fixture.websocket("/tell", &[], &[key]);
    socket.send(Message::Text("1"));
    let end = socket.next();
    assert!(end.starts_with("close 4000 gap: retention, missed "), "{end}");
}

/// A server with a run whose events are more than the buffers of a connection, and which is forgotten at once.
struct Forgetful {
    fixture: Fixture,
    returned: Arc<AtomicU64>,
    started: u64,
}

impl Forgetful {
    fn start() -> Self {
        let returned = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&returned);
        let telling = move |_: RunInput| -> Result<RunWork, RunRefusal> {
            let returned = Arc::clone(&counter);
            Ok(RunWork::new(move |run| {
                let text = Data::json(&"x".repeat(1 << 10)).unwrap();
                for _ in 0..30_000 {
                    run.partial(&text)?;
                }
                returned.fetch_add(1, Ordering::SeqCst);
                Ok(None)
            }))
        };
        let fixture = Fixture::with(
            |options| {
                options.mounts = vec![Mount::run("/tell", telling).unwrap()];
                options.limits.run_bytes_max = 64 << 20;
                options.limits.run_retention = Duration::from_millis(1);
                // Nobody reads for as long as a run takes, which on a busy machine is long.
                let hour = Duration::from_secs(3600);
                options.limits.write_timeout = hour;
                Arc::make_mut(&mut options.limits.multiplexed).idle_timeout = hour;
            },
            Default::default(),
        );
        Self { fixture, returned, started: 0 }
    }

    /// Waits until the next run has ended and is forgotten. Nobody reads it meanwhile.
    fn forget(&mut self) {
        self.started += 1;
        let has_returned = || self.returned.load(Ordering::SeqCst) == self.started;
        wait_until("the work has returned", has_returned);
        let list = || self.fixture.get("/runs", &[]).json()["runs"].as_array().unwrap().len();
        wait_until("there is no run", || list() == 0);
    }
}

#[test]
fn a_reply_with_the_events_of_a_run_fails_if_the_run_is_forgotten_before_its_last_event() {
    let mut served = Forgetful::start();
    let deleted = json!({ "end": { "reason": "deleted" } });
    for carrier in BOTH {
        let mut client = Client::open(carrier, &served.fixture);
        client.send("POST a /tell\n1");
        served.forget();
        let mut notice = client.next();
        let end = loop {
            let reply = client.next();
            if reply.is_final() {
                break reply;
            }
            notice = reply;
        };
        let detail = end.problem(410, "a", "topic-deleted");
        assert_eq!(detail, "the run is no longer kept");
        assert_eq!((notice.status, notice.json()), (110, deleted.clone()));
    }
    for (subprotocols, code) in [(&[][..], 4001), (&["anemone.events"], 1000)] {
        let mut socket = served.fixture.websocket("/tell", subprotocols, &[]);
        socket.send(Message::Text("1"));
        served.forget();
        let mut last = String::new();
        let end = loop {
            let next = socket.next();
            if next.starts_with("close ") {
                break next;
            }
            last = next;
        };
        assert_eq!(end, format!("close {code} the run is no longer kept"));
        let is_notice = serde_json::from_str::<Value>(&last).unwrap() == deleted;
        assert_eq!(is_notice, code == 1000, "{last}");
    }
    for accept in ["application/x-ndjson", "text/event-stream"] {
        let mut stream = served.fixture.connect();
        let fields = [("Content-Length", "1"), ("Accept", accept)];
        let head = request(served.fixture.address, "POST", "/tell", &fields);
        stream.write_all((head + "1").as_bytes()).unwrap();
        served.forget();
        let mut reader = BufReader::new(stream);
        assert_eq!(Reply::read_head(&mut reader).status, 200);
        let mut last = String::new();
        while let Some(line) = try_line(&mut reader).unwrap() {
            // A piece of a chunked body ends with an empty line.
            if line.contains("deleted") || line.contains("partial") {
                last = line;
            }
        }
        let json = last.strip_prefix("data: ").unwrap_or(&last);
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), deleted, "{accept}");
    }
}

/// Starts a service whose runs work until they are cancelled.
fn start_waiting() -> Fixture {
    let waiting = |_: RunInput| -> Result<RunWork, RunRefusal> {
        Ok(RunWork::new(|run| {
            loop {
                run.sleep(Duration::from_millis(5))?;
            }
        }))
    };
    start(vec![Mount::run("/wait", waiting).unwrap()])
}

#[test]
fn no_client_repeats_the_start_of_an_attached_run_without_attach_or_of_another_with_it() {
    let fixture = start_waiting();
    let detached = |key| [("Idempotency-Key", key), ("Prefer", "respond-async")];
    for (carrier, [first, second]) in BOTH.into_iter().zip([["a", "b"], ["c", "d"]]) {
        let reply = post(&fixture, "/wait", &detached(first));
        let run = format!("/{}?state", reply.field("location").unwrap());
        let mut client = Client::open(carrier, &fixture);
        let attached = |key| format!("POST a /wait?attach idempotency-key={key}\n1");
        client.ask(&attached(first)).problem(422, "a", "key-reused");
        assert_eq!(client.ask(&format!("GET b {run}")).json()["ended"], Value::Null);

        assert_eq!(client.ask(&attached(second)).status, 100);
        post(&fixture, "/wait", &detached(second)).problem(422, "key-reused");
        post(&fixture, "/wait", &detached(second)[..1]).problem(422, "key-reused");
    }
}

#[test]
fn a_start_without_a_reply_to_attach_to_is_refused_on_every_transport() {
    let fixture = start_waiting();
    let asynchronous = ("Prefer", "respond-async");
    let detail = post(&fixture, "/wait?attach", &[asynchronous]).problem(400, "bad-parameter");
    assert!(detail.contains("Prefer: respond-async"), "{detail}");
    for target in ["/wait?attach=1", "/wait?attach&attach"] {
        post(&fixture, target, &[]).problem(400, "bad-parameter");
    }
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let reply = client.ask("POST a /wait?attach prefer=respond-async\n1");
        reply.problem(400, "a", "bad-parameter");
    }
    let mut socket = fixture.websocket("/wait?attach", &[], &[asynchronous]);
    socket.send(Message::Text("1"));
    assert!(socket.next().contains("/problems/bad-parameter"));
    assert_eq!(socket.next(), format!("close 4400 {detail}"));
    assert_eq!(fixture.get("/runs", &[]).json()["runs"], json!([]));
}

#[test]
fn a_start_is_repeated_after_its_client_has_gone_but_not_after_a_cancel() {
    let fixture = start_waiting();
    for (carrier, key) in BOTH.into_iter().zip(["a", "b"]) {
        let start = format!("POST a /wait?attach idempotency-key={key}\n1");
        let begin = |client: &mut Client| {
            let begin = client.ask(&start);
            let is_replayed = begin.fields.contains(&"idempotent-replayed=true".to_owned());
            let location = begin.fields.iter().find_map(|field| field.strip_prefix("location="));
            (format!("/{}", location.unwrap()), is_replayed)
        };
        let mut client = Client::open(carrier, &fixture);
        let (run, _) = begin(&mut client);
        let state = || fixture.get(&format!("{run}?state"), &[]).json()["state"].clone();
        drop(client);
        wait_until("its client has gone", || state() == "cancelled");
        let mut client = Client::open(carrier, &fixture);
        let (another, is_replayed) = begin(&mut client);
        assert!(another != run && !is_replayed);
        assert_eq!(fixture.request("DELETE", &another, &[]).status, 200);
        while client.next().status != 200 {}
        assert_eq!(begin(&mut client), (another, true));
        while client.next().payload != r#"{"state":"cancelled"}"# {}
    }
}

#[test]
fn a_run_service_over_http_only_starts_runs_over_http() {
    let fixture = start(vec![Mount::run("/tell", telling(1)).unwrap().http_only()]);
    assert_eq!(post(&fixture, "/tell", &[("Prefer", "respond-async")]).status, 202);
    assert_eq!(post(&fixture, "/tell", &[]).status, 200);
    let mut client = Client::open(BOTH[0], &fixture);
    client.ask("POST a /tell\n1").problem(404, "a", "unknown-path");
}

#[test]
fn a_multiplexed_refusal_has_the_fields_that_its_status_requires() {
    let fixture = start(vec![Mount::run("/tell", telling(1)).unwrap()]);
    let reply = post(&fixture, "/tell", &[("Prefer", "respond-async")]);
    let run = format!("/{}", reply.field("location").unwrap());
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for (target, allow) in [
            ("/health", "allow=GET,%20HEAD"),
            (&run, "allow=GET,%20HEAD,%20DELETE"),
            ("/tell", "allow=POST"),
        ] {
            let reply = client.ask(&format!("PUT a {target}"));
            reply.problem(405, "a", "method-not-allowed");
            assert_eq!(reply.fields, [allow], "{target}");
        }
    }
}

#[test]
fn a_run_is_cancelled_only_without_a_condition_on_every_transport() {
    let fixture = start(vec![Mount::run("/tell", telling(1)).unwrap()]);
    let reply = post(&fixture, "/tell", &[("Prefer", "respond-async")]);
    let run = format!("/{}", reply.field("location").unwrap());
    let condition = [("If-Match", "\"7\"")];
    fixture.request("DELETE", &run, &condition).problem(400, "bad-parameter");
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let reply = client.ask(&format!("DELETE a {run} if-match=%227%22"));
        reply.problem(400, "a", "bad-parameter");
    }
}
