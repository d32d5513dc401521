//! Services over plain WebSocket.

use std::time::Duration;

use anemone_testing::Socket;
use anemone_ws::proto::Message;

use super::*;

/// The messages of a reply, the last one being the close code and its reason.
fn replies(socket: &mut Socket) -> Vec<String> {
    let mut replies = Vec::new();
    loop {
        let next = socket.next();
        let is_end = next.starts_with("close ");
        replies.push(next);
        if is_end {
            return replies;
        }
    }
}

fn call(fixture: &Fixture, target: &str, message: &str) -> Vec<String> {
    let mut socket = fixture.websocket(target, &[], &[]);
    socket.send(Message::Text(message));
    replies(&mut socket)
}

#[test]
fn each_item_is_a_message_and_the_end_closes() {
    let fixture = start(&Open::default(), |_| {});
    for (target, message, expected) in [
        ("/svc/count/3", "", &["1", "2", "3", "close 1000 "][..]),
        ("/svc/hello", "", &["hello", "close 1000 "]),
        ("/svc/hello", "you", &["hello you", "close 1000 "]),
        ("/svc/seen?a=b", "", &["GET /svc/seen?a=b none none ", "close 1000 "]),
        ("/svc/seen?a=b", "x", &["POST /svc/seen?a=b application/json none x", "close 1000 "]),
        ("/%73vc/hello", "", &["hello", "close 1000 "]),
        ("/svc/empty", "", &["close 1000 "]),
        ("/svc/bytes", "", &["binary", "close 1000 "]),
        ("/svc/who", "", &["websocket true Local true", "close 1000 "]),
    ] {
        assert_eq!(call(&fixture, target, message), expected, "{target} {message:?}");
    }
    let mut socket = fixture.websocket("/svc/seen", &[], &[("X-Own", "mine")]);
    socket.send(Message::Binary(b"x"));
    let seen = "POST /svc/seen application/octet-stream mine x";
    assert_eq!(replies(&mut socket), [seen, "close 1000 "]);
}

#[test]
fn a_body_of_up_to_a_mebibyte_is_one_message_and_a_longer_one_comes_in_parts() {
    let fixture = start(&Open::default(), |_| {});
    let lens = |target: &str| {
        let replies = call(&fixture, target, "");
        replies.iter().map(String::len).collect::<Vec<_>>()
    };
    let end = "close 1000 ".len();
    assert_eq!(lens("/svc/big"), [1 << 20, end]);
    assert_eq!(lens("/svc/bigger"), [&[1 << 16; 16][..], &[1, end]].concat());
}

#[test]
fn a_status_of_an_error_is_the_close_code_after_its_body() {
    let fixture = start(&Open::default(), |_| {});
    assert_eq!(call(&fixture, "/svc/teapot", ""), ["short and stout", "close 4418 "]);
    assert_eq!(call(&fixture, "/svc/nothing", ""), ["close 4404 "]);
    assert_eq!(call(&fixture, "/svc/hello/", "x"), ["close 4404 "]);
    let problem = |target: &str, message: &str| {
        let [body, end] = <[String; 2]>::try_from(call(&fixture, target, message)).unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        (body["type"].as_str().unwrap().to_owned(), end)
    };
    let of = |name: &str, end: &str| (format!("/problems/{name}"), end.to_owned());
    assert_eq!(problem("/svc/conflict", ""), of("conflict", "close 4409 there is a record 7"));
    let failed = "close 4500 the service at this path failed";
    assert_eq!(problem("/svc/panic", ""), of("internal", failed));
    let refused = call(&fixture, "/svc/small", "0123456789a");
    assert_eq!(refused.last().unwrap(), "close 4413 ");
}

#[test]
fn a_stream_that_fails_midway_closes_with_4500() {
    let fixture = start(&Open::default(), |_| {});
    let end = "close 4500 the service at this path failed midway";
    assert_eq!(call(&fixture, "/svc/broken", ""), ["1", "2", end]);
}

