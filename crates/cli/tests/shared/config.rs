//! The binary with a configuration: sources as topics, the environment, `anemone check`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use anemone_testing::process::{
    Process, SERVE, Watchdog, ask, command, get, listening, output, read_until, request, serve,
};
use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

/// A directory with this configuration in it, and the path of that.
fn configured(text: &str) -> (TempDir, String) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("anemone.toml");
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

fn serving(text: &str) -> (TempDir, Process, SocketAddr) {
    let (directory, path) = configured(text);
    let (server, address) = serve(&["--threads", "1", "--config", &path]);
    (directory, server, address)
}

/// Runs until its output is closed, as when a server is killed. Empty lines are no events.
const RUN_ON: &str = "while sleep 0.05; do echo; done";

/// A source that runs this, and then on.
fn exec(topic: &str, command: &str) -> String {
    format!(
        "[[source]]\ntype = \"exec\"\ntopic = \"{topic}\"\ncommand = '''{command}; {RUN_ON}'''\n"
    )
}

#[test]
fn echo_and_broadcast_are_for_those_who_ask() {
    let status = |path, args: &[&str]| {
        let (_server, address) = serve(args);
        ask(address, &format!("GET {path} HTTP/1.1"), "")[9..12].to_owned()
    };
    let (_directory, path) = configured("echo = true\nbroadcast = true\n");
    let offered: [&[&str]; 3] = [&["--demo"], &["--echo", "--broadcast"], &["--config", &path]];
    for path in ["/echo", "/broadcast"] {
        assert_eq!(status(path, &[]), "404");
        for args in offered {
            assert_eq!(status(path, args), "426", "{path} {args:?}");
        }
    }
}

/// The events of a topic from its beginning, one after the other, by long poll.
struct Events {
    address: SocketAddr,
    topic: String,
    position: String,
}

impl Events {
    fn of(address: SocketAddr, topic: impl Into<String>) -> Self {
        Self { address, topic: topic.into(), position: "earliest".to_owned() }
    }

