//! Commands reach a server through its Unix socket: `unix:SOCKET`, and `unix:SOCKET:/PATH` for a path there.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::process::Output;

use anemone_testing::process::{Process, command, output};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// A server that listens on a Unix socket and nowhere else.
struct OnSocket {
    url: String,
    _server: Process,
    _directory: TempDir,
}

fn server() -> OnSocket {
    let directory = tempdir().unwrap();
    // Another name could be taken for a path on the server.
    let url = format!("unix:{}", directory.path().join("topics 1.sock").display());
    let run = "lines=printf '1\\n2\\n'";
    let flags = ["--threads", "1", "--demo", "--run", run, "--listen", &url];
    let mut server = Process::start(&[&["serve"], &flags[..]].concat());
    assert_eq!(server.line(), format!("listening on {url}"));
    OnSocket { url, _server: server, _directory: directory }
}

impl OnSocket {
    fn at(&self, path: &str) -> String {
        format!("{}:{path}", self.url)
    }
}

/// Standard output and standard error of a command, and its exit status.
fn said(args: &[&str]) -> (String, String, i32) {
    let Output { stdout, stderr, status } = output(command(args), "");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.code().unwrap())
}

/// Standard output of one that succeeds.
fn done(args: &[&str]) -> String {
    let (out, err, status) = said(args);
    assert_eq!(status, 0, "{args:?}: {err}");
    out
}

#[test]
fn a_topic_is_read_by_every_transport_and_published_to() {
    let server = server();
    let topic = server.at("/topics/scratch-a");
    done(&["pub", &topic, "1"]);
    done(&["pub", &topic, "2"]);
    let read = |args: &[&str]| {
        let rest = ["--after", "earliest", "--count", "2", "--output", "line", "--quiet"];
        done(&[&["sub"], args, &rest].concat())
    };
    for via in ["auto", "ws", "mux", "sse", "ndjson", "long-poll", "poll"] {
        assert_eq!(read(&[&topic, "--via", via]), "1\n2\n", "{via}");
    }
    assert_eq!(read(&[&server.url, "scratch-a"]), "1\n2\n");
    assert_eq!(read(&[&server.url, "scratch-*"]), "1\n2\n");
    assert_eq!(read(&[&server.url, "--topic", "scratch-a"]), "1\n2\n");
    let (_, err, status) = said(&["sub", &topic, "wind"]);
    assert!(status == 2 && err.contains("has the name of a topic already"), "{err}");
    let (_, err, status) = said(&["sub", &topic, "--via", "tcp"]);
    assert!(status == 2 && err.contains("tcp does not match this scheme"), "{err}");
    let (_, err, status) = said(&["sub", &topic, "--insecure"]);
    assert!(
        status == 2 && err.contains("--insecure needs TLS, which unix: does not have"),
        "{err}"
    );
}

#[test]
fn topics_are_listed_with_urls_that_lead_to_them() {
    let server = server();
    done(&["pub", &server.at("/topics/scratch-a"), "1"]);
    for url in [server.url.clone(), server.at("/"), server.at("/topics/wind")] {
        let lines = done(&["topics", &url, "--output", "json"]);
        let topics = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let urls: Vec<_> = topics.map(|topic| topic["url"].as_str().unwrap().to_owned()).collect();
        assert!(urls.contains(&server.at("/topics/scratch-a")), "{urls:?}");
    }
    let (_, err, status) = said(&["sub", &server.at("/topics/wnd"), "--retries", "0"]);
    let meant = format!("did you mean {}?", server.at("/topics/wind"));
    assert!(status == 3 && err.contains(&meant), "{err}");
    let (_, err, status) = said(&["sub", &server.url, "--retries", "0"]);
    assert!(status == 2 && err.contains(&server.at("/topics/NAME")), "{err}");
}

#[test]
fn services_are_called_and_runs_are_started_listed_and_cancelled() {
    let server = server();
    for via in ["http", "mux"] {
        let health = done(&["call", "GET", &server.at("/health"), "--via", via]);
        assert!(health.contains("\"status\""), "{health}");
        let results = done(&["run", &server.at("/lines"), "--via", via, "--quiet"]);
        assert!(results.starts_with("1\n2\n"), "{results}");
    }
    let lists = r#"{"actions":[{"id":"a","do":"list","size":100},{"id":"b","after":"a","do":"sort","algorithm":"quick"}]}"#;
    let slow = server.at("/computations?pace=1");
    let run = done(&["run", &slow, lists, "--detach", "--quiet"]);
    let run = run.trim_end();
    assert!(run.starts_with(&server.at("/runs/")), "{run}");
    for url in [server.url.clone(), server.at("/runs")] {
        let list = done(&["runs", &url]);
        assert!(list.contains(run) && list.contains("/lines"), "{list}");
    }
    let key = run.rsplit('/').next().unwrap();
    let cancelled = done(&["runs", &server.url, "--cancel", key]);
    assert!(cancelled.starts_with(run) && cancelled.contains("cancelled"), "{cancelled}");
}

#[test]
fn the_way_to_a_server_is_examined() {
    let server = server();
    let (out, err, status) = said(&["doctor", &server.url, "--wait", "1s"]);
    assert_eq!(status, 0, "{out}{err}");
    let (_, err, status) = said(&["lab", "fanout", "--target", &server.url]);
    assert!(status == 2 && err.contains("a Unix socket has no network to measure"), "{err}");
}

#[test]
fn a_socket_that_cannot_be_reached_is_told_with_what_to_do() {
    let directory = tempdir().unwrap();
    let missing = format!("unix:{}/none", directory.path().display());
    let topic = format!("{missing}:/topics/wind");
    let commands: [&[&str]; 7] = [
        &["sub", &topic, "--retries", "0"],
        &["pub", &topic, "1", "--retries", "0"],
        &["topics", &missing],
        &["call", "GET", &missing, "--retries", "0"],
        &["run", &missing, "--retries", "0"],
        &["runs", &missing, "--retries", "0"],
        &["doctor", &missing, "--timeout", "1s"],
    ];
    for args in commands {
        let (out, err, status) = said(args);
        assert_eq!(status, 4, "{args:?}: {out}{err}");
        let words = "the server does not run, or does not listen there";
        assert!(format!("{out}{err}").contains(words), "{args:?}: {out}{err}");
    }
    let server = server();
    // The colon before the path is missing.
    let (_, err, status) = said(&["sub", &format!("{}/topics/wind", server.url)]);
    let url = server.at("/topics/wind");
    assert!(
        status == 4
            && err.contains(&format!("put a colon between it and the path of the request, {url}")),
        "{err}"
    );
    for args in [&["sub", "unix:", "wind"][..], &["topics", "unix:"], &["doctor", "unix:"]] {
        let (_, err, status) = said(args);
        assert!(status == 2 && err.contains("must be followed by the path of a socket"), "{err}");
    }
}
