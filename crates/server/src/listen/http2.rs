//! HTTP/2: its connections, and the differences to HTTP/1.1.
//!
//! The code behind this module sees only HTTP/1.1. A request's authority becomes its `Host`, a WebSocket handshake of
//! RFC 8441 (`:method CONNECT`, `:protocol websocket`) becomes one of RFC 6455, and its 101 becomes 200.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anemone_ws::{Linger, Memory, Reservation};
use futures_util::FutureExt;
use futures_util::future::Either;
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
use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinHandle};
use tokio::task_local;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::clients::connections::closed::Cause;
use crate::clients::connections::described::WireProtocol;
use crate::clients::connections::http::{HttpConnection, HttpPlace, RequestPlace};
use crate::clients::permits::ConnectionPermit;
use crate::cost::{HTTP2_BYTES, HTTP2_REQUEST_BYTES};
use crate::exchange::handoff::Handoff;
use crate::exchange::{arrival, gate};
use crate::local::Local;
use crate::peer::Peer;
use crate::reply::body::{Body, full};
use crate::reply::pace::{Pace, paced};
use crate::request::host;
use crate::request::path;
use crate::rounds::{InRounds, Lane, Rounds};
use crate::socket::LINGER;
use crate::socket::sliced::{Slice, Sliced};
use crate::socket::unread::{Carried, Unread};
use crate::stop::Stop;
use crate::{Kind, Limits, Problem, routes};

/// The bytes that a client may send on one stream before it is read, and on all streams of a connection together. The
/// second is the most that a connection can make the server hold.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 512 << 10;
/// The bytes of header fields that a client may have the server remember: the default of RFC 9113 section 6.5.2. A byte of a
/// later header then stands for a field, but counts for the whole length of that field.
const HEADER_TABLE_BYTES: u32 = 4096;
/// The bytes that may wait to be written on one stream before more are made.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// The interval of pings while streams are open, and the time for their answers.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// While this much of a connection's replies waits for the client, no further request begins, since its reply would
/// wait too. A request takes a few bytes and its reply up to a MiB, so a client that opens no window could otherwise
/// cause a hundred of them.
const UNTAKEN_BYTES_MAX: usize = 256 << 10;

/// The requests of one connection; each open request has a reference.
type Requests = Arc<Replies>;

#[derive(Debug)]
struct Replies {
    connection: Arc<HttpConnection>,
    /// The number of requests so far.
    begun: AtomicU64,
    /// The bytes of their replies that are made and not taken.
    untaken_bytes: AtomicUsize,
    is_less: Notify,
}

impl Replies {
    /// Lists a connection, which has no requests yet.
    fn enter(local: &Local, peer: Peer) -> (HttpPlace, Requests) {
        let place = local.http.enter(peer.address(), WireProtocol::Http2);
        let (connection, is_less) = (Arc::clone(place.connection()), Notify::default());
        let (begun, untaken_bytes) = Default::default();
        (place, Arc::new(Self { connection, begun, untaken_bytes, is_less }))
    }

    /// Waits until there is room for another reply, in the order of requests.
    async fn room(&self) {
        while self.untaken_bytes.load(Ordering::Relaxed) >= UNTAKEN_BYTES_MAX {
            self.is_less.notified().await;
        }
        // The next request may have room, too.
        self.is_less.notify_one();
    }
}

/// An open request, with the memory of its reply.
#[derive(Debug)]
struct OpenStream {
    requests: Requests,
    bytes: usize,
    /// The memory cost of the request.
    _held: Reservation,
    _place: RequestPlace,
}

impl OpenStream {
    fn new<B>(requests: Requests, memory: &Memory, request: &mut Request<B>) -> Self {
        let (place, held) =
            (requests.connection.begin(request), memory.reserve(HTTP2_REQUEST_BYTES));
        Self { requests, bytes: 0, _held: held, _place: place }
    }

    /// Counts the reply until the client has taken it, or it is dropped.
    fn with(mut self, body: &Body) -> Self {
        // Streams are made as the client takes them.
        let bytes = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        self.bytes = bytes.unwrap_or_default();
        self.requests.untaken_bytes.fetch_add(self.bytes, Ordering::Relaxed);
        self
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.requests.untaken_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
            self.requests.is_less.notify_one();
        }
    }
}

