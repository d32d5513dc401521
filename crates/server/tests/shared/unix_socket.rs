//! A Unix socket to listen on.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anemone_hub::{Epoch, Hub, Retention};
use anemone_server::{
    BindError, ListenAt, Options, PublishRight, Server, TopicRule, TopicRules, UnixSocket,
};
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
        options.listen.push(UnixSocket::new(&path).into());
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
fn the_owner_of_a_server_behind_a_proxy_has_a_place_of_their_own() {
    let server = start(|options| {
        options.trusted_proxies = vec!["unix".parse().unwrap(), "127.0.0.1".parse().unwrap()];
        let ListenAt::Unix(socket) = &options.listen[1] else { panic!("{options:?}") };
        let own = socket.path.with_file_name("own");
        let loopback = ListenAt::Address(([127, 0, 0, 1], 0).into());
        options.listen.push(loopback.clone());
        options.listen_local = vec![UnixSocket::new(own).into(), loopback];
    });
    let places: Vec<_> = server.fixture.places().to_vec();
    assert_eq!(places.len(), 5, "{places:?}");
    for (place, is_local) in places.iter().zip([false, false, false, true, true]) {
        let ask = |fields: &str| match place {
            ListenAt::Unix(socket) => ask(&socket.path, POST, fields),
            ListenAt::Address(address) => {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let head =
                    format!("{POST}\r\nHost: localhost\r\n{fields}Content-Length: 1\r\n\r\n1");
                stream.write_all(head.as_bytes()).unwrap();
                Reply::read(&mut BufReader::new(stream), "POST")
            }
        };
        assert_eq!(ask("").status, if is_local { 201 } else { 403 }, "{place}");
        // Nobody is believed there about another client.
        ask("X-Forwarded-For: 192.0.2.1\r\n").problem(403, "publish-refused");
    }
}

#[test]
fn a_place_of_this_machine_alone_is_one_that_others_cannot_reach() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let listen_local = vec![ListenAt::Address(address.parse().unwrap())];
        let options = Options { listen_local, ..Options::default() };
        let error = Server::bind(options, Hub::new(Epoch::from_bits(1))).unwrap_err();
        assert!(matches!(error, BindError::NotLocal { .. }), "{address}: {error}");
    }
}

#[test]
fn its_file_has_its_mode_and_goes_at_the_end() {
    for mode in [0o660, 0o600, 0o666] {
        let mut server = start(|options| match options.listen.last_mut() {
            Some(ListenAt::Unix(socket)) => socket.mode = mode,
            other => panic!("{other:?}"),
        });
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
        options.listen = vec![UnixSocket::new(path).into()];
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
fn a_server_that_stops_ends_what_is_on_each() {
    let mut other = PathBuf::new();
    let mut server = start(|options| {
        let ListenAt::Unix(socket) = &options.listen[1] else { panic!("{options:?}") };
        other = socket.path.with_file_name("other");
        options.listen_local = vec![UnixSocket::new(&other).into()];
    });
    let head =
        "GET /topics/wind HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n";
    let mut streams = [&server.path, &other].map(|path| connect(path));
    for stream in &mut streams {
        stream.write_all(head.as_bytes()).unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    server.fixture.stop();
    for mut stream in streams {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert!(!server.path.exists() && !other.exists(), "the files of both are gone");
}
