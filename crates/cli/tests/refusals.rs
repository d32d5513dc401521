//! The log of refused requests, and of proxies that are trusted too far.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::process::Signal;
use support::{Directory, LONG, SERVE, command, listening, output};

/// The status of a request with these fields.
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
    let directory = Directory::new("refusals");
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
        "GET / of 192.0.2.7, 421 misdirected: the request is for wind.example, which is none of this server's names; if \
         it is, set allow_hosts = [\"wind.example\"], or --allow-host wind.example",
        "GET /clock of 192.0.2.7, 403 origin-refused: pages of origin http://wind.example may not use this server, asked \
         for as localhost: allow them with --allow-origin, or allow_origins; if they are its own, a proxy before it has put \
         another Host in the place of the one it was asked for: have it pass that on",
        "POST /topics/scratch-a of 192.0.2.7, 403 publish-refused: only clients on the server's own machine may publish \
         to this topic; this one comes by a trusted proxy; publish = \"anyone\" in the topic's [[topic]] lets others \
         publish, and listen = \"unix:PATH\" gives programs of this machine another way",
        "GET /topics/wind/readers of 192.0.2.7, 403 local-only: who reads is told to clients on the server's own machine \
         alone; this one comes by a trusted proxy; listen = \"unix:PATH\" gives programs of this machine another way to ask",
        "GET /clock of 127.0.0.1, 400 bad-forwarding: what the proxy says of this request cannot be: \"nobody\" is no \
         address; have the proxy set one kind of these fields and take the other away, or take it out of trusted_proxies",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_list_of_proxies_that_has_everybody_is_warned_of() {
    let warning = "trusted_proxies has every address of IPv4: whoever reaches the server can say who they are, by which \
                   name they asked and that it was by https; name the addresses of your proxies alone";
    let everybody = ["--trusted-proxy", "128.0.0.0/1", "--trusted-proxy", "0.0.0.0/1"];
    let check = [&["check", "--listen", "127.0.0.1:0"], &everybody[..]].concat();
    let said = String::from_utf8(output(command(&check), "").stdout).unwrap();
    assert!(said.lines().any(|line| line == format!("warning: {warning}")), "{said}");
    let directory = Directory::new("everybody");
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
