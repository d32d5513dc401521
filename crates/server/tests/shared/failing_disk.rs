//! A disk that is full, read-only or stalled: publishing over every transport is refused, reading continues, and
//! exactly the acknowledged events are kept.
#![allow(clippy::unwrap_used)]

use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anemone_hub::{DataDir, DataOptions, DiskFault, Epoch, FailingDisk, Fsync, Hub, Retention};
use anemone_server::{Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::multiplexed::{Carrier, Client};
use anemone_testing::{Fixture, PATIENCE, Reply, send, try_line, wait_for, wait_until};
use anemone_ws::proto::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server whose topics are on a disk that can fail.
struct Server {
    fixture: Fixture,
    disk: FailingDisk,
    folder: TempDir,
}

impl Server {
    fn start() -> Self {
        Self::with(DataOptions::default(), |_| {})
    }

    fn with(data: DataOptions, change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = FailingDisk::default();
        let data = disk.open(folder.path(), data).unwrap();
        let rules = ["chat", "scratch-*"].map(|topics| TopicRule {
            publish: PublishRight::Anyone,
            ..TopicRule::new(topics.parse().unwrap())
        });
        let hub = Hub::with_data(Epoch::from_bits(1234), data).unwrap();
        let change = |options: &mut Options| {
            options.topics = TopicRules::new(rules).unwrap();
            options.tcp = Some("127.0.0.1:0".parse().unwrap());
            change(options);
        };
        let fixture = Fixture::of(hub, change, Retention::default());
        Self { fixture, disk, folder }
    }

    /// The events of `/topics/chat`, each a number.
    fn events(&self) -> Vec<u64> {
        let page = self.fixture.get("/topics/chat?after=earliest", &[]).json();
        let events = page["events"].as_array().unwrap().iter();
        events.map(|event| event["data"].as_u64().unwrap()).collect()
    }

    fn wait_for_events(&self, count: usize) -> Vec<u64> {
        wait_for("events are missing", || {
            Some(self.events()).filter(|events| events.len() >= count)
        })
    }

    fn events_after_restart(mut self) -> Vec<u64> {
        self.disk.set(None);
        self.fixture.stop();
        self.fixture.hub.close().unwrap();
        let data = DataDir::open(self.folder.path(), DataOptions::default()).unwrap();
        let hub = Hub::with_data(Epoch::from_bits(5678), data).unwrap();
        self.fixture = Fixture::of(hub, |_| {}, Retention::default());
        self.events()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing could be closed otherwise.
        self.disk.set(None);
    }
}

/// A way to publish a number to `/topics/chat`.
#[derive(Clone, Copy, Debug)]
enum Way {
    Post,
    Lines,
    WebSocket,
    Multiplexed(Carrier),
}

const WAYS: [Way; 5] = [
    Way::Post,
    Way::Lines,
    Way::WebSocket,
    Way::Multiplexed(Carrier::WebSocket),
    Way::Multiplexed(Carrier::Tcp),
];

/// The answer to a publisher.
#[derive(Debug, PartialEq)]
enum Told {
    Kept,
    /// With which status, or close code, and in which words.
    Refused(u16, String),
}

impl Way {
    fn publish(self, server: &Server, number: u64) -> Told {
        let fixture = &server.fixture;
        match self {
            Self::Post | Self::Lines => {
                let content = if matches!(self, Self::Post) { "json" } else { "x-ndjson" };
                let body = format!("{number}\n");
                let request = format!(
                    "POST /topics/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{content}\r\n\
                     Content-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                let mut stream = BufReader::new(fixture.connect());
                stream.get_mut().write_all(request.as_bytes()).unwrap();
                let reply = Reply::read(&mut stream, "POST");
                told(reply.status, &reply.json())
            }
            Self::WebSocket => {
                let mut socket = fixture.websocket("/topics/chat", &[], &[]);
                socket.send(Message::Text(&number.to_string()));
                match socket.next().strip_prefix("close ").map(|end| end.split_once(' ').unwrap()) {
                    None => Told::Kept,
                    Some((code, reason)) => Told::Refused(code.parse().unwrap(), reason.to_owned()),
                }
            }
            Self::Multiplexed(carrier) => {
                let mut client = Client::open(carrier, fixture);
                let reply = client.ask(&format!("POST p /topics/chat\n{number}"));
                told(reply.status, &reply.json())
            }
        }
    }

    /// Returns the status of this transport for a full disk, or one that fails.
    fn status(self, status: u16) -> u16 {
        if matches!(self, Self::WebSocket) { 1013 } else { status }
    }
}

fn told(status: u16, reply: &Value) -> Told {
    match status {
        201 => Told::Kept,
        _ => Told::Refused(status, reply["detail"].as_str().unwrap().to_owned()),
    }
}

#[test]
fn what_cannot_be_kept_is_refused_on_every_way_and_reading_goes_on() {
    for (fault, status, detail) in [
        (DiskFault::Full, 507, "there is no space to store the event"),
        (DiskFault::ReadOnly, 503, "cannot store the event"),
    ] {
        for fsync in [Fsync::Always, Fsync::Never] {
            let server = Server::with(DataOptions { fsync, ..DataOptions::default() }, |_| {});
            let mut stream = server.fixture.events("/topics/chat", &[]);
            stream.block().unwrap();
            let mut kept = Vec::new();
            for (number, way) in (1..).zip(WAYS) {
                assert_eq!(way.publish(&server, number), Told::Kept, "{way:?}");
                kept.push(number);
            }
            server.disk.set(Some(fault));
            for way in WAYS {
                let refused = Told::Refused(way.status(status), detail.to_owned());
                assert_eq!(way.publish(&server, 100), refused, "{way:?}");
                assert_eq!(server.events(), kept, "{way:?}");
            }
            server.disk.set(None);
            for (number, way) in (6..).zip(WAYS) {
                assert_eq!(way.publish(&server, number), Told::Kept, "{way:?}");
                kept.push(number);
            }
            for number in &kept {
                let data = format!("id: ya-{number}\ndata: {number}\n");
                assert_eq!(stream.event(), data, "the stream went on, and saw no other");
            }
            drop(stream);
            assert_eq!(server.events_after_restart(), kept);
        }
    }
}

#[test]
fn a_topic_that_cannot_be_made_is_refused_the_same_and_is_not_there() {
    for (fault, status, kind) in
        [(DiskFault::Full, 507, "storage-full"), (DiskFault::ReadOnly, 503, "storage-failed")]
    {
        let server = Server::start();
        server.disk.set(Some(fault));
        for carrier in [Carrier::WebSocket, Carrier::Tcp] {
            let mut client = Client::open(carrier, &server.fixture);
            client.ask("POST p /topics/scratch-new\n1").problem(status, "p", kind);
        }
        assert!(!server.fixture.has("scratch-new"));
        server.disk.set(None);
        let mut client = Client::open(Carrier::Tcp, &server.fixture);
        assert_eq!(client.ask("POST p /topics/scratch-new\n1").status, 201);
    }
}

#[test]
fn what_is_kept_within_the_time_is_acknowledged_however_long_that_takes() {
    for way in WAYS {
        let server = Server::start();
        server.disk.set(Some(DiskFault::Stalled));
        std::thread::scope(|scope| {
            let publisher = scope.spawn(|| way.publish(&server, 1));
            // Reading does not wait for the disk.
            assert!(server.events().is_empty(), "{way:?}");
            assert!(!publisher.is_finished(), "{way:?}");
            server.disk.set(None);
            assert_eq!(publisher.join().unwrap(), Told::Kept, "{way:?}");
        });
        assert_eq!(server.events(), [1]);
    }
}

#[test]
fn what_is_not_kept_within_the_time_is_503_and_may_be_kept_yet() {
    const TIMEOUT: Duration = Duration::from_millis(200);
    let server = Server::with(DataOptions::default(), |options| {
        options.limits.publish_timeout = TIMEOUT;
    });
    server.disk.set(Some(DiskFault::Stalled));
    for (number, way) in (1..).zip(WAYS) {
        let begun = Instant::now();
        let told = way.publish(&server, number);
        assert!(begun.elapsed() >= TIMEOUT, "{way:?}: {told:?}");
        let detail =
            "the disk is behind: not stored within 200ms, but it may be stored later".to_owned();
        assert_eq!(told, Told::Refused(way.status(503), detail), "{way:?}");
        assert!(server.events().is_empty(), "{way:?}");
    }
    server.disk.set(None);
    assert_eq!(server.wait_for_events(5), [1, 2, 3, 4, 5]);
}

#[test]
fn while_as_much_waits_for_the_disk_as_may_publishers_are_told_to_come_again() {
    let data = DataOptions { queue_bytes_max: 100, ..DataOptions::default() };
    let server = Server::with(data, |options| {
        options.limits.publish_timeout = Duration::from_millis(200);
    });
    server.disk.set(Some(DiskFault::Stalled));
    let mut socket = server.fixture.websocket("/topics/chat", &[], &[]);
    for _ in 0..100 {
        socket.connection.sender().send(Message::Text("1")).unwrap();
    }
    socket.flush();
    let end = socket.next();
    assert!(end.starts_with("close 1013 the disk is behind: "), "{end}");
    let mut stream = server.fixture.connect();
    let request = "POST /topics/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1";
    stream.write_all(request.as_bytes()).unwrap();
    let reply = Reply::read(&mut BufReader::new(stream), "POST");
    reply.problem(503, "storage-failed");
    assert_eq!(reply.field("retry-after"), Some("1"));
    server.disk.set(None);
    // What waits has to be stored before.
    wait_until("it is still refused", || Way::Post.publish(&server, 2) == Told::Kept);
}

/// The lines of a stream of these topics over NDJSON, from their first events on.
fn lines(server: &Server, topics: &str) -> impl Iterator<Item = Value> {
    let mut stream = server.fixture.connect();
    let target = format!("/topics?topic={topics}&after=earliest");
    send(&mut stream, "GET", &target, &[("Accept", "application/x-ndjson")]);
    let mut stream = BufReader::new(stream);
    assert_eq!(Reply::read_head(&mut stream).status, 200);
    let next = move || Some(serde_json::from_str(&try_line(&mut stream).unwrap()?).unwrap());
    std::iter::from_fn(next)
}

/// A server with an event on the disk in each of two topics, and the directory of the first.
fn two_topics_on_the_disk() -> (Server, PathBuf) {
    let data = DataOptions { memory_bytes_max: 0, ..DataOptions::default() };
    let server = Server::with(data, |_| {});
    let mut client = Client::open(Carrier::Tcp, &server.fixture);
    for topic in ["scratch-a", "scratch-b"] {
        assert_eq!(client.ask(&format!("POST p /topics/{topic}\n1")).status, 201);
    }
    let directory = server.folder.path().join("topics/scratch-a");
    assert!(directory.exists());
    (server, directory)
}

#[test]
fn a_topic_whose_files_are_being_removed_is_told_as_deleted() {
    let (server, directory) = two_topics_on_the_disk();
    let fixture = &server.fixture;
    server.disk.set(Some(DiskFault::RemovalStalled));
    std::thread::scope(|scope| {
        let deletion = scope.spawn(|| fixture.hub.delete(&"scratch-a".parse().unwrap()));
        wait_until("the directory is there", || !directory.exists());
        let alone = fixture.get("/topics/scratch-a?after=earliest", &[]);
        let page = fixture.get("/topics?topic=scratch-*&after=earliest", &[]);
        let mut stream = lines(&server, "scratch-*");
        let told: Vec<_> = stream.by_ref().take(3).collect();
        let is_going_on = !deletion.is_finished();
        server.disk.set(None);
        deletion.join().unwrap().unwrap();
        assert!(is_going_on);
        alone.problem(410, "topic-deleted");
        assert_eq!(page.status, 200, "{page:?}");
        let end = json!({ "topic": "scratch-a", "end": { "reason": "deleted" } });
        assert_eq!(page.json()["notices"], json!([end]));
        assert_eq!(page.json()["events"][0]["topic"], "scratch-b");
        assert_eq!((&told[1], &told[2]["topic"]), (&end, &json!("scratch-b")), "{told:?}");
        let mut client = Client::open(Carrier::Tcp, fixture);
        assert_eq!(client.ask("POST p /topics/scratch-b\n2").status, 201);
        assert_eq!(stream.next().unwrap()["data"], 2, "the stream goes on");
    });
}

#[test]
fn a_topic_that_cannot_be_read_is_named_and_the_others_are_read_without_it() {
    let (server, directory) = two_topics_on_the_disk();
    let elsewhere = server.folder.path().join("elsewhere");
    std::fs::rename(&directory, &elsewhere).unwrap();
    let get = |target: &str| server.fixture.get(target, &[]);
    let alone = get("/topics/scratch-a?after=earliest");
    assert_eq!(alone.problem(503, "storage-failed"), "cannot read the topic");
    assert_eq!(alone.json()["title"], "The storage failed");
    let detail = "scratch-a: cannot read the topic";
    let page = get("/topics?topic=scratch-*&after=earliest");
    assert_eq!(page.problem(503, "storage-failed"), detail);
    let told: Vec<_> = lines(&server, "scratch-*").collect();
    let end = &told.last().unwrap()["end"];
    assert_eq!((&end["reason"], &end["problem"]["detail"]), (&json!("failed"), &json!(detail)));
    let others = get("/topics?topic=scratch-b&after=earliest").json();
    assert_eq!(others["events"].as_array().unwrap().len(), 1);
    std::fs::rename(&elsewhere, &directory).unwrap();
    let token = told[0]["position"].as_str().unwrap();
    let page = get(&format!("/topics?topic=scratch-*&after={token}")).json();
    assert_eq!(page["events"].as_array().unwrap().len(), 2, "no place is lost");
}

#[test]
fn a_disk_that_never_answers_does_not_hold_the_stop_up() {
    let mut server = Server::with(DataOptions::default(), |options| {
        options.limits.shutdown_grace = Duration::from_millis(200);
    });
    server.disk.set(Some(DiskFault::Stalled));
    let mut stream = server.fixture.connect();
    let request =
        "POST /topics/scratch-new HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1";
    stream.write_all(request.as_bytes()).unwrap();
    wait_until("the topic is not made", || server.disk.waiting() > 0);
    let (fixture, disk) = (&mut server.fixture, &server.disk);
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| fixture.stop());
        let begun = Instant::now();
        while !stop.is_finished() && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        let is_stopped = stop.is_finished();
        disk.set(None);
        assert!(is_stopped, "the server waits for the disk");
    });
}