    fn next(&mut self) -> String {
        let Self { address, topic, position } = self;
        let path = format!("/topics/{topic}?after={position}&wait=60&limit=1");
        let page = get(*address, &path);
        self.position = between(&page, "\"next\":\"", "\"").to_owned();
        between(&page, "\"data\":", "}]").to_owned()
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let found = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    found.unwrap_or_else(|| panic!("no {before}…{after} in {text}")).0
}

#[test]
fn the_lines_of_a_program_are_a_topic_and_how_it_does_is_another() {
    let text = exec("cpu", r#"echo '{"n": 1}'; echo two; echo oops >&2"#);
    let (_directory, _server, address) = serving(&(text + "stderr = \"topic\"\n"));
    let mut cpu = Events::of(address, "cpu");
    assert_eq!([cpu.next(), cpu.next()], ["{\"n\": 1}", "\"two\""]);
    assert_eq!(Events::of(address, "cpu.stderr").next(), "\"oops\"");
    let mut status = Events::of(address, "cpu.status");
    while !status.next().contains("\"state\":\"live\"") {}
}

#[test]
fn only_the_topics_with_the_status_of_a_source_are_listed_as_such() {
    let status =
        |name: &str| format!("[[topic]]\nname = \"{name}.status\"\npublish = \"nobody\"\n");
    let open = "[[topic]]\nname = \"room-*\"\npublish = \"anyone\"\n";
    let text = exec("cpu", "echo 1") + &exec("own", "echo 1") + &status("own") + &status("not");
    let (_directory, _server, address) = serving(&(text + open));
    for name in ["room-a", "room-a.status", "room-a.status.status"] {
        let published = ask(address, &format!("POST /topics/{name} HTTP/1.1"), "1");
        assert!(published.starts_with("HTTP/1.1 201 "), "{published}");
    }
    let list = get(address, "/topics");
    let list: Value = serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
    let all = list["topics"].as_array().unwrap();
    let told =
        |name: &str| all.iter().find(|topic| topic["name"] == name).unwrap().get("status_of");
    assert_eq!(
        [told("cpu.status"), told("own.status")],
        [Some(&json!("cpu")), Some(&json!("own"))]
    );
    for name in ["cpu", "not.status", "room-a.status", "room-a.status.status"] {
        assert_eq!(told(name), None, "{name}");
    }
}

#[test]
fn any_number_of_readers_share_one_program() {
    let text = exec("cpu", "echo started >> starts; echo line");
    let (directory, _server, address) = serving(&text);
    let read = || {
        let head = "GET /topics/cpu?after=earliest HTTP/1.1\r\nAccept: text/event-stream";
        BufReader::new(request(address, head))
    };
    let mut readers = [read(), read()];
    for reader in &mut readers {
        let found = reader.lines().any(|line| line.unwrap() == "data: \"line\"");
        assert!(found);
    }
    let starts = fs::read_to_string(directory.path().join("starts")).unwrap();
    assert_eq!(starts, "started\n");
}

#[test]
fn a_file_is_followed_across_its_rotation() {
    let text = "[[source]]\ntype = \"file\"\ntopic = \"log\"\npath = \"app.log\"\nfrom = \"start\"\n\
                interval = \"5ms\"\n";
    let (directory, path) = configured(text);
    let log = directory.path().join("app.log");
    fs::write(&log, "one\n").unwrap();
    let (_server, address) = serve(&["--threads", "1", "--config", &path]);
    let mut events = Events::of(address, "log");
    assert_eq!(events.next(), "\"one\"");
    fs::rename(&log, directory.path().join("app.log.1")).unwrap();
    fs::write(&log, "two\n").unwrap();
    assert_eq!(events.next(), "\"two\"");
}

#[test]
fn flags_run_programs_and_follow_files_too() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("app.log");
    let (program, file) = (format!("cpu=echo 1; {RUN_ON}"), format!("log={}", path.display()));
    let (_server, address) = serve(&["--threads", "1", "--exec", &program, "--file", &file]);
    assert_eq!(Events::of(address, "cpu").next(), "1");
    // One that is there when it is first looked for is read from its end.
    let mut status = Events::of(address, "log.status");
    while !status.next().contains("\"state\":\"lost\"") {}
    fs::write(&path, "{\"a\":1}\n").unwrap();
    assert_eq!(Events::of(address, "log").next(), "{\"a\":1}");
}

#[test]
fn a_variable_counts_before_the_file() {
    let (_directory, path) = configured("[limits]\nwait_max = \"60s\"\n");
    let mut with = command(SERVE);
    with.env("ANEMONE_HOST", "true")
        .env("ANEMONE_CONFIG", &path)
        .env("ANEMONE_LIMITS__WAIT_MAX", "1s");
    let (_server, address) = listening(with);
    let reply = ask(address, "GET /topics/host?wait=2 HTTP/1.1", "");
    assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}");
}

#[test]
fn a_rule_says_who_may_publish() {
    let text = "host = false\n[[topic]]\nname = \"chat\"\npublish = \"anyone\"\nevents_max = 2\n";
    let (_directory, _server, address) = serving(text);
    for body in ["1", "2", "3"] {
        let reply = ask(address, "POST /topics/chat HTTP/1.1", body);
        assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    }
    let page = get(address, "/topics/chat?after=earliest");
    assert!(page.contains("\"first\":2,"), "{page}");
    let reply = ask(address, "GET /topics/host HTTP/1.1", "");
    assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
}

#[test]
fn a_program_is_asked_to_end_and_what_it_says_then_is_kept() {
    let program = "trap 'echo bye; exit 0' TERM; echo $$";
    let (directory, path) = configured(&format!("data.dir = \"data\"\n{}", exec("cpu", program)));
    let (server, address) = serve(&["--threads", "1", "--config", &path]);
    let pid = Events::of(address, "cpu").next();
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    assert!(!runs(&pid));

    let data = directory.path().join("data");
    let (_server, address) = serve(&["--threads", "1", "--data", data.to_str().unwrap()]);
    let mut cpu = Events::of(address, "cpu");
    assert_eq!([cpu.next(), cpu.next()], [pid, "\"bye\"".to_owned()]);
}

#[test]
fn a_program_that_does_not_end_is_killed_after_its_grace() {
    let program = "trap '' TERM; echo $$";
    let text = exec("cpu", program) + "grace = \"100ms\"\n";
    let (_directory, server, address) = serving(&text);
    let pid = Events::of(address, "cpu").next();
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    assert!(!runs(&pid));
}