#[test]
fn a_service_that_does_not_begin_its_reply_in_time_closes_with_4504() {
    let open = Open::default();
    let fixture = start(&open, |limits| limits.service_timeout = Duration::from_millis(100));
    let replies = call(&fixture, "/svc/never", "");
    assert!(replies[0].contains("/problems/service-timeout"), "{replies:?}");
    assert_eq!(replies[1], "close 4504 the service has not begun its reply within 100ms");
    open.wait(0);
}

#[test]
fn a_call_takes_one_message_in_time() {
    let open = Open::default();
    let fixture = start(&open, |_| {});
    for target in ["/svc/never", "/svc/silent"] {
        let mut socket = fixture.websocket(target, &[], &[]);
        socket.send(Message::Text(""));
        open.wait(1);
        socket.send(Message::Text("another"));
        let replies = replies(&mut socket);
        let end = "close 1008 a call takes one message: open another WebSocket for the next call";
        assert_eq!(replies.last().unwrap(), end);
        open.wait(0);
    }
    let fixture = start(&open, |limits| limits.body_timeout = Duration::from_millis(100));
    let mut socket = fixture.websocket("/svc/hello", &[], &[]);
    assert_eq!(socket.next(), "close 1008 no message came within 100ms");
}

#[test]
fn a_client_that_closes_or_goes_ends_the_work_for_it() {
    let open = Open::default();
    let fixture = start(&open, |_| {});
    for target in ["/svc/never", "/svc/silent"] {
        for closes in [true, false] {
            let mut socket = fixture.websocket(target, &[], &[]);
            socket.send(Message::Text(""));
            open.wait(1);
            if closes {
                socket.connection.sender().close(None).unwrap();
                socket.flush();
            } else {
                drop(socket);
            }
            open.wait(0);
        }
    }
}

#[test]
fn a_server_that_stops_says_so() {
    let open = Open::default();
    let mut fixture = start(&open, |_| {});
    let mut socket = fixture.websocket("/svc/silent", &[], &[]);
    socket.send(Message::Text(""));
    assert_eq!(socket.next(), "1");
    fixture.stop_while(move || assert_eq!(socket.next(), "close 1001 the server is stopping"));
    open.wait(0);
}

#[test]
fn a_handshake_for_a_page_or_a_file_is_no_call() {
    let fixture = start(&Open::default(), |_| {});
    for target in ["/", "/nothing"] {
        let reply = fixture.get(target, &anemone_testing::HANDSHAKE);
        assert_eq!(reply.status, if target == "/" { 200 } else { 404 }, "{target}");
    }
}

#[test]
fn a_page_of_another_origin_cannot_call() {
    let fixture = start(&Open::default(), |_| {});
    let foreign = [&anemone_testing::HANDSHAKE[..], &[("Origin", "http://evil.example")]].concat();
    fixture.get("/svc/hello", &foreign).problem(403, "origin-refused");
}

#[test]
fn a_call_may_be_compressed() {
    let fixture = start(&Open::default(), |_| {});
    let mut socket = fixture.compressed("/svc/seen");
    let body = "x".repeat(10_000);
    socket.send(Message::Text(&body));
    let seen = format!("POST /svc/seen application/json none {body}");
    assert_eq!(replies(&mut socket), [&*seen, "close 1000 "]);
}

#[test]
fn a_message_that_is_too_long_closes_with_1009() {
    let bytes_max = 1 << 10;
    let fixture = start(&Open::default(), |limits| {
        let config = Arc::make_mut(&mut limits.multiplexed);
        (config.message_bytes_max, config.frame_bytes_max) = (bytes_max, bytes_max);
    });
    let message = |len| call(&fixture, "/svc/hello", &"x".repeat(len)).pop().unwrap();
    assert_eq!(message(1 << 10), "close 1000 ");
    assert!(message((1 << 10) + 1).starts_with("close 1009 "));
}
