//! `anemone doctor` where there is no server, another URL, or one that stalls.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anemone_testing::process::{Process, SERVE, serve};
use serde_json::Value;

/// Returns the exit status, what is printed, and what is told on standard error.
fn doctor(args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_anemone")).arg("doctor").args(args).output().unwrap();
    let [printed, told] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code().unwrap(), printed, told)
}

/// The answer of a server that is well.
const HEALTHY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"status\":\"ok\"}";

/// Examines a server that answers a request in this way, by its first line, or not at all, and expects these findings before it is
/// told that it stalls.
fn expect_stall(
    answer: impl Fn(&str) -> Option<&'static str> + Send + Sync + 'static,
    expected: &[&str],
) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || answer_requests(stream, &*answer));
        }
    });
    // The silences that are waited for after that of the first examination are short.
    let times = ["--wait", "600s", "--timeout", "3s", "--begin-max", "1s"];
    let (status, printed, told) = doctor(&[&[&*url, "--json"], &times[..]].concat());
    let diagnosis: Value = serde_json::from_str(&printed).unwrap();
    let findings: Vec<_> = diagnosis["findings"].as_array().unwrap().iter().collect();
    let found: Vec<_> =
        findings.iter().map(|one| format!("{} {}", one["name"], one["state"])).collect();
    assert_eq!(found.join(", ").replace('"', ""), [expected, &["reach fault"]].concat().join(", "));
    assert_eq!(status, 13, "{told}");
    let last = findings.last().unwrap();
    assert!(last["words"].as_str().unwrap().starts_with("it stalls: "), "{printed}");
    assert!(told.contains("1 fault"), "{told}");
}

#[test]
fn a_server_that_stalls_is_told_so_and_asked_no_more() {
    let answer = |line: &str| line.starts_with("GET /health ").then_some(HEALTHY);
    expect_stall(answer, &["reach good", "keep-alive good", "cache unknown"]);
}

#[test]
fn a_silence_of_the_look_whether_the_server_is_there_counts() {
    let asked = AtomicU32::new(0);
    let answer = move |line: &str| match line.starts_with("GET /health ") {
        true => (asked.fetch_add(1, Ordering::Relaxed) == 0).then_some(HEALTHY),
        false => Some("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
    };
    expect_stall(answer, &["reach good", "keep-alive unknown"]);
}

#[test]
fn a_server_that_goes_while_it_is_examined_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        BufReader::new(&stream).lines().map_while(Result::ok).find(String::is_empty);
        stream.write_all(HEALTHY.as_bytes()).unwrap();
    });
    let (status, printed, told) = doctor(&[&*url, "--wait", "600s"]);
    server.join().unwrap();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!((status, lines.len()), (4, 2), "{printed}");
    assert!(lines[1].contains("FAULT  server       it has gone: "), "{printed}");
    assert!(lines[1].ends_with("that is no fault of the way"), "{printed}");
    assert!(told.contains("the server has gone: it answered at first"), "{told}");
}

fn answer_requests(mut stream: TcpStream, answer: impl Fn(&str) -> Option<&'static str>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        lines.by_ref().find(String::is_empty);
        if answer(&line).is_some_and(|answer| stream.write_all(answer.as_bytes()).is_err()) {
            break;
        }
    }
}

#[test]
fn the_url_of_something_below_a_server_is_told_with_that_of_the_server() {
    let (_server, address) = serve(&["--threads", "1"]);
    // Without a scheme, it is http.
    for (scheme, path) in [("http://", "topics/wind"), ("http://", "topics/nothing/"), ("", "lab")]
    {
        let (status, printed, told) = doctor(&[&format!("{scheme}{address}/{path}")]);
        assert_eq!(status, 2, "{printed}");
        let words = format!("there is a server at http://{address}: examine that");
        assert!(printed.contains(&words) && printed.lines().count() == 1, "{printed}");
        assert!(told.contains(&format!("the URL of the server is http://{address}\n")), "{told}");
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_with_the_flags_that_trust_it() {
    let mut server = Process::start(&[SERVE, &["--threads", "1", "--tls-dev"]].concat());
    let line = server.line();
    let url = line.strip_prefix("listening on ").unwrap();
    let (status, printed, told) = doctor(&[url]);
    assert_eq!(status, 4, "{printed}");
    assert!(printed.contains("UnknownIssuer"), "{printed}");
    assert!(told.contains("the certificate of the server is not trusted"), "{told}");
    assert!(told.contains("--ca FILE") && told.contains("--insecure"), "{told}");
    assert_eq!(doctor(&[url, "--insecure", "--wait", "1ms", "--begin-max", "30s"]).0, 0);
}
