//! The ways in which `sub`, `pub` and `topics` reach a server, and the output of `sub`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Output, Stdio};
use std::thread;

use anemone_testing::process::{Process, Watchdog, command, output, read_until, serve};
use tempfile::tempdir;

/// Takes events from here.
fn server() -> (Process, SocketAddr) {
    serve(&["--threads", "1", "--demo"])
}

/// The output of a command, its errors, and its exit status.
fn said(args: &[&str], input: &str) -> (String, String, i32) {
    let Output { stdout, stderr, status } = output(command(args), input);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.code().unwrap())
}

/// Standard output of one that succeeds.
fn done(args: &[&str], input: &str) -> String {
    let (out, err, status) = said(args, input);
    assert_eq!(status, 0, "{args:?}: {err}");
    out
}

/// The last line of one that fails, without the time, and its exit status.
fn failure(args: &[&str]) -> (String, i32) {
    let (_, err, status) = said(args, "");
    let line = err.trim_end().lines().last().unwrap_or_default();
    (line.split_once("ERROR ").map_or(line, |(_, words)| words).to_owned(), status)
}

const VMSTAT: &str =
    "procs -----------memory----------\n r  b   swpd   free\t  buff\n 2  0  \"x\"  Grüße\n";

#[test]
fn what_went_in_by_lines_comes_out_as_it_was() {
    let (mut server, address) = serve(&["--threads", "1", "--stdin", "cpu"]);
    server.write(VMSTAT);
    let url = format!("http://{address}/topics/cpu");
    for form in ["line", "raw"] {
        let sub = ["sub", &url, "--after", "earliest", "--count", "3", "--output", form];
        assert_eq!(done(&sub, ""), VMSTAT, "{form}");
    }
    let data = done(&["sub", &url, "--after", "earliest", "--count", "1", "-o", "data"], "");
    assert_eq!(data, "\"procs -----------memory----------\"\n");
    let json = done(&["sub", &url, "--after", "earliest", "--count", "1", "-o", "json"], "");
    assert!(
        json.starts_with("{\"position\":")
            && json.ends_with(&format!("\"data\":{}}}\n", data.trim_end()))
    );
}

#[test]
fn the_last_events_and_those_since_a_time_come_with_their_times_by_every_transport() {
    let (mut server, address) = serve(&["--threads", "1", "--demo", "--tcp", "127.0.0.1:0"]);
    let line = server.line();
    let tcp = format!("tcp://{}/topics/scratch-a", line.strip_prefix("tcp on ").expect(&line));
    let url = format!("http://{address}/topics/scratch-a");
    done(&["pub", &url, "-"], "1\n2\n3\n4\n5\n");
    let of = |event: &serde_json::Value| (event["data"].as_u64(), event["time"].as_f64());
    let mut expected: Option<Vec<_>> = None;
    for via in ["poll", "ws", "mux", "sse", "ndjson", "long-poll", "tcp"] {
        let url = if via == "tcp" { &tcp } else { &url };
        let read = |begin: &[&str], count: &str| {
            let sub = [&["sub", url, "--via", via, "--quiet", "--count", count], begin].concat();
            let events = done(&sub, "");
            let events = events.lines().map(|line| serde_json::from_str(line).unwrap());
            events.map(|event| of(&event)).collect::<Vec<_>>()
        };
        let last = read(&["--last", "2"], "2");
        assert_eq!(last.iter().map(|(n, _)| n.unwrap()).collect::<Vec<_>>(), [4, 5], "{via}");
        assert!(last.iter().all(|(_, time)| time.is_some_and(|time| time > 1.7e12)), "{via}");
        assert_eq!(last, *expected.get_or_insert_with(|| last.clone()), "{via}");
        for begin in [&["--after", "-2"][..], &["--mode", "latest", "--last", "1000"]] {
            assert_eq!(read(begin, "1").last().map(|(n, _)| n.is_some()), Some(true), "{via}");
        }
        for since in ["10m", "2026-01-01T00:00:00+01:00", "1700000000000"] {
            assert_eq!(read(&["--since", since], "5").len(), 5, "{via} {since}");
        }
        let (words, status) = failure(&["sub", url, "--via", via, "--since", "10"]);
        let expected = "server answered 400 A parameter is not valid: since is \"10\": must be an age, such as 10m \
                        or 2h (ms, s, m, h, d), or a time, such as 2026-11-22T10:00:00Z or 1789000000123 \
                        (milliseconds since 1970)";
        assert_eq!((&*words, status), (expected, 3), "{via}");
    }
}

