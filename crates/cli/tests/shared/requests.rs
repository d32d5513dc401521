//! The access log of the binary: its exact lines, as text and as JSON.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;

use anemone_testing::process::{self, LONG, Process, SERVE, command, listening, read_until};
use anemone_testing::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

/// A server whose log is in a file.
struct Logging {
    server: Process,
    address: SocketAddr,
    directory: TempDir,
}

impl Logging {
    fn start(args: &[&str], rust_log: Option<&str>) -> Self {
        let directory = tempdir().unwrap();
        let mut serve = command(SERVE);
        serve.args(args).stderr(File::create(directory.path().join("log")).unwrap());
        serve.env_remove("RUST_LOG").envs(rust_log.map(|text| ("RUST_LOG", text)));
        let (server, address) = listening(serve);
        Self { server, address, directory }
    }

    /// The reply to this, whole, and whose request that was.
    fn ask(&self, line: &str, rest: &[u8]) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(stream, "{line} HTTP/1.1\r\nConnection: close\r\n").unwrap();
        stream.write_all(rest).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        (String::from_utf8(reply).unwrap(), stream.local_addr().unwrap().to_string())
    }

    fn wait_for(&self, part: &str) {
        wait_until(&format!("{part} is not logged"), || {
            let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap();
            log.contains(part)
        });
    }

    /// Lines that it has logged, once it has stopped.
    fn stop(self) -> Vec<String> {
        self.server.signal(Signal::TERM);
        assert_eq!(self.server.wait().code(), Some(0));
        let said = std::fs::read_to_string(self.directory.path().join("log")).unwrap();
        said.lines().map(str::to_owned).collect()
    }
}

const HOST: &[u8] = b"Host: localhost\r\n\r\n";

fn body_bytes(reply: &str) -> usize {
    reply.split_once("\r\n\r\n").unwrap().1.len()
}

/// The lines of requests, each from its level on, with `duration_ms` as it must be.
fn requests(lines: &[String]) -> Vec<String> {
    let lines = lines.iter().filter(|line| line.contains(" request method="));
    let lines = lines.map(|line| {
        let (time, line) = line.split_once("  ").unwrap();
        assert!(time.ends_with('Z'), "{time}");
        let (before, after) = line.split_once(" duration_ms=").unwrap();
        let (duration, after) = after.split_once(' ').unwrap_or((after, ""));
        assert!(duration.parse::<f64>().unwrap() >= 0.0, "{line}");
        format!("{before} {after}").trim_end().to_owned()
    });
    lines.collect()
}

