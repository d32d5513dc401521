//! The binary as its user and its supervisor see it: signals, exit statuses, a device that dies.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Instant;

use anemone_testing::process::{
    Process, SERVE, ask, command, get, listening, read_until, request, serve,
};
use anemone_testing::wait_until;
use rustix::process::Signal;
use tempfile::tempdir;

#[test]
fn a_request_to_end_is_heard_as_soon_as_the_address_is_known() {
    for signal in [Signal::TERM, Signal::INT] {
        let (server, _) = serve(&["--threads", "1"]);
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "{signal:?}");
    }
}

#[test]
fn a_second_request_to_end_is_not_kept_waiting_by_a_connection_that_does_not_close() {
    for (second, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut patient = command(&[SERVE, &["--threads", "1", "--host"]].concat());
        patient.env("ANEMONE_LIMITS__WEBSOCKET__CLOSE_TIMEOUT", "10min");
        let (server, address) = listening(patient);
        let head = "GET /topics/host HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
        let mut client = request(address, head);
        read_until(&mut client, b"\r\n\r\n");
        server.signal(Signal::TERM);
        // The close frame (1001): it is stopping, and waits for an answer that does not come.
        read_until(&mut client, &1001_u16.to_be_bytes());
        server.signal(second);
        // After a stop by itself, the status would be 0.
        assert_eq!(server.wait().code(), Some(status));
    }
}

#[test]
fn an_emulator_takes_its_link_with_it_when_asked_to_end_or_hung_up_on() {
    let directory = tempdir().unwrap();
    let link = directory.path().join("wind");
    let mut signals = vec![Signal::TERM, Signal::INT];
    if !hangups_are_ignored() {
        signals.push(Signal::HUP);
    }
    for signal in signals {
        let mut emulator = emulator(link.to_str().unwrap());
        assert!(link.is_symlink());
        emulator.signal(signal);
        assert_eq!(emulator.line(), "");
        assert_eq!(emulator.wait().code(), Some(0), "{signal:?}");
        assert!(!link.is_symlink(), "{signal:?}");
    }
}

#[test]
fn an_emulator_that_is_killed_is_lost_and_live_again_after_its_restart() {
    let directory = tempdir().unwrap();
    let link = directory.path().join("wind");
    let link = link.to_str().unwrap();
    let first = emulator(link);
    let (_server, address) = serve(&["--threads", "1", "--serial", link]);
    let mut states = States::of(address);
    states.wait_for("live");

    first.signal(Signal::KILL);
    assert_eq!(first.wait().signal(), Some(Signal::KILL.as_raw()));
    states.wait_for("lost");

    let _second = emulator(link);
    states.wait_for("live");
}

#[test]
fn the_demo_alone_has_topics_to_publish_to_and_keeps_100_000_events_of_each() {
    let (_server, address) = serve(&["--threads", "1"]);
    let refused = post(address, "1");
    assert!(refused.starts_with("HTTP/1.1 404 "), "{refused}");

    let (_demo, address) = serve(&["--threads", "1", "--demo"]);
    for _ in 0..100 {
        let reply = post(address, &"1\n".repeat(1000));
        assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    }
    let oldest = || get(address, "/topics/scratch-a?after=earliest&limit=1");
    assert!(oldest().contains("\"first\":1,"));
    post(address, "1");
    assert!(oldest().contains("\"first\":2,"));
}

/// The reply to lines of JSON that are published.
fn post(address: SocketAddr, lines: &str) -> String {
    let head = "POST /topics/scratch-a HTTP/1.1\r\nContent-Type: application/x-ndjson";
    ask(address, head, lines)
}

/// Returns true if this test, and so every program that it starts, runs under `nohup`.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1)
}

/// An instrument with this link, which is there.
fn emulator(link: &str) -> Process {
    let mut emulator = Process::start(&["windsonic", "--rate", "4", "--link", link]);
    assert!(emulator.line().starts_with("/dev/"));
    emulator
}

/// The states of the wind sensor, one after the other, by long poll.
struct States {
    address: SocketAddr,
    position: String,
    unseen: VecDeque<String>,
}

impl States {
    fn of(address: SocketAddr) -> Self {
        Self { address, position: "earliest".to_owned(), unseen: VecDeque::new() }
    }

    fn wait_for(&mut self, state: &str) {
        while self.next() != state {}
    }

    fn next(&mut self) -> String {
        loop {
            if let Some(state) = self.unseen.pop_front() {
                return state;
            }
            let path = format!("/topics/wind.status?after={}&wait=60", self.position);
            let page = get(self.address, &path);
            self.unseen = values(&page, "state").into();
            assert!(!self.unseen.is_empty(), "no change for 60 s: {page}");
            self.position = values(&page, "next").remove(0);
        }
    }
}

