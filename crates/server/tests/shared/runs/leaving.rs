//! Clients that have started a run and end their side, go, come back, or continue.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anemone_hub::Data;
use anemone_hub::run::{RunInput, RunRefusal, RunService, RunWork};
use anemone_server::{Limits, Mount};
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::{Fixture, Reply, request, try_line, wait_until};
use serde_json::{Value, json};

use crate::runs::driven::Driven;

/// Publishes a partial result, and ends with another once the gate is open.
#[derive(Clone, Default)]
struct Gated(Arc<AtomicBool>);

impl RunService for Gated {
    fn prepare(&self, _input: RunInput) -> Result<RunWork, RunRefusal> {
        let gate = Arc::clone(&self.0);
        Ok(RunWork::new(move |run| {
            let data = |number: u64| Data::json(&number).unwrap();
            run.partial(&data(1))?;
            while !gate.load(Ordering::SeqCst) {
                run.sleep(Duration::from_millis(5))?;
            }
            run.partial(&data(2))?;
            Ok(None)
        }))
    }
}

impl Gated {
    fn serve(&self, change: impl FnOnce(&mut Limits)) -> Fixture {
        let start = |options: &mut anemone_server::Options| {
            options.mounts.push(Mount::run("/gated", self.clone()).unwrap());
            options.tcp = Some("127.0.0.1:0".parse().unwrap());
            options.threads = NonZero::new(1);
            // No run waits for the end of another.
            options.limits.runs_running_max = Some(9);
            change(&mut options.limits);
        };
        Fixture::with(start, Default::default())
    }
}

