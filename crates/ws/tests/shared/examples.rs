//! The examples run as documented, and the README shows two of them.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use anemone_testing::PATIENCE;
use anemone_testing::process::{Logging, example};
use anemone_ws::{Connect, ConnectError, Incoming, connect};
use tokio::time::timeout;

const README: &str = include_str!("../../README.md");

/// The code of an example, without the comment at its head.
fn code(example: &str) -> String {
    let is_code = |line: &&str| !line.starts_with("//!");
    example.lines().filter(is_code).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[test]
fn the_readme_shows_the_examples_and_they_are_short() {
    let shown: Vec<_> = README.split("\n```rust,no_run\n").skip(1).collect();
    let shown: Vec<_> = shown.iter().map(|rest| rest.split("\n```").next().unwrap()).collect();
    let server = code(include_str!("../../examples/server.rs"));
    let client = code(include_str!("../../examples/client.rs"));
    assert_eq!(shown, [&*server, &*client]);
    assert!(server.lines().count() <= 15 && client.lines().count() <= 8);
}

fn web_socket(server: &Logging) -> String {
    server.url.replace("http", "ws")
}

/// Sends a message and takes the answer.
async fn exchange(url: &str) -> Incoming {
    let talk = async {
        let mut socket = connect(url).await.unwrap();
        socket.send("hi").await.unwrap();
        let answer = socket.recv().await.unwrap().unwrap();
        socket.close(None).await.unwrap();
        answer
    };
    timeout(PATIENCE, talk).await.unwrap()
}

#[tokio::test]
async fn the_server_and_the_client_talk_to_each_other() {
    let server = Logging::example("server");
    assert_eq!(exchange(&web_socket(&server)).await, Incoming::Text("hi".into()));
    let mut client = Command::new(example("client"));
    let client = client.arg(web_socket(&server)).stderr(Stdio::piped()).spawn().unwrap();
    let (told, telling) = mpsc::channel();
    std::thread::spawn(move || told.send(client.wait_with_output()));
    let output = telling.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "Some(Text(\"hello\"))\n");
    assert!(output.status.success());
}

fn response(server: &Logging, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[tokio::test]
async fn axum_has_a_page_and_a_websocket_for_its_own_pages() {
    let server = Logging::example("axum");
    let page = response(&server, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(
        page.starts_with("HTTP/1.1 200 ") && page.contains("new WebSocket(\"/echo\")"),
        "{page}"
    );
    let no_handshake =
        response(&server, "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(no_handshake.starts_with("HTTP/1.1 426 "), "{no_handshake}");

    let url = format!("{}echo", web_socket(&server));
    assert_eq!(exchange(&url).await, Incoming::Text("hi".into()));
    let of = |origin: String| Connect::new(url.clone()).header("Origin", origin).connect();
    of(format!("http://{}", server.address())).await.unwrap();
    let refused = of("https://example.org".to_owned()).await.unwrap_err();
    let ConnectError::Refused(refusal) = refused else { panic!("{refused:?}") };
    assert_eq!((refusal.status(), refusal.body()), (403, "a page of another origin"));
}

#[tokio::test]
async fn everybody_is_sent_what_one_says_in_the_loop() {
    let server = Logging::example("broadcast");
    let talk = async {
        let mut speaker = connect(&web_socket(&server)).await.unwrap();
        // Whoever has had his own word back is among those who get the next one.
        let mut listeners = Vec::new();
        for number in 0..3 {
            let mut listener = connect(&web_socket(&server)).await.unwrap();
            listener.send(format!("here is {number}")).await.unwrap();
            let here = Incoming::from(format!("here is {number}"));
            assert_eq!(listener.recv().await.unwrap(), Some(here));
            listeners.push(listener);
        }
        speaker.send("to all").await.unwrap();
        for (number, mut listener) in listeners.into_iter().enumerate() {
            for later in number + 1..3 {
                let here = Incoming::from(format!("here is {later}"));
                assert_eq!(listener.recv().await.unwrap(), Some(here));
            }
            assert_eq!(listener.recv().await.unwrap(), Some(Incoming::Text("to all".into())));
            listener.close(None).await.unwrap();
        }
    };
    timeout(PATIENCE, talk).await.unwrap();
    let refused = response(&server, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 426 "), "{refused}");
}

#[test]
fn the_loop_waits_for_a_handshake_in_two_packets() {
    let server = Logging::example("broadcast");
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nUpgr").unwrap();
    // Another one is answered meanwhile, so the loop has read that.
    assert!(response(&server, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let rest = "ade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(rest.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 101");
    stream.shutdown(Shutdown::Both).unwrap();
}