/// The texts of this name in JSON.
fn values(json: &str, name: &str) -> Vec<String> {
    let before = format!("\"{name}\":\"");
    let texts = json.split(&before).skip(1).filter_map(|rest| rest.split('"').next());
    texts.map(str::to_owned).collect()
}

#[test]
fn what_was_published_is_there_after_a_kill_at_the_same_positions() {
    let directory = tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let mut positions = Vec::new();
    for number in 1..=3 {
        let (server, address) = serve(&["--demo", "--data", data, "--fsync", "always"]);
        let body = format!("{{\"number\":{number}}}");
        let reply = ask(address, "POST /topics/scratch-kept HTTP/1.1", &body);
        assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
        let position = reply.split("\"position\":\"").nth(1).unwrap().split('"').next().unwrap();
        positions.push(position.to_owned());
        server.signal(Signal::KILL);
        server.wait();
    }
    let (_server, address) = serve(&["--demo", "--data", data]);
    let page = get(address, "/topics/scratch-kept?after=earliest");
    let events = (1..=3).map(|n| page.matches(&format!("{{\"number\":{n}}}")).count());
    assert_eq!(events.collect::<Vec<_>>(), [1; 3], "{page}");
    let (epoch, _) = positions[0].split_once('-').unwrap();
    assert_eq!(positions, [1, 2, 3].map(|offset| format!("{epoch}-{offset}")));
}

/// The position of the last of so many events that are published.
fn publish(address: SocketAddr, events: u64) -> String {
    let lines: String = (1..=events).map(|number| format!("{number}\n")).collect();
    let reply = post(address, &lines);
    assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    values(&reply, "position").pop().unwrap()
}

/// Has `cp -a` copy a directory.
fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

#[test]
fn a_directory_that_was_put_back_tells_its_readers_so_and_one_that_was_moved_goes_on() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (data, backup, moved) = (at("data"), at("backup"), at("moved"));
    let started = |data: &Path, more: &[&str]| {
        serve(&[&["--demo", "--data", data.to_str().unwrap()], more].concat())
    };
    let said = |name: &str| std::fs::read_to_string(at(name)).unwrap_or_default();
    let stop_told = |server: Process, log: &str| {
        server.signal(Signal::TERM);
        assert_eq!(server.wait().code(), Some(0), "{}", said(log));
    };
    let stop = |server: Process| stop_told(server, "");
    let (server, address) = started(&data, &[]);
    publish(address, 60);
    stop(server);
    copy(&data, &backup);
    let (server, address) = started(&data, &[]);
    let seen = publish(address, 40);
    stop(server);
    copy(&data, &moved);
    std::fs::remove_dir_all(&data).unwrap();
    copy(&backup, &data);

    let (server, address) = started(&data, &[]);
    publish(address, 50);
    let page = get(address, &format!("/topics/scratch-a?after={seen}"));
    assert!(page.contains(r#""gap":{"reason":"epoch""#), "{page}");
    stop(server);
    let adopted = |log: &str| {
        let args = ["--demo", "--adopt-data", "--data", moved.to_str().unwrap()];
        let mut command = command(&[SERVE, &args].concat());
        command.stderr(std::fs::File::create(at(log)).unwrap());
        listening(command)
    };
    let (server, address) = adopted("first.log");
    let next = publish(address, 1);
    assert_eq!(next.split_once('-').unwrap().0, seen.split_once('-').unwrap().0);
    assert!(next.ends_with("-101"), "{next}");
    stop_told(server, "first.log");
    assert!(
        said("first.log").contains("may silently skip as many new events"),
        "{}",
        said("first.log")
    );
    let (server, _) = adopted("second.log");
    stop_told(server, "second.log");
    assert!(!said("second.log").contains("may skip"), "it is no copy any more");
}

#[test]
fn a_data_directory_that_goes_under_the_server_is_told_at_the_next_event() {
    let directory = tempdir().unwrap();
    let data = directory.path().join("data");
    let (_server, address) = serve(&["--demo", "--data", data.to_str().unwrap()]);
    publish(address, 3);
    std::fs::remove_dir_all(&data).unwrap();
    let reply = post(address, "4\n");
    assert!(reply.starts_with("HTTP/1.1 503 ") && reply.contains("storage-failed"), "{reply}");
    let health = ask(address, "GET /health HTTP/1.1", "");
    assert!(health.starts_with("HTTP/1.1 503 ") && health.contains("storage-failed"), "{health}");
}

/// The lines of a log, each without its time.
fn logged(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let after = |line: &str| line.split_once(' ').unwrap_or_default().1.trim_start().to_owned();
    text.lines().map(after).collect()
}

#[test]
fn an_address_with_too_many_connections_is_named_in_the_log_and_not_each_time() {
    for (client, source) in [("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "2001:db8::/64")] {
        let directory = tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("anemone.toml"), "limits.connections_per_address_max = 1\n").unwrap();
        let config = at("anemone.toml");
        let args = ["--host", "--trusted-proxy", "127.0.0.1", "--config", config.to_str().unwrap()];
        let mut command = command(&[SERVE, &args].concat());
        command.stderr(std::fs::File::create(at("log")).unwrap());
        let (server, address) = listening(command);
        let ask = |path: &str| {
            let field = format!("X-Forwarded-For: {client}\r\nAccept: text/event-stream");
            request(address, &format!("GET {path} HTTP/1.1\r\n{field}\r\nConnection: close"))
        };
        let mut stream = ask("/topics/host");
        read_until(&mut stream, b"\r\n\r\n");
        let begun = Instant::now();
        for _ in 0..5 {
            let mut reply = String::new();
            ask("/clock").read_to_string(&mut reply).unwrap();
            assert!(reply.starts_with("HTTP/1.1 503 "), "{reply}");
            assert!(reply.contains("/problems/too-many-connections"), "{reply}");
        }
        let seconds = begun.elapsed().as_secs();
        drop(stream);
        // Then all is written.
        server.signal(Signal::TERM);
        assert_eq!(server.wait().code(), Some(0));
        let log = logged(&at("log"));
        let warnings: Vec<_> = log.iter().filter(|line| line.starts_with("WARN ")).collect();
        let expected = format!(
            "WARN {source} has reached limits.connections_per_address_max, 1 connections: refused one more"
        );
        assert_eq!(warnings[0], &expected);
        // It is logged at most once in 10 s.
        assert!(warnings.len() as u64 <= 1 + seconds / 10, "{warnings:?}");
    }
}

#[test]
fn a_server_on_every_address_says_by_which_one_others_reach_it() {
    let directory = tempdir().unwrap();
    let log = directory.path().join("log");
    let mut serve = command(&["serve", "--listen", "0.0.0.0:0"]);
    serve.stderr(std::fs::File::create(&log).unwrap());
    let (server, address) = listening(serve);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    // A machine without a network has no such address.
    let log = std::fs::read_to_string(&log).unwrap();
    for line in log.lines().filter_map(|line| Some(line.split_once("from other devices: ")?.1)) {
        let at = line.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).expect(line);
        let at: SocketAddr = at.parse().unwrap();
        assert_eq!(at.port(), address.port());
        assert!(!at.ip().is_loopback() && !at.ip().is_unspecified(), "{line}");
    }
}