#[test]
fn the_lines_of_text_say_who_asked_for_what_and_what_came_of_it() {
    let server = Logging::start(&["--log-requests=all", "--demo"], None);
    let post =
        "Host: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi".as_bytes();
    let (published, publisher) = server.ask("POST /topics/scratch-a", post);
    let position = published.split('"').nth(3).unwrap();
    let (page, poller) = server.ask("GET /topics/scratch-a?after=earliest", HOST);
    let (_, lost) = server.ask("GET /nowhere?key=secret", HOST);
    let lines = requests(&server.stop());
    let expected = [
        format!(
            "INFO request method=\"POST\" path=\"/topics/scratch-a\" status=201 transport=http client={publisher} bytes={} \
             position={position}",
            body_bytes(&published)
        ),
        format!(
            "INFO request method=\"GET\" path=\"/topics/scratch-a\" status=200 transport=poll client={poller} bytes={} \
             position={position}",
            body_bytes(&page)
        ),
        format!(
            "INFO request method=\"GET\" path=\"/nowhere\" status=404 transport=http client={lost} bytes=118"
        ),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_line_of_json_has_each_as_a_member_of_its_own_with_its_unit() {
    let server = Logging::start(&["--log-requests=all", "--log", "json", "--demo"], None);
    let (page, poller) = server.ask("GET /topics/wind?after=latest", HOST);
    let position = page.split("\"next\":\"").nth(1).unwrap().split('"').next().unwrap();
    let stream = process::request(
        server.address,
        "GET /topics/scratch-a HTTP/1.1\r\nAccept: text/event-stream",
    );
    let mut reader = stream.try_clone().unwrap();
    read_until(&mut reader, b"\n\n\r\n");
    let reader = stream.local_addr().unwrap().to_string();
    let lines = server.stop();
    let mut lines: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.retain(|line| line["message"] == "request");
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        assert!(line.remove("time").unwrap().as_str().unwrap().ends_with('Z'));
        assert!(line.remove("duration_ms").unwrap().as_f64().unwrap() >= 0.0);
    }
    let begin = lines[1]["position"].clone();
    let bytes = "retry: 1000\nid: \n\n".len() + begin.as_str().unwrap().len();
    let expected = [
        json!({
            "level": "INFO", "message": "request", "method": "GET", "path": "/topics/wind", "status": 200,
            "transport": "poll", "client": poller, "bytes": body_bytes(&page), "position": position,
        }),
        json!({
            "level": "INFO", "message": "request", "method": "GET", "path": "/topics/scratch-a", "status": 200,
            "transport": "sse", "client": reader, "bytes": bytes, "position": begin, "end": "server stopped",
        }),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn requests_are_logged_where_that_is_asked_for_and_rust_log_does_not_say_otherwise() {
    for (args, rust_log, is_logged) in [
        (&[][..], None, false),
        (&["--log-requests"], None, true),
        (&["--log-requests=off"], None, false),
        (&["--log-requests"], Some("warn"), true),
        (&["--log-requests"], Some("info,anemone::access=off"), false),
        (&["--log-requests=all"], Some("off,anemone::access=info"), true),
    ] {
        let server = Logging::start(args, rust_log);
        server.ask("GET /clock", HOST);
        let lines = server.stop();
        assert_eq!(
            requests(&lines).len(),
            usize::from(is_logged),
            "{args:?} {rust_log:?}: {lines:?}"
        );
    }
}

#[test]
fn the_file_says_so_too() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("anemone.toml");
    std::fs::write(&path, "log_requests = \"sampled\"\n").unwrap();
    let server = Logging::start(&["--config", path.to_str().unwrap()], None);
    for _ in 0..3 {
        server.ask("GET /topics/none", HOST);
        server.ask("GET /clock", HOST);
    }
    let lines = requests(&server.stop());
    let (polls, others): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.contains("/topics/none"));
    assert_eq!((polls.len(), others.len()), (2, 3), "{lines:?}");
    assert!(polls[1].ends_with(" repeats=1"), "{lines:?}");
}

#[test]
fn whatever_others_say_stays_on_its_line_and_obeys_nobody() {
    let evil = "\u{202e}\u{9b}31m";
    // Its standard error is logged, the last text of each line.
    let program = "said=printf 'gone\\ra\\033[31m\\342\\200\\256b\\n' >&2; exec sleep 1000";
    let args = ["--log-requests=all", "--exec", program, "--trusted-proxy", "127.0.0.1"];
    let server = Logging::start(&args, None);
    server.ask(&format!("GET /{evil}"), HOST);
    server.ask("GET /%0a%1b%E2%80%AE", HOST);
    server.ask("GET /topics/%1b%E2%80%AE", HOST);
    for fields in [
        format!("Host: {evil}.example\r\n\r\n"),
        format!("Host: localhost\r\nOrigin: http://{evil}.example\r\n\r\n"),
        format!("Host: localhost\r\nForwarded: for=\"{evil}\"\r\n\r\n"),
    ] {
        server.ask("GET /clock", fields.as_bytes());
    }
    server.wait_for("standard error: ");
    let lines = server.stop();
    for line in &lines {
        assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line:?}");
    }
    for expected in [
        r#"INFO request method="GET" path="/\u{202e}\u{9b}31m" status=404 transport=http client="#,
        r#"INFO request method="GET" path="/%0a%1b%E2%80%AE" status=400 transport=http client="#,
        r#"INFO request method="GET" path="/topics/%1b%E2%80%AE" status=400 transport=http client="#,
        r#"INFO request method="GET" path="/clock" status=403 transport=http client="#,
        r"WARN refused GET /clock of 127.0.0.1, 403 origin-refused: pages of origin http://\u202e\u009b31m.example may not use ",
        r#"WARN refused GET /clock of 127.0.0.1, 400 bad-forwarding: what the proxy says about this request is not valid: "\u{202e}\u{9b}31m" is not an address; "#,
        r"INFO standard error: a\u001b[31m\u202eb topic=said",
    ] {
        let is_it = |line: &&String| line.split_once("  ").unwrap().1.starts_with(expected);
        assert_eq!(lines.iter().filter(is_it).count(), 1, "{expected}: {lines:#?}");
    }
}

#[test]
fn nobody_waits_for_a_log_that_is_not_read() {
    let mut serve = command(SERVE);
    serve.args(["--log-requests=all"]).env_remove("RUST_LOG").stderr(Stdio::piped());
    let mut child = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let _watchdog = process::Watchdog::of(&child);
    let mut line = Vec::new();
    let mut stdout = child.stdout.take().unwrap();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).unwrap();
    let address: SocketAddr =
        line.trim_end().strip_prefix("listening on http://").unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let request = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(250));
    // More lines than a pipe and the queue take: some 400 bytes each.
    let (count, batch) = (8000, 100);
    for _ in 0..count / batch {
        stream.write_all(request.repeat(batch).as_bytes()).unwrap();
        for _ in 0..batch {
            read_until(&mut stream, b"}\n");
        }
    }
    kill(&child, Signal::TERM);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let logged = said.lines().filter(|line| line.contains(" request method=")).count();
    let dropped = said.lines().filter_map(|line| {
        let rest = line.split_once("the log is read more slowly than it is written: ")?.1;
        rest.strip_suffix(" of its lines were dropped here")?.parse::<usize>().ok()
    });
    let dropped: usize = dropped.sum();
    assert!(dropped > 0, "the log had room for {logged} lines");
    assert!((count..count + 5).contains(&(logged + dropped)), "{logged} and {dropped} of {count}");
}

fn kill(child: &std::process::Child, signal: Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}
