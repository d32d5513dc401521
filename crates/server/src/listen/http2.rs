//! HTTP/2: the connection, and what it says its own way.
//!
//! The code behind this knows only the way of HTTP/1.1. So a request's authority becomes its `Host`, a
//! WebSocket handshake of RFC 8441 (`:method CONNECT`, `:protocol websocket`) one of RFC 6455, and its
//! 101 the 200 that HTTP/2 has for it.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_ws::{Linger, Memory, Reservation};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::{self, JoinHandle};
use tokio::task_local;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::clients::permits::ConnectionPermit;
use crate::cost::{HTTP2_BYTES, HTTP2_REQUEST_BYTES};
use crate::exchange::handoff::Handoff;
use crate::exchange::{arrival, gate};
use crate::local::Local;
use crate::peer::Peer;
use crate::reply::body::{Body, boxed, full};
use crate::reply::pace::{Pace, paced};
use crate::request::host;
use crate::request::path;
use crate::socket::LINGER;
use crate::socket::unread::{Carried, Unread};
use crate::stop::Stop;
use crate::{Kind, Limits, Problem, routes};

/// The bytes that a client may send on one stream before it is read; and on all streams of a connection, so
/// that is the most a connection can make us hold.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 512 << 10;
/// The bytes that may wait to be written on one stream before no more are made.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// While streams are open a ping is sent this often, and must be answered this soon.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// While so much of a connection's replies waits to be taken by the client, no further request is begun: it would
/// only wait with the others. A request takes a few bytes and its reply may have a MiB, so a client that opens no
/// window could have us make a hundred of them.
const UNTAKEN_BYTES_MAX: usize = 256 << 10;

/// The requests of one connection; a reference for each that is open.
type Requests = Arc<Replies>;

#[derive(Debug, Default)]
struct Replies {
    /// The number of requests that there were.
    begun: AtomicU64,
    /// The bytes of their replies that are there and not taken.
    untaken_bytes: AtomicUsize,
    is_less: Notify,
}

impl Replies {
    /// Returns once there is room for another reply, for those who came first first.
    async fn room(&self) {
        while self.untaken_bytes.load(Ordering::Relaxed) >= UNTAKEN_BYTES_MAX {
            self.is_less.notified().await;
        }
        // The next one may have room, too.
        self.is_less.notify_one();
    }
}

/// A request that is open, and what its reply has.
#[derive(Debug)]
struct Open {
    requests: Requests,
    bytes: usize,
    /// The cost of a request.
    _held: Reservation,
}

impl Open {
    fn new(requests: Requests, memory: &Memory) -> Self {
        Self { requests, bytes: 0, _held: memory.reserve(HTTP2_REQUEST_BYTES) }
    }

    /// Until the client has taken it, or it is given up.
    fn with(mut self, body: &Body) -> Self {
        // Streams are made as they are taken.
        let bytes = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        self.bytes = bytes.unwrap_or_default();
        self.requests.untaken_bytes.fetch_add(self.bytes, Ordering::Relaxed);
        self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.requests.untaken_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
            self.requests.is_less.notify_one();
        }
    }
}

