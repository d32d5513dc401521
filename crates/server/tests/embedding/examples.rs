//! The examples run and do what they say.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// The program of an example, which cargo builds beside the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(program.exists(), "build it: cargo build --package anemone-server --examples");
    program
}

/// An example that runs until this is dropped.
struct Example {
    child: Child,
    said: BufReader<ChildStderr>,
    address: SocketAddr,
}

impl Example {
    fn start(name: &str) -> Self {
        let mut child = Command::new(program(name)).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on http://").unwrap();
        let address = url.trim_end_matches('/').parse().unwrap();
        Self { child, said, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn ask(&self, method: &str, target: &str, body: &str) -> Reply {
        let mut stream = self.connect();
        let len = body.len().to_string();
        let fields = [("Content-Length", &*len), ("Content-Type", "application/json")];
        let head = request(self.address, method, target, &fields);
        stream.write_all((head + body).as_bytes()).unwrap();
        Reply::read(&mut BufReader::new(stream), method)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Speaks to an example in each way, whose topics are below `path`, and ends it.
fn try_out(name: &str, path: &str) {
    let mut example = Example::start(name);
    assert!(example.ask("GET", "/", "").body.contains("<title>Wind</title>"));
    assert_eq!(example.ask("GET", "/hello", "").body, "hello");
    let page = example.ask("GET", &format!("{path}/topics/wind?after=earliest"), "").json();
    assert_eq!(page["events"][0]["data"]["speed"], 2.7);
    let chat = format!("{path}/topics/chat");
    assert_eq!(example.ask("POST", &chat, "{\"text\":\"hi\"}").status, 201);
    let target = format!("{chat}?after=earliest");
    let head = request(example.address, "GET", &target, &[("Accept", "text/event-stream")]);
    let mut events = EventStream::over(example.connect(), &head).unwrap();
    events.block().unwrap();
    assert!(events.event().ends_with("data: {\"text\":\"hi\"}\n"));
    let handshake = ClientHandshake::new(Nonce([7; 16]), &[]);
    let host = example.address.to_string();
    let mut socket = Socket::open(example.connect(), &host, &target, handshake, &[]).unwrap();
    assert_eq!(socket.next(), "{\"text\":\"hi\"}");

    kill_process(Pid::from_child(&example.child), Signal::TERM).unwrap();
    assert_eq!(events.block(), None);
    assert_eq!(socket.next(), "close 1001 the server is stopping");
    drop((events, socket));
    let mut said = String::new();
    example.said.read_to_string(&mut said).unwrap();
    assert_eq!(said, "Stopped { connections_cut: 0, requests_open: 0 }\n");
    assert!(example.child.wait().unwrap().success());
}

#[test]
fn the_example_with_axum_has_a_page_a_route_and_topics_and_stops() {
    try_out("within_axum", "/live");
}

#[test]
fn the_example_with_a_listener_of_ours_has_the_same() {
    try_out("embedded", "");
}

/// The Rust code of a document, without the lines that rustdoc hides.
fn code(document: &str, fence: &str) -> Vec<String> {
    let blocks = document.split(fence).skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let shown = |block: &str| {
        block.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n")
    };
    blocks.map(shown).collect()
}

#[test]
fn the_readme_shows_the_code_that_the_documentation_of_the_crate_compiles() {
    let compiled = code(include_str!("../../README.md"), "```rust,no_run\n");
    assert_eq!(compiled.len(), 2);
    assert_eq!(code(include_str!("../../../../README.md"), "```rust\n"), compiled);
}
