//! Services at paths of their own, over HTTP and plain WebSocket, and the same calls over every transport.
#![allow(clippy::unwrap_used)]

mod alike;
mod at_once;
mod example;
mod mounts;
mod over_http;
mod panics;
mod slow;
mod turns;
mod websocket;

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_hub::Retention;
use anemone_server::{Body, Caller, Kind, Limits, Mount, Options, Problem};
use anemone_testing::{Endpoint, Fixture, Reply, request, unchunked, wait_until};
use axum::extract::{DefaultBodyLimit, Path};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, Method, Response, StatusCode, Uri};

/// The number of handlers, and of their replies, that are still there.
#[derive(Clone, Default)]
struct Open(Arc<AtomicUsize>);

/// One of them.
struct OneOpen(Open);

impl Open {
    fn one(&self) -> OneOpen {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneOpen(self.clone())
    }

    fn wait(&self, count: usize) {
        let is_reached = || self.0.load(Ordering::Relaxed) == count;
        wait_until(&format!("there are not {count} handlers"), is_reached);
    }
}

impl Drop for OneOpen {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lines<S>(lines: S) -> impl IntoResponse
where
    S: Stream<Item = io::Result<String>> + Send + 'static,
{
    ([("content-type", "application/x-ndjson")], axum::body::Body::from_stream(lines))
}

/// The numbers from 1 to this, a line each.
async fn count(Path(last): Path<u64>) -> impl IntoResponse {
    lines(stream::iter((1..=last).map(|number| Ok(format!("{number}\n")))))
}

/// Two items, and then a failure.
async fn broken() -> impl IntoResponse {
    let parts = ["1\n2\n", "3"].map(|part| Ok(part.to_owned()));
    lines(stream::iter(parts.into_iter().chain([Err(io::Error::other("a bug"))])))
}

async fn who(Extension(caller): Extension<Caller>) -> String {
    let identity = caller.identity();
    let has_address = caller.address().is_some_and(|address| address.port() != 0);
    format!("{} {} {identity:?} {has_address}", caller.transport(), caller.is_local())
}

/// The request as the service sees it.
async fn seen(method: Method, uri: Uri, headers: HeaderMap, body: axum::body::Bytes) -> String {
    let field = |name| headers.get(name).map_or("none", |value| value.to_str().unwrap());
    let (content_type, own) = (field("content-type"), field("x-own"));
    format!("{method} {uri} {content_type} {own} {}", String::from_utf8_lossy(&body))
}

async fn conflict() -> Response<Body> {
    Problem::new(Kind::Conflict, "there is a record 7").into_response()
}

/// The service of most tests, at `/svc`.
fn routes(open: &Open) -> Router {
    let never = |open: Open| {
        async move || {
            let _open = open.one();
            std::future::pending::<()>().await;
        }
    };
    let silent = |open: Open| {
        async move || {
            let open = open.one();
            let rest = stream::once(async move {
                let _open = open;
                std::future::pending().await
            });
            lines(stream::iter([Ok("1\n".to_owned())]).chain(rest))
        }
    };
    Router::new()
        .route(
            "/svc/hello",
            get(async || "hello").post(async |body: String| format!("hello {body}")),
        )
        .route("/svc/seen", any(seen))
        .route("/svc/who", any(who))
        .route("/svc/count/{last}", any(count))
        .route("/svc/broken", any(broken))
        .route("/svc/empty", any(async || StatusCode::NO_CONTENT))
        .route("/svc/bytes", any(async || vec![0xff_u8, 0]))
        .route("/svc/big", any(async || "x".repeat(1 << 20)))
        .route("/svc/bigger", any(async || "x".repeat((1 << 20) + 1)))
        .route("/svc/teapot", any(async || (StatusCode::IM_A_TEAPOT, "short and stout")))
        .route("/svc/conflict", any(conflict))
        .route("/svc/panic", any(async || -> &str { panic!("a bug") }))
        .route("/svc/never", any(never(open.clone())))
        .route("/svc/silent", any(silent(open.clone())))
        .route("/svc/small", post(async |body: String| body).layer(DefaultBodyLimit::max(10)))
}

fn mount(path: &str, routes: Router) -> Mount {
    Mount::new(path, routes).unwrap()
}

/// Starts a server with one thread and the service at `/svc`.
fn start(open: &Open, change: impl FnOnce(&mut Limits)) -> Fixture {
    with_mounts(vec![mount("/svc", routes(open))], |options| change(&mut options.limits))
}

fn with_mounts(mounts: Vec<Mount>, change: impl FnOnce(&mut Options)) -> Fixture {
    let change = |options: &mut Options| {
        options.threads = NonZero::new(1);
        options.mounts.extend(mounts);
        change(options);
    };
    Fixture::with(change, Retention::default())
}

/// Sends a request with a body, and returns the reply; a body without a length is read to its end.
fn ask(
    endpoint: &Endpoint,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> Reply {
    let (mut reply, rest) = ask_raw(endpoint, method, target, fields, body);
    reply.body = match reply.field("transfer-encoding") {
        Some(_) => unchunked(&rest).unwrap(),
        None => rest,
    };
    reply
}

/// The same, but with the chunks of the body as they came.
fn ask_raw(
    endpoint: &Endpoint,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> (Reply, String) {
    let mut stream = endpoint.connect();
    let len = body.len().to_string();
    let fields = [fields, &[("Content-Length", &*len), ("Connection", "close")]].concat();
    let head = request(endpoint.address, method, target, &fields);
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let head = Reply::read_head(&mut reader);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    (head, String::from_utf8_lossy(&rest).into_owned())
}

fn connected(fixture: &Fixture, target: &str) -> TcpStream {
    let mut stream = fixture.connect();
    stream.write_all(request(fixture.address, "GET", target, &[]).as_bytes()).unwrap();
    stream
}
