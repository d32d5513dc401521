//! The memory of the server for all its clients together, when they do everything at once that makes it hold something:
//! plain, and over TLS with HTTP/2 beside it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]
#![allow(clippy::print_stdout, reason = "the figures of a test that passes")]

mod secure;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anemone_testing::PATIENCE;
use anemone_testing::process::{self, Process, SERVE, command, status_bytes};
use rustix::process::{Resource, getrlimit, setrlimit};
use secure::Trust;
use tempfile::tempdir;

const MIB: usize = 1 << 20;
/// So many at once: one that is stuck waits beside the others.
const ATTACKERS: usize = 32;
/// The most attacks of each, until memory is exceeded: on a slow machine, the server takes in less of each.
const ATTACKS_MAX: usize = 4;
const MEMORY_MAX: &str = "256MiB";
const RESIDENT_BYTES_MAX: u64 = 400 << 20;

/// So long a peer tries to send that means no good: it does not depend on it how much the server takes.
const STUCK: Duration = Duration::from_millis(100);

const CONFIGURATION: &str = "echo = true
[[topic]]
name = \"big\"
publish = \"anyone\"
bytes_max = \"8MiB\"
[[topic]]
name = \"small\"
publish = \"anyone\"
# On a slow machine too, what is held goes because it is too much, and not because its time is over.
[limits]
header_timeout = \"10min\"
body_timeout = \"10min\"
write_timeout = \"10min\"
[limits.websocket]
idle_timeout = \"10min\"
[limits.multiplexed]
message_timeout = \"10min\"
idle_timeout = \"10min\"
[limits.echo]
message_timeout = \"10min\"
idle_timeout = \"10min\"
";

const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// A door of the server: where it listens, and how it is spoken to.
#[derive(Clone)]
struct Door {
    address: SocketAddr,
    trust: Option<Trust>,
}

/// A connection, with TLS or without.
trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

impl Door {
    /// A connection that gives up soon when the server takes no more.
    fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(STUCK)).unwrap();
        stream
    }

    fn connect(&self) -> Box<dyn Wire> {
        match &self.trust {
            None => Box::new(self.tcp()),
            Some(trust) => Box::new(trust.connect(self.tcp(), "http/1.1")),
        }
    }

    /// Sends what a hostile peer sends. The connection may break meanwhile.
    fn send(&self, head: &str, rest: &[u8]) -> Box<dyn Wire> {
        let mut stream = self.connect();
        let head = format!("{head}\r\nHost: {}\r\n\r\n", self.address);
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(rest));
        let _ = sent.and_then(|()| stream.flush());
        stream
    }
}

