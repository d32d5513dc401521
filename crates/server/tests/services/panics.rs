//! Services whose values and errors panic: only their own request fails.

use std::convert::Infallible;
use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_testing::logged;
use anemone_testing::multiplexed::{BOTH, Client};
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use tower_service::Service;

use super::*;

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        // A second panic would abort the process.
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

/// An error that panics when it is written.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

fn body<E: Into<axum::BoxError> + 'static>(
    items: impl Stream<Item = Result<&'static str, E>> + Send + 'static,
) -> Response {
    let lines = items.map(|item| item.map(Bytes::from));
    ([("content-type", "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

async fn answer(request: http::Request<anemone_server::Body>) -> Result<Response, Unspeakable> {
    let bomb = Bomb;
    match request.uri().path() {
        "/bomb/error" => {
            std::mem::forget(bomb);
            Err(Unspeakable)
        }
        "/bomb/payload" => std::panic::panic_any(bomb),
        "/bomb/pending" => std::future::pending().await,
        "/bomb/broken" => {
            std::mem::forget(bomb);
            Ok(body(stream::iter([Ok("1\n"), Err(Unspeakable)])))
        }
        "/bomb/extension" => {
            let mut response = "short".into_response();
            response.extensions_mut().insert(std::sync::Arc::new(bomb));
            Ok(response)
        }
        "/bomb/bytes" => Ok(Bytes::from_owner(Shell(bomb)).into_response()),
        "/bomb/hints" => {
            let mut response = body(pending(bomb));
            *response.status_mut() = StatusCode::from_u16(103).unwrap();
            Ok(response)
        }
        _ => Ok(body(pending(bomb))),
    }
}

/// An item, and then nothing until it is dropped with the bomb.
fn pending(bomb: Bomb) -> impl Stream<Item = Result<&'static str, Infallible>> + Send {
    stream::iter([Ok("1\n")]).chain(stream::once(async move {
        let _bomb = bomb;
        std::future::pending().await
    }))
}

/// The owner of the bytes of a reply.
struct Shell(Bomb);

impl AsRef<[u8]> for Shell {
    fn as_ref(&self) -> &[u8] {
        let Self(Bomb) = self;
        b"short"
    }
}

#[derive(Clone)]
struct Bombs;

impl Service<http::Request<anemone_server::Body>> for Bombs {
    type Response = Response;
    type Error = Unspeakable;
    type Future = BoxFuture<'static, Result<Response, Unspeakable>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unspeakable>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<anemone_server::Body>) -> Self::Future {
        Box::pin(answer(request))
    }
}

fn fixture() -> Fixture {
    // Writes each error that is logged.
    logged::keep();
    with_mounts(vec![Mount::new("/bomb", Bombs).unwrap()], |options| {
        options.limits.shutdown_grace = Duration::from_millis(10);
    })
}

#[test]
fn a_service_that_panics_when_it_is_dropped_or_told_of_fails_only_its_own_request_over_http() {
    let fixture = fixture();
    for path in ["/bomb/error", "/bomb/payload", "/bomb/hints"] {
        ask(&fixture, "GET", path, &[], "").problem(500, "internal");
    }
    for path in ["/bomb/pending", "/bomb/items", "/bomb/broken", "/bomb/extension", "/bomb/bytes"] {
        let mut stream = fixture.connect();
        stream.write_all(request(fixture.address, "GET", path, &[]).as_bytes()).unwrap();
        match path {
            "/bomb/pending" => {}
            // The connection may end without a reply.
            "/bomb/extension" => drop(stream.read(&mut [0])),
            _ => stream.read_exact(&mut [0]).unwrap(),
        }
    }
    for _ in 0..3 {
        assert_eq!(fixture.get("/health", &[]).status, 200);
    }
}

#[test]
fn a_service_that_panics_when_it_is_dropped_or_told_of_fails_only_its_own_call() {
    let fixture = fixture();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for path in ["error", "payload", "hints"] {
            client.ask(&format!("GET a /bomb/{path}")).problem(500, "a", "internal");
        }
        client.send("GET b /bomb/pending");
        client.send("CANCEL b");
        assert_eq!(client.next().status, 204);
        client.send("GET c /bomb/items");
        assert_eq!(client.next().payload, "1");
        client.send("CANCEL c");
        assert_eq!(client.next().status, 204);
        client.send("GET d /bomb/broken");
        assert_eq!(client.next().payload, "1");
        client.next().problem(500, "d", "internal");
        assert_eq!(client.ask("GET e /health").status, 200);
    }
}
