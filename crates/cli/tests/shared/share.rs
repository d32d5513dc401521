//! The links by which others open the server, and who learns which of them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use anemone_testing::process::{self, Logging, command, serve};
use serde_json::{Value, json};

/// The whole reply to a GET with these fields.
fn get(address: SocketAddr, target: &str, fields: &str) -> String {
    process::ask(address, format!("GET {target} HTTP/1.1\r\n{fields}").trim_end(), "")
}

fn status(reply: &str) -> &str {
    &reply[9..12]
}

fn facts(address: SocketAddr, fields: &str) -> Value {
    let reply = get(address, "/home/server.json", fields);
    assert!(
        status(&reply) == "200" && reply.contains("\r\ncache-control: no-store\r\n"),
        "{reply}"
    );
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// The target of the code of a URL.
fn code_of(url: &str) -> String {
    format!("/home/code.svg?url={}", url.replace(':', "%3A").replace('/', "%2F"))
}

const FORWARDED: &str = "X-Forwarded-For: 192.0.2.1\r\n";

#[test]
fn a_program_of_this_machine_learns_the_links_of_the_start_log_and_nobody_else_does() {
    let mut command = command(&["serve", "--listen", "0.0.0.0:0", "--threads", "1"]);
    command.env("RUST_LOG", "info");
    let mut server = Logging::start(command);
    let port = server.address().port();
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let known = facts(local, "");
    let urls: Vec<String> = serde_json::from_value(known["urls"].clone()).unwrap();
    let none = json!({"urls": [], "demo": false});
    assert_eq!(facts(local, FORWARDED), none, "a proxy may speak for anybody");
    for url in &urls {
        let outside: SocketAddr = url[7..].trim_end_matches('/').parse().unwrap();
        assert_eq!(facts(outside, ""), none, "other machines come by this address");
        let code = |fields| get(local, &code_of(url), fields);
        assert_eq!((status(&code("")), status(&code(FORWARDED))), ("200", "404"));
        assert_eq!(status(&get(outside, &code_of(url), "")), "200", "they know it already");
    }
    server.terminate();
    let mut log = String::new();
    server.log.read_to_string(&mut log).unwrap();
    let told = log.lines().filter_map(|line| Some(line.split_once("from other devices: ")?.1));
    assert_eq!(told.collect::<Vec<_>>(), urls, "{log}");
}

#[test]
fn a_server_for_this_machine_alone_has_no_link_for_others() {
    let (_server, address) = serve(&["--threads", "1", "--demo"]);
    assert_eq!(facts(address, ""), json!({"urls": [], "demo": true}));
}

/// The whole reply to a GET by a name of the server.
fn get_by(name: &str, address: SocketAddr, target: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nHost: {name}\r\n{fields}Connection: close");
    write!(stream, "{head}\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn a_code_is_only_for_the_host_that_was_asked() {
    let (_server, address) = serve(&["--threads", "1", "--allow-host", "wind.example"]);
    let get = |target: &str, fields: &str| get_by("wind.example", address, target, fields);
    for url in ["http://wind.example/", "https://wind.example/below/a/proxy/"] {
        let reply = get(&code_of(url), "");
        assert_eq!(status(&reply), "200", "{reply}");
        for field in ["content-type: image/svg+xml", "cache-control: private, max-age=86400"] {
            assert!(reply.contains(&format!("\r\n{field}\r\n")), "{field}: {reply}");
        }
        assert!(reply.contains("\r\n\r\n<svg xmlns="), "{reply}");
    }
    let known = |url: &str| {
        let target = code_of(url).replace("code.svg", "server.json");
        let reply = get(&target, FORWARDED);
        serde_json::from_str::<Value>(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let own = "http://wind.example/below/";
    assert_eq!(known(own), json!({"urls": [own], "demo": false}));
    assert_eq!(known("http://other.example/"), json!({"urls": [], "demo": false}));
    let long = format!("http://wind.example/{}", "a".repeat(128));
    for url in [
        "",
        "http://other.example/",
        &long,
        "http://wind.example/?a",
        "javascript://wind.example/",
        "wind.example",
    ] {
        assert_eq!(status(&get(&code_of(url), "")), "404", "{url}");
    }
    // A proxy that replaces the host would tell everybody where the server listens.
    for name in [address.to_string(), format!("localhost:{}", address.port())] {
        let reply = get_by(&name, address, &code_of(&format!("http://{name}/")), "");
        assert_eq!(status(&reply), "404", "{name}");
    }
    let get = self::get;
    assert_eq!(status(&get(address, "/home/code.svg", "")), "404");
    for target in ["/home/server.json", "/home/code.svg"] {
        let posted = process::ask(address, &format!("POST {target} HTTP/1.1"), "{}");
        assert_eq!(status(&posted), "405", "{target}");
        let foreign = get(address, target, "Origin: http://wind.example\r\n");
        assert_eq!(status(&foreign), "403", "a page of another origin reads neither");
    }
}