/// Serves a connection until it ends, including its WebSockets. The stream must limit the time of writes.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    local: Rc<Local>,
    stream: S,
    peer: Peer,
    mut stop: Stop,
    _permit: ConnectionPermit,
) {
    let limits = &local.site.limits;
    let (place, requests) = Replies::enter(&local, peer);
    let (tasks, _open) = Tasks::of(&local);
    let _held = tasks.memory.reserve(HTTP2_BYTES);
    let service = {
        let (local, tasks) = (Rc::clone(&local), tasks.clone());
        let (stop, requests) = (stop.clone(), Arc::clone(&requests));
        service_fn(move |mut request| {
            requests.begun.fetch_add(1, Ordering::Relaxed);
            if let Some(refused) = refuse_at_once(&local, peer, &request) {
                return Either::Left(ready(Ok(refused)));
            }
            let (local, tasks) = (Rc::clone(&local), tasks.clone());
            let open = OpenStream::new(Arc::clone(&requests), &tasks.memory, &mut request);
            // Boxed, so that a refused request takes little.
            let answer = answer(local, tasks, peer, request, stop.clone(), open);
            Either::Right(Box::pin(answer).map(Ok::<_, Infallible>))
        })
    };
    let served_by_service = Arc::strong_count(&requests);
    let (slice, mut rounds) = (Slice::new(), InRounds::new(&local.http_rounds));
    let io = TokioIo::new(Linger::new(Sliced::new(place.counted(stream), &slice), LINGER));
    let mut http = pin!(within(limits, tasks).serve_connection(io, service));
    // The first tick is immediate.
    let mut ticks = interval(limits.header_timeout);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let (mut seen, mut is_stopping) = (0, false);
    let open = || Arc::strong_count(&requests) - served_by_service;
    let memory = local.site.memory.clone();
    let mut must_close = pin!(memory.must_close(|| open() * HTTP2_REQUEST_BYTES));
    let ended = loop {
        tokio::select! {
            ended = poll_fn(|cx| rounds.poll(cx, |cx| {
                slice.begin();
                http.as_mut().poll(cx)
            })) => break ended,
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
                    return; // it was asked to end and has not ended
                }
                if is_idle {
                    is_stopping = true;
                    http.as_mut().graceful_shutdown();
                }
            }
        }
    };
    if let Err(error) = ended {
        note_end(&local, &place, &error);
    }
}

fn note_end(local: &Local, place: &HttpPlace, error: &hyper::Error) {
    tracing::debug!(%error, "HTTP/2 connection ended");
    let cause = Cause::of_error(error, format!("HTTP/2: {error}"));
    place.connection().closed(&local.site.closed, cause);
}

