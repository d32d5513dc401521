//! The likely mistakes with `anemone call`, `run`, `runs`, `pub` and `sub`: nothing happens that was not meant, and what
//! is said is known to be true.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anemone_testing::nobody;
use anemone_testing::process::{Watchdog, command, output, serve};
use rustix::process::{Pid, Signal, kill_process};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// The standard output of a command that ends with this status, and its standard error.
fn ended(args: &[&str], input: &str, status: i32) -> (String, String) {
    let output = output(command(args), input);
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(status), "{args:?}: {out}{err}");
    (out, err)
}

/// A server that answers every request so, and the request lines that it gets.
fn answering(status: &'static str, body: &'static str) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (requests, seen) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut first, mut line, mut len) = (String::new(), String::new(), 0);
            reader.read_line(&mut first).unwrap();
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    len = value.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.read_exact(&mut vec![0; len]).unwrap();
            let _ = requests.send(first);
            let kind = "content-type: application/problem+json\r\nconnection: close";
            let len = body.len();
            // A client may be gone at any time.
            let _ = write!(
                reader.get_mut(),
                "HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {len}\r\n\r\n{body}"
            );
        }
    });
    (address, seen)
}

/// Interrupts a command once its standard error has this text, and returns all of it.
fn interrupted(mut command: Command, text: &str) -> String {
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let _watchdog = Watchdog::of(&child);
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(text) {
        assert_ne!(err.read_line(&mut said).unwrap(), 0, "{said}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    err.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    said
}

/// Returns true if this process ignores a signal, which its children then do, too. A shell starts what runs in the
/// background so.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn a_signal_ends_a_command_that_reads_its_input() {
    let url = format!("http://{}/primes", nobody());
    for args in [&["run", &url, "-"][..], &["call", "POST", &url, "-"]] {
        for signal in [Signal::INT, Signal::TERM].into_iter().filter(|signal| !is_ignored(*signal))
        {
            let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
            let _watchdog = Watchdog::of(&child);
            let mut input = child.stdin.take().unwrap();
            // More than a pipe holds, so that the command reads by now.
            input.write_all(&vec![b'1'; 1 << 20]).unwrap();
            kill_process(Pid::from_child(&child), signal).unwrap();
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(signal.as_raw()), "{args:?} {signal:?}: {status}");
        }
    }
}

#[test]
fn a_refused_body_is_not_sent_again() {
    let (address, seen) = answering(
        "400 Bad Request",
        r#"{"type":"/problems/bad-body","title":"The body could not be read","status":400,"detail":"line 1"}"#,
    );
    let url = format!("http://{address}/primes");
    for args in [&["run", &url, "x"][..], &["call", "POST", &url, "x", "--once"]] {
        let (_, err) = ended(args, "", 3);
        assert!(!err.contains("trying again") && err.contains("400"), "{err}");
        assert_eq!(seen.try_iter().count(), 1, "{args:?}");
    }
}

#[test]
fn where_nobody_listens_it_is_asked_whether_the_server_runs() {
    let url = format!("http://{}/topics/a", nobody());
    let (_, err) = ended(&["sub", &url, "--retries", "1"], "", 4);
    assert!(err.contains("(is the server running?)"), "{err}");
}

#[test]
fn the_wrong_verb_sends_nothing() {
    let (address, seen) = answering("201 Created", "{}");
    for (path, text) in [("/messages", "is not a topic's"), ("/topics/", "is not a topic's")] {
        let (_, err) = ended(&["pub", &format!("http://{address}{path}"), "20"], "", 2);
        assert!(err.contains(text) && err.contains("/topics/NAME"), "{err}");
    }
    for path in ["/topics/scratch-9", "/proxy/topics/scratch-9?token=secret"] {
        let (_, err) = ended(&["run", &format!("http://{address}{path}"), "20"], "", 2);
        assert!(err.contains("anemone pub") && !err.contains("secret"), "{err}");
    }
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [""; 0]);
    let (_, err) = ended(&["run", "no-such-host-of-a-test"], "", 2);
    assert!(err.contains("expected a URL"), "{err}");
    for args in [&["sub", "no-such-host-of-a-test"][..], &["pub", "no-such-host-of-a-test", "1"]] {
        let (_, err) = ended(args, "", 2);
        let example = "such as http://127.0.0.1:8080/topics/no-such-host-of-a-test";
        assert!(err.contains(example), "{args:?}: {err}");
    }
}

#[test]
fn who_interrupts_is_told_only_what_is_known() {
    let url = format!("http://{}/primes", nobody());
    let err = interrupted(command(&["run", &url, "20"]), "trying again");
    assert!(err.contains("the run was not started") && !err.contains("may or may not"), "{err}");

    let (address, _) = answering("502 Bad Gateway", "");
    let run = format!("http://{address}/runs/{KEY}");
    let err = interrupted(command(&["run", "--watch", &run]), "ing ");
    assert!(!err.contains("the run goes on") && err.contains("is not known"), "{err}");
}

