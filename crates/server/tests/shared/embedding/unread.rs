//! Replies whose pieces the HTTP server in front keeps, since their client does not take them.

use std::time::Duration;

use anemone_server::Limits;
use anemone_testing::{HANDSHAKE, PATIENCE};
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;

const MEMORY_MAX: usize = 8 << 20;

/// A server whose topic has a page of about a MiB.
fn program(change: impl FnOnce(&mut Limits)) -> Alone {
    let (builder, wind) = builder();
    for _ in 0..10 {
        wind.publish(UnixTime::now(), Data::json(&"x".repeat(100_000)).unwrap()).unwrap();
    }
    Alone::start((builder, wind), |options| {
        options.limits.memory_max = Some(MEMORY_MAX);
        change(&mut options.limits);
    })
}

fn page(program: &Alone, version: Version) -> Response<Body> {
    program.ask("/topics/wind?after=earliest", |request| *request.version_mut() = version)
}

#[test]
fn replies_that_nobody_takes_are_given_up_once_their_memory_is_wanted() {
    let program = program(|_| {});
    let kept = Vec::from_iter((0..16).map(|_| {
        let mut reply = page(&program, Version::HTTP_11);
        (program.runtime.block_on(reply.frame()).unwrap().unwrap(), reply)
    }));
    wait_until("memory is held", || program.running.held_bytes() < MEMORY_MAX);
    wait_until("nobody is served", || page(&program, Version::HTTP_11).status() == 200);
    assert_eq!(kept[0].1.status(), 200);
}

#[test]
fn a_reply_over_http_2_that_nobody_takes_is_given_up_in_time() {
    let program = program(|limits| limits.write_timeout = Duration::from_millis(50));
    let mut reply = page(&program, Version::HTTP_2);
    wait_until("memory is held", || program.running.held_bytes() < 1_000_000);
    let rest = program.runtime.block_on(reply.frame()).unwrap();
    assert!(rest.is_err(), "a reply that was given up does not look whole");
}

#[test]
fn a_reply_is_open_until_its_last_piece_is_written() {
    let program = program(|limits| limits.shutdown_grace = Duration::from_millis(50));
    let mut reply = page(&program, Version::HTTP_11);
    let mut pieces = Vec::new();
    while let Some(piece) = program.runtime.block_on(reply.frame()) {
        pieces.push(piece.unwrap());
    }
    drop(reply);
    let longest = pieces.iter().filter_map(|piece| piece.data_ref()).map(|data| data.len()).max();
    assert_eq!(longest, Some(4096), "nobody can have it back");
    let Alone { running, runtime } = program;
    assert_eq!(runtime.block_on(running.stop()).requests_open, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn the_system_ends_a_connection_whose_client_takes_nothing() {
    let program = program(|limits| limits.write_timeout = Duration::from_millis(500));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    program.running.service().behind(&listener).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    server.set_write_timeout(Some(PATIENCE)).unwrap();
    let error = server.write_all(&vec![0; 64 << 20]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "nobody else gave up before");
    drop(client);
}

/// Has a handshake answered on a connection whose client does not take the answer.
fn untaken_handshake(program: &Alone) -> DuplexStream {
    let (mut client, server) = tokio::io::duplex(16);
    let service = program.running.service();
    let service = service_fn(move |request| service.clone().call(request));
    let serving = http1::Builder::new().serve_connection(TokioIo::new(server), service);
    program.runtime.spawn(serving.with_upgrades());
    let fields: String =
        HANDSHAKE.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("GET /topics/wind HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    program.runtime.block_on(client.write_all(head.as_bytes())).unwrap();
    client
}

#[test]
fn a_handshake_whose_answer_nobody_takes_is_given_up_in_time() {
    let program = program(|limits| {
        (limits.connections_max, limits.write_timeout) = (1, Duration::from_millis(50));
    });
    let clients = Vec::from_iter((0..4).map(|_| untaken_handshake(&program)));
    wait_until("nobody is served", || page(&program, Version::HTTP_11).status() == 200);
    drop(clients);
}

#[test]
fn a_handshake_whose_answer_nobody_takes_ends_with_the_server() {
    let program = program(|limits| limits.shutdown_grace = Duration::from_secs(5));
    let mut client = untaken_handshake(&program);
    program.runtime.block_on(client.read_exact(&mut [0; 8])).unwrap();
    let Alone { running, runtime } = program;
    assert_eq!(runtime.block_on(running.stop()).connections_cut, 0);
}
