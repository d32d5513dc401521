//! The service of the calls.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Ready, pending, poll_fn, ready};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use anemone_hub::run::{RunInput, RunRefusal, RunService, RunWork};
use anemone_server::{Caller, Kind, Mount, Problem, full};
use anemone_testing::wait_until;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Extension, Router};
use futures_util::{Stream, stream};
use http::{HeaderMap, Method, StatusCode, Uri};
use tokio::sync::{Semaphore, oneshot};

/// A service at `/svc`, whose handlers wait for the test.
#[derive(Clone, Default)]
pub(crate) struct Service {
    pub(crate) open: Open,
    pub(crate) gate: Gate,
    /// The number of items that `/svc/endless` has made.
    pub(crate) made: Arc<AtomicUsize>,
}

/// The number of handlers, and of their replies, that are still there.
#[derive(Clone, Default)]
pub(crate) struct Open(Arc<AtomicUsize>);

/// One of them.
struct OneOpen(Open);

impl Open {
    fn one(&self) -> OneOpen {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneOpen(self.clone())
    }

    pub(crate) fn wait(&self, count: usize) {
        let is_reached = || self.0.load(Ordering::Relaxed) == count;
        wait_until(&format!("there are not {count} handlers"), is_reached);
    }
}

impl Drop for OneOpen {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets handlers pass by their names.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<HashMap<String, Arc<Semaphore>>>>);

impl Gate {
    fn of(&self, name: &str) -> Arc<Semaphore> {
        let mut all = self.0.lock().unwrap();
        Arc::clone(all.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    /// Lets one pass.
    pub(crate) fn open(&self, name: &str) {
        self.of(name).add_permits(1);
    }

    async fn pass(&self, name: &str) {
        self.of(name).acquire().await.unwrap().forget();
    }
}

impl Service {
    pub(crate) fn mount(&self) -> Mount {
        let routes = answers().merge(self.waiting()).merge(self.streams());
        Mount::new("/svc", routes.layer(DefaultBodyLimit::disable())).unwrap()
    }

    /// A record that is answered at once, as trivially as can be.
    pub(crate) fn messages(&self) -> Mount {
        Mount::new("/messages", Testing).unwrap()
    }

    fn waiting(&self) -> Router {
        let gate = |Self { open, gate, .. }: Self| {
            async move |Path(name): Path<String>| {
                let _open = open.one();
                gate.pass(&name).await;
                Json(name)
            }
        };
        let never = |Self { open, .. }: Self| {
            async move |_: Bytes| {
                let _open = open.one();
                pending::<()>().await;
            }
        };
        Router::new()
            .route("/svc/gate/{name}", any(gate(self.clone())))
            .route("/svc/never", any(never(self.clone())))
    }

    fn streams(&self) -> Router {
        let ticks = |Self { open, gate, .. }: Self| {
            async move || {
                let state = (open.one(), gate, 0);
                lines(stream::unfold(state, |(open, gate, number)| async move {
                    gate.pass("tick").await;
                    Some((Ok(format!("{}\n", number + 1)), (open, gate, number + 1)))
                }))
            }
        };
        let endless = |Self { open, made, .. }: Self| {
            async move || {
                let state = (open.one(), made);
                lines(stream::unfold(state, |(open, made)| async move {
                    made.fetch_add(1, Ordering::Relaxed);
                    Some((Ok("x".repeat(1023) + "\n"), (open, made)))
                }))
            }
        };
        Router::new()
            .route("/svc/ticks", any(ticks(self.clone())))
            .route("/svc/endless", any(endless(self.clone())))
    }
}

struct Json<T>(T);

impl<T: serde::Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let json = serde_json::to_string(&self.0).unwrap();
        ([("content-type", "application/json")], json).into_response()
    }
}