#[test]
fn lines_of_standard_input_are_a_topic() {
    let (mut server, address) = serve(&["--stdin", "cpu"]);
    server.write("{\"idle\": 97}\n r  b swpd\n");
    let second = get(address, "/topics/cpu?after=earliest&wait=60&limit=1");
    assert!(second.contains("\"data\":{\"idle\": 97}"), "{second}");
    let next = second.split("\"next\":\"").nth(1).unwrap().split('"').next().unwrap();
    let third = get(address, &format!("/topics/cpu?after={next}&wait=60"));
    assert!(third.contains("\"data\":\" r  b swpd\""), "{third}");
}

#[test]
fn a_killed_server_takes_its_programs_along_and_the_next_one_has_each_once() {
    let directory = tempdir().unwrap();
    // A program that ends on request, with a child of its own, and one that ignores the request.
    let command = "echo $$; sleep 1000 & echo $!; wait";
    let heedless = "trap '' TERM; echo $$; while :; do sleep 1000; done";
    let text = format!(
        "[[source]]\ntype = \"exec\"\ntopic = \"family\"\ncommand = \"{command}\"\n\
         [[source]]\ntype = \"exec\"\ntopic = \"heedless\"\ncommand = \"{heedless}\"\n\
         grace = \"100ms\"\n"
    );
    let file = directory.path().join("anemone.toml");
    std::fs::write(&file, text).unwrap();
    let start = || serve(&["--threads", "1", "--config", file.to_str().unwrap()]);
    let pids = |address, topic: &str, count: usize| loop {
        let page = get(address, &format!("/topics/{topic}?after=earliest&wait=60"));
        let of = |event: &str| event.split(['}', ',']).next()?.parse::<i32>().ok();
        let pids: Vec<_> = page.split("\"data\":").skip(1).filter_map(of).collect();
        if pids.len() == count {
            break pids;
        }
    };
    let (server, address) = start();
    let mut first = pids(address, "family", 2);
    first.extend(pids(address, "heedless", 1));
    server.signal(Signal::KILL);
    server.wait();
    // The process that adopts them reaps them; they must only have ended.
    wait_until("they outlive the server", || !first.iter().any(|pid| lives(*pid)));
    let (_server, address) = start();
    let second = pids(address, "family", 2);
    assert!(second.iter().all(|pid| lives(*pid)));
}

