//! Connections and requests of clients that do nothing count as much as the process grows by, or more, and at most four
//! times that.
//!
//! The server of each measurement is a process of its own, this same program: what one kind of client leaves behind
//! would be what the next one takes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::any::Any;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anemone_server::{Mount, Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::secure::{self, Secure};
use anemone_testing::{Endpoint, Fixture, HANDSHAKE, PATIENCE, Reply, request, resident_bytes};
use anemone_ws::proto::Message;
use axum::routing::any;
use h2::ext::Protocol;
use http::Request;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Connections of each kind, and requests on each where there may be many.
const CONNECTIONS: usize = 250;
const REQUESTS: usize = 100;
/// Allocated once for all clients, by the allocator in one piece.
const SLACK_BYTES: u64 = 1 << 20;
/// The server's words begin with this, among those of its test harness.
const MARK: &str = "server: ";

trait Wire: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Wire for T {}

/// A guard that keeps something open.
type Open = Box<dyn Any>;

struct Server {
    process: Child,
    orders: ChildStdin,
    words: BufReader<ChildStdout>,
    address: SocketAddr,
    secured: SocketAddr,
    folder: PathBuf,
}

/// The bytes that a server has in memory, and those that it counts.
#[derive(Clone, Copy)]
struct Measured {
    resident: u64,
    counted: u64,
}

impl Server {
    fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_server", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let mut words = BufReader::new(process.stdout.take().unwrap());
        let mut next = || word(&mut words);
        let (address, secured) = (next().parse().unwrap(), next().parse().unwrap());
        let folder = next().into();
        Self { process, orders, words, address, secured, folder }
    }

    fn measure(&mut self) -> Measured {
        self.orders.write_all(b"measure\n").unwrap();
        let mut next = || word(&mut self.words).parse().unwrap();
        Measured { resident: next(), counted: next() }
    }

    /// Waits until so many read by the plain port, or by the other.
    async fn wait_for_readers(&self, tls: bool, count: usize) {
        let begun = Instant::now();
        let fields = [("Connection", "close")];
        loop {
            let target = "/topics/wind/readers?limit=1";
            let mut wire = self.http1(tls, target, &fields, true).await;
            let mut reply = Vec::new();
            wire.read_to_end(&mut reply).await.unwrap();
            let reply = Reply::read(&mut &*reply, "GET");
            if reply.json()["count"] == count {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "not {count} readers: {}", reply.body);
        }
    }

    /// A connection that has asked for something over HTTP/1.1, and has its answer, if there is one yet.
    async fn http1(
        &self,
        tls: bool,
        target: &str,
        fields: &[(&str, &str)],
        waits: bool,
    ) -> Box<dyn Wire> {
        let host = if tls { self.secured } else { self.address };
        let mut wire: Box<dyn Wire> = if tls {
            Box::new(secure::connect(host, &self.folder, &["http/1.1"]).await.unwrap())
        } else {
            Box::new(TcpStream::connect(host).await.unwrap())
        };
        let request = request(host, "GET", target, fields);
        wire.write_all(request.as_bytes()).await.unwrap();
        if !waits {
            let mut reply = [0; 12];
            wire.read_exact(&mut reply).await.unwrap();
            assert!(reply.ends_with(b"200") || reply.ends_with(b"101"), "{}", reply.escape_ascii());
        }
        wire
    }

    /// A connection over HTTP/2 with so many of a request on it.
    async fn http2(&self, count: usize, request: &Request<()>, is_answered: bool) -> Open {
        let wire = secure::connect(self.secured, &self.folder, &["h2"]).await.unwrap();
        // Nobody reads the replies: all there is room for at once, or the server would give them up.
        let (client, connection) = h2::client::Builder::new()
            .initial_window_size(1 << 20)
            .initial_connection_window_size(1 << 28)
            .handshake::<_, bytes::Bytes>(wire)
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut client = client.ready().await.unwrap();
        // The client knows of it after the server's settings.
        while !client.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
            client = client.ready().await.unwrap();
        }
        let mut open: Vec<Open> = Vec::new();
        for _ in 0..count {
            let is_whole = request.method() != "CONNECT";
            let (response, stream) = client.send_request(request.clone(), is_whole).unwrap();
            if is_answered {
                let response = response.await.unwrap();
                assert_eq!(response.status(), 200);
                open.push(Box::new((response, stream)));
            } else {
                open.push(Box::new((response, stream)));
            }
        }
        Box::new((client, open))
    }

    /// A multiplexed connection with so many readers on it, of these topics.
    fn multiplexed(&self, readers: usize, topic: impl Fn(usize) -> String) -> Open {
        let endpoint = Endpoint { address: self.address };
        let mut socket = endpoint.websocket("/ws", &["anemone.v1"], &[]);
        for id in 0..readers {
            socket.send(Message::Text(&format!("GET {id} /topics/{}", topic(id))));
        }
        for _ in 0..readers {
            assert!(socket.next().starts_with("100 "));
        }
        Box::new(socket)
    }
}

