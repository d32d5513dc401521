//! `anemone sub` and `anemone pub` beside `anemone serve`, as in a shell.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::thread;

use anemone_client::{Content, Publisher};
use anemone_testing::process::{
    self, Process, Watchdog, ask, command, get, output, read_until, serve,
};
use anemone_testing::{nobody, terminal, wait_for};
use rustix::process::Signal;
use tempfile::tempdir;

/// A server that takes events from here, and where it listens: by HTTP, and by TCP.
fn server() -> (Process, SocketAddr, SocketAddr) {
    let (mut server, address) = serve(&["--threads", "1", "--demo", "--tcp", "127.0.0.1:0"]);
    let line = server.line();
    let tcp = line.strip_prefix("tcp on ").expect(&line).parse().unwrap();
    (server, address, tcp)
}

/// The output of the command that is given this input, and how it ends.
fn run(args: &[&str], input: &str) -> Output {
    output(command(args), input)
}

fn lines(args: &[&str], input: &str) -> Vec<String> {
    let output = run(args, input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The errors of a command that fails, and its exit status.
fn failure(args: &[&str]) -> (String, i32) {
    let output = run(args, "");
    (String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

#[test]
fn what_is_published_comes_by_every_transport() {
    let (_server, address, tcp) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let positions = lines(&["pub", &url, "-"], "{\"n\": 1.50}\nhello\n\nnull\n");
    let expected = ["{\"n\": 1.50}", "\"hello\"", "null"];
    assert_eq!(positions.len(), expected.len());

    let tcp_url = format!("tcp://{tcp}/topics/scratch-a");
    for (via, url) in [
        ("auto", &url),
        ("ws", &url),
        ("mux", &url),
        ("sse", &url),
        ("ndjson", &url),
        ("long-poll", &url),
        ("poll", &url),
        ("tcp", &tcp_url),
        ("auto", &tcp_url),
    ] {
        let sub = ["sub", url, "--via", via, "--after", "earliest", "--count", "3"];
        let data = lines(&[&sub[..], &["--output", "data"]].concat(), "");
        assert_eq!(data, expected, "{via}");
        let events = lines(&sub, "");
        let events: Vec<_> = events.iter().filter(|line| line.contains("\"data\":")).collect();
        for (event, position) in events.iter().zip(&positions) {
            assert!(
                event.starts_with(&format!("{{\"position\":\"{position}\",\"time\":")),
                "{via}: {event}"
            );
        }
        let latest = [&sub[..6], &["--mode", "latest", "--count", "1"]].concat();
        let latest = lines(&latest, "");
        assert_eq!(latest[latest.len() - 2..], ["{\"skipped\":2}", events[2]], "{via}");
        let sub = ["sub", url, "--via", via, "--after", &positions[1], "--count", "1"];
        assert_eq!(lines(&sub, "").last(), events.last().map(|event| (*event).clone()).as_ref());
    }
}

#[test]
fn a_server_that_is_begun_anew_is_told_from_the_one_before() {
    let (first, first_address, _) = server();
    let (_second, second_address, _) = server();
    let relay = relay(vec![first_address, second_address]);
    for address in [first_address, second_address] {
        lines(&["pub", &format!("http://{address}/topics/scratch-a"), "1"], "");
    }

    let url = format!("http://{relay}/topics/scratch-a?after=earliest");
    let mut sub = Process::start(&["sub", &url, "--via", "ws", "--count", "2"]);
    let event = sub.line();
    assert!(event.ends_with("\"data\":1}"), "{event}");
    first.signal(Signal::KILL);
    let gap = sub.line();
    assert!(gap.starts_with("{\"gap\":{\"reason\":\"epoch\",\"after\":"), "{gap}");
    let event = sub.line();
    assert!(event.ends_with("\"data\":1}"), "{event}");
    assert_eq!(sub.wait().code(), Some(0));
}

/// Leads the first connection to the first address, and so on, and all others to the last.
fn relay(to: Vec<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            let server = TcpStream::connect(to[number.min(to.len() - 1)]).unwrap();
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    address
}

#[test]
fn what_cannot_work_is_said_at_once() {
    let (_server, address, tcp) = server();
    let url = |rest: &str| format!("http://{address}/{rest}");
    for (status, args, part) in [
        (3, ["sub", &url("topics/nix"), "--count", "1"], "there is no topic \"nix\""),
        (2, ["sub", &url("clock"), "--via", "mux"], "/topics/NAME"),
        (4, ["sub", &format!("https://{address}/topics/host"), "--count", "1"], "TLS"),
        (2, ["sub", &format!("http://{tcp}/topics/host"), "--via", "tcp"], "tcp://"),
        (2, ["sub", "ftp://127.0.0.1:8080/topics/host", "--count", "1"], "URL is not valid"),
        (4, ["sub", &format!("http://{}/topics/x", nobody()), "--retries", "0"], "refused"),
        (3, ["pub", &url("topics/host"), "1", "--key=a"], "405"),
        (3, ["pub", &url("topics/nix"), "1", "--key=a"], "404"),
        (2, ["pub", &format!("tcp://{tcp}/topics/scratch-a"), "1", "--key=a"], "not over tcp"),
        (4, ["pub", &format!("http://{}/topics/x", nobody()), "1", "--retries=0"], "refused"),
        (
            7,
            ["pub", &url("topics/scratch-a"), "x", "--type=json"],
            "ERROR expected value at line 1 column 1; --text publishes it as a string\n",
        ),
        (2, ["pub", &url("topics/scratch-a"), "1", "--key="], "idempotency key"),
    ] {
        let (said, found) = failure(&args);
        assert!(said.contains(part), "{args:?}: {said}");
        assert_eq!(found, status, "{args:?}: {said}");
    }
}

#[test]
fn another_transport_is_told_with_the_one_that_failed_and_the_cause() {
    let reply = "HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n";
    let url = format!("http://{}/topics/x", saying(reply.to_owned()));
    let (said, _) = failure(&["sub", &url, "--retries", "0"]);
    let words = " WARN trying another transport, sse instead of ws: server answered 403\n";
    assert!(said.contains(words), "{said}");
}

const VIAS: [&str; 7] = ["ws", "mux", "sse", "ndjson", "long-poll", "poll", "tcp"];

#[test]
fn a_topic_that_is_deleted_ends_alike_by_every_transport() {
    let (_server, address, tcp) = server();
    for via in VIAS {
        let topic = format!("/topics/scratch-{via}");
        let url = format!("http://{address}{topic}");
        lines(&["pub", &url, "1"], "");
        let read = if via == "tcp" { format!("tcp://{tcp}{topic}") } else { url };
        let mut sub = Process::start(&["sub", &read, "--via", via, "--after", "earliest"]);
        while !sub.line().ends_with(r#""data":1}"#) {}
        let reply = ask(address, &format!("DELETE {topic} HTTP/1.1"), "");
        assert!(reply.starts_with("HTTP/1.1 204 "), "{reply}");
        assert_eq!(sub.line(), r#"{"end":{"reason":"deleted"}}"#, "{via}");
        assert_eq!(sub.line(), "", "{via}");
        assert_eq!(sub.wait().code(), Some(5), "{via}");
    }
}

#[test]
fn who_is_too_slow_is_told_what_went_by_and_the_exit_status_says_so() {
    const GAP: &str = r#"{"reason":"retention","after":"e-2","missed":7,"resume":"e-9"}"#;
    let end = format!(r#"{{"end":{{"reason":"too-slow","gap":{GAP}}}}}"#);
    let problem = format!(r#"{{"type":"/problems/too-slow","title":"Slow","gap":{GAP}}}"#);
    let poll = format!("410 Gone\r\nContent-Length: {}\r\n\r\n{problem}", problem.len());
    let sse =
        format!("200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: end\ndata: {end}\n\n");
    let ndjson = format!("200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n{end}\n");
    for (via, reply) in [("poll", &poll), ("long-poll", &poll), ("sse", &sse), ("ndjson", &ndjson)]
    {
        let url = format!("http://{}/topics/x", saying(format!("HTTP/1.1 {reply}")));
        let ended = run(&["sub", &url, "--via", via, "--after", "e-2"], "");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(String::from_utf8(ended.stdout).unwrap().trim_end(), end, "{via}: {said}");
        assert_eq!(ended.status.code(), Some(6), "{via}: {said}");
        assert!(said.contains("too slow") && said.contains("after e-9"), "{via}: {said}");
    }
}

/// Answers the first request with this.
fn saying(reply: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_until(&mut stream, b"\r\n\r\n");
        stream.write_all(reply.as_bytes()).unwrap();
    });
    address
}

#[test]
fn every_line_before_a_bad_one_is_published_and_the_bad_one_is_named() {
    let (_server, address, _) = server();
    let long = "x".repeat(70_000);
    let numbers = |count| (1..=count).map(|n| format!("{n}\n")).collect::<String>();
    for (number, (kind, input, good, parts)) in [
        // The pipe brings all lines at once; these are found out here.
        ("ndjson", format!("{}{{\"a\":}}\n9\n", numbers(4)), 4, ["line 5: column 6", "4 events"]),
        // And these by the server, which takes a batch or refuses it whole.
        ("ndjson", format!("{}\n\"{long}\"\n9\n", numbers(300)), 300, ["line 302: ", "300 events"]),
        ("ndjson", format!("\"{long}\"\n9\n"), 0, ["line 1: ", "nothing was published"]),
        (
            "ndjson",
            format!("1\n{}\n9\n", "[".repeat(101) + &"]".repeat(101)),
            1,
            ["line 2", "1 event "],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let url = format!("http://{address}/topics/scratch-{number}");
        let ended = run(&["pub", &url, "-", "--type", kind], &input);
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(7), "{said}");
        let positions = String::from_utf8(ended.stdout).unwrap().lines().count();
        assert_eq!(positions, good, "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        if good > 0 {
            let page = get(address, &format!("/topics/scratch-{number}?after=earliest"));
            assert!(page.contains(&format!("\"offset\":{good},")), "{page}");
            assert!(!page.contains(&format!("\"offset\":{},", good + 1)), "{page}");
        }
    }
    let url = format!("http://{address}/topics/scratch-key");
    let ended = run(&["pub", &url, "-", "--key", "k", "--type", "ndjson"], "1\n{\n");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("line 2: ") && said.contains("nothing was published"), "{said}");
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(7), 0));
}

#[test]
fn what_looks_like_broken_json_is_not_published_unless_it_is_called_text() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let (said, status) = failure(&["pub", &url, "{\"a\":"]);
    let words = "event data is not one JSON value: EOF while parsing a value at line 1 column 5: this looks like broken JSON; \
                 put '…' around it if the shell removed its quotes, or publish it as a string with --text\n";
    assert!(said.ends_with(words), "{said}");
    assert_eq!(status, 7);
    let (said, status) = failure(&["pub", &url, "1", "--text", "--type", "json"]);
    assert!(said.contains("'--text' cannot be used with '--type <TYPE>'"), "{said}");
    assert_eq!(status, 2);
    lines(&["pub", &url, "{\"a\":", "--text"], "");
    lines(&["pub", &url, "17", "--text"], "");
    let sub = ["sub", &url, "--after", "earliest", "--count", "2", "--output", "data"];
    assert_eq!(lines(&sub, ""), ["\"{\\\"a\\\":\"", "\"17\""]);
}

#[test]
fn a_key_makes_it_safe_to_publish_again() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let publish = ["pub", &url, "-", "--key", "k"];
    let positions = lines(&publish, "1\n2\n");
    assert_eq!(positions.len(), 2);
    assert_eq!(lines(&publish, "1\n2\n"), positions);
    let other = run(&publish, "1\n3\n");
    assert_eq!(other.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&other.stderr).contains("422"));
    let bytes = lines(&["pub", &url, "-", "--type", "binary"], "\0\n");
    assert_eq!(bytes.len(), 1);
    let sub = ["sub", &url, "--after", "earliest", "--count", "3", "--output", "data"];
    assert_eq!(lines(&sub, ""), ["1", "2", "{\"base64\":\"AAo=\"}"]);
}

