//! A connection with HTTP requests, until its end or its WebSocket handshake.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Either;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, join};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::yield_now;

use crate::Limits;
use crate::clients::connections::closed::{Cause, EndedBy};
use crate::clients::connections::described::WireProtocol;
use crate::clients::connections::http::{HttpPlace, RequestPlace};
use crate::clients::permits::ConnectionPermit;
use crate::cost::HTTP1_BYTES;
use crate::exchange::handoff::{Handoff, Reply};
use crate::listen::guest::FirstRequest;
use crate::listen::idle::{Idle, Ongoing};
use crate::local::Local;
use crate::peer::Peer;
use crate::reply::body::{Body, held};
use crate::rounds::InRounds;
use crate::routes::{self, BegunCall, PendingReply};
use crate::site::Site;
use crate::socket::ahead::{Ahead, PeerSide, SeesEnd};
use crate::socket::gathered::Gathered;
use crate::socket::prefixed::Prefixed;
use crate::socket::write_deadline::WriteDeadline;
use crate::stop::Stop;
use crate::turn::TURN_TIME;

/// The number of header fields for which the HTTP server needs no memory for each request: its own limit.
const FIELDS_MAX: usize = 100;

/// Serves a plain connection until it ends, or until the thread's loop has taken it over.
pub(super) async fn serve(
    local: Rc<Local>,
    stream: TcpStream,
    peer: Peer,
    FirstRequest { bytes, begun }: FirstRequest,
    stop: Stop,
    permit: ConnectionPermit,
) {
    // The runtime learns only now that the stream is writable. hyper has its input already, and drops a refusal that
    // cannot be written at once.
    if let Err(error) = stream.writable().await {
        tracing::debug!(%error, "connection lost");
        return;
    }
    let (reader, writer) = stream.into_split();
    let stream = join(Prefixed::new(bytes, reader), writer);
    let stream = WriteDeadline::new(stream, local.site.limits.write_timeout, &local.site.memory);
    let requests = requests(&local, stream, (peer, WireProtocol::Http1), begun, stop);
    let Some((stream, mut rest, handoff)) = requests.await else { return };
    let (reader, writer) = stream.into_inner().into_inner();
    let (first, reader) = reader.into_parts();
    rest.extend_from_slice(&first);
    match reader.reunite(writer).map(TcpStream::into_std) {
        Ok(Ok(stream)) => {
            handoff.in_loop(&local, rest, permit, stream);
        }
        Ok(Err(error)) => tracing::debug!(%error, "connection lost during its handshake"),
        Err(error) => tracing::error!(%error, "two halves of different connections"),
    }
}

/// Answers HTTP/1.1 requests until the connection ends. The stream must limit the time of writes. The call for the first
/// request may have begun already. After a WebSocket handshake, returns the stream, the bytes after the handshake, and the
/// handoff.
pub(crate) async fn requests<S: AsyncRead + AsyncWrite + SeesEnd + Unpin>(
    local: &Local,
    stream: S,
    (peer, protocol): (Peer, WireProtocol),
    begun: Option<Box<BegunCall>>,
    mut stop: Stop,
) -> Option<(S, Vec<u8>, Handoff)> {
    let (limits, memory) = (&local.site.limits, &local.site.memory);
    let _held = memory.reserve(HTTP1_BYTES + limits.header_bytes_max);
    let progress = Rc::new(ConnectionState::of(local, peer, protocol, begun));
    let stream = progress.place.counted(stream);
    let (stream, end) = Ahead::new(Gathered::new(stream, memory), memory, limits.header_bytes_max);
    let poll_out = |cx: &mut Context<'_>| end.with_stream(|stream| stream.poll_out(cx));
    let (end_told, has_ended) = watch::channel(PeerSide::Open);
    let service = {
        let (site, stop) = (Arc::clone(&local.site), stop.or_end(has_ended));
        let progress = Rc::clone(&progress);
        service_fn(move |mut request: Request<Incoming>| {
            let (site, stop, progress) = (Arc::clone(&site), stop.clone(), Rc::clone(&progress));
            let open = progress.begin(&mut request);
            let request = request.map(|body| Body::new(held(body, Arc::clone(&open.0))));
            let (is_late, begun) = progress.first_step();
            let finish = move |reply| Ok::<_, Infallible>(progress.response(reply, open));
            if is_late {
                return Either::Left(Box::pin(async move {
                    yield_now().await;
                    finish(routes::answer(&site, peer, request, stop).await)
                }));
            }
            Either::Right(Box::pin(answer(begun, &site, peer, request, stop).map(finish)))
        })
    };
    let mut http = within(limits).serve_connection(TokioIo::new(stream), service);
    // The stream comes back in this task after the handshake's response is written.
    let (mut is_stopping, mut rounds) = (false, InRounds::new(&local.http_rounds));
    let ended = loop {
        tokio::select! {
            biased; // input that hyper does not read is read ahead
            ended = poll_fn(|cx| rounds.poll(cx, |cx| {
                progress.turn_begun.set(None);
                let ended = http.poll_without_shutdown(cx).map_err(HttpEnd::from);
                progress.idle.begin();
                // All replies made in this turn are written at once.
                match poll_out(cx) {
                    Poll::Ready(Err(error)) if ended.is_pending() => Poll::Ready(Err(error.into())),
                    _ => ended,
                }
            })) => break ended,
            () = progress.idle.passes(limits.header_timeout) => break Err(HttpEnd::Idle),
            side = end.reached(), if *end_told.borrow() == PeerSide::Open => {
                end_told.send_replace(side);
            }
            () = stop.stopped(), if !is_stopping => {
                is_stopping = true;
                Pin::new(&mut http).graceful_shutdown();
            }
        }
    };
    let written = poll_fn(poll_out).await.map_err(HttpEnd::from);
    ended.and(written).map_err(|error| note(local, peer, &error, &progress.place)).ok()?;
    let parts = http.into_parts();
    let (ahead, stream) = parts.io.into_inner().into_parts(end)?;
    let stream = stream.into_inner().into_inner();
    let Some(handoff) = progress.handoff.take() else {
        shut_down(stream).await;
        return None;
    };
    Some((stream, [&parts.read_buf[..], &ahead].concat(), handoff))
}