#[test]
fn bytes_come_out_as_they_went_in_and_a_pipe_of_both_commands_copies_a_topic() {
    let (_server, address) = server();
    let url = |name: &str| format!("http://{address}/topics/scratch-{name}");
    let (from, to) = (url("from"), url("to"));
    done(&["pub", &from, "-", "--type", "binary"], "\u{0}a\nb");
    let raw = done(&["sub", &from, "--after", "earliest", "--count", "1", "-o", "raw"], "");
    assert_eq!(raw, "\u{0}a\nb");
    done(&["pub", &from, "a\nb", "--text"], "");
    done(&["pub", &from, "17", "--text"], "");
    done(&["pub", &from, "-"], "hello\n{\"n\": 1}\n\" x\"\n");
    let all = ["--after", "earliest", "--count", "6", "--output"];
    let lines = done(&[&["sub", &from][..], &all, &["line"]].concat(), "");
    let expected = "{\"base64\":\"AGEKYg==\"}\n\"a\\nb\"\n\"17\"\nhello\n{\"n\": 1}\n x\n";
    assert_eq!(lines, expected);
    done(&["pub", &to, "-"], &lines);
    let data = [&from, &to].map(|url| done(&[&["sub", url][..], &all, &["data"]].concat(), ""));
    assert_eq!(data[0], data[1]);
}

#[test]
fn topics_are_listed_with_their_urls_and_a_server_is_no_topic_but_has_some() {
    let (_server, address) = server();
    let url = |name: &str| format!("http://{address}/topics/{name}");
    done(&["pub", &url("scratch-a"), "-"], "1\n2\n");
    for from in [format!("http://{address}/"), format!("http://{address}"), url("wind")] {
        let listed = done(&["topics", &from], "");
        let line = listed.lines().find(|line| line.contains("scratch-a")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[..3], [&*url("scratch-a"), "2", "events"], "{listed}");
        assert!(words[3].parse::<u64>().unwrap() > 0 && words[4] == "bytes", "{line}");
        let keeps = "  keeps 1 d, at most 100,000 events or 128 MiB";
        assert!(line.contains(" of the last ") && line.ends_with(keeps), "{line}");
    }
    done(&["pub", &url("scratch-b"), "1"], "");
    let listed = done(&["topics", &url("")], "");
    let words = listed.lines().find_map(|line| line.strip_prefix(&url("scratch-b")));
    let words: Vec<_> = words.unwrap().split_whitespace().take(2).collect();
    assert_eq!(words, ["1", "event"], "{listed}");
    let listed = done(&["topics", &url(""), "--output", "json"], "");
    let line = listed.lines().find(|line| line.contains("scratch-a")).unwrap();
    let object: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&object["url"], &object["first"]), (&url("scratch-a").into(), &1.into()));
    assert_eq!(object["keeps"], "1 d, at most 100,000 events or 128 MiB");
    assert!(object["oldest"].as_f64().unwrap() > 1.7e12, "{line}");

    let (out, err, status) = said(&["sub", &format!("http://{address}/")], "");
    assert_eq!((&*out, status), ("", 2), "{err}");
    let list = "this server has these topics:\n";
    let rest = err.strip_prefix(list).expect(&err);
    assert!(!err.contains("WARN"), "{err}");
    assert!(rest.starts_with(&format!("  {}\n", url("host"))), "{err}");
    assert!(rest.contains(&format!("  {}\n", url("scratch-a"))), "{err}");

    let (_empty, address) = serve(&["--threads", "1"]);
    let (out, err, status) = said(&["topics", &format!("http://{address}/")], "");
    assert!(out.is_empty() && status == 0 && err.ends_with("there are no topics\n"), "{err}");
    let (_, err, _) = said(&["sub", &format!("http://{address}/")], "");
    assert!(err.contains("this server has no topics yet\n"), "{err}");
}