#[test]
fn a_second_request_to_end_does_not_wait_for_a_program() {
    let program = "trap '' TERM; echo $$";
    let text = exec("cpu", program) + "grace = \"1h\"\n";
    let (_directory, server, address) = serving(&text);
    let pid = Events::of(address, "cpu").next();
    let mut reader = request(address, "GET /topics/cpu HTTP/1.1\r\nAccept: text/event-stream");
    read_until(&mut reader, b"\r\n\r\n");
    server.signal(Signal::TERM);
    // The end of the stream: it is stopping.
    reader.read_to_end(&mut Vec::new()).unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(143));
    // It has its grace, with what ends it after that: both are of its group.
    let group = rustix::process::getpgid(Pid::from_raw(pid.parse().unwrap())).unwrap();
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
}

#[test]
fn any_number_of_instruments_are_topics() {
    let directory = tempdir().unwrap();
    let links = ["north", "south"].map(|name| directory.path().join(name));
    let start = |link: &PathBuf, unit| {
        let link = link.to_str().unwrap();
        let mut emulator = Process::start(&["windsonic", "--link", link, "--unit", unit]);
        assert!(emulator.line().starts_with("/dev/"));
        emulator
    };
    let _emulators = [start(&links[0], "N"), start(&links[1], "S")];
    let path = directory.path().join("a.toml");
    let source = |name: &str, mode: &str| {
        let unit = name.chars().next().unwrap().to_ascii_uppercase();
        format!(
            "[[source]]\ntype = \"serial\"\ntopic = \"wind-{name}\"\ndevice = \"{name}\"\n\
             unit = \"{unit}\"\nmode = \"{mode}\"\n"
        )
    };
    fs::write(&path, source("north", "listen") + &source("south", "polled")).unwrap();
    let (_server, address) = serve(&["--threads", "1", "--config", path.to_str().unwrap()]);
    for (topic, unit) in [("wind-north", "N"), ("wind-south", "S")] {
        let event = Events::of(address, topic).next();
        assert!(event.starts_with(&format!("{{\"unit\":\"{unit}\"")), "{event}");
        let status = Events::of(address, [topic, ".status"].concat()).next();
        assert!(status.contains("\"state\":\"opening\""), "{status}");
    }
}

fn runs(pid: &str) -> bool {
    test_kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap()).is_ok()
}

#[test]
fn events_that_cannot_be_kept_at_the_end_are_an_error() {
    let directory = tempdir().unwrap();
    let data = directory.path().join("data");
    let mut server = command(SERVE);
    server.args(["--threads", "1", "--data", data.to_str().unwrap()]);
    let mut server = server.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&server);
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    fs::remove_dir_all(&data).unwrap();
    rustix::process::kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    let output = server.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let last = said.lines().last().unwrap();
    assert!(last.contains("some published events are not on the disk: cannot "), "{said}");
    assert!(last.contains("No such file"), "the cause: {said}");
}

#[test]
fn check_tells_what_would_be_done() {
    let text = "[[source]]\ntype = \"file\"\ntopic = \"log\"\npath = \"no.log\"\n[[topic]]\n\
                name = \"chat-*\"\npublish = \"anyone\"\n";
    let (directory, path) = configured(text);
    // No more connections than there are descriptors for, anywhere.
    let few = ["--connections-max", "100", "--keep", "64MiB"];
    let args = [&["check", "--listen", "127.0.0.1:0", "--config", &path], &few[..]].concat();
    let output = output(command(&args), "");
    assert_eq!(output.status.code(), Some(0));
    let said = with_memory(&String::from_utf8(output.stdout).unwrap());
    let expected = format!(
        "listen   http://127.0.0.1:0\n\
         offered  neither /echo nor /broadcast\n\
         hosts    localhost, loopback addresses and addresses listened on; allow_hosts: none\n\
         origins  the server's own; allow_origins: none\n\
         proxies  trusted_proxies: none\n\
         seen by  connections_to: loopback; runs_to: loopback\n\
         limits   connections_max: 100; connections_per_address_max: a tenth of that (default)\n\
         limits   memory_max: {MEMORY} MiB (default: half of the memory of this machine or its control group)\n\
         data     in memory\n\
         source   file: {log} -> /topics/log /topics/log.status\n\
         topic    chat-*: every client may publish; keeps what fits in 64 MiB shared by all topics\n\
         topics   without a rule keep what fits in 64 MiB shared by all topics (in memory)\n\
         warning: {path}:3:9: the file {log} does not exist now: No such file or directory (os error 2)\n\
         {path} is fine\n",
        log = directory.path().join("no.log").display(),
        MEMORY = "{MEMORY}"
    );
    assert_eq!(said, expected);
}