/// Answers a request, whose service has perhaps been called already.
fn answer(
    begun: Option<Box<BegunCall>>,
    site: &Arc<Site>,
    peer: Peer,
    request: Request<Body>,
    stop: Stop,
) -> PendingReply {
    match begun {
        Some(begun) => begun.carry_on(&request, stop),
        None => routes::answer(site, peer, request, stop),
    }
}

fn within(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        // A client that has ended its side after its request still gets the reply.
        .half_close(true)
        // `Idle` measures it.
        .header_read_timeout(None)
        .max_buf_size(limits.header_bytes_max);
    if limits.header_fields_max != FIELDS_MAX {
        builder.max_headers(limits.header_fields_max);
    }
    builder
}

/// A request until its reply is over.
type RequestInProgress = (Ongoing, RequestPlace);

/// The state that the HTTP server of a connection shares with its driver.
struct ConnectionState {
    /// The time of the first request in this turn.
    turn_begun: Cell<Option<Instant>>,
    idle: Idle,
    /// Its place in the list of connections.
    place: HttpPlace,
    /// The call for the first request, if it has begun already.
    begun: Cell<Option<Box<BegunCall>>>,
    /// Set by an accepted handshake.
    handoff: Cell<Option<Handoff>>,
}

impl ConnectionState {
    fn of(
        local: &Local,
        peer: Peer,
        protocol: WireProtocol,
        begun: Option<Box<BegunCall>>,
    ) -> Self {
        let place = local.http.enter(peer.address(), protocol);
        let (turn_begun, handoff) = Default::default();
        let begun = Cell::new(begun);
        Self { turn_begun, idle: Idle::new(), place, begun, handoff }
    }

    fn begin<B>(&self, request: &mut Request<B>) -> RequestInProgress {
        (self.idle.end(), self.place.connection().begin(request))
    }

    /// Returns the response of a reply, and keeps its handoff.
    fn response(
        &self,
        reply: Reply,
        open: RequestInProgress,
    ) -> Response<impl http_body::Body<Data = Bytes, Error = io::Error> + use<>> {
        let (response, becomes) = reply.into_parts();
        self.handoff.set(becomes);
        response.map(|body| held(body, open))
    }

    /// Returns true if the request must wait first, and its call if that has begun already.
    fn first_step(&self) -> (bool, Option<Box<BegunCall>>) {
        let begun = self.begun.take();
        (begun.is_none() && self.is_late(), begun)
    }

    /// Returns true if a turn has begun so many requests that the next one must wait.
    fn is_late(&self) -> bool {
        if let Some(begun) = self.turn_begun.get() {
            return begun.elapsed() >= TURN_TIME;
        }
        self.turn_begun.set(Some(Instant::now()));
        false
    }
}

fn note(local: &Local, peer: Peer, error: &HttpEnd, place: &HttpPlace) {
    // One that has been used, and is idle, ends in order.
    let connection = place.connection();
    if !(matches!(error, HttpEnd::Idle) && connection.is_used()) {
        connection.closed(&local.site.closed, error.cause());
    }
    if let HttpEnd::Http(error) = error {
        note_malformed(local, peer, error);
    }
    tracing::debug!(%error, "HTTP connection ended");
}

/// Records a malformed request, which the HTTP server has answered itself, in the access log.
fn note_malformed(local: &Local, peer: Peer, error: &hyper::Error) {
    // That is HTTP/2 without negotiation, which is not answered.
    if !error.is_parse() || error.is_parse_version_h2() {
        return;
    }
    let access = local.site.accesses.begin(peer.address(), "-", "-");
    access.set_status(if error.is_parse_too_large() { 431 } else { 400 });
    access.set_end(format!("malformed request: {error}"));
}

#[derive(Debug, thiserror::Error)]
enum HttpEnd {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Write(#[from] io::Error),
    #[error("no request came in time")]
    Idle,
}

impl HttpEnd {
    fn cause(&self) -> Cause {
        match self {
            Self::Idle => Cause::new(EndedBy::Server, self.to_string()),
            Self::Http(error) if error.is_parse() => Cause::new(EndedBy::Server, self.to_string()),
            Self::Http(error) => Cause::of_error(error, self.to_string()),
            Self::Write(error) => Cause::of_error(error, self.to_string()),
        }
    }
}

/// Shuts down our side; nothing more is expected from the client.
async fn shut_down(mut stream: impl AsyncWrite + Unpin) {
    // Fails if the client is gone.
    let _ = stream.shutdown().await;
}