fn lines<S>(lines: S) -> Response
where
    S: Stream<Item = io::Result<String>> + Send + 'static,
{
    ([("content-type", "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

fn parts(parts: Vec<io::Result<&'static str>>) -> Body {
    Body::from_stream(stream::iter(parts))
}

/// The routes that answer without waiting for the test.
fn answers() -> Router {
    let count = async |Path(last): Path<u64>| {
        lines(stream::iter((1..=last).map(|number| Ok(format!("{number}\n")))))
    };
    let broken = async || {
        let failed = Err(io::Error::other("a bug"));
        lines(stream::iter([Ok("1\n2\n".to_owned()), Ok("3".to_owned()), failed]))
    };
    let text = [("content-type", "text/plain")];
    let json = [("content-type", "application/json")];
    Router::new()
        .route("/svc/hello", any(async || "hello"))
        .route("/svc/seen", any(seen))
        .route("/svc/who", any(who))
        .route("/svc/fields", any(fields))
        .route("/svc/empty", any(async || StatusCode::NO_CONTENT))
        .route("/svc/partial", any(async || (StatusCode::PARTIAL_CONTENT, Json("part"))))
        .route("/svc/conflict", any(conflict))
        .route("/svc/mirror", any(async |body: Bytes| body))
        .route("/svc/length", any(async |body: Bytes| Json(body.len())))
        .route("/svc/count/{last}", any(count))
        .route("/svc/parts", any(async move || (text, parts(vec![Ok("one"), Ok("two")]))))
        .route("/svc/json-parts", any(async move || (json, parts(vec![Ok("[1,"), Ok("2]")]))))
        .route("/svc/broken", any(broken))
        .route("/svc/big", any(async || "x".repeat(1 << 20)))
        .route("/svc/bigger", any(async || "x".repeat((1 << 20) + 1)))
        .route("/svc/panic", any(async || -> &str { panic!("a bug") }))
        .route("/svc/late-panic", any(late_panic))
        .route("/svc/thread", get(thread))
        .route("/svc/sleep", get(sleep))
        .route("/svc/yield", get(yielding))
}

/// The request as the service sees it.
async fn seen(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Json<String> {
    let field = |name| headers.get(name).map_or("-", |value| value.to_str().unwrap());
    let (content_type, own) = (field("content-type"), field("x-own"));
    Json(format!("{method} {uri} {content_type} {own} {}", String::from_utf8_lossy(&body)))
}

async fn who(Extension(caller): Extension<Caller>) -> Json<String> {
    let (transport, identity) = (caller.transport(), caller.identity());
    let has_address = caller.address().is_some_and(|address| address.port() != 0);
    Json(format!("{transport} {} {identity:?} {has_address}", caller.is_local()))
}

async fn fields() -> impl IntoResponse {
    let fields = [
        ("etag", "\"4\""),
        ("link", "<a>"),
        ("link", "<b>"),
        ("location", "../records/4"),
        ("x-own", "not for a line"),
        ("content-type", "application/json; charset=utf-8"),
    ];
    let mut reply = StatusCode::CREATED.into_response();
    for (name, value) in fields {
        reply.headers_mut().append(name, value.parse().unwrap());
    }
    reply
}

async fn conflict() -> http::Response<anemone_server::Body> {
    Problem::new(Kind::Conflict, "there is a record 7").into_response()
}

async fn late_panic() -> &'static str {
    tokio::task::yield_now().await;
    panic!("a bug")
}

/// Waits for another thread.
async fn thread() -> Json<&'static str> {
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || sender.send("done"));
    Json(receiver.await.unwrap())
}

async fn sleep() -> Json<&'static str> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    Json("done")
}

/// Wakes itself a few times, and waits for a task.
async fn yielding() -> Json<&'static str> {
    let mut left = 3;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        left -= 1;
        if left > 0 { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let task = tokio::spawn(async { tokio::task::yield_now().await });
    task.await.unwrap();
    Json("done")
}

/// A run service that starts no run.
pub(crate) struct NoWork;

impl RunService for NoWork {
    fn prepare(&self, _: RunInput) -> Result<RunWork, RunRefusal> {
        Err(RunRefusal::BadBody("there is no work".to_owned()))
    }
}

/// A record, without a router.
#[derive(Clone)]
struct Testing;

impl tower_service::Service<http::Request<anemone_server::Body>> for Testing {
    type Response = http::Response<anemone_server::Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<anemone_server::Body>) -> Self::Future {
        let reply = http::Response::builder().header("content-type", "application/json");
        ready(Ok(reply.body(full(r#"{"id":"testing"}"#)).unwrap()))
    }
}
