//! `anemone run` as a person uses it, beside `anemone serve`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::Stdio;

use anemone_testing::process::{Process, SERVE, Watchdog, command, get, listening, output, serve};
use anemone_testing::{terminal, wait_until};

/// The standard output of a command that ends with this status, and its standard error.
fn ended(args: &[&str], input: &str, status: i32) -> (String, String) {
    let output = output(command(args), input);
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(status), "{args:?}: {out}{err}");
    (out, err)
}

/// A server that keeps 10 events of a run, of this command.
fn forgetful(run: &str) -> (Process, SocketAddr) {
    let mut server = command(&[SERVE, &["--threads=1", "--run", run]].concat());
    server.env("ANEMONE_LIMITS__RUN_EVENTS_MAX", "10");
    listening(server)
}

/// Starts a run, waits for its end, and returns its URL.
fn after_run(address: SocketAddr, service: &str) -> String {
    let (run, _) = ended(&["run", "--detach", &format!("{address}/{service}")], "", 0);
    let path = run.trim_end().strip_prefix(&format!("http://{address}")).unwrap();
    let state = format!("{path}?state");
    wait_until("the run does not end", || !get(address, &state).contains("\"ended\":null"));
    run.trim_end().to_owned()
}

#[test]
fn results_that_were_lost_are_counted_and_are_no_success() {
    let (_server, address) = forgetful("big=seq 100");
    let run = after_run(address, "big");
    let (out, err) = ended(&["run", "-q", "-o", "line", "--watch", &run], "", 11);
    assert!(out.ends_with("\n99\n100\n") && !out.contains("\n50\n"), "{out}");
    let last = err.lines().last().unwrap();
    assert!(last.contains(" were lost: the server keeps only the newest events"), "{err}");
    let (out, err) = ended(&["run", "-o", "json", "--watch", &run], "", 11);
    assert!(
        out.starts_with("{\"gap\":") && err.contains(" events, perhaps with results, were lost: "),
        "{out}{err}"
    );
}

#[test]
fn a_failed_run_has_failed_whatever_was_lost() {
    let (_server, address) = forgetful("big=seq 100; exit 3");
    let run = after_run(address, "big");
    let (_, err) = ended(&["run", "--watch", &run], "", 8);
    assert!(err.contains("events are missing"), "{err}");
}

/// Reads what a terminal shows until its last program has closed it.
fn shown(mut terminal: File) -> String {
    let mut shown = Vec::new();
    // Linux ends it with an error.
    let _ = terminal.read_to_end(&mut shown);
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_terminal_shows_every_result_and_draws_the_bar_less_often() {
    const LINES: usize = 5000;
    let work = format!("--run=count=echo progress 0.5; seq {LINES}");
    let mut server = command(&[SERVE, &["--threads=1", &work]].concat());
    server.env("ANEMONE_LIMITS__RUN_EVENTS_MAX", "100000");
    let (_server, address) = listening(server);
    let run = after_run(address, "count");
    let (terminal, end) = terminal();
    let mut watcher = command(&["run", "-o", "line", "--watch", &run]);
    watcher.env("TERM", "xterm").stdout(end.try_clone().unwrap()).stderr(end).stdin(Stdio::null());
    let mut child = watcher.spawn().unwrap();
    drop(watcher);
    let _watchdog = Watchdog::of(&child);
    let shown = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{shown}");
    let plain = shown.replace("\u{1b}[2K", "").replace("\u{1b}[1A", "");
    let numbers = plain.split(['\r', '\n']).filter_map(|line| line.trim().parse::<usize>().ok());
    assert!(numbers.eq(1..=LINES), "{shown}");
    let drawn = shown.matches("50%").count();
    assert!(drawn > 0 && drawn < LINES / 5, "drawn {drawn} times");
}

#[test]
fn a_server_that_does_not_run_is_named_in_the_first_line() {
    // Bound, but not listening: nobody else gets the port.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    for args in [&["run"][..], &["runs"], &["call", "get"]] {
        let url = format!("http://{address}/x");
        let url = if args == ["runs"] { format!("http://{address}") } else { url };
        let (_, err) = ended(&[args, &[&url, "--retries", "2"]].concat(), "", 4);
        let first = err.lines().next().unwrap();
        let expected = format!("connection refused (is the server running at http://{address}?)");
        assert!(first.contains(&expected), "{err}");
        assert!(first.ends_with("for up to 1 s; --retries 0 ends at once"), "{err}");
        assert_eq!(err.lines().count(), 2, "{err}");
    }
}