/// The text, with a word in the place of the memory that this machine has.
fn with_memory(said: &str) -> String {
    let found = between(said, "memory_max: ", " MiB");
    assert!(found.parse::<u64>().unwrap() > 0, "{said}");
    said.replacen(&format!("memory_max: {found} "), "memory_max: {MEMORY} ", 1)
}

#[test]
fn check_tells_who_is_let_in_and_how_much_they_may_have() {
    let args = "check --listen 127.0.0.1:0 --listen unix:s.sock --listen [::1]:0 --listen unix:t.sock --unix-mode 600 --echo \
                --broadcast --listen-local 127.0.0.2:0 --listen-local unix:u.sock \
                --allow-host a.example --allow-host *.b.example:81 --allow-origin https://c.example \
                --trusted-proxy 10.0.0.0/8 --trusted-proxy unix --connections-max 200 --memory-max 64MiB";
    let mut check = command(&args.split_ascii_whitespace().collect::<Vec<_>>());
    check.env("ANEMONE_LIMITS__CONNECTIONS_PER_ADDRESS_MAX", "7");
    let said = output(check, "");
    assert_eq!(said.status.code(), Some(0));
    assert_eq!(
        String::from_utf8(said.stdout).unwrap(),
        "listen   http://127.0.0.1:0\n\
         listen   unix:s.sock, permissions 600\n\
         listen   http://[::1]:0\n\
         listen   unix:t.sock, permissions 600\n\
         listen   http://127.0.0.2:0, for this machine alone\n\
         listen   unix:u.sock, permissions 600, for this machine alone\n\
         offered  /echo, /broadcast\n\
         hosts    localhost, loopback addresses and addresses listened on; allow_hosts: a.example, *.b.example:81\n\
         origins  the server's own; allow_origins: https://c.example\n\
         proxies  trusted_proxies: 10.0.0.0/8, unix\n\
         seen by  connections_to: loopback; runs_to: loopback\n\
         limits   connections_max: 200; connections_per_address_max: 7\n\
         limits   memory_max: 64MiB\n\
         data     in memory\n\
         topics   without a rule keep what fits in 16 MiB shared by all topics (in memory)\n\
         warning: no topics, and nothing to create any: use --exec, --stdin, --file, --serial-lines, \
         --serial, --run or --demo, or --config with a file\n\
         fine, without a configuration file\n"
    );
}

#[test]
fn check_looks_at_the_place_of_a_unix_socket() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("file"), "").unwrap();
    let _taken = std::os::unix::net::UnixListener::bind(at("taken")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(at("stale")).unwrap());
    for (name, warning) in [
        ("new", None),
        ("stale", None),
        ("file", Some(format!("{} exists and is not a socket", at("file")))),
        ("taken", Some(format!("another program listens on {} now", at("taken")))),
        (
            "none/a",
            Some(format!(
                "cannot write to {} now: No such file or directory (os error 2)",
                at("none")
            )),
        ),
    ] {
        let said = output(command(&["check", "--listen", &format!("unix:{}", at(name))]), "");
        let said = String::from_utf8(said.stdout).unwrap();
        let warnings =
            said.lines().filter_map(|line| line.strip_prefix("warning: --listen: listen: "));
        assert_eq!(warnings.collect::<Vec<_>>(), warning.iter().collect::<Vec<_>>(), "{said}");
    }
}