#[test]
fn a_server_of_a_development_certificate_is_read_with_the_file_it_writes() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("dev.pem");
    let file = file.to_str().unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--threads", "1", "--demo", "--tls-dev"];
    let mut server = Process::start(&[&args[..], &["--tls-dev-cert", file]].concat());
    let line = server.line();
    let address = line.strip_prefix("listening on ").expect(&line).to_owned();
    let url = format!("{address}/topics/scratch-a");

    let untrusted = ["sub", &url, "--count", "1"];
    let (_, err, status) = said(&untrusted, "");
    let errors: Vec<_> = err.lines().filter_map(|line| line.split_once("ERROR ")).collect();
    let words = [
        "TLS handshake failed: invalid peer certificate: UnknownIssuer",
        "--ca FILE trusts the certificates in FILE (serve --tls-dev --tls-dev-cert FILE writes the server's); --insecure trusts any certificate",
    ];
    assert_eq!(errors.iter().map(|(_, words)| *words).collect::<Vec<_>>(), words, "{err}");
    assert_eq!(status, 4);

    for trust in [&["--ca", file][..], &["--insecure"]] {
        done(&[&["pub", &url, "hello"][..], trust].concat(), "");
        for via in ["ws", "mux", "sse", "ndjson", "long-poll", "poll"] {
            let sub =
                ["sub", &url, "--after", "earliest", "--count", "1", "-o", "line", "--via", via];
            assert_eq!(done(&[&sub[..], trust].concat(), ""), "hello\n", "{via} {trust:?}");
        }
        assert!(
            done(&[&["topics", &address][..], trust].concat(), "").contains("/topics/scratch-a")
        );
    }

    // With another server's, which is printed, it is not.
    let mut other = Process::start(&[&args[..], &["--tls-dev-cert", "-"]].concat());
    let (end, mut pem) = ("-----END CERTIFICATE-----", vec![other.line()]);
    assert_eq!(pem[0], "-----BEGIN CERTIFICATE-----");
    while pem.last().is_none_or(|line| line != end) {
        pem.push(other.line());
    }
    std::fs::write(file, pem.join("\n")).unwrap();
    let (words, status) = failure(&["sub", &url, "--ca", file]);
    assert!(words.starts_with("--ca FILE trusts") && status == 4, "{words}");
}

#[test]
fn the_certificate_is_written_over_nothing_else() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("notes.txt");
    std::fs::write(&file, "dear diary").unwrap();
    let file = file.to_str().unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--tls-dev", "--tls-dev-cert", file];
    let (words, status) = failure(&args);
    let expected = format!(
        "--tls-dev-cert: cannot write the development certificate to {file}: the file exists and contains \
         something other than a certificate"
    );
    assert_eq!((words, status), (expected.clone(), 1));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "dear diary");
    let check = [&["check"][..], &args[1..]].concat();
    let (_, err, status) = said(&check, "");
    let expected = expected.replace("--tls-dev-cert: ", "--tls-dev-cert: tls.dev_cert: ");
    assert_eq!((err, status), (format!("{expected}\n1 error\n"), 1));
    std::fs::remove_file(file).unwrap();
    let told = format!("tls      writes its certificate to {file}\n");
    assert!(done(&check, "").contains(&told));
    assert!(!directory.path().join("notes.txt").exists(), "check writes nothing");
}

/// Accepts connections, and sends nothing.
fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut held = Vec::new();
        listener.incoming().for_each(|stream| held.push(stream));
    });
    address
}

#[test]
fn trust_in_certificates_without_tls_is_wrong_use() {
    let (_server, address) = server();
    let directory = tempdir().unwrap();
    let file = directory.path().join("dev.pem");
    let file = file.to_str().unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--tls-dev", "--tls-dev-cert", file];
    let mut secure = Process::start(&args);
    secure.line();
    for (flag, trust) in [("--ca", &["--ca", file][..]), ("--insecure", &["--insecure"])] {
        for (scheme, command, rest) in [
            ("http", "topics", &[][..]),
            ("HTTP", "topics", &[]),
            ("ws", "pub", &["a"]),
            ("http", "sub", &["--count", "1"]),
            ("tcp", "sub", &["--via", "tcp"]),
        ] {
            let url = format!("{scheme}://{address}/topics/scratch-a");
            let (words, status) = failure(&[&[command, &url][..], rest, trust].concat());
            let expected = format!(
                "{flag} needs TLS, which {}:// does not have: omit the flag or use https://",
                scheme.to_lowercase()
            );
            assert_eq!((words, status), (expected, 2), "{command} {scheme}");
        }
    }
    assert!(done(&["sub", "--help"], "").contains("https:// and wss:// only"));
}