/// Returns whether there is such a process which has not ended yet.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| !"ZX".contains(state))
}

#[test]
fn what_is_kept_of_standard_input_at_the_end_is_what_was_written() {
    for count in [0, 1, 700, 30_000] {
        let directory = tempdir().unwrap();
        let data = directory.path().to_str().unwrap();
        let args = ["--threads", "1", "--data", data, "--stdin", "lines"];
        let (mut server, _) = serve(&args);
        // The last line has no end.
        let text: String = (1..=count).map(|number| format!("{number}\n")).collect();
        server.write(&(text + "1234"));
        server.signal(Signal::TERM);
        assert_eq!(server.wait().code(), Some(0));
        let (_server, address) = serve(&args);
        assert_eq!(numbered(address, "lines"), count, "of {count} lines");
    }
}

#[test]
fn what_is_kept_of_an_input_without_end_is_its_beginning() {
    for point in [0, 1000, 7000, 50_000] {
        let directory = tempdir().unwrap();
        let args = ["--data", directory.path().to_str().unwrap(), "--stdin", "lines"];
        let (mut server, _) = serve(&args);
        let mut input = server.take_input();
        let (reached, point_reached) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || {
            let mut number = 0_u64;
            loop {
                let lines: String =
                    (number + 1..=number + 7).map(|number| format!("{number}\n")).collect();
                if input.write_all(lines.as_bytes()).is_err() {
                    return number + 7;
                }
                number += 7;
                if number > point {
                    let _ = reached.send(());
                }
            }
        });
        point_reached.recv().unwrap();
        server.signal(Signal::TERM);
        assert_eq!(server.wait().code(), Some(0));
        let written = writer.join().unwrap();
        let (_server, address) = serve(&args);
        let kept = numbered(address, "lines");
        assert!((point..=written).contains(&kept), "{kept} of {point} to {written}");
    }
}

#[test]
fn each_line_of_a_file_comes_once_across_kills_and_rotations() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("log");
    let data = directory.path().join("data");
    let from = format!("lines={}", path.display());
    let args = ["--threads", "1", "--data", data.to_str().unwrap(), "--file", &from];
    let next = |path: &std::path::Path| {
        std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap()
    };
    let (mut server, mut address) = serve(&args);
    // From then on all of it is new.
    while !get(address, "/topics/lines.status").contains("\"lost\"") {}
    let (written, count) = std::sync::mpsc::sync_channel(0);
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut file = next(&path);
            for number in 1..=6000_u64 {
                writeln!(file, "{number}").unwrap();
                if number % 500 == 250 {
                    for old in
                        (1..20).rev().filter(|old| path.with_extension(old.to_string()).exists())
                    {
                        let newer = path.with_extension(old.to_string());
                        std::fs::rename(newer, path.with_extension((old + 1).to_string())).unwrap();
                    }
                    std::fs::rename(&path, path.with_extension("1")).unwrap();
                    file = next(&path);
                }
                if number % 1000 == 0 {
                    // The next thousand are written while the server is killed and started.
                    written.send(()).unwrap();
                }
            }
        }
    });
    for _ in 0..6 {
        count.recv().unwrap();
        server.signal(Signal::KILL);
        server.wait();
        (server, address) = serve(&args);
    }
    writer.join().unwrap();
    wait_until("lines are missing", || numbered(address, "lines") >= 6000);
    assert_eq!(numbered(address, "lines"), 6000);
}

/// Makes sure that the events kept of a topic are their own offsets, without a hole; returns the newest.
fn numbered(address: SocketAddr, topic: &str) -> u64 {
    let (mut after, mut newest) = ("earliest".to_owned(), None);
    loop {
        let page = get(address, &format!("/topics/{topic}?after={after}"));
        let next = values(&page, "next").remove(0);
        let of = |name: &str| {
            let number = |rest: &str| rest.split([',', '}']).next().unwrap().parse().unwrap();
            page.split(name).skip(1).map(number).collect::<Vec<u64>>()
        };
        let (offsets, events) = (of("\"offset\":"), of("\"data\":"));
        assert_eq!(offsets, events);
        let first = newest.map_or(offsets.first().copied(), |newest| Some(newest + 1));
        let Some((first, last)) = first.zip(offsets.last()) else { return newest.unwrap_or(0) };
        assert_eq!(offsets, (first..=*last).collect::<Vec<_>>());
        (after, newest) = (next, Some(*last));
    }
}