#[test]
fn what_cannot_be_together_on_the_command_line_is_wrong_use() {
    let many = (1..=17).map(|port| format!(" --listen 127.0.0.1:{port}")).collect::<String>();
    let of_stdin = "source.topic: a already has a source, \"exec\" at --exec";
    for (args, place, words) in [
        (
            "--fsync always",
            "--fsync",
            "data.fsync: flushing needs a data directory: data.dir, or --data",
        ),
        (
            "--adopt-data",
            "--adopt-data",
            "there is no data directory to adopt: data.dir, or --data",
        ),
        (many.trim_start(), "--listen", "17 places to listen: at most 16 are possible"),
        (
            "--listen 127.0.0.1:1 --listen 127.0.0.1:1",
            "--listen",
            "listen: 127.0.0.1:1 is taken by listen, 127.0.0.1:1",
        ),
        (
            "--listen unix:a --listen-local unix:a",
            "--listen-local",
            "listen_local: unix:a is taken by listen",
        ),
        (
            "--listen-local 0.0.0.0:1",
            "--listen-local",
            "listen_local: other machines may reach 0.0.0.0:1: expected a loopback address, such as 127.0.0.1:1, or unix:PATH",
        ),
        (
            "--listen 127.0.0.1:1 --tcp 127.0.0.1:1",
            "--tcp",
            "tcp: 127.0.0.1:1 is taken by listen, 127.0.0.1:1",
        ),
        (
            "--tcp 127.0.0.1:1 --tcp-echo 0.0.0.0:1",
            "--tcp-echo",
            "tcp_echo: 0.0.0.0:1 is taken by tcp, 127.0.0.1:1",
        ),
        (
            "--unix-mode 600",
            "--unix-mode",
            "these permissions need a Unix socket: --listen unix:PATH",
        ),
        (
            "--listen unix:a --tls-dev",
            "--tls-dev",
            "TLS needs an address: a Unix socket never speaks TLS",
        ),
        ("--unit B", "--unit", "this letter needs an instrument: --serial DEVICE, or --demo"),
        ("--exec a=true --stdin a", "--stdin", of_stdin),
        ("--exec a=true --exec a=true", "--exec", of_stdin),
        (
            "--demo --file wind=x",
            "--demo",
            "source.topic: wind already has a source, \"file\" at --file",
        ),
    ] {
        for (program, before) in [("check", ""), ("serve", "ERROR ")] {
            let all: Vec<_> = [program].into_iter().chain(args.split(' ')).collect();
            let ended = output(command(&all), "");
            let said = String::from_utf8(ended.stderr).unwrap();
            let first = said.lines().next().unwrap_or_default();
            assert!(first.ends_with(&format!("{before}{place}: {words}")), "{all:?}: {said}");
            assert_eq!(ended.status.code(), Some(2), "{all:?}: {said}");
        }
    }
    // Errors that clap reports.
    for args in [
        "--tls-cert a",
        "--tls-key a",
        "--tls-dev --tls-cert a --tls-key b",
        "--demo --serial a",
        "--demo --baud 9600",
        "--baud 9600",
        "--polled",
        "--configure",
        "--serial a --configure --polled",
        "--stdin a --stdin b",
        "--tcp 127.0.0.1:1 --tcp 127.0.0.1:2",
    ] {
        let all: Vec<_> = ["serve"].into_iter().chain(args.split(' ')).collect();
        assert_eq!(output(command(&all), "").status.code(), Some(2), "{args}");
    }
    // A file named by the environment is no error of the command line.
    let mut serve = command(&["serve"]);
    serve.env("ANEMONE_CONFIG", "/no/such.toml");
    assert_eq!(output(serve, "").status.code(), Some(1));
    let ended = output(command(&["serve", "--config", "/no/such.toml"]), "");
    assert_eq!(ended.status.code(), Some(2));
}

#[test]
fn check_warns_of_what_would_not_work_now() {
    let text = "[[source]]\ntype = \"serial\"\ntopic = \"wind\"\ndevice = \"anemone.toml\"\n\
                [[source]]\ntype = \"exec\"\ntopic = \"cpu\"\ncommand = [\"no-such-program\"]\n\
                directory = \"none\"\n[[source]]\ntype = \"file\"\ntopic = \"log\"\npath = \".\"\n\
                [[topic]]\nname = \"chat\"\npublish = \"anyone\"\nevent_bytes_max = \"1MiB\"\n";
    let (_directory, path) = configured(text);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = ["check", "--config", &path, "--listen", &address, "--connections-max", "100"];
    let output = output(command(&args), "");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    let warnings: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
    let parts = [
        ("--listen: ", "cannot listen on 127.0.0.1:"),
        (":3:9: ", "anemone.toml is not a serial device"),
        (":7:9: ", "the directory "),
        (":7:9: ", "the program no-such-program does not exist now"),
        (":12:9: ", " is not a file"),
        (
            ":15:8: ",
            "which needs limits.websocket.message_bytes_max of at least 1MiB, but it is 64KiB",
        ),
    ];
    assert_eq!(warnings.len(), parts.len(), "{warnings:#?}");
    for (warning, (place, part)) in warnings.iter().zip(parts) {
        assert!(warning.contains(place) && warning.contains(part), "{warning}: {part}");
    }
}

