//! Programs as the work of runs: `anemone serve --run`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use anemone_testing::process::{
    Logging, Process, SERVE, ask, command, get, listening, output, read_until, request, serve,
};
use anemone_testing::ways::{self, Told, Wire};
use anemone_testing::{connect, wait_until};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, openat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::tempdir;

const PRIMES: &str =
    concat!("primes=python3 -u ", env!("CARGO_MANIFEST_DIR"), "/../../examples/primes.py");

/// Starts a run, and returns its path.
#[track_caller]
fn start(address: SocketAddr, path: &str, body: &str) -> String {
    let head = format!("POST {path} HTTP/1.1\r\nPrefer: respond-async");
    let reply = ask(address, &head, body);
    assert!(reply.starts_with("HTTP/1.1 202 "), "{reply}");
    let (_, location) = reply.split_once("\r\nlocation: ").expect(&reply);
    let (_, key) = location.lines().next().unwrap().rsplit_once("runs/").expect(location);
    format!("/runs/{key}")
}

fn state(address: SocketAddr, run: &str) -> Value {
    let reply = get(address, &format!("{run}?state"));
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn ended(address: SocketAddr, run: &str) -> Value {
    wait_until("the run does not end", || !state(address, run)["ended"].is_null());
    state(address, run)
}

fn first(address: SocketAddr, run: &str) -> Value {
    let wire = Wire::new(connect(address));
    let mut reader = ways::NDJSON.read_path(wire, run, "after=earliest").unwrap();
    loop {
        match reader.next() {
            Told::Event { data, .. } if !data["partial"].is_null() => {
                return data["partial"].clone();
            }
            Told::Ended => panic!("{}", state(address, run)),
            _ => {}
        }
    }
}

/// A FIFO that a program holds open for writing.
fn lifeline(path: &Path) -> File {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    openat(CWD, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        .unwrap()
        .into()
}

fn cut(mut lifeline: File) {
    wait_until("a process is left", || matches!(lifeline.read(&mut [0]), Ok(0)));
}

#[test]
fn a_script_of_five_lines_has_progress_over_every_transport() {
    let (mut server, address) = serve(&["--threads", "1", "--tcp", "127.0.0.1:0", "--run", PRIMES]);
    let tcp = server.line().strip_prefix("tcp on ").unwrap().parse().unwrap();
    for way in ways::ALL {
        let run = start(address, "/primes", "1000");
        let wire = Wire::new(connect(if way.is_tcp() { tcp } else { address }));
        let mut reader = way.read_path(wire, &run, "after=earliest").unwrap();
        let mut events = Vec::new();
        loop {
            match reader.next() {
                Told::Event { data, .. } => events.push(data),
                Told::Position(_) => {}
                Told::Ended => break,
                told => panic!("{}: {told:?}", way.name),
            }
        }
        let of = |name: &str| events.iter().filter_map(|event| event.get(name)).collect::<Vec<_>>();
        let primes = of("partial");
        assert_eq!((primes.len(), primes.last()), (168, Some(&&json!(997))), "{}", way.name);
        assert_eq!(of("progress").last().unwrap().as_f64(), Some(1.0), "{}", way.name);
        assert_eq!(of("text").last(), Some(&&json!("up to 1000")), "{}", way.name);
        assert_eq!(of("state").last(), Some(&&json!("done")), "{}", way.name);
    }
}

#[test]
fn a_program_killed_by_somebody_is_a_failed_run_and_the_server_goes_on() {
    let (_server, address) = serve(&["--threads", "1", "--run", "wait=echo $$; exec sleep 1000"]);
    let run = start(address, "/wait", "");
    let pid = first(address, &run).as_i64().unwrap();
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    let state = ended(address, &run);
    assert_eq!(state["state"], "failed");
    let detail = state["problem"]["detail"].as_str().unwrap();
    assert_eq!(detail, "the shell command echo has ended, signal: 9 (SIGKILL)");
    first(address, &start(address, "/wait", ""));
}

#[test]
fn a_cancelled_program_is_gone_with_its_children() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("lifeline");
    let lifeline = lifeline(&path);
    let work = format!("wait=exec 3> {}; trap '' TERM; sleep 1000 & echo up; wait", path.display());
    let (_server, address) = serve(&["--threads", "1", "--run", &work]);
    let run = start(address, "/wait", "");
    first(address, &run);
    let delete = || ask(address, &format!("DELETE {run} HTTP/1.1"), "");
    let reply = delete();
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("\"cancelled\""), "{reply}");
    cut(lifeline);
    assert!(delete().starts_with("HTTP/1.1 409 "));
}

#[test]
fn an_attached_program_is_gone_with_its_client_and_another_goes_on() {
    let directory = tempdir().unwrap();
    let names = ["attached", "detached"].map(|name| directory.path().join(name));
    let [attached, mut detached] = [0, 1].map(|at| lifeline(&names[at]));
    let work = "wait=read name; exec 3> $name; echo up; exec sleep 1000";
    let (_server, address) = serve(&["--threads", "1", "--run", work]);
    for (target, name) in ["/wait?attach", "/wait"].into_iter().zip(&names) {
        let body = name.to_str().unwrap();
        let head = format!("POST {target} HTTP/1.1\r\nContent-Length: {}", body.len());
        let mut client = request(address, &head);
        client.write_all(body.as_bytes()).unwrap();
        read_until(&mut client, b"{\"partial\":\"up\"}");
    }
    cut(attached);
    let left = detached.read(&mut [0]).expect_err("it is open");
    assert_eq!(left.kind(), io::ErrorKind::WouldBlock);
}

