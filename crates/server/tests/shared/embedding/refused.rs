//! Requests that the server behind another HTTP server refuses.

use std::net::Ipv4Addr;

use anemone_server::AllowedOrigin;
use anemone_testing::HANDSHAKE;
use http::{HeaderValue, Method, StatusCode};
use hyper::ext::Protocol;

use super::*;

fn alone() -> Alone {
    let origin: AllowedOrigin = "https://page.example".parse().unwrap();
    Alone::start(builder(), |options| options.allowed_origins.push(origin))
}

/// A client of this process, and the listener that it is connected to.
fn connected(address: &str) -> (TcpStream, std::net::TcpListener) {
    let listener = std::net::TcpListener::bind(address).unwrap();
    let own = (Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
    (TcpStream::connect(own).unwrap(), listener)
}

#[test]
fn only_who_is_known_to_be_a_user_of_this_machine_is_local() {
    let alone = alone();
    let (client, listener) = connected("127.0.0.1:0");
    let (peer, own) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
    let status = |service: Service, peer, own| {
        let mut request = asked("/topics/wind/readers");
        request.extensions_mut().insert(ConnectionEnds { peer, own });
        alone.call(service, request).status()
    };
    let service = || alone.running.service();
    assert_eq!(status(service(), peer, Some(own)), 200);
    assert_eq!(status(service().behind(&listener).unwrap(), peer, None), 200);
    if cfg!(target_os = "linux") {
        assert_eq!(status(service(), peer, None), 403, "it may be of any user");
        let anywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), own.port());
        assert_eq!(status(service(), peer, Some(anywhere)), 403, "there is no such connection");
        let (client, listener) = connected("0.0.0.0:0");
        let (service, peer) = (service().behind(&listener).unwrap(), client.local_addr().unwrap());
        assert_eq!(status(service, peer, None), 403, "it may have come to any address");
    }
}

#[test]
fn any_address_is_a_name_of_a_server_without_a_listener_but_no_foreign_name_is() {
    let alone = alone();
    let status = |host: &'static str| {
        let reply = alone.ask("/topics/wind", |request| {
            request.headers_mut().insert("host", HeaderValue::from_static(host));
        });
        reply.status()
    };
    assert_eq!(status("192.0.2.2:8085"), 200);
    assert_eq!(status("[2001:db8::1]"), 200);
    assert_eq!(status("rebound.example"), 421);
}

#[test]
fn a_handshake_over_http_2_that_cannot_have_its_stream_is_refused() {
    let reply = alone().ask("/topics/wind", |request| {
        (*request.method_mut(), *request.version_mut()) = (Method::CONNECT, Version::HTTP_2);
        *request.uri_mut() = "http://localhost/topics/wind".parse().unwrap();
        request.headers_mut().insert("sec-websocket-version", HeaderValue::from_static("13"));
        request.extensions_mut().insert(Protocol::from_static("websocket"));
    });
    assert_eq!(reply.status(), 400);
}

#[test]
fn a_page_that_may_ask_sees_why_its_handshake_is_refused() {
    let reply = alone().ask("/topics/wind", |request| {
        for (name, value) in HANDSHAKE.into_iter().chain([("Origin", "https://page.example")]) {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
    });
    assert_eq!(reply.status(), 400);
    for (name, value) in [
        ("access-control-allow-origin", "https://page.example"),
        ("vary", "origin"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(reply.headers().get(name).unwrap(), value, "{name}");
    }
}

#[test]
fn a_request_with_longer_or_more_fields_than_a_listener_would_read_is_refused() {
    let alone = alone();
    let status = |fields: usize, bytes: usize| {
        let value = HeaderValue::from_str(&"a".repeat(bytes)).unwrap();
        let reply = alone.ask("/clock", |request| {
            for _ in 0..fields {
                request.headers_mut().append("x-a", value.clone());
            }
        });
        reply.status()
    };
    for few in [(1, 15_000), (90, 100)] {
        assert_eq!(status(few.0, few.1), 200, "{few:?}");
    }
    for many in [(1, 17_000), (170, 100), (101, 1)] {
        let refused = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        assert_eq!(status(many.0, many.1), refused, "{many:?}");
    }
}