/// Requests `/health` over HTTP and multiplexed, with the same result. Returns the first problem, if any.
fn health(server: &Server) -> Option<Value> {
    let reply = server.fixture.get("/health", &[]);
    let multiplexed = Client::open(Carrier::Tcp, &server.fixture).ask("GET h /health");
    assert_eq!((multiplexed.status, multiplexed.json()["status"].clone()), {
        (reply.status, reply.json()["status"].clone())
    });
    let head = server.fixture.request("HEAD", "/health", &[]);
    assert_eq!((head.status, &*head.body), (reply.status, ""));
    assert_eq!(reply.field("cache-control"), Some("no-store"));
    match reply.status {
        200 => {
            assert_eq!(reply.json()["status"], "ok", "{reply:?}");
            None
        }
        503 => {
            assert_eq!(reply.json()["status"], "failing", "{reply:?}");
            assert!(!reply.body.contains(server.folder.path().to_str().unwrap()), "{reply:?}");
            Some(reply.json()["problems"][0].clone())
        }
        _ => panic!("{reply:?}"),
    }
}

#[test]
fn health_says_what_is_wrong_until_something_is_kept_again() {
    for (fault, problem, detail) in [
        (DiskFault::Full, "storage-full", "there is no space"),
        (DiskFault::ReadOnly, "storage-read-only", "the file system is read-only"),
    ] {
        let server = Server::start();
        assert_eq!(health(&server), None);
        server.disk.set(Some(fault));
        assert_eq!(health(&server), None, "nobody has tried");
        assert_ne!(Way::Post.publish(&server, 1), Told::Kept);
        let detail = format!("the last attempt to store something failed: {detail}");
        let expected = serde_json::json!({ "problem": problem, "topic": "chat", "detail": detail });
        assert_eq!(health(&server), Some(expected));
        server.disk.set(None);
        assert_eq!(Way::Post.publish(&server, 1), Told::Kept);
        assert_eq!(health(&server), None);
    }
}