/// Serves a connection until it ends, the WebSockets on it included. The stream's writes must not be stuck
/// for ever.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    local: Rc<Local>,
    stream: S,
    peer: Peer,
    mut stop: Stop,
    _permit: ConnectionPermit,
) {
    let limits = &local.site.limits;
    let requests = Requests::default();
    let memory = local.site.memory.clone();
    let _held = memory.reserve(HTTP2_BYTES);
    let unread = Unread::new(&memory, CONNECTION_WINDOW_BYTES as usize);
    let tasks = Tasks { memory, unread, write_timeout: limits.write_timeout, next: Rc::default() };
    let service = {
        let (local, tasks) = (Rc::clone(&local), tasks.clone());
        let (stop, requests) = (stop.clone(), Arc::clone(&requests));
        service_fn(move |request| {
            requests.begun.fetch_add(1, Ordering::Relaxed);
            // Before anything is made for it: a client can send very many at once.
            let path = path::normal(request.uri().path()).unwrap_or_default();
            if let Err(problem) = gate::check_memory(&tasks.memory, &path) {
                return Answer::Refused(Some(refuse(&local, peer, &request, problem)));
            }
            let (local, tasks) = (Rc::clone(&local), tasks.clone());
            let open = Open::new(Arc::clone(&requests), &tasks.memory);
            Answer::Made(Box::pin(answer(local, tasks, peer, request, stop.clone(), open)))
        })
    };
    let served_by_service = Arc::strong_count(&requests);
    let io = TokioIo::new(Linger::new(stream, LINGER));
    let mut http = pin!(within(limits, tasks).serve_connection(io, service));
    // The first tick is now.
    let mut ticks = interval(limits.header_timeout);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let (mut seen, mut is_stopping) = (0, false);
    let open = || Arc::strong_count(&requests) - served_by_service;
    let memory = local.site.memory.clone();
    let mut must_close = pin!(memory.must_close(|| open() * HTTP2_REQUEST_BYTES));
    let ended = loop {
        tokio::select! {
            ended = http.as_mut() => break ended,
            () = stop.stopped(), if !is_stopping => {
                is_stopping = true;
                http.as_mut().graceful_shutdown();
            }
            () = must_close.as_mut() => {
                tracing::debug!("dropped an HTTP/2 connection");
                return;
            }
            _ = ticks.tick() => {
                let begun = requests.begun.load(Ordering::Relaxed);
                let is_idle = begun == seen && open() == 0;
                seen = begun;
                if is_idle && is_stopping {
                    return; // it was asked to end and has not
                }
                if is_idle {
                    is_stopping = true;
                    http.as_mut().graceful_shutdown();
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "HTTP/2 connection ended");
    }
}

/// An HTTP server within these limits.
fn within(limits: &Limits, tasks: Tasks) -> http2::Builder<Tasks> {
    let mut builder = http2::Builder::new(tasks);
    builder
        .timer(TokioTimer::new())
        .enable_connect_protocol()
        .max_concurrent_streams(limits.http2_streams_max)
        .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

task_local! {
    /// The pace of the reply that this task writes.
    static PACE: Arc<Pace>;
}

/// Runs what belongs to a connection on the thread of the connection. A reply that its client does not take
/// for too long is given up, and its stream reset with it.
#[derive(Clone)]
struct Tasks {
    memory: Memory,
    unread: Unread,
    write_timeout: Duration,
    /// The slot of the task that the task of this id starts next.
    next: Rc<Cell<Option<(task::Id, Slot)>>>,
}

/// The task that writes what a WebSocket sends.
type Slot = Rc<Cell<Option<JoinHandle<()>>>>;

impl Tasks {
    /// The slot of the task that will write to the stream of this request, once it has been answered:
    /// its own task starts that one, right then.
    fn writer(&self) -> Slot {
        let slot = Slot::default();
        self.next.set(task::try_id().map(|id| (id, Rc::clone(&slot))));
        slot
    }
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Tasks {
    fn execute(&self, future: F) {
        let (pace, write_timeout) = (Arc::<Pace>::default(), self.write_timeout);
        let memory = self.memory.clone();
        let started = task::spawn_local(PACE.scope(Arc::clone(&pace), async move {
            tokio::select! {
                biased;
                () = future => {}
                () = pace.given_up(write_timeout, &memory) => {
                    tracing::debug!("the client did not take a reply");
                }
            }
        }));
        match self.next.take() {
            Some((id, slot)) if Some(id) == task::try_id() => slot.set(Some(started)),
            next => self.next.set(next),
        }
    }
}

/// The answer to a request: a small thing where there is none.
enum Answer<F> {
    Refused(Option<Response<Body>>),
    Made(Pin<Box<F>>),
}

impl<F: Future<Output = Response<Body>>> Future for Answer<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Made(answer) => answer.as_mut().poll(cx).map(Ok),
            Self::Refused(response) => {
                response.take().map_or(Poll::Pending, |refused| Poll::Ready(Ok(refused)))
            }
        }
    }
}

/// Answers a request. `open` stands for it until the reply is written, or the WebSocket is over.
async fn answer(
    local: Rc<Local>,
    tasks: Tasks,
    peer: Peer,
    mut request: Request<Incoming>,
    stop: Stop,
    open: Open,
) -> Response<Body> {
    let upgrade = match as_in_http1(&mut request) {
        Ok(upgrade) => upgrade,
        Err(problem) => return refuse(&local, peer, &request, problem),
    };
    let is_upgrade = upgrade.is_some();
    if !is_upgrade && !has_room(&tasks, &request, &open.requests).await {
        return refuse(&local, peer, &request, Problem::overloaded());
    }
    let mut reply = routes::answer(&local.site, peer, request.map(boxed), stop.clone()).await;
    reply.response = spared(as_in_http2(without_success(reply.response, is_upgrade)));
    let (response, handoff) = reply.into_parts();
    if let (Some(upgrade), Some(handoff)) = (upgrade, handoff) {
        let permit = match local.permit(peer) {
            Ok(permit) => permit,
            Err(problem) => return handoff.refuse(problem),
        };
        let writer = tasks.writer();
        task::spawn_local(async move {
            let write_timeout = local.site.limits.write_timeout;
            let unread = tasks.unread;
            run(local, upgrade, unread, handoff, stop, permit).await;
            finish(writer, write_timeout).await;
            drop(open);
        });
        return response;
    }
    let pace = PACE.try_with(Arc::clone).unwrap_or_default();
    response.map(|body| {
        let open = open.with(&body);
        paced(body, pace, open)
    })
}

/// Answers a request that goes no further.
fn refuse(
    local: &Local,
    peer: Peer,
    request: &Request<Incoming>,
    problem: Problem,
) -> Response<Body> {
    let mut reply = arrival::refuse(&local.site, peer, request, problem);
    reply.response = spared(reply.response);
    reply.into_parts().0
}

/// Leaves out the words of a refusal because too much is held: they would wait, and be held, until the client opens the
/// window of their stream, which it may never do (RFC 9113 section 6.9). A head alone needs no window.
fn spared(response: Response<Body>) -> Response<Body> {
    if response.extensions().get() != Some(&Kind::Overloaded) {
        return response;
    }
    let (mut head, _) = response.into_parts();
    head.headers.remove(header::CONTENT_TYPE);
    Response::from_parts(head, full(""))
}

/// Waits until there is room for another reply; false once what is held for this request is wanted back for others.
async fn has_room(tasks: &Tasks, request: &Request<Incoming>, requests: &Replies) -> bool {
    let body_bytes = request.body().size_hint().upper().unwrap_or(u64::MAX);
    let bytes = usize::try_from(body_bytes.min(STREAM_WINDOW_BYTES.into())).unwrap_or(usize::MAX);
    let (waiting, begun) = (tasks.unread.wait(bytes), Instant::now());
    let is_there = tokio::select! {
        biased;
        () = requests.room() => true,
        () = tasks.memory.must_release(begun) => false,
    };
    drop(waiting);
    is_there
}

/// Serves the WebSocket on a stream, once the reply to its handshake is out.
async fn run(
    local: Rc<Local>,
    upgrade: OnUpgrade,
    unread: Unread,
    handoff: Handoff,
    stop: Stop,
    permit: ConnectionPermit,
) {
    match upgrade.await {
        Ok(stream) => {
            tracing::debug!("WebSocket over HTTP/2");
            let stream = Carried::new(TokioIo::new(stream), unread, STREAM_WINDOW_BYTES as usize);
            handoff.in_task(&local, Vec::new(), permit, (stream, stop)).await;
        }
        Err(error) => tracing::debug!(%error, "connection lost during its handshake"),
    }
}

/// Waits until all is written. A client that does not read for too long has its stream reset.
async fn finish(writer: Slot, write_timeout: Duration) {
    if let Some(mut writer) = writer.take()
        && timeout(write_timeout, &mut writer).await.is_err()
    {
        writer.abort();
    }
}

/// Makes a request what it would have been in HTTP/1.1. With the stream of a WebSocket handshake.
pub(crate) fn as_in_http1<B>(request: &mut Request<B>) -> Result<Option<OnUpgrade>, Problem> {
    host::take_from_target(request)?;
    if *request.method() != Method::CONNECT {
        return Ok(None);
    }
    match request.extensions().get::<Protocol>() {
        Some(protocol) if protocol.as_str() == "websocket" => {}
        Some(_) => {
            // RFC 9220 section 3.
            let detail = "CONNECT supports only the protocol websocket here";
            let problem = Problem::new(Kind::BadHandshake, detail);
            return Err(problem.status(StatusCode::NOT_IMPLEMENTED));
        }
        None => {
            let problem = Problem::new(Kind::MethodNotAllowed, "this server is not a proxy");
            return Err(problem.field("allow", HeaderValue::from_static("GET, HEAD")));
        }
    }
    let upgrade = hyper::upgrade::on(&mut *request);
    *request.method_mut() = Method::GET;
    let fields = request.headers_mut();
    fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    fields.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    // HTTP/2 does without it; any will do, for the answer to it is not sent (RFC 8441 section 5).
    let key = HeaderValue::from_static("AAAAAAAAAAAAAAAAAAAAAA==");
    fields.insert(header::SEC_WEBSOCKET_KEY, key);
    Ok(Some(upgrade))
}

/// Takes the success out of the reply to a handshake that nobody took up: it would tell the client that it has its WebSocket
/// (RFC 8441 section 5).
pub(crate) fn without_success(response: Response<Body>, is_upgrade: bool) -> Response<Body> {
    if !is_upgrade || !response.status().is_success() {
        return response;
    }
    Problem::new(Kind::BadHandshake, "there is no WebSocket at this path").into_response()
}

/// Makes a response one of HTTP/2, which has no fields about the connection (RFC 9113 section 8.2.2).
pub(crate) fn as_in_http2(mut response: Response<Body>) -> Response<Body> {
    const NOT_THERE: [HeaderName; 3] =
        [header::CONNECTION, header::UPGRADE, header::SEC_WEBSOCKET_ACCEPT];
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        *response.status_mut() = StatusCode::OK;
    }
    for name in NOT_THERE {
        response.headers_mut().remove(name);
    }
    response
}