#[test]
fn an_event_published_multiplexed_is_there_once() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut publisher = Publisher::new(&url).unwrap().multiplexed();
    for _ in 0..2 {
        let published = publisher.publish_with_key(Content::Text, "hi", "a/b+c");
        assert_eq!(runtime.block_on(published).unwrap().position.offset, 1);
    }
    let published = runtime.block_on(publisher.publish(Content::Json, "{\"n\": 2}")).unwrap();
    assert_eq!(published.position.offset, 2);
    let sub = ["sub", &url, "--after", "earliest", "--count", "2", "--output", "data"];
    assert_eq!(lines(&sub, ""), ["\"hi\"", "{\"n\": 2}"]);
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/host");
    let mut sub = command(&["sub", &url]);
    let mut sub = sub.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&sub);
    let mut out = BufReader::new(sub.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    let output = sub.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("connected over ws") && !said.contains("ERROR"), "{said}");
}

#[test]
fn the_first_line_is_an_event() {
    let (_server, address, tcp) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let position = &lines(&["pub", &url, "1"], "")[0];
    let tcp = format!("tcp://{tcp}/topics/scratch-a");
    for via in VIAS {
        let url = if via == "tcp" { &tcp } else { &url };
        let sub = ["sub", url, "--via", via, "--after", "earliest", "--count", "1"];
        let output = run(&sub, "");
        let first = String::from_utf8(output.stdout).unwrap();
        assert!(first.starts_with(&format!("{{\"position\":\"{position}\",")), "{via}: {first}");
        assert!(first.ends_with("\"data\":1}\n"), "{via}: {first}");
        let begin = position.replace("-1", "-0");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&format!("INFO reading begins after {begin}\n")), "{via}: {said}");
    }
}