/// A server whose program holds the lifeline and ignores SIGTERM, with a descendant in a session of its own, when that is running.
fn busy(directory: &Path) -> (Process, File) {
    let path = directory.join("lifeline");
    let lifeline = lifeline(&path);
    let outliving = "setsid -w timeout 1000 sh -c 'trap \"\" TERM; echo up; sleep 1000'";
    let work = format!("wait=exec 3> {}; trap '' TERM; {outliving}", path.display());
    let (server, address) = serve(&["--threads", "1", "--run", &work]);
    first(address, &start(address, "/wait", ""));
    (server, lifeline)
}

#[test]
fn a_server_that_is_killed_takes_its_programs_along() {
    let directory = tempdir().unwrap();
    let (server, lifeline) = busy(directory.path());
    server.signal(Signal::KILL);
    cut(lifeline);
}

#[test]
fn a_server_that_stops_ends_its_programs_first() {
    let directory = tempdir().unwrap();
    let (server, mut lifeline) = busy(directory.path());
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert_eq!(lifeline.read(&mut [0]).unwrap(), 0, "a process is left");
}

#[test]
fn a_bad_program_is_a_failed_run_with_words_and_the_server_goes_on() {
    let directory = tempdir().unwrap();
    let config = directory.path().join("anemone.toml");
    let run = |path: &str, command: &str| {
        format!(
            "[[run]]\npath = \"/{path}\"\ncommand = {command}\noutput_bytes_max = \"64KiB\"\nprocesses_max = 10\n"
        )
    };
    let text = [
        run("absent", "[\"/no/such/program\"]"),
        run("endless", "\"yes\""),
        run("line", "\"cat /dev/zero\"") + "line_bytes_max = 1000\n",
        run("bomb", "\"for i in $(seq 50); do sleep 1000 & done; wait\""),
        run("nowhere", "\"cat\"") + "directory = \"/no/such/directory\"\n",
        run("fine", "\"cat\""),
    ];
    fs::write(&config, text.concat()).unwrap();
    let (_server, address) = serve(&["--threads", "1", "--config", config.to_str().unwrap()]);
    for (path, words) in [
        ("/nowhere", "there is no directory /no/such/directory"),
        ("/absent", "program cannot be started: No such file"),
        ("/endless", "the shell command yes wrote more than 65536 bytes, and was killed"),
        ("/line", "the shell command cat wrote a line of more than 1000 bytes, and was killed"),
        ("/bomb", "the shell command of /bomb had "),
    ] {
        let state = ended(address, &start(address, path, "x"));
        let detail = state["problem"]["detail"].as_str().unwrap_or_default();
        assert!(detail.starts_with(words), "{path}: {state}");
    }
    assert_eq!(first(address, &start(address, "/fine", "\"fine\"")), "fine");
}

#[test]
fn the_log_says_once_for_each_run_that_a_result_is_not_what_was_meant() {
    let script =
        r#"run=echo '{"t":NaN}'; echo '{"t":Infinity}'; echo 'progress 50'; echo '{"t":1}'"#;
    let mut server = Logging::start(command(&[SERVE, &["--run", script]].concat()));
    let address = server.address();
    for _ in 0..2 {
        let run = start(address, "/run", "");
        ended(address, &run);
        for words in [
            r#"this partial result is text, since NaN is not JSON: write null in its place (Python's json.dumps writes it unless allow_nan=False): {"t":NaN}"#,
            "this looks like progress, but is a partial result: progress 50",
        ] {
            let line = server.line(words, |line| line.contains("partial result"));
            assert!(line.contains(words), "{line}");
        }
        assert_eq!(first(address, &run), r#"{"t":NaN}"#);
    }
}

#[test]
fn only_local_clients_start_programs_unless_the_configuration_says_otherwise() {
    let directory = tempdir().unwrap();
    let config = directory.path().join("anemone.toml");
    fs::write(&config, "[[run]]\npath = \"/all\"\ncommand = \"cat\"\nstart = \"anyone\"\n")
        .unwrap();
    let arguments = ["--threads", "1", "--run", "own=cat", "--config", config.to_str().unwrap()];
    let (_server, address) = serve(&arguments);
    let ask = |path: &str| {
        let head =
            format!("POST {path} HTTP/1.1\r\nPrefer: respond-async\r\nForwarded: for=192.0.2.1");
        ask(address, &head, "1")
    };
    let refused = ask("/own");
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    assert!(refused.contains("/problems/start-refused"), "{refused}");
    assert!(ask("/all").starts_with("HTTP/1.1 202 "));
}

#[test]
fn check_says_who_may_start_what_and_serve_announces_it() {
    let arguments = ["--run", "primes=python3 -u primes.py"];
    let said = output(command(&[&["check"], &arguments[..]].concat()), "");
    let said = String::from_utf8(said.stdout).unwrap();
    let line =
        "\nrun      /primes: the shell command python3; programs on this machine may start runs\n";
    assert!(said.contains(line) && !said.contains("no topics"), "{said}");
    for (line, missing) in [
        ("a=nosuchprogram 1", Some("run /a: the program nosuchprogram does not exist now")),
        ("a=for i in 1 2; do true; done", None),
        ("a=cd / && true", None),
        ("a=X=1 sh -c true", None),
        ("a=PATH=/x nosuchprogram", None),
    ] {
        let said = output(command(&["check", "--run", line]), "");
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.contains("warning: --run: run /a: "), missing.is_some(), "{line}: {said}");
        assert!(said.contains(missing.unwrap_or_default()), "{line}: {said}");
    }
    let said = output(command(&["check", "--run", "topics=true"]), "");
    assert_eq!(said.status.code(), Some(2));
    let (_server, address) = listening(command(&[SERVE, &arguments].concat()));
    assert!(get(address, "/clock").contains("\"time\""));
}
