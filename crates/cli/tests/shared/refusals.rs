//! The log of refused requests, and of proxies that are trusted too far.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;

use anemone_testing::process::{LONG, SERVE, command, listening, output};
use rustix::process::Signal;
use tempfile::tempdir;

fn ask(address: SocketAddr, line: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(stream, "{line} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn each_refusal_is_logged_once_with_its_cause_the_address_and_the_setting() {
    let directory = tempdir().unwrap();
    let log = directory.path().join("log");
    let mut serve = command(SERVE);
    serve.args(["--demo", "--trusted-proxy", "127.0.0.1"]).stderr(File::create(&log).unwrap());
    let (server, address) = listening(serve);
    let by = "X-Forwarded-For: 192.0.2.7\r\n";
    for (line, fields, status) in [
        ("GET /", format!("Host: wind.example\r\n{by}"), "421"),
        ("GET /clock", format!("Host: localhost\r\nOrigin: http://wind.example\r\n{by}"), "403"),
        ("POST /topics/scratch-a", format!("Host: localhost\r\n{by}"), "403"),
        ("GET /topics/wind/readers", format!("Host: localhost\r\n{by}"), "403"),
        ("GET /clock", "Host: localhost\r\nForwarded: for=\u{1b}[31m\r\n".to_owned(), "400"),
        ("GET /clock", "Host: localhost\r\nForwarded: for=nobody\r\n".to_owned(), "400"),
    ] {
        for _ in 0..3 {
            assert_eq!(ask(address, line, &fields), status, "{line} {fields}");
        }
    }
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    let said = std::fs::read_to_string(&log).unwrap();
    let told: Vec<&str> =
        said.lines().filter_map(|line| Some(line.split_once(" refused ")?.1)).collect();
    let expected = [
        "GET / of 192.0.2.7, 421 misdirected: the request is for wind.example, which is not one of this server's names; if \
         it should be, set allow_hosts = [\"wind.example\"], or --allow-host wind.example",
        "GET /clock of 192.0.2.7, 403 origin-refused: pages of origin http://wind.example may not use this server, asked \
         for as localhost: allow them with --allow-origin, or allow_origins; if they are its own pages, a proxy \
         in front has replaced the Host: have it forward the original, with its port (nginx: proxy_set_header Host \
         $http_host)",
        "POST /topics/scratch-a of 192.0.2.7, 403 publish-refused: only clients on the server's own machine may publish \
         to this topic; this one comes through a trusted proxy; publish = \"anyone\" in the topic's [[topic]] lets \
         others publish, and listen_local = \"unix:PATH\" gives programs on this machine another way",
        "GET /topics/wind/readers of 192.0.2.7, 403 local-only: only clients on the server's own machine may \
         see the readers; this one comes through a trusted proxy; connections_to and runs_to let others see these lists, and listen_local = \"unix:PATH\" gives \
         programs on this machine another way to ask",
        "GET /clock of 127.0.0.1, 400 bad-forwarding: what the proxy says about this request is not valid: \"nobody\" \
         is not an address; have the proxy set one kind of these fields and remove the other, or remove the proxy from trusted_proxies",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_list_of_proxies_that_has_everybody_is_warned_of() {
    let warning = "trusted_proxies has every address of IPv4: anyone who reaches the server can then forge \
                   their address, the host and the scheme of a request; list only the addresses of your proxies";
    let everybody = ["--trusted-proxy", "128.0.0.0/1", "--trusted-proxy", "0.0.0.0/1"];
    let check = [&["check", "--listen", "127.0.0.1:0"], &everybody[..]].concat();
    let said = String::from_utf8(output(command(&check), "").stdout).unwrap();
    assert!(said.lines().any(|line| line == format!("warning: {warning}")), "{said}");
    let directory = tempdir().unwrap();
    let log = directory.path().join("log");
    for (list, is_warned) in [(&everybody[..], true), (&everybody[..2], false)] {
        let mut serve = command(SERVE);
        serve.args(list).stderr(File::create(&log).unwrap());
        drop(listening(serve));
        let said = std::fs::read_to_string(&log).unwrap();
        let is_told = said.lines().any(|line| line.contains(&format!("WARN {warning}")));
        assert_eq!(is_told, is_warned, "{said}");
    }
}

/// Returns the last line of output with these arguments, without the time, and the exit status.
fn failure(args: &[&str]) -> (String, Option<i32>) {
    let ended = output(command(args), "");
    let said = String::from_utf8(ended.stderr).unwrap();
    let said = said.split_once("ERROR ").map_or(&*said, |(_, words)| words);
    (said.trim_end().to_owned(), ended.status.code())
}

#[test]
fn a_place_that_cannot_be_listened_on_is_told_with_the_reason() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("file"), "mine").unwrap();
    let _taken = UnixListener::bind(at("taken")).unwrap();
    for (path, words) in [
        (at("file"), format!("{} exists and is not a socket", at("file"))),
        (at("taken"), format!("another program listens on {}", at("taken"))),
        (at("none/a"), "No such file or directory (os error 2)".to_owned()),
    ] {
        let place = format!("unix:{path}");
        let said = failure(&["serve", "--listen", &place]);
        assert_eq!(said, (format!("cannot listen on {place}: {words}"), Some(1)));
    }
    assert_eq!(std::fs::read(at("file")).unwrap(), b"mine");

    let long = format!("unix:/{}", "x".repeat(107));
    let words = format!(
        "--listen: listen: the path of a Unix socket has at most 107 bytes, but /{} has 108",
        "x".repeat(107)
    );
    assert_eq!(failure(&["serve", "--listen", &long]), (words.clone(), Some(2)));
    assert_eq!(failure(&["check", "--listen", &long]), (format!("{words}\n1 error"), Some(2)));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let words = format!(
        "cannot listen on {address}: another program listens there: end it, or use a free port with --listen 127.0.0.1:0"
    );
    assert_eq!(failure(&["serve", "--listen", &address]), (words, Some(1)));
}