#[test]
fn a_url_of_the_server_that_is_no_topic_is_told_what_one_looks_like() {
    let (_server, address, _) = server();
    let expected = format!(
        "ERROR this URL is not a topic's; a topic's looks like http://{address}/topics/NAME"
    );
    for path in ["", "/", "/clock", "/topics", "/host"] {
        for via in ["auto", "ws", "sse", "ndjson", "long-poll", "poll"] {
            let (said, status) =
                failure(&["sub", &format!("http://{address}{path}"), "--via", via]);
            assert!(said.trim_end().ends_with(&expected), "{path} {via}: {said}");
            assert!(!said.contains("not an Anemone server"), "{path} {via}: {said}");
            let call = format!(
                "if it is a service, this calls it: anemone call GET http://{address}{path}\n"
            );
            let is_service = ["/clock", "/host"].contains(&path);
            assert_eq!(said.contains(&call), is_service, "{path} {via}: {said}");
            assert_eq!(status, 2, "{path} {via}: {said}");
        }
    }
    for path in ["/", "/scratch-a", "/echo", "/topics"] {
        let (said, status) = failure(&["pub", &format!("http://{address}{path}"), "1"]);
        assert!(said.trim_end().ends_with(&expected) && status == 2, "{path}: {said}");
    }
    // Another server, at the URL of a topic.
    let reply = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n";
    let url = format!("http://{}/topics/x", saying(reply.to_owned()));
    let (said, status) = failure(&["sub", &url, "--via", "poll"]);
    assert!(said.contains("not an Anemone server") && status == 4, "{said}");
}