const NO_EVENT: &str = "the topic has no events yet: waiting for the first (anemone topics lists the names of \
                        all topics)";

#[test]
fn who_waits_for_the_first_event_of_a_topic_is_told_so_by_every_transport() {
    let (mut server, address) = serve(&["--threads", "1", "--demo", "--tcp", "127.0.0.1:0"]);
    let line = server.line();
    let tcp = line.strip_prefix("tcp on ").expect(&line);
    for via in ["auto", "ws", "mux", "sse", "ndjson", "long-poll", "poll", "tcp"] {
        let url = format!("http://{address}/topics/scratch-{via}");
        let read =
            if via == "tcp" { format!("tcp://{tcp}/topics/scratch-tcp") } else { url.clone() };
        let mut sub = command(&["sub", &read, "--via", via, "--count", "1", "-o", "line"]);
        let mut sub = sub.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _watchdog = Watchdog::of(&sub);
        read_until(sub.stderr.as_mut().unwrap(), format!("INFO {NO_EVENT}\n").as_bytes());
        done(&["pub", &url, "hello"], "");
        let Output { stdout, status, .. } = sub.wait_with_output().unwrap();
        assert_eq!((&*stdout, status.code()), (&b"hello\n"[..], Some(0)), "{via}");
    }
}

#[test]
fn a_topic_is_called_empty_where_that_is_certain_and_nobody_asked_for_quiet() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let begin = if head.starts_with(b"GET /topics/new") { 0 } else { 8 };
            let position = format!(r#"{{"position":"e-{begin}"}}"#);
            let event = format!(r#"{{"position":"e-{}","time":1,"data":9}}"#, begin + 1);
            let reply = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson";
            write!(stream, "{reply}\r\n\r\n{position}\n{event}\n").unwrap();
        }
    });
    for (topic, begin, is_told) in [
        ("new", &[][..], true),
        ("new?token=a", &["--after", "latest"], true),
        ("new?after=latest", &["--last", "0"], true),
        ("old", &[], false),
        ("new", &["--quiet"], false),
        // It may have some.
        ("new", &["--after", "earliest"], false),
        ("new", &["--last", "5"], false),
        ("new", &["--since", "1h"], false),
        ("new?after=earliest", &[], false),
        ("new?token=a&since=1h", &[], false),
    ] {
        let url = format!("http://{address}/topics/{topic}");
        let sub = ["sub", &url, "--via", "ndjson", "--count", "1", "-o", "data"];
        let (out, err, status) = said(&[&sub[..], begin].concat(), "");
        assert_eq!((&*out, status), ("9\n", 0), "{topic} {begin:?}: {err}");
        assert_eq!(
            err.contains(&format!("INFO {NO_EVENT}\n")),
            is_told,
            "{topic} {begin:?}: {err}"
        );
    }
}

#[test]
fn a_topic_that_is_not_there_leads_to_the_one_that_was_meant() {
    let (_server, address) = serve(&["--threads", "1", "--exec", "cpu=sleep 1000"]);
    let url = |name: &str| format!("{address}/topics/{name}");
    let meant = format!("did you mean http://{}?\n", url("cpu"));
    let (_, err, status) = said(&["sub", &url("cup"), "--retries", "0"], "");
    assert_eq!((err.starts_with(&meant), status), (true, 3), "{err}");
    // The missing one of several is not that of the URL.
    let (_, err, status) =
        said(&["sub", &url("cpu"), "--topic", "cup", "--retries", "0", "--via", "ndjson"], "");
    assert_eq!((err.contains("did you mean"), status), (false, 3), "{err}");
    let list = format!(
        "this server has these topics:\n  http://{}\n  http://{}\n",
        url("cpu"),
        url("cpu.status")
    );
    let (_, err, status) = said(&["sub", &url("wind"), "--retries", "0"], "");
    assert_eq!((err.starts_with(&list), status), (true, 3), "{err}");
    let allow = |name: &str| {
        format!(
            "in the server's configuration, [[topic]] name = \"{name}\", publish = \"loopback\" lets programs \
             on its machine publish to it\n"
        )
    };
    for (name, start) in
        [("cup", meant + &allow("cup")), ("foo", list + &allow("foo")), ("cpu", allow("cpu"))]
    {
        let (_, err, status) = said(&["pub", &url(name), "1", "--retries", "0"], "");
        assert_eq!((err.starts_with(&start), status), (true, 3), "{name}: {err}");
    }
    let listed = done(&["topics", &address.to_string()], "");
    assert!(listed.starts_with(&format!("http://{}", url("cpu"))), "{listed}");
}

