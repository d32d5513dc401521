//! A Unix socket to listen on.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anemone_hub::{Epoch, Hub, Retention};
use anemone_server::{BindError, Options, PublishRight, Server, TopicRule, TopicRules, UnixSocket};
use anemone_testing::{EventStream, Fixture, PATIENCE, Reply, Socket};
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};

struct OnUnix {
    fixture: Fixture,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

fn start(change: impl FnOnce(&mut Options)) -> OnUnix {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let with = |options: &mut Options| {
        let publish = PublishRight::Loopback;
        let rule = TopicRule { publish, ..TopicRule::new("scratch-*".parse().unwrap()) };
        options.topics = TopicRules::new([rule]).unwrap();
        options.unix = Some(UnixSocket::new(&path));
        change(options);
    };
    let fixture = Fixture::with(with, Retention::default());
    OnUnix { fixture, path, _directory: directory }
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ask(path: &Path, line: &str, fields: &str) -> Reply {
    let mut stream = connect(path);
    write!(stream, "{line}\r\nHost: localhost\r\n{fields}Content-Length: 1\r\n\r\n1").unwrap();
    Reply::read(&mut BufReader::new(stream), "GET")
}

const POST: &str = "POST /topics/scratch-a HTTP/1.1";

#[test]
fn everything_is_served_on_it_and_whoever_can_connect_is_of_this_machine() {
    let server = start(|_| {});
    let path = &server.path;
    assert_eq!(ask(path, POST, "").status, 201);
    assert_eq!(ask(path, "GET /topics/scratch-a HTTP/1.1", "").json()["events"][0]["data"], 1);
    assert_eq!(ask(path, "GET /topics/wind/readers HTTP/1.1", "").status, 200);
    ask(path, POST, "X-Forwarded-For: 127.0.0.1\r\n").problem(403, "publish-refused");
    // By the loop, and by way of the HTTP server.
    for more in ["", "Content-Length: 0\r\n"] {
        let request = format!(
            "GET /topics/wind?after=earliest HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{more}\r\n"
        );
        let mut stream = EventStream::over(connect(path), &request).unwrap();
        stream.block().unwrap();
        let last = server.fixture.publish(1..=1);
        while !stream.block().unwrap().starts_with(&format!("id: {last}\n")) {}
    }
    for subprotocol in [&[][..], &["anemone.events"]] {
        let handshake = ClientHandshake::new(Nonce([7; 16]), subprotocol);
        let target = "/topics/wind?after=latest";
        let mut socket = Socket::open(connect(path), "localhost", target, handshake, &[]).unwrap();
        server.fixture.publish(2..=2);
        while !socket.next().contains("\"n\":2") {}
        let list = ask(path, "GET /topics/wind/readers HTTP/1.1", "").json();
        assert!(list["readers"][0]["client"].is_null(), "{list}");
    }
    // TCP stays beside it.
    assert_eq!(server.fixture.get("/clock", &[]).status, 200);
}

#[test]
fn a_trusted_proxy_may_come_by_it() {
    let server = start(|options| options.trusted_proxies = vec!["unix".parse().unwrap()]);
    ask(&server.path, POST, "").problem(403, "publish-refused");
    ask(&server.path, POST, "X-Forwarded-Host: evil.example\r\n").problem(421, "misdirected");
}

#[test]
fn its_file_has_its_mode_and_goes_at_the_end() {
    for mode in [0o660, 0o600, 0o666] {
        let mut server = start(|options| options.unix.as_mut().unwrap().mode = mode);
        let permissions = fs::metadata(&server.path).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, mode);
        server.fixture.stop();
        assert_eq!(fs::metadata(&server.path).unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn the_file_of_a_server_that_is_gone_is_replaced_and_no_other() {
    let bind = |path: &Path| {
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        (options.listen, options.unix) = (None, Some(UnixSocket::new(path)));
        Server::bind(options, Hub::new(Epoch::from_bits(1)))
    };
    let cause = |error| match error {
        BindError::UnixSocket { source, .. } => source,
        other => panic!("{other}"),
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    drop(UnixListener::bind(&path).unwrap());
    let running = bind(&path).unwrap().start().unwrap();
    assert_eq!(running.local_addr(), None, "it listens on nothing else");
    let error = cause(bind(&path).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    assert_eq!(ask(&path, "GET /clock HTTP/1.1", "").status, 200, "the first goes on");
    // Another has its place meanwhile.
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    running.stop_blocking();
    UnixStream::connect(&path).unwrap();
    drop(other);

    let file = directory.path().join("file");
    fs::write(&file, "mine").unwrap();
    let error = cause(bind(&file).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn a_server_that_stops_ends_what_is_on_it() {
    let mut server = start(|_| {});
    let mut stream = connect(&server.path);
    let head =
        "GET /topics/wind HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = [0];
    stream.read_exact(&mut first).unwrap();
    server.fixture.stop();
    stream.read_to_end(&mut Vec::new()).unwrap();
}