#[test]
fn it_ends_when_its_reader_goes_and_does_not_wait_for_another_event() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/scratch-a");
    lines(&["pub", &url, "1"], "");
    for via in ["ws", "poll", "auto"] {
        let mut sub = Process::start(&["sub", &url, "--via", via, "--after", "earliest"]);
        while !sub.line().ends_with(r#""data":1}"#) {}
        // Nothing more is published.
        assert_eq!(sub.hang_up().code(), Some(0), "{via}");
    }
}

#[test]
fn a_terminal_is_shown_what_it_would_obey_and_a_pipe_gets_it_as_it_is() {
    let (_server, address, _) = server();
    let url = format!("http://{address}/topics/scratch-a");
    let event = "\"\u{202e}a\u{9b}31m\u{2028}\u{7f}\"";
    lines(&["pub", &url, event, "--type", "json"], "");
    let sub = ["sub", &url, "--after", "earliest", "--count", "1", "--output", "data"];
    // The server itself escapes what some programs take for a line break.
    assert_eq!(lines(&sub, ""), [event.replace('\u{2028}', "\\u2028")]);

    let (terminal, end) = terminal();
    let mut sub = command(&sub);
    let mut sub = sub.stdout(end).stderr(Stdio::null()).spawn().unwrap();
    let _watchdog = Watchdog::of(&sub);
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line).unwrap();
    assert_eq!(line, "\"\\u202ea\\u009b31m\\u2028\\u007f\"\r\n");
    assert_eq!(sub.wait().unwrap().code(), Some(0));
}

#[test]
fn nobody_writes_into_the_log_but_the_log() {
    let evil = r"printf 'a\342\200\256b\302\2332J\033[2J\n' >&2; echo ready; exec cat";
    let mut serve = command(&[process::SERVE, &["--exec", &format!("evil={evil}")]].concat());
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    serve.stderr(File::create(&path).unwrap());
    let (server, address) = process::listening(serve);
    get(address, "/topics/evil?after=earliest&wait=60");
    let log = wait_for("standard error is not logged", || {
        Some(std::fs::read_to_string(&path).unwrap()).filter(|log| log.contains("standard error: "))
    });
    drop(server);
    assert!(log.contains(r"standard error: a\u202eb\u009b2J\u001b[2J"), "{log}");
    assert!(!log.contains(['\u{202e}', '\u{9b}', '\x1b']), "{log}");
}

#[test]
fn the_exit_statuses_are_in_the_help_of_each_command() {
    let tables = ["", "sub", "pub", "call", "run", "runs", "doctor"].map(|command| {
        let args: Vec<&str> =
            command.split(' ').filter(|word| !word.is_empty()).chain(["--help"]).collect();
        let help = lines(&args, "").join("\n");
        help.split_once("Exit status:").expect("a table").1.trim_end().to_owned()
    });
    assert!(tables.iter().all(|table| *table == tables[0]));
    // "STATUS MEANING", and in docs/CLI.md "| STATUS | MEANING |".
    let rows = tables[0].lines().filter_map(|line| line.trim().split_once("  "));
    let rows = rows.map(|(status, meaning)| format!("| {status} | {} |\n", meaning.trim()));
    let document = include_str!("../../../../docs/CLI.md");
    let known: Vec<String> = rows.filter(|row| !row.contains("128+N")).collect();
    assert_eq!(known.len(), 14);
    assert!(document.contains(&known.concat()), "{}", known.concat());
}