#[test]
fn health_says_that_the_disk_is_behind_and_no_more_once_it_is_not() {
    let server = Server::start();
    server.disk.set(Some(DiskFault::Stalled));
    let mut socket = server.fixture.websocket("/topics/chat", &[], &[]);
    socket.send(Message::Text("1"));
    wait_until("it is still well", || server.fixture.get("/health", &[]).status != 200);
    assert_eq!(health(&server).unwrap()["problem"], "storage-behind");
    server.disk.set(None);
    assert_eq!(socket.next(), "1");
    wait_until("it is still unwell", || server.fixture.get("/health", &[]).status != 503);
}

#[test]
fn health_says_that_the_server_stops() {
    let server = Server::start();
    server.fixture.hub.close().unwrap();
    assert_eq!(health(&server).unwrap()["problem"], "stopping");
    server.fixture.request("POST", "/health", &[]).problem(405, "method-not-allowed");
}

#[test]
fn health_lists_20_problems_and_counts_the_rest() {
    let server = Server::start();
    let mut client = Client::open(Carrier::Tcp, &server.fixture);
    for number in 0..21 {
        assert_eq!(client.ask(&format!("POST p /topics/scratch-{number}\n1")).status, 201);
    }
    server.disk.set(Some(DiskFault::Full));
    for number in 0..21 {
        assert_eq!(client.ask(&format!("POST p /topics/scratch-{number}\n1")).status, 507);
    }
    let health = server.fixture.get("/health", &[]).json();
    assert_eq!(health["count"], 21);
    assert_eq!(health["problems"].as_array().unwrap().len(), 20);
}