fn within(limits: &Limits, tasks: Tasks) -> http2::Builder<Tasks> {
    let mut builder = http2::Builder::new(tasks);
    builder
        .timer(TokioTimer::new())
        .enable_connect_protocol()
        .max_concurrent_streams(limits.http2_streams_max)
        .header_table_size(HEADER_TABLE_BYTES)
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

/// Runs the tasks of a connection on the thread of the connection. A reply that its client does not take for too long
/// is dropped, which resets its stream.
#[derive(Clone)]
struct Tasks {
    memory: Memory,
    unread: Unread,
    write_timeout: Duration,
    rounds: Arc<Rounds>,
    /// All requests of a connection have one place among the tasks of the thread.
    lane: Arc<Lane>,
    /// Closed once the connection is over.
    gone: watch::Receiver<()>,
    /// The slot for the next task that the task with this id starts.
    next: Rc<Cell<Option<(task::Id, Slot)>>>,
}

/// A slot for the task that writes the output of a WebSocket.
type Slot = Rc<Cell<Option<JoinHandle<()>>>>;

impl Tasks {
    /// Returns those of a new connection. Dropping the sender ends them: nobody gets the replies any more.
    fn of(local: &Local) -> (Self, watch::Sender<()>) {
        let (memory, write_timeout) = (local.site.memory.clone(), local.site.limits.write_timeout);
        let unread = Unread::new(&memory, CONNECTION_WINDOW_BYTES as usize);
        let (rounds, lane) = (Arc::clone(&local.http_rounds), Arc::default());
        let (open, gone) = watch::channel(());
        let next = Rc::default();
        (Self { memory, unread, write_timeout, rounds, lane, gone, next }, open)
    }

    /// Returns the slot of the task that will write to the stream of this request. The request's own task starts it
    /// right after the answer.
    fn writer(&self) -> Slot {
        let slot = Slot::default();
        self.next.set(task::try_id().map(|id| (id, Rc::clone(&slot))));
        slot
    }
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Tasks {
    fn execute(&self, future: F) {
        let (pace, write_timeout) = (Arc::<Pace>::default(), self.write_timeout);
        let rounds = InRounds::of_lane(&self.rounds, &self.lane);
        let (memory, mut gone) = (self.memory.clone(), self.gone.clone());
        let started = task::spawn_local(PACE.scope(Arc::clone(&pace), async move {
            tokio::select! {
                biased;
                _ = gone.changed() => {}
                () = rounds.run(future) => {}
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

/// Answers a request. `open` counts it until the reply is written, or the WebSocket is over.
async fn answer(
    local: Rc<Local>,
    tasks: Tasks,
    peer: Peer,
    mut request: Request<Incoming>,
    stop: Stop,
    open: OpenStream,
) -> Response<Body> {
    let upgrade = match as_in_http1(&mut request) {
        Ok(upgrade) => upgrade,
        Err(problem) => return refuse(&local, peer, &request, problem),
    };
    let is_upgrade = upgrade.is_some();
    if !is_upgrade && !has_room(&tasks, &request, &open.requests).await {
        return refuse(&local, peer, &request, Problem::overloaded());
    }
    let mut reply = routes::answer(&local.site, peer, request.map(Body::new), stop.clone()).await;
    reply.response = spared(as_in_http2(without_success(reply.response, is_upgrade)));
    let (response, handoff) = reply.into_parts();
    if let (Some(upgrade), Some(handoff)) = (upgrade, handoff) {
        let permit = match local.site.permit(peer) {
            Ok(permit) => permit,
            Err(problem) => return handoff.refuse(response, problem),
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

/// Refuses a request before any work is done for it, if it is too large or memory is short: a client can send very many
/// requests at once, and a byte of each may be a field.
fn refuse_at_once(
    local: &Local,
    peer: Peer,
    request: &Request<Incoming>,
) -> Option<Response<Body>> {
    let site = &local.site;
    if has_too_many_fields(request, &site.limits) {
        return Some(arrival::refuse_too_large(site, peer, request));
    }
    let path = path::normal(request.uri().path()).unwrap_or_default();
    let problem = gate::check_memory(&site.memory, &path).err()?;
    Some(refuse(local, peer, request, problem))
}

/// Returns true if a request has more fields than are allowed. The pieces of a cookie count as one field, as which they
/// were sent (RFC 9113 section 8.2.3).
fn has_too_many_fields<B>(request: &Request<B>, limits: &Limits) -> bool {
    let fields = request.headers();
    let cookies = fields.get_all(header::COOKIE).iter().count();
    fields.len() - cookies + cookies.min(1) > limits.header_fields_max
}

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

/// Removes the body of a refusal that is due to the memory limit: it would be held until the client opens the window
/// of its stream, which it may never do (RFC 9113 section 6.9). A head needs no window.
fn spared(response: Response<Body>) -> Response<Body> {
    if response.extensions().get() != Some(&Kind::Overloaded) {
        return response;
    }
    let (mut head, _) = response.into_parts();
    head.headers.remove(header::CONTENT_TYPE);
    Response::from_parts(head, full(""))
}

/// Waits until there is room for another reply; returns false if the memory of this request must be released.
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

/// Serves the WebSocket on a stream after the reply to its handshake.
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
            handoff.in_task(&local, Vec::new(), permit, (stream, stop, WireProtocol::Http2)).await;
        }
        Err(error) => tracing::debug!(%error, "connection lost during its handshake"),
    }
}

/// Waits until everything is written. If the client does not read for too long, its stream is reset.
async fn finish(writer: Slot, write_timeout: Duration) {
    if let Some(mut writer) = writer.take()
        && timeout(write_timeout, &mut writer).await.is_err()
    {
        writer.abort();
    }
}

/// The detail of the problem that refuses a handshake which the HTTP server does not support.
pub(crate) const NOT_UPGRADED: &str =
    "the HTTP server in front of this service does not upgrade connections";

/// Converts a request to HTTP/1.1. Returns the stream of a WebSocket handshake.
pub(crate) fn as_in_http1<B>(request: &mut Request<B>) -> Result<Option<OnUpgrade>, Problem> {
    host::take_from_target(request)?;
    if *request.method() != Method::CONNECT {
        return Ok(None);
    }
    match request.extensions().get::<Protocol>() {
        Some(protocol) if protocol.as_str() == "websocket" => {}
        Some(_) => {
            // RFC 9220 section 3 requires this.
            let detail = "CONNECT supports only the protocol websocket here";
            let problem = Problem::new(Kind::BadHandshake, detail);
            return Err(problem.status(StatusCode::NOT_IMPLEMENTED));
        }
        None => {
            let problem = Problem::new(Kind::MethodNotAllowed, "this server is not a proxy");
            return Err(problem.field("allow", HeaderValue::from_static("GET, HEAD")));
        }
    }
    let Some(upgrade) = request.extensions_mut().remove() else {
        return Err(Problem::new(Kind::BadHandshake, NOT_UPGRADED));
    };
    *request.method_mut() = Method::GET;
    let fields = request.headers_mut();
    fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    fields.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    // HTTP/2 has no key. Any key will do, since its answer is not sent (RFC 8441 section 5).
    let key = HeaderValue::from_static("AAAAAAAAAAAAAAAAAAAAAA==");
    fields.insert(header::SEC_WEBSOCKET_KEY, key);
    Ok(Some(upgrade))
}

/// Replaces the success of a reply to an unanswered handshake, which would tell the client that its WebSocket is open
/// (RFC 8441 section 5).
pub(crate) fn without_success(response: Response<Body>, is_upgrade: bool) -> Response<Body> {
    if !is_upgrade || !response.status().is_success() {
        return response;
    }
    Problem::new(Kind::BadHandshake, "there is no WebSocket at this path").into_response()
}

/// Converts a response to HTTP/2, which has no connection-specific fields (RFC 9113 section 8.2.2).
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
