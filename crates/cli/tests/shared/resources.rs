//! The resources that the system lets the server have: descriptors, and files of so many bytes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use anemone_testing::process::{Process, SERVE, ask, command, get, listening, output, try_ask};
use anemone_testing::wait_until;
use tempfile::tempdir;

/// `anemone serve` under limits that a shell sets.
fn limited(limit: &str, args: &[&str]) -> Command {
    let own = command(args);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]);
    shell.arg(own.get_program()).args(own.get_args());
    for (name, _) in own.get_envs() {
        shell.env_remove(name);
    }
    shell
}

fn serve(limit: &str, args: &[&str]) -> (Process, SocketAddr) {
    listening(limited(limit, &[SERVE, args].concat()))
}

fn publish(address: SocketAddr, event: &str) -> String {
    ask(address, "POST /topics/scratch-a HTTP/1.1", event)[9..12].to_owned()
}

#[test]
fn connections_leave_descriptors_for_the_disk() {
    let directory = tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let (_server, address) = serve("-n 400", &["--demo", "--threads", "1", "--data", data]);
    // 208 of the 400 are for other things, eight of them for the two sources of --demo.
    let (mut taken, mut refused) = (Vec::new(), 0);
    for _ in 0..300 {
        let mut stream = TcpStream::connect(address).unwrap();
        // One that is refused may be closed before it has asked.
        let _ = write!(stream, "GET /clock HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let mut head = [0; 12];
        match stream.read_exact(&mut head).map(|()| &head[9..]) {
            Ok(b"200") => taken.push(stream),
            Ok(b"503") | Err(_) => refused += 1,
            Ok(other) => panic!("{other:?}"),
        }
    }
    assert_eq!((taken.len(), refused), (192, 108));
    // A new topic and its files are made, once there is a connection for it. Until then it is refused, or reset.
    drop(taken.pop());
    wait_until("nothing was published", || {
        let reply = try_ask(address, "POST /topics/scratch-a HTTP/1.1", "1");
        reply.is_ok_and(|reply| reply.starts_with("HTTP/1.1 201 "))
    });
}

#[test]
fn too_few_descriptors_are_told_with_their_number() {
    let ended = output(limited("-n 60", &[SERVE, &["--threads", "1"]].concat()), "");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success());
    let words = "the limit on open files is 60, and 72 of them are needed besides connections: raise the limit \
                 (ulimit -n, or LimitNOFILE= in systemd)\n";
    assert!(said.ends_with(words), "{said}");
    let warned =
        output(limited("-n 60", &["check", "--threads", "1", "--listen", "127.0.0.1:0"]), "");
    let warned = String::from_utf8(warned.stdout).unwrap();
    assert!(warned.contains(&format!("\nwarning: cannot start now: {words}")), "{warned}");
}

#[test]
fn check_foresees_how_many_connections_there_are_descriptors_for() {
    let directory = tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let args = ["check", "--listen", "127.0.0.1:0", "--demo", "--threads", "1", "--data", data];
    let said = String::from_utf8(output(limited("-n 400", &args), "").stdout).unwrap();
    let warning = "warning: connections_max is 192 instead of 10000: the limit on open files is 400, and 208 \
                   are reserved for other uses; raise the limit (ulimit -n, or LimitNOFILE= in systemd) for \
                   more connections\n";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn a_file_that_may_not_grow_is_no_death() {
    let directory = tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    // In blocks of 512 or 1024 bytes.
    let (_server, address) = serve("-f 200", &["--demo", "--data", data]);
    let event = format!("\"{}\"", "x".repeat(60_000));
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(publish(address, &event));
    }
    assert_eq!(statuses[0], "201");
    assert!(statuses.iter().any(|status| status == "507" || status == "503"), "{statuses:?}");
    get(address, "/clock");
}