#[test]
fn the_port_of_another_protocol_is_not_an_anemone_server() {
    let (mut server, http) = serve(&["--threads=1", "--tcp=127.0.0.1:0", "--run=say=echo hi"]);
    let tcp = server.line().strip_prefix("tcp on ").unwrap().to_owned();
    for args in [&["run"][..], &["call", "post"]] {
        let (_, err) = ended(&[args, &[&format!("http://{tcp}/say")]].concat(), "", 4);
        assert!(err.contains("not an Anemone server: its answer is not HTTP"), "{err}");
        assert!(err.contains("use tcp://"), "{err}");
        let (_, err) = ended(&[args, &[&format!("tcp://{http}/say")]].concat(), "", 4);
        assert!(err.contains("not an Anemone server: it answers with HTTP: use http://"), "{err}");
    }
}

#[test]
fn standard_input_that_is_not_sent_is_told() {
    let (_server, address) = serve(&["--threads=1", "--run=size=wc -c"]);
    let url = format!("http://{address}/size");
    let told = "standard input is not sent: use - as DATA";
    let run = |args: &[&str], input: &str| {
        let (read, mut write) = io::pipe().unwrap();
        write.write_all(input.as_bytes()).unwrap();
        drop(write);
        let mut command = command(args);
        let output = command.stdin(read).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout.iter().chain(&output.stderr).map(|byte| char::from(*byte)).collect::<String>()
    };
    for (args, input, is_told) in [
        (&["run", &url][..], "50\n", true),
        (&["call", "post", &url], "50\n", true),
        (&["run", "-q", &url], "50\n", false),
        (&["run", &url], "", false),
        (&["run", &url, "7"], "50\n", false),
        (&["run", &url, "-"], "50\n", false),
        (&["call", "get", &format!("http://{address}/health")], "50\n", false),
    ] {
        let said = run(args, input);
        assert_eq!(said.contains(told), is_told, "{args:?}: {said}");
    }
}

#[test]
fn an_escaped_detail_is_not_escaped_again() {
    let (_server, address) = serve(&["--threads=1", r"--run=fail=printf 'a\033b\n' >&2; exit 3"]);
    let (_, err) = ended(&["run", &format!("{address}/fail")], "", 8);
    assert!(err.contains(r": a\u001bb") && !err.contains(r"\\u001b"), "{err}");
    let (out, _) = ended(&["runs", &format!("{address}")], "", 0);
    assert!(out.contains(r": a\u001bb") && !out.contains(r"\\u001b"), "{out}");
}

#[test]
fn the_url_of_a_run_is_watched_or_cancelled_and_has_no_paths_below() {
    let (_server, address) = serve(&["--threads=1", "--run=wait=sleep 1000"]);
    let detached = || {
        let (run, _) = ended(&["run", "--detach", &format!("{address}/wait")], "", 0);
        run.trim_end().to_owned()
    };
    let (run, other) = (detached(), detached());
    let (_, err) = ended(&["run", &run], "", 2);
    assert!(err.contains("\"anemone run --watch\" with this URL watches it"), "{err}");
    for below in ["/state", "/"] {
        let (_, err) = ended(&["call", "get", &format!("{run}{below}")], "", 3);
        assert!(err.contains("a run has no paths below its own"), "{err}");
    }
    for args in [["runs", "--cancel", &run], ["runs", &other, "--cancel"]] {
        let (out, _) = ended(&args, "", 0);
        assert!(out.contains("  cancelled") || out.contains("  running"), "{out}");
    }
    ended(&["run", "--watch", &run], "", 9);
    ended(&["run", "--watch", &other], "", 9);
    let server = format!("http://{address}");
    for args in [&["runs", &server, "--cancel"][..], &["runs", "--cancel", "0123456789"]] {
        let (_, err) = ended(args, "", 2);
        assert!(err.contains("--cancel needs a run"), "{err}");
    }
}

#[test]
fn the_first_run_of_the_queue_is_next() {
    let mut server = command(&[SERVE, &["--threads=1", "--run=wait=sleep 1000"]].concat());
    server.env("ANEMONE_LIMITS__RUNS_RUNNING_MAX", "1");
    let (_server, address) = listening(server);
    for _ in 0..3 {
        ended(&["run", "--detach", &format!("{address}/wait")], "", 0);
    }
    let (out, _) = ended(&["runs", &format!("{address}")], "", 0);
    assert!(out.contains("  queued next  /wait\n"), "{out}");
    assert!(out.contains("  queued after 1  /wait\n"), "{out}");
}