#[test]
fn as_many_bytes_wait_to_be_kept_on_a_multiplexed_connection_as_may() {
    let server = Server::with(DataOptions::default(), |options| {
        options.limits.multiplexed_waiting_bytes_max = 10;
    });
    server.disk.set(Some(DiskFault::Stalled));
    let mut clients: Vec<Client> = [Carrier::WebSocket, Carrier::Tcp]
        .map(|carrier| Client::open(carrier, &server.fixture))
        .into();
    for client in &mut clients {
        client.send("POST a /topics/chat\n1234");
        client.send("POST b /topics/chat\n123456");
        let detail = client.ask("POST c /topics/chat\n1").problem(429, "c", "too-many-requests");
        assert_eq!(
            detail,
            "the payloads of open requests have 10 bytes, at most 10 are allowed on a connection"
        );
        assert_eq!(client.ask("GET d /clock").status, 200, "the connection goes on");
    }
    server.disk.set(None);
    for client in &mut clients {
        for id in ["a", "b"] {
            let reply = client.next();
            assert_eq!((reply.status, &*reply.id), (201, id));
        }
        let alone = format!("POST c /topics/chat\n{}", "1".repeat(11));
        assert_eq!(client.ask(&alone).status, 201, "one that is longer waits alone");
    }
}
