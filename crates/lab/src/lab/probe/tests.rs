//! Tests with servers whose answers never end.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use anemone_ws::proto::Opcode;
use anemone_ws::proto::handshake::accept_key;

use super::*;
use crate::lab::description::Form;

/// Starts a server that answers a request with `begin`, and then sends `more` forever, with pauses.
fn endless(begin: &'static str, more: Vec<u8>, pause: Duration) -> Place {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let len = stream.read(&mut request).unwrap();
        let request = String::from_utf8_lossy(&request[..len]).into_owned();
        let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
        let begin = begin.replace("KEY", &key.map(accept_key).unwrap_or_default());
        stream.write_all(begin.as_bytes()).unwrap();
        // It ends when the client has gone.
        while stream.write_all(&more).is_ok() {
            thread::sleep(pause);
        }
    });
    // What comes at once is refused for its length, however busy the machine is.
    let patience = if pause.is_zero() { PATIENCE } else { SHORT };
    Place { patience, ..Place::new(address) }
}

/// Tries with a short patience, and then with longer ones, since a busy machine may be late.
fn patiently<T>(attempt: impl Fn(Duration) -> Result<T, Fault>) -> T {
    let mut patience = SHORT;
    loop {
        match attempt(patience) {
            Err(Fault::Stalled(_)) if patience < PATIENCE => patience *= 2,
            tried => return tried.unwrap(),
        }
    }
}

/// Returns true if only heartbeats are seen with one of several patiences. A busy machine may send some too late.
fn has_only_heartbeats(wait: impl Fn(Duration) -> Result<(), Fault>) -> bool {
    let mut patiences = (0..8).map(|doublings| SHORT * (1 << doublings));
    patiences.any(|patience| matches!(wait(patience), Err(Fault::Stalled(Stall::Heartbeats(_)))))
}

const SHORT: Duration = Duration::from_millis(40);
const TRICKLE: Duration = Duration::from_millis(5);
const AT_ONCE: Duration = Duration::ZERO;
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const UPGRADED: &str = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: KEY\r\n\r\n";

fn call(place: &Place) -> FaultKind {
    Http::connect(place).unwrap().call("GET", "/", "", b"").unwrap_err().kind()
}

#[test]
fn what_comes_byte_by_byte_is_not_waited_for_for_ever() {
    let head = endless("HTTP/1.1 200 OK\r\n", b"a".to_vec(), TRICKLE);
    assert_eq!(call(&head), FaultKind::Stalled);
    let body =
        endless("HTTP/1.1 200 OK\r\ncontent-length: 30000000\r\n\r\n", b"a".to_vec(), TRICKLE);
    assert_eq!(call(&body), FaultKind::Stalled);
}

#[test]
fn what_is_wrong_is_told_in_a_short_line() {
    let told = |bytes: &[u8]| Fault::wrong("another echo came", bytes).to_string();
    assert_eq!(told(b"a\xff"), "another echo came: a\\xff");
    assert_eq!(told(&[0xff; 1000]), format!("another echo came: {}", "\\xff".repeat(50)));
}

#[test]
fn what_grows_without_end_is_refused() {
    let chunk = [b"10000\r\n".to_vec(), vec![b'a'; 0x10000], b"\r\n".to_vec()].concat();
    assert_eq!(call(&endless(CHUNKED, chunk.clone(), AT_ONCE)), FaultKind::Wrong);
    assert_eq!(
        call(&endless("HTTP/1.1 200 OK\r\n", vec![b'a'; 1 << 20], AT_ONCE)),
        FaultKind::Wrong
    );
    let source = Source { target: "/", body: None, page: None, after: None, form: Form::Anemone };
    let line = endless(CHUNKED, chunk, AT_ONCE);
    let mut feed = Feed::open(Transport::Ndjson, &line, source, 1).unwrap();
    assert_eq!(feed.next().unwrap_err().kind(), FaultKind::Wrong);
}

#[test]
fn what_goes_on_for_longer_than_the_patience_is_read_on() {
    let line = b"{\"position\":\"e-1\",\"data\":7}\n";
    let chunk = [format!("{:x}\r\n", line.len()).as_bytes(), line, b"\r\n"].concat();
    let message = b"206 1 e-1\n7";
    let frame = [&[0x81, message.len() as u8][..], message].concat();
    let counted = [&[0, 0, 0, message.len() as u8][..], message].concat();
    let source = Source { target: "/", body: None, page: None, after: None, form: Form::Anemone };
    let reads_on = |transport, begin, more: Vec<u8>| {
        patiently(|patience| {
            let place = Place { patience, ..endless(begin, more.clone(), TRICKLE) };
            let mut feed = Feed::open(transport, &place, source, 1)?;
            let begun = Instant::now();
            let mut newest = begun;
            while begun.elapsed() < place.patience_of_all() + place.patience {
                match feed.next() {
                    Ok(Piece::Event(_)) => newest = Instant::now(),
                    // A busy machine may make one of them late.
                    Err(fault @ Fault::Stalled(_)) if newest.elapsed() >= patience => {
                        return Err(fault);
                    }
                    other => panic!("{transport:?}: {other:?}"),
                }
            }
            Ok(())
        });
    };
    thread::scope(|scope| {
        scope.spawn(|| reads_on(Transport::Ndjson, CHUNKED, chunk));
        scope.spawn(|| reads_on(Transport::WebSocket, UPGRADED, frame));
        scope.spawn(|| reads_on(Transport::Tcp, "", counted));
    });
}

#[test]
fn a_stream_of_comments_or_of_pings_is_no_stream_of_events() {
    let source = Source { target: "/", body: None, page: None, after: None, form: Form::Anemone };
    assert!(has_only_heartbeats(|patience| {
        let comments = endless(CHUNKED, b"2\r\n:\n\r\n".to_vec(), TRICKLE);
        Feed::open(Transport::Sse, &Place { patience, ..comments }, source, 1)?.next().map(drop)
    }));
    assert!(has_only_heartbeats(|patience| {
        let pings = endless(UPGRADED, [&[0x89, 100][..], &[b'a'; 100]].concat(), TRICKLE);
        WebSocket::connect(&Place { patience, ..pings }, "/", &[], 1)?.receive().map(drop)
    }));
    for frame in [0x89, 0x00] {
        // Pings, or empty pieces of a message.
        let open = || {
            patiently(|patience| {
                let frames = endless(UPGRADED, vec![frame, 0], TRICKLE);
                WebSocket::connect(&Place { patience, ..frames }, "/", &[], 1)
            })
        };
        assert_eq!(open().receive().unwrap_err().kind(), FaultKind::Stalled);
        let mut socket = open();
        let frame = socket.frame(Opcode::Binary, b"a");
        assert_eq!(socket.exchange(&frame).unwrap_err().kind(), FaultKind::Stalled);
    }
    // A message in fragments that has no last one.
    let fragment = [&[0x00, 127, 0, 0, 0, 0, 0, 16, 0, 0][..], &[b'a'; 1 << 20]].concat();
    let fragments = endless(UPGRADED, fragment, AT_ONCE);
    let mut socket = WebSocket::connect(&fragments, "/", &[], 1).unwrap();
    assert_eq!(socket.receive().unwrap_err().kind(), FaultKind::Wrong);
}
