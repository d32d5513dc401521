//! The log of the binary: its contents and formats, and the topics that `serve` prints.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs;

use anemone_testing::process::{self, Logging, command};
use serde_json::Value;
use tempfile::tempdir;

const SERVE: [&str; 3] = ["serve", "--threads", "1"];
const HERE: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// A server with nothing in the environment that is about its log but this, and where it listens.
fn start(args: &[&str], environment: &[(&str, &str)]) -> (Logging, String) {
    let address = if args.contains(&"--listen") { &[][..] } else { &HERE };
    let mut command = command(&[&SERVE, address, args].concat());
    command.env_remove("RUST_LOG").envs(environment.iter().copied());
    let server = Logging::start(command);
    let url = server.url.clone();
    (server, url)
}

fn line_with(server: &mut Logging, part: &str) -> String {
    server.line(part, |line| line.contains(part))
}

#[test]
fn serve_says_where_each_source_and_topic_is() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("anemone.toml");
    let text = "[[source]]\ntype = \"file\"\ntopic = \"log\"\npath = \"app.log\"\n\n\
                [[topic]]\nname = \"chat\"\npublish = \"anyone\"\nage_max = \"7d\"\nbytes_max = \"64MiB\"\n\n\
                [[topic]]\nname = \"chat-*\"\npublish = \"loopback\"\n";
    fs::write(&path, text).unwrap();
    let args = ["--config", path.to_str().unwrap(), "--keep", "30d,4GiB"];
    let (mut server, url) = start(&args, &[]);
    let file = directory.path().join("app.log");
    for expected in [
        format!(
            "INFO source   file: {} -> {url}/topics/log {url}/topics/log.status",
            file.display()
        ),
        format!(
            "INFO topic    {url}/topics/chat: every client may publish; keeps 7 d, at most 64 MiB"
        ),
        format!(
            "INFO topic    {url}/topics/chat-*: programs on this machine may publish; keeps 30 d, if it fits in 4 GiB \
             shared by all topics"
        ),
    ] {
        let line = line_with(&mut server, &url);
        assert!(line.ends_with(&expected), "{line}");
    }
    let expected = "INFO topics   without a rule keep 30 d, if it fits in 4 GiB shared by all topics (in memory)";
    let line = line_with(&mut server, "INFO topics ");
    assert!(line.ends_with(expected), "{line}");
    let (mut everywhere, url) = start(&["--listen", "0.0.0.0:0", "--host"], &[]);
    let port = url.rsplit(':').next().unwrap();
    let line = line_with(&mut everywhere, "source ");
    let there = format!("-> http://127.0.0.1:{port}/topics/host");
    assert!(line.ends_with(&there), "{line}");
}

#[test]
fn the_log_is_json_where_that_is_asked_for() {
    for (args, environment) in
        [(&["--log", "json", "--host"][..], &[][..]), (&["--host"], &[("ANEMONE_LOG", "json")])]
    {
        let (mut server, url) = start(args, environment);
        let line: Value = serde_json::from_str(&line_with(&mut server, "/topics/host")).unwrap();
        assert_eq!(line["level"], "INFO");
        assert!(line["message"].as_str().unwrap().contains(&url), "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    }
}

#[test]
fn rust_log_says_how_much_is_logged_and_a_bad_one_is_ignored() {
    let words = "WARN ignoring RUST_LOG=\"=loud=\": expected a level, such as debug, or a list, such as \
                 info,anemone_server=debug";
    let (mut server, _) = start(&["--host"], &[("RUST_LOG", "=loud=")]);
    assert!(line_with(&mut server, "RUST_LOG").ends_with(words));
    line_with(&mut server, "source ");

    let (mut server, url) = start(&["--host"], &[("RUST_LOG", "anemone_server=debug")]);
    let address = url.strip_prefix("http://").unwrap().parse().unwrap();
    process::get(address, "/clock");
    let line = line_with(&mut server, "");
    assert!(
        line.contains("DEBUG request") && line.ends_with("method=\"GET\" path=\"/clock\""),
        "{line}"
    );
}