/// Starts a run over HTTP. Returns its reply after the first partial result, and its path.
fn start(
    fixture: &Fixture,
    target: &str,
    fields: &[(&str, &str)],
) -> (BufReader<TcpStream>, String) {
    let mut stream = fixture.connect();
    let fields = [&[("Content-Length", "0")], fields].concat();
    stream.write_all(request(fixture.address, "POST", target, &fields).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let head = Reply::read_head(&mut reader);
    let run = format!("/{}", head.field("location").unwrap());
    while !try_line(&mut reader).unwrap().unwrap().contains("partial") {}
    (reader, run)
}

fn state(fixture: &Fixture, run: &str) -> Value {
    fixture.get(&format!("{run}?state"), &[]).json()["state"].take()
}

fn rest(mut reader: BufReader<TcpStream>) -> String {
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    rest
}

/// Watches the run over another connection, which the client half-closes, until the server has seen that. By then it
/// has seen earlier ends, too.
fn await_end_of_watcher(fixture: &Fixture, run: &str) {
    let mut stream = fixture.connect();
    let fields = [("Accept", "application/x-ndjson")];
    stream.write_all(request(fixture.address, "GET", run, &fields).as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(rest(BufReader::new(stream)).ends_with("\r\n0\r\n\r\n"));
}

#[test]
fn the_reply_of_a_start_goes_on_when_its_client_has_ended_its_side() {
    let service = Gated::default();
    let fixture = service.serve(|_| {});
    let (reader, run) = start(&fixture, "/gated", &[]);
    reader.get_ref().shutdown(Shutdown::Write).unwrap();
    await_end_of_watcher(&fixture, &run);
    service.0.store(true, Ordering::SeqCst);
    let text = rest(reader);
    let words = [r#""partial":2"#, r#""state":"done""#, r#""reason":"ended""#];
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    assert!(text.ends_with("\r\n0\r\n\r\n"), "{text}");
    assert_eq!(state(&fixture, &run), "done");
}

/// A server whose heartbeats to a client that has ended its side come this often, and those to others after 15 s.
fn probing(service: &Gated) -> Fixture {
    service.serve(|limits| {
        limits.write_timeout = Duration::from_millis(100);
        limits.heartbeat = Duration::from_secs(15);
    })
}

#[test]
fn a_quiet_reply_of_a_start_goes_on_as_long_as_its_client_reads() {
    let service = Gated::default();
    let fixture = probing(&service);
    for accept in ["application/x-ndjson", "text/event-stream"] {
        service.0.store(false, Ordering::SeqCst);
        let (mut reader, run) = start(&fixture, "/gated", &[("Accept", accept)]);
        reader.get_ref().shutdown(Shutdown::Write).unwrap();
        // The time of several heartbeats passes without an event.
        let is_heartbeat = |line: &str| line.contains("position") || line.starts_with(':');
        let quiet = (0..).map(|_| try_line(&mut reader).unwrap().unwrap());
        assert_eq!(quiet.filter(|line| is_heartbeat(line)).take(5).count(), 5, "{accept}");
        service.0.store(true, Ordering::SeqCst);
        let text = rest(reader);
        assert!(text.contains(r#""partial":2"#) && text.ends_with("\r\n0\r\n\r\n"), "{text}");
        assert_eq!(state(&fixture, &run), "done");
    }
}

/// Asserts that a reader of the run is there until its client goes, although that has ended its side before.
fn leaves<C>(fixture: &Fixture, run: &str, client: C, end: impl FnOnce(&C)) {
    let handle = fixture.runs.get(run.strip_prefix("/runs/").unwrap()).unwrap();
    let users = || Arc::strong_count(handle.topic());
    let before = users();
    end(&client);
    await_end_of_watcher(fixture, run);
    wait_until("only that reader is left", || users() == before);
    // The client's system answers the next heartbeat with a reset.
    drop(client);
    wait_until("the reader leaves", || users() < before);
    assert_eq!(state(fixture, run), "running");
}

#[test]
fn a_client_that_has_ended_its_side_and_is_gone_is_no_longer_a_reader() {
    let service = Gated::default();
    let fixture = probing(&service);
    let (reader, run) = start(&fixture, "/gated", &[]);
    leaves(&fixture, &run, reader, |reader| reader.get_ref().shutdown(Shutdown::Write).unwrap());
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.send("POST a /gated");
        while client.next().payload != r#"{"partial":1}"# {}
        let list = fixture.get("/runs", &[]).json();
        let run = format!("/runs/{}", list["runs"][0]["key"].as_str().unwrap());
        leaves(&fixture, &run, client, |client| stream(client).shutdown(Shutdown::Write).unwrap());
    }
}

#[test]
fn an_attached_run_ends_at_once_when_its_client_has_ended_its_side() {
    let service = Gated::default();
    let fixture = service.serve(|_| {});
    let (reader, run) = start(&fixture, "/gated?attach", &[]);
    reader.get_ref().shutdown(Shutdown::Write).unwrap();
    let text = rest(reader);
    assert!(text.contains(r#"{"state":"cancelled"}"#), "{text}");
    assert!(text.ends_with("\r\n0\r\n\r\n"), "{text}");
    assert_eq!(state(&fixture, &run), "cancelled");
}

#[test]
fn a_multiplexed_start_goes_on_when_its_client_has_ended_its_side() {
    for carrier in BOTH {
        let service = Gated::default();
        let fixture = service.serve(|_| {});
        let mut client = Client::open(carrier, &fixture);
        client.send("POST a /gated");
        while client.next().payload != r#"{"partial":1}"# {}
        stream(&client).shutdown(Shutdown::Write).unwrap();
        let list = fixture.get("/runs", &[]).json();
        await_end_of_watcher(
            &fixture,
            &format!("/runs/{}", list["runs"][0]["key"].as_str().unwrap()),
        );
        service.0.store(true, Ordering::SeqCst);
        assert_eq!(client.next().json(), json!({ "partial": 2 }));
        assert_eq!(client.next().json(), json!({ "state": "done" }));
        assert_eq!(client.next().json(), json!({ "end": { "reason": "ended" } }));
        client.next().is_line(200, "a", "");
    }
}

#[test]
fn a_quiet_multiplexed_start_goes_on_as_long_as_its_client_reads() {
    for carrier in BOTH {
        let service = Gated::default();
        let fixture = probing(&service);
        let mut client = Client::open(carrier, &fixture);
        client.send("POST a /gated");
        while client.next().payload != r#"{"partial":1}"# {}
        stream(&client).shutdown(Shutdown::Write).unwrap();
        // The time of several heartbeats passes without an event.
        (0..5).for_each(|_| assert_eq!(client.next().status, 100));
        service.0.store(true, Ordering::SeqCst);
        while client.next().status != 200 {}
    }
}

fn stream(client: &Client) -> &TcpStream {
    match client {
        Client::WebSocket(socket) => &socket.stream,
        Client::Tcp(stream) => stream,
    }
}

#[test]
fn a_repeated_start_that_is_attached_takes_the_run_over() {
    let service = Gated::default();
    let fixture = service.serve(|_| {});
    let key = ("Idempotency-Key", "a-b");
    let (old, run) = start(&fixture, "/gated?attach", &[key]);
    let (new, same) = start(&fixture, "/gated?attach", &[key]);
    assert_eq!(run, same);
    drop(old);
    // Another run that its client leaves shows that the server has seen such an end.
    let (other, gone) = start(&fixture, "/gated?attach", &[]);
    drop(other);
    wait_until("it is so", || state(&fixture, &gone) == "cancelled");
    assert_eq!(state(&fixture, &run), "running");
    drop(new);
    wait_until("it is so", || state(&fixture, &run) == "cancelled");
}

#[test]
fn a_multiplexed_reader_of_a_run_continues_after_its_last_event_id() {
    let fixture = Gated::default().serve(|_| {});
    let run = Driven::start(&fixture);
    run.partials(1..=3);
    run.done(&Value::Null);
    wait_until("the end of the run", || run.run.has_ended());
    let path = run.path();
    let epoch = run.run.topic().info(anemone_hub::UnixTime::now()).head.epoch;
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for (id, query) in [("a", ""), ("b", "?after=earliest")] {
            client.send(&format!("GET {id} {path}{query} last-event-id={epoch}-3"));
            let begin = client.next();
            assert_eq!(begin.position, Some(format!("{epoch}-3")), "{begin:?}");
            assert_eq!(client.next().json(), json!({ "partial": { "n": 3 } }));
            while client.next().status != 200 {}
        }
        let bad = client.ask(&format!("GET c {path} last-event-id=nonsense"));
        let detail = bad.problem(400, "c", "bad-parameter");
        assert!(detail.contains("Last-Event-ID"), "{detail}");
    }
}

#[test]
fn a_start_is_answered_with_events_only_if_it_says_so() {
    let service = Gated::default();
    service.0.store(true, Ordering::SeqCst);
    let fixture = service.serve(|_| {});
    for (accept, media_type) in [
        ("text/*", "application/x-ndjson"),
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, */*;q=0.1", "text/event-stream"),
    ] {
        let mut stream = fixture.connect();
        let fields = [("Content-Length", "0"), ("Accept", accept)];
        stream.write_all(request(fixture.address, "POST", "/gated", &fields).as_bytes()).unwrap();
        let head = Reply::read_head(&mut BufReader::new(stream));
        assert_eq!(head.field("content-type"), Some(media_type), "{accept}");
    }
}

/// Takes its time to read an input, until the gate is open, and counts the inputs.
#[derive(Clone, Default)]
struct SlowReader {
    gate: Arc<AtomicBool>,
    inputs: Arc<AtomicUsize>,
}

impl RunService for SlowReader {
    fn prepare(&self, _input: RunInput) -> Result<RunWork, RunRefusal> {
        self.inputs.fetch_add(1, Ordering::SeqCst);
        while !self.gate.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(RunWork::new(|_| Ok(None)))
    }
}

#[test]
fn a_start_that_waits_for_the_inputs_of_others_is_over_when_its_client_has_gone() {
    let service = SlowReader::default();
    let own = service.clone();
    let fixture = Fixture::with(
        |options| {
            options.mounts.push(Mount::run("/slow", own).unwrap());
            options.limits.write_timeout = Duration::from_millis(100);
        },
        Default::default(),
    );
    let start = || {
        let mut stream = fixture.connect();
        let head = request(fixture.address, "POST", "/slow", &[("Content-Length", "9000")]);
        stream.write_all((head + &"x".repeat(9_000)).as_bytes()).unwrap();
        stream
    };
    let first = start();
    wait_until("its input is read", || service.inputs.load(Ordering::SeqCst) == 1);
    let gone = start();
    gone.shutdown(Shutdown::Write).unwrap();
    // Its answer is the sign that the server has noticed.
    Reply::read(&mut BufReader::new(gone), "POST").problem(504, "internal");
    service.gate.store(true, Ordering::SeqCst);
    // Inputs are read in the order in which they come.
    for stream in [first, start()] {
        assert_eq!(Reply::read(&mut BufReader::new(stream), "POST").status, 200);
    }
    assert_eq!(service.inputs.load(Ordering::SeqCst), 2, "nobody waits for the run of the other");
}

/// Tells the thread that reads an input, and the one that is asked whether to read it at once.
struct Telling {
    reads_at_once: bool,
    asked: mpsc::Sender<ThreadId>,
    read: mpsc::Sender<ThreadId>,
}

impl RunService for Telling {
    fn prepare(&self, _input: RunInput) -> Result<RunWork, RunRefusal> {
        self.read.send(thread::current().id()).unwrap();
        Ok(RunWork::new(|_| Ok(None)))
    }

    fn prepares_at_once(&self, body: &[u8]) -> bool {
        assert_eq!(body, b"x");
        self.asked.send(thread::current().id()).unwrap();
        self.reads_at_once
    }
}

#[test]
fn a_service_says_which_inputs_are_not_read_on_a_network_thread_however_short_they_are() {
    for reads_at_once in [true, false] {
        let ((asked, was_asked), (read, was_read)) = (mpsc::channel(), mpsc::channel());
        let service = Telling { reads_at_once, asked, read };
        let fixture = Fixture::with(
            |options| options.mounts.push(Mount::run("/telling", service).unwrap()),
            Default::default(),
        );
        let mut stream = fixture.connect();
        let head = request(fixture.address, "POST", "/telling", &[("Content-Length", "1")]);
        stream.write_all((head + "x").as_bytes()).unwrap();
        assert_eq!(Reply::read(&mut BufReader::new(stream), "POST").status, 200);
        for carrier in BOTH {
            let mut client = Client::open(carrier, &fixture);
            assert_eq!(client.call("POST a /telling\nx").last().unwrap().status, 200);
        }
        let threads: Vec<_> = was_asked.try_iter().zip(was_read.try_iter()).collect();
        assert_eq!(threads.len(), 3);
        for (network, reader) in threads {
            assert_eq!(network == reader, reads_at_once);
        }
    }
}