#[test]
fn an_input_without_a_line_is_told_to_be_nothing() {
    let (_server, address) = server();
    let url = format!("http://{address}/topics/scratch-a");
    for input in ["", "\n \n"] {
        let (out, err, status) = said(&["pub", &url], input);
        assert_eq!((&*out, status), ("", 0), "{err}");
        assert!(err.ends_with("WARN nothing was published: standard input had no line\n"), "{err}");
    }
}

#[test]
fn a_port_that_speaks_tls_is_told_of_once() {
    let mut server = Process::start(&["serve", "--listen", "127.0.0.1:0", "--tls-dev"]);
    let line = server.line();
    let address = line.strip_prefix("listening on https://").expect(&line);
    let (said, _) = failure(&["topics", &format!("http://{address}/")]);
    assert_eq!(said, "server answered 400 This port speaks TLS; use https:// or wss://");
}

#[test]
fn time_outs_and_misspellings_are_told_in_these_words() {
    let directory = tempdir().unwrap();
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "no certificate\n").unwrap();
    let empty = empty.to_str().unwrap();
    let missing = directory.path().join("missing.pem");
    let missing = missing.to_str().unwrap();
    let url = &format!("http://{}/topics/x", silent());
    let begin = ["sub", url, "--timeout", "200ms", "--retries", "0", "--via"];
    for (args, words, status) in [
        (&[&begin[..], &["poll"]].concat()[..], "no answer within 200ms".to_owned(), 4),
        (&[&begin[..], &["sse"]].concat(), "no answer within 200ms".to_owned(), 4),
        (
            &["pub", url, "1", "--timeout", "200ms", "--retries", "0"],
            "no answer within 200ms".to_owned(),
            4,
        ),
        (&["topics", url, "--timeout", "200ms"], "no answer within 200ms".to_owned(), 4),
        (
            &["topics", "tcp://127.0.0.1:1/"],
            "URL is not valid: listing topics works over http, https, ws or wss, not over tcp"
                .to_owned(),
            2,
        ),
        (
            &["sub", url, "--ca", missing],
            format!(
                "--ca: cannot read {missing} as PEM: I/O error: No such file or directory (os error 2)"
            ),
            2,
        ),
        (
            &["sub", url, "--ca", empty],
            format!(
                "--ca: {empty} contains no certificate: expected PEM, -----BEGIN CERTIFICATE-----"
            ),
            2,
        ),
        (&["sub", url, "-H", "Host: a"], "header field host cannot be set".to_owned(), 2),
        (
            &["sub", url, "-H", "a: b\u{1}"],
            "header field a has a character that is not allowed".to_owned(),
            2,
        ),
        (
            &["pub", url, "1", "-H", "ä: b"],
            "header field ä has a character that is not allowed".to_owned(),
            2,
        ),
        (
            &["sub", "tcp://127.0.0.1:1/topics/x", "-H", "a: b"],
            "URL is not valid: tcp:// has no header fields".to_owned(),
            2,
        ),
        (
            &["sub", "http://a/topics/x?after=-1&since=1h"],
            "URL is not valid: since and after both say where to begin: give only one of them"
                .to_owned(),
            2,
        ),
    ] {
        let (said, found) = failure(args);
        assert_eq!((said, found), (words, status), "{args:?}");
    }
    for (args, words) in [
        (
            &["--timeout", "5"][..],
            "invalid value '5' for '--timeout <TIME>': expected a time with a unit, ms, s, m or h, such as 500ms or 5s",
        ),
        (
            &["--timeout", "0s"],
            "invalid value '0s' for '--timeout <TIME>': expected a time with a unit, ms, s, m or h, such as 500ms or 5s",
        ),
        (
            &["-H", "a"],
            "invalid value 'a' for '--header <NAME: VALUE>': expected NAME: VALUE, such as \"Authorization: Bearer TOKEN\"",
        ),
        (&["--last", "-1"], "unexpected argument '-1' found"),
        (
            &["--last", "ten"],
            "invalid value 'ten' for '--last <N>': expected a number of events to begin with, such as 10",
        ),
        (
            &["--last", "1000000000000000000"],
            "invalid value '1000000000000000000' for '--last <N>': expected a number of events to begin with, such as 10",
        ),
        (
            &["--after", "-0"],
            "invalid value '-0' for '--after <POSITION>': \"-0\" is not a place to begin: expected a position, such as \"4zq81x-42\", or earliest, or latest, or -10 for the last 10 events",
        ),
        (
            &["--last", "1", "--since", "1h"],
            "the argument '--last <N>' cannot be used with '--since <TIME>'",
        ),
        (
            &["--after", "latest", "--since", "1h"],
            "the argument '--after <POSITION>' cannot be used with '--since <TIME>'",
        ),
        (
            &["--ca", "a", "--insecure"],
            "the argument '--ca <FILE>' cannot be used with '--insecure'",
        ),
        (&["--quiet", "--verbose"], "the argument '--quiet' cannot be used with '--verbose'"),
        (&["--output", "lines"], "invalid value 'lines' for '--output <OUTPUT>'"),
        (&["--retries", "-1"], "unexpected argument '-1' found"),
        (
            &["--retries", "few"],
            "invalid value 'few' for '--retries <N>': expected a number of retries, such as 8; 0 tries once",
        ),
        (
            &["--log", "xml"],
            "invalid value 'xml' for '--log <FORMAT>'\n  [possible values: text, json]",
        ),
        (
            &["--timeuot", "5s"],
            "unexpected argument '--timeuot' found\n\n  tip: a similar argument exists: '--timeout'",
        ),
    ] {
        let (_, err, status) = said(&[&["sub", url][..], args].concat(), "");
        assert!(err.starts_with(&format!("error: {words}")), "{args:?}: {err}");
        assert_eq!(status, 2, "{args:?}");
    }
}