/// The header of a client's frame whose mask is nothing.
fn header(first: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![first, 0x80 | 127];
    bytes.extend_from_slice(&(len as u64).to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

/// A MiB of zeros, compressed by hand (RFC 1951 section 3.2.6): a zero, and matches of 258 bytes at a distance of one,
/// without an end.
fn bomb() -> Vec<u8> {
    let mut bits: Vec<bool> = vec![false, true, false]; // not the last block, fixed codes
    bits.extend([false, false, true, true, false, false, false, false]); // literal 0
    for _ in 0..MIB / 258 - 1 {
        bits.extend([true, true, false, false, false, true, false, true]); // length 258
        bits.extend([false; 5]); // distance 1
    }
    let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    bits.chunks(8).map(byte).collect()
}

/// Everything at once: of all attackers together each kind alone would be more than enough, or nearly.
fn attack(door: &Door) -> Vec<Box<dyn Wire>> {
    let compressed = format!("{HANDSHAKE}Sec-WebSocket-Extensions: permessage-deflate\r\n");
    let multiplexed = format!("{HANDSHAKE}Sec-WebSocket-Protocol: anemone.v1\r\n");
    let (zeros, bomb) = (vec![0; MIB - 1], bomb());
    let (unfinished, whole) = (header(0x82, MIB), header(0x82, MIB - 1));
    let bomb = [&header(0x42, bomb.len())[..], &bomb].concat();
    let page = "GET /topics/big?after=earliest HTTP/1.1";
    let pages = format!("{page}\r\nHost: {}\r\n\r\n", door.address).repeat(40);
    let mut streams = Vec::new();
    let mut open = |head: &str, fields: &str, rest: &[u8]| {
        streams.push(door.send(&format!("{head}\r\n{fields}X: x"), rest));
    };
    for number in 0..4 {
        open("GET /echo HTTP/1.1", &compressed, &bomb);
        open(
            "GET /ws HTTP/1.1",
            &format!("{multiplexed}Sec-WebSocket-Extensions: permessage-deflate\r\n"),
            &bomb,
        );
        if number % 3 == 0 {
            // Its echo is not read.
            open("GET /echo HTTP/1.1", HANDSHAKE, &[&whole[..], &zeros].concat().repeat(4));
        }
        open("GET /echo HTTP/1.1", HANDSHAKE, &[&unfinished[..], &zeros].concat());
    }
    for _ in 0..10 {
        open("GET /ws HTTP/1.1", &multiplexed, &[&unfinished[..], &zeros].concat());
        open("POST /echo HTTP/1.1", "Content-Length: 1048576\r\n", &zeros);
        open("POST /topics/big HTTP/1.1", "Content-Length: 1048576\r\n", &zeros);
    }
    for _ in 0..6 {
        open(page, "", pages.as_bytes());
        open(page, "Accept: text/event-stream\r\n", b"");
        open(page, "Accept: application/x-ndjson\r\n", b"");
        open(page, HANDSHAKE, b"");
    }
    streams
}

/// The status of a request, and the body; 0 and the reason if there is no reply.
fn ask(door: &Door, head: &str, body: &str) -> (u16, String) {
    let len = body.len();
    let head = format!("{head}\r\nConnection: close\r\nContent-Length: {len}");
    let mut stream = door.send(&head, body.as_bytes());
    let mut reply = String::new();
    let end = stream.read_to_string(&mut reply);
    match reply.get(9..12).and_then(|status| status.parse().ok()) {
        Some(status) => (status, reply),
        None => (0, format!("{end:?} {reply}")),
    }
}

/// Asks until it is answered; 503 means to try again.
fn served(door: &Door, head: &str, body: &str, status: u16) -> usize {
    let begun = Instant::now();
    let mut refused = 0;
    loop {
        match ask(door, head, body) {
            (503, reply) => assert!(reply.to_lowercase().contains("retry-after: 1"), "{reply}"),
            // With TLS there are no words for whom not even a handshake is worth its room.
            (0, reply) if door.trust.is_some() && !reply.contains("HTTP") => {}
            (got, reply) => {
                assert_eq!(got, status, "{reply}");
                return refused;
            }
        }
        refused += 1;
        assert!(begun.elapsed() < PATIENCE, "{head}: still refused");
        thread::sleep(Duration::from_millis(10));
    }
}

fn echoed(door: &Door) {
    let begun = Instant::now();
    loop {
        let mut stream = door.send(&format!("GET /echo HTTP/1.1\r\n{HANDSHAKE}X: x"), b"");
        let mut head = [0; 12];
        if stream.read_exact(&mut head).is_ok() && head.ends_with(b"101") {
            process::read_until(&mut stream, b"\r\n\r\n");
            stream.write_all(&[&[0x81, 0x85, 0, 0, 0, 0][..], b"hello"].concat()).unwrap();
            stream.flush().unwrap();
            let mut frame = [0; 2];
            // A slow machine has the server ask whether this client is still there.
            while stream.read_exact(&mut frame).is_ok() && frame[0] == 0x89 {
                stream.read_exact(&mut vec![0; frame[1].into()]).unwrap();
            }
            let mut message = [0; 5];
            stream.read_exact(&mut message).unwrap();
            assert_eq!((frame, message), (*b"\x81\x05", *b"hello"));
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "the echo is still refused");
    }
}

/// Attacks a server with a low limit while a normal client uses it; `beside` adds attacks through its own door.
fn everything_at_once(trust: Option<(Trust, [&str; 4])>, beside: fn(&Door) -> Vec<Box<dyn Wire>>) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let directory = tempdir().unwrap();
    let path = directory.path().join("anemone.toml");
    fs::write(&path, CONFIGURATION).unwrap();
    let config = path.to_str().unwrap();
    let (trust, tls) = trust.unzip();
    let tls = tls.iter().flatten().copied();
    let args = ["--threads", "2", "--config", config, "--memory-max", MEMORY_MAX];
    let args: Vec<&str> = SERVE.iter().chain(&args).copied().chain(tls).collect();
    let mut server = Process::spawn(command(&args));
    let line = server.line();
    let address = line.split_once("://").expect(&line).1.parse().unwrap();
    let door = &Door { address, trust };
    let event = format!("\"{}\"", "x".repeat(60_000));
    for _ in 0..130 {
        assert_eq!(ask(door, "POST /topics/big HTTP/1.1", &event).0, 201);
    }
    let before = status_bytes(server.pid(), "VmRSS");
    let (is_over, is_exceeded) = (AtomicBool::new(false), AtomicBool::new(false));
    let (rounds, refused) = thread::scope(|scope| {
        let normal = scope.spawn(|| {
            let (mut rounds, mut refused) = (0, 0);
            // At least once after all the others have come.
            loop {
                let is_last = is_over.load(Ordering::Relaxed);
                refused += served(door, "GET /clock HTTP/1.1", "", 200);
                refused += served(door, "POST /topics/small HTTP/1.1", "1", 201);
                refused += served(door, "GET /topics/small HTTP/1.1", "", 200);
                echoed(door);
                rounds += 1;
                if refused > 0 {
                    is_exceeded.store(true, Ordering::Relaxed);
                }
                if is_last {
                    return (rounds, refused);
                }
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && !is_exceeded.load(Ordering::Relaxed) {
                if ask(door, "GET /health HTTP/1.1", "").1.contains("\"memory\"") {
                    is_exceeded.store(true, Ordering::Relaxed);
                }
                // The attackers need the processor.
                thread::sleep(Duration::from_millis(5));
            }
        });
        let attackers = [(); ATTACKERS].map(|()| {
            scope.spawn(|| {
                let mut held = vec![(attack(door), beside(door))];
                while held.len() < ATTACKS_MAX && !is_exceeded.load(Ordering::Relaxed) {
                    held.push((attack(door), beside(door)));
                }
                held
            })
        });
        let all = attackers.map(|attacker| attacker.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        let told = normal.join().unwrap();
        drop(all);
        told
    });
    let peak = status_bytes(server.pid(), "VmHWM");
    let told = format!(
        "{} MiB before, {} MiB at most; {rounds} rounds of a normal client, refused {refused} times meanwhile",
        before >> 20,
        peak >> 20
    );
    println!("{told}");
    assert!(peak < RESIDENT_BYTES_MAX, "{told}");
    assert!(is_exceeded.into_inner(), "it was not too much: {told}");
}

#[test]
fn everything_at_once_stays_within_memory_and_a_normal_client_is_served() {
    everything_at_once(None, |_| Vec::new());
}

#[test]
fn so_it_does_over_tls_and_with_http2_beside_it() {
    let directory = tempdir().unwrap();
    let trust = Trust::new(directory.path());
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("certificate.pem"), path("key.pem"));
    let args = ["--tls-cert", &certificate, "--tls-key", &key];
    everything_at_once(Some((trust, args)), secure::over_http2);
}