/// A multiplexed connection with so many calls that wait for their service.
fn calling(server: &Server, calls: usize) -> Open {
    let endpoint = Endpoint { address: server.address };
    let mut socket = endpoint.websocket("/ws", &["anemone.v1"], &[]);
    for id in 0..calls {
        socket.send(Message::Text(&format!("GET {id} /svc/never")));
    }
    socket.send(Message::Text("GET last /clock"));
    assert!(socket.next().starts_with("200 last"));
    Box::new(socket)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The server's next word.
fn word(words: &mut impl BufRead) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(words.read_line(&mut line).unwrap(), 0, "the server is gone");
        if let Some((_, word)) = line.trim_end().split_once(MARK) {
            return word.to_owned();
        }
    }
}

/// The server of the test below, controlled by its parent.
#[test]
#[ignore = "a process of the test below"]
fn the_server() {
    // What is open stays so for as long as it takes to open the rest, which on a busy machine is long.
    let patient = |options: &mut Options| {
        let hour = Duration::from_secs(3600);
        let limits = &mut options.limits;
        (limits.header_timeout, limits.write_timeout) = (hour, hour);
        for config in [&mut limits.websocket, &mut limits.multiplexed] {
            Arc::make_mut(config).idle_timeout = hour;
        }
    };
    let secure = Secure::with(patient);
    let rules = |options: &mut Options| {
        patient(options);
        let rule = TopicRule::new("open-*".parse().unwrap());
        let rule = TopicRule { publish: PublishRight::Anyone, ..rule };
        options.topics = TopicRules::new([rule]).unwrap();
        let never = any(std::future::pending::<()>);
        let routes = axum::Router::new().route("/svc/never", never);
        options.mounts.push(Mount::new("/svc", routes).unwrap());
    };
    let plain = Fixture::of(secure.fixture.hub.clone(), rules, anemone_hub::Retention::default());
    let say = |word: &dyn std::fmt::Display| println!("\n{MARK}{word}");
    say(&plain.address);
    say(&secure.fixture.address);
    say(&secure.folder.path().display());
    for _ in io::stdin().lines() {
        say(&resident_bytes());
        say(&(plain.held_bytes() + secure.fixture.held_bytes()));
    }
}

/// A kind of client: so many connections with so many requests each, all of which are readers or none.
struct Kind {
    name: &'static str,
    connections: usize,
    requests: usize,
    are_readers: bool,
}

impl Kind {
    fn has_tls(&self) -> bool {
        self.name.starts_with("TLS") || self.name.starts_with("HTTP/2")
    }
}