#[test]
fn header_fields_are_sent_by_every_transport() {
    for via in ["ws", "mux", "sse", "ndjson", "long-poll", "poll"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/topics/x", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let body = r#"{"type":"/problems/publish-refused","title":"No"}"#;
            write!(stream, "HTTP/1.1 403 No\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .unwrap();
            String::from_utf8(head).unwrap().to_lowercase()
        });
        let fields = ["-H", "Authorization: Bearer a:b", "--header", "x-one: 1", "-H", "x-one: 2"];
        let (words, status) = failure(&[&["sub", &url, "--via", via][..], &fields].concat());
        assert_eq!((&*words, status), ("server answered 403 No", 3), "{via}");
        let head = server.join().unwrap();
        for field in ["authorization: bearer a:b", "x-one: 1", "x-one: 2"] {
            assert!(head.contains(&format!("\r\n{field}\r\n")), "{via}: {head}");
        }
    }
}

#[test]
fn who_wants_quiet_hears_of_no_connection_but_of_what_is_missing() {
    let gap = r#"{"gap":{"reason":"retention","after":"e-1","missed":7,"resume":"e-8"}}"#;
    let event = r#"{"position":"e-9","time":1,"data":9}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/topics/x", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            read_until(&mut stream, b"\r\n\r\n");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n";
            let _ = match number {
                0 => Ok(()),
                _ => write!(stream, "{head}{gap}\n{event}\n"),
            };
        }
    });
    let sub = ["sub", &url, "--via", "ndjson", "--after", "e-1", "--count", "1", "-o", "data"];
    let (out, err, status) = said(&[&sub[..], &["--quiet"]].concat(), "");
    assert_eq!((&*out, status), ("9\n", 0));
    let (_, words) = err.trim_end().split_once("WARN ").expect(&err);
    assert_eq!(
        words,
        "7 events are missing after e-1, no longer retained; reading continues after e-8"
    );
    assert_eq!(err.lines().count(), 1, "{err}");
}