#[test]
fn check_warns_where_serve_does() {
    let warnings = |args: &[&str]| -> Vec<String> {
        let output = output(command(&[&["check", "--listen", "127.0.0.1:0"], args].concat()), "");
        let said = String::from_utf8(output.stdout).unwrap();
        said.lines().filter_map(|line| line.strip_prefix("warning: ")).map(str::to_owned).collect()
    };
    let nothing = "no topics, and nothing to create any: use --exec, --stdin, --file, --serial-lines, \
                   --serial, --run or --demo, or --config with a file";
    assert_eq!(warnings(&[]), [nothing]);
    assert_eq!(warnings(&["--host"]), [nothing]);
    assert!(warnings(&["--demo"]).is_empty());

    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // Root reads everything.
    let is_refused = std::fs::File::open(&path).is_err();
    let path = path.display();
    let told = format!("--file: cannot read {path} now: Permission denied (os error 13)");
    let expected: Vec<String> = is_refused.then_some(told).into_iter().collect();
    assert_eq!(warnings(&["--file", &format!("log={path}")]), expected);
}

#[test]
fn check_and_serve_tell_all_that_is_wrong() {
    let text = "lisen = \"x\"\n[tls]\ncert = \"no.pem\"\n";
    let (_directory, path) = configured(text);
    let expected = [
        format!("{path}:1:1: unknown key `lisen`; did you mean `listen`?"),
        format!("{path}:3:8: tls.cert: tls.key, the certificate's private key, is missing"),
    ];
    let check = output(command(&["check", "--config", &path]), "");
    assert_eq!((check.status.code(), check.stdout.as_slice()), (Some(1), &b""[..]));
    let said = String::from_utf8(check.stderr).unwrap();
    assert_eq!(said, format!("{}\n{}\n2 errors\n", expected[0], expected[1]));

    let serve = output(command(&["serve", "--config", &path]), "");
    assert_eq!(serve.status.code(), Some(1));
    let said = String::from_utf8(serve.stderr).unwrap();
    for (line, expected) in said.lines().zip(&expected) {
        assert!(line.ends_with(&format!("ERROR {expected}")), "{line}");
    }
}

#[test]
fn check_looks_at_what_serve_needs() {
    let (_directory, path) = configured("[tls]\ncert = \"no.pem\"\nkey = \"no.key\"\n");
    let said = output(command(&["check", "--config", &path]), "");
    assert_eq!(said.status.code(), Some(1));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.starts_with(&format!("{path}:2:8: tls.cert: cannot read ")), "{said}");

    let (_directory, path) = configured("data.dir = \"anemone.toml\"\n");
    let said = output(command(&["check", "--config", &path]), "");
    assert_eq!(said.status.code(), Some(1));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains(":1:12: data.dir: ") && said.contains("is not a directory"), "{said}");
}

#[test]
fn check_tells_that_the_names_of_the_machine_are_answered_to_everywhere() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let output = output(command(&["check", "--listen", listen, "--demo"]), "");
        let said = String::from_utf8(output.stdout).unwrap();
        let line = "hosts    localhost, every address, and this machine's NAME and NAME.local; allow_hosts: none\n";
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn check_refuses_origins_that_no_page_has() {
    for (origin, advice) in [
        ("https://app.example/", "write https://app.example"),
        ("app.example", "write http://app.example or https://app.example"),
        ("https://app.*", "* stands for the first labels of a name"),
        ("wss://app.example", "write https://app.example"),
    ] {
        let (_directory, path) =
            configured(&format!("demo = true\nallow_origins = [\"{origin}\"]\n"));
        let checked = output(command(&["check", "--config", &path]), "");
        let said = String::from_utf8(checked.stderr).unwrap();
        assert!(!checked.status.success() && said.contains(advice), "{origin}: {said}");
    }
}