#[test]
fn the_commands_to_find_a_run_again_have_the_flags_of_the_connection() {
    let run = format!("https://{}/runs/{KEY}", nobody());
    let fields = ["-H", "Authorization: Bearer secret", "--insecure"];
    let err = interrupted(command(&[&["run", "--watch", &run], &fields[..]].concat()), "ing ");
    let flags = "--insecure -H 'Authorization: …'";
    assert!(err.contains(&format!("anemone run --watch {run} {flags}\n")), "{err}");
    assert!(err.contains(&format!("--cancel {KEY} {flags}\n")), "{err}");
    assert!(!err.contains("secret"), "{err}");
}

#[test]
fn the_url_of_a_run_is_taken_wherever_a_run_is_meant() {
    let (_server, address) = serve(&["--threads=1", "--run=sleep=echo a b; sleep 1000"]);
    let sleep = format!("http://{address}/sleep");
    let (url, _) = ended(&["run", &sleep, "--detach"], "", 0);
    let url = url.trim_end();
    let (out, _) = ended(&["runs", url], "", 0);
    assert!(out.starts_with(url) && out.lines().count() == 1, "{out}");
    let (_, err) = ended(&["sub", url, "--count=1"], "", 0);
    assert!(!err.contains("the topic has no events"), "{err}");
    let (out, _) = ended(&["runs", &format!("{address}"), "--cancel", url], "", 0);
    assert!(out.starts_with(url), "{out}");
    ended(&["run", "--watch", url], "", 9);
}

#[test]
fn a_run_is_cancelled_by_the_beginning_of_its_key() {
    let (_server, address) = serve(&["--threads=1", "--run=sleep=sleep 1000"]);
    let (server, sleep) = (format!("{address}"), format!("http://{address}/sleep"));
    let run = || ended(&["run", &sleep, "--detach"], "", 0).0.trim_end().to_owned();
    let (_, last) = (run(), run());
    let key = |url: &str| url.rsplit_once('/').unwrap().1.to_owned();
    // An empty beginning, such as that of a variable that is not set, would be that of any run.
    for short in ["", &key(&last)[..3]] {
        let (_, err) = ended(&["runs", &server, "--cancel", short], "", 2);
        assert!(err.contains("at least 4 digits"), "{err}");
    }
    let (out, _) = ended(&["runs", &server, "--cancel", &key(&last)[..12]], "", 0);
    assert!(out.starts_with(&last) && out.contains("cancelled"), "{out}");
    let (_, err) = ended(&["runs", &server, "--cancel", &key(&last)[..12]], "", 3);
    assert!(err.contains("ended"), "{err}");
    let none = if key(&last).starts_with("000000000000") { "1" } else { "0" }.repeat(12);
    let (_, err) = ended(&["runs", &server, "--cancel", &none], "", 2);
    assert!(err.contains("no run has a key"), "{err}");
}

#[test]
fn results_come_as_lines_and_who_stops_reading_is_told_that_the_run_goes_on() {
    let (_server, address) =
        serve(&["--threads=1", "--run=words=echo a b; echo 17", "--run=sleep=echo a; sleep 1000"]);
    let url = |name: &str| format!("http://{address}/{name}");
    let (out, _) = ended(&["run", &url("words"), "-o", "line"], "", 0);
    assert!(out.starts_with("a b\n17\n"), "{out}");
    let mut run = command(&["run", &url("sleep")]);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&run);
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let mut err = String::new();
    run.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0), "{err}");
    assert!(err.contains("the run goes on") && err.contains("--cancel"), "{err}");
}

#[test]
fn the_exit_status_tells_an_unreadable_body_from_a_refused_one() {
    let (address, _) = answering(
        "413 Content Too Large",
        r#"{"type":"/problems/body-too-big","title":"The body is too big","status":413}"#,
    );
    let url = format!("http://{address}/primes");
    for verb in [&["run", &url][..], &["call", "POST", &url]] {
        for data in ["@/nowhere/at/all", "@/"] {
            let (_, err) = ended(&[verb, &[data]].concat(), "", 7);
            assert!(err.contains("the body cannot be read"), "{err}");
        }
        let (_, err) = ended(&[verb, &["{\"a\":"]].concat(), "", 7);
        assert!(err.contains("the body") && !err.contains("event data"), "{err}");
        let (_, err) = ended(&[verb, &["x"]].concat(), "", 3);
        assert!(err.contains("413"), "{err}");
    }
}