const KINDS: [Kind; 15] = [
    Kind { name: "HTTP/1.1, quiet", connections: CONNECTIONS, requests: 1, are_readers: false },
    Kind { name: "HTTP/1.1, long poll", connections: CONNECTIONS, requests: 1, are_readers: true },
    Kind { name: "SSE", connections: 4 * CONNECTIONS, requests: 1, are_readers: true },
    Kind { name: "WebSocket", connections: 4 * CONNECTIONS, requests: 1, are_readers: true },
    Kind { name: "multiplexed", connections: CONNECTIONS, requests: REQUESTS, are_readers: true },
    Kind { name: "multiplexed, awaited", connections: 60, requests: REQUESTS, are_readers: false },
    Kind { name: "multiplexed, calls", connections: 60, requests: REQUESTS, are_readers: false },
    Kind { name: "TLS, quiet", connections: CONNECTIONS, requests: 1, are_readers: false },
    Kind { name: "TLS, long poll", connections: CONNECTIONS, requests: 1, are_readers: true },
    Kind { name: "TLS, SSE", connections: CONNECTIONS, requests: 1, are_readers: true },
    Kind { name: "TLS, WebSocket", connections: CONNECTIONS, requests: 1, are_readers: true },
    Kind { name: "HTTP/2, quiet", connections: CONNECTIONS, requests: 0, are_readers: true },
    Kind { name: "HTTP/2, long poll", connections: 25, requests: REQUESTS, are_readers: true },
    Kind { name: "HTTP/2, SSE", connections: 25, requests: REQUESTS, are_readers: true },
    Kind { name: "HTTP/2, WebSocket", connections: 25, requests: REQUESTS, are_readers: true },
];

const SSE: [(&str, &str); 1] = [("Accept", "text/event-stream")];
const POLL: &str = "/topics/wind?wait=100";

async fn open(server: &Server, kind: &Kind) -> Open {
    let request = |method: &str, target: &str| {
        let uri = format!("https://localhost:{}{target}", server.secured.port());
        Request::builder().method(method).uri(uri)
    };
    let tls = kind.has_tls();
    match kind.name {
        "HTTP/1.1, quiet" | "TLS, quiet" => Box::new(server.http1(tls, "/clock", &[], false).await),
        "HTTP/1.1, long poll" | "TLS, long poll" => {
            Box::new(server.http1(tls, POLL, &[], true).await)
        }
        "SSE" | "TLS, SSE" => Box::new(server.http1(tls, "/topics/wind", &SSE, false).await),
        "WebSocket" | "TLS, WebSocket" => {
            Box::new(server.http1(tls, "/topics/wind", &HANDSHAKE, false).await)
        }
        "multiplexed" => server.multiplexed(kind.requests, |_| "wind".to_owned()),
        "multiplexed, awaited" => {
            static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
            let own = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
            // Names of the greatest length.
            server.multiplexed(kind.requests, |id| format!("open-{:0>123}", own * 1000 + id))
        }
        "multiplexed, calls" => calling(server, kind.requests),
        "HTTP/2, quiet" | "HTTP/2, long poll" => {
            let request = request("GET", POLL).body(()).unwrap();
            server.http2(kind.requests, &request, false).await
        }
        "HTTP/2, SSE" => {
            let request = request("GET", "/topics/wind").header("accept", "text/event-stream");
            server.http2(kind.requests, &request.body(()).unwrap(), true).await
        }
        "HTTP/2, WebSocket" => {
            let request = request("CONNECT", "/topics/wind").header("sec-websocket-version", "13");
            let mut request = request.body(()).unwrap();
            request.extensions_mut().insert(Protocol::from_static("websocket"));
            server.http2(kind.requests, &request, true).await
        }
        other => panic!("{other}?"),
    }
}

/// By how much a server grows for what these clients have open, and how much more it counts.
fn grown(kind: &Kind) -> Measured {
    let mut server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // The first connection allocates shared memory, which does not count.
        drop(open(&server, kind).await);
        server.wait_for_readers(kind.has_tls(), 0).await;
        let before = server.measure();
        let mut clients = Vec::new();
        for _ in 0..kind.connections {
            clients.push(open(&server, kind).await);
        }
        let readers = if kind.are_readers { kind.connections * kind.requests } else { 0 };
        server.wait_for_readers(kind.has_tls(), readers).await;
        let after = server.measure();
        Measured {
            resident: after.resident - before.resident,
            counted: after.counted - before.counted,
        }
    })
}

#[test]
fn what_is_open_counts_as_much_as_it_takes() {
    let mut wrong = Vec::new();
    for kind in &KINDS {
        let Measured { resident, counted } = grown(kind);
        let each = (kind.connections * kind.requests.max(1)) as u64;
        let told =
            format!("{}: {} bytes taken, {} counted", kind.name, resident / each, counted / each);
        println!("{told}");
        if counted + SLACK_BYTES < resident || counted > 4 * resident + SLACK_BYTES {
            wrong.push(told);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
