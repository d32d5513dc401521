//! The server as a service of another HTTP server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::{fmt, io};

use bytes::Bytes;
use http::{Extensions, HeaderName, HeaderValue, Request, Response, Version, header};
use hyper::upgrade::OnUpgrade;
use socket2::SockRef;
use tokio::sync::mpsc::UnboundedSender;

use crate::exchange::arrival;
use crate::listen::http2::{NOT_UPGRADED, as_in_http1, as_in_http2, without_success};
use crate::listen::running::{OpenRequests, Running};
use crate::listen::upgraded::Upgraded;
use crate::peer::{ConnectionEnds, Door, Peer};
use crate::reply::body::{Body, BoxError};
use crate::reply::relay::relayed;
use crate::site::Site;
use crate::stop::Stop;
use crate::{Kind, Limits, Problem, routes};

/// The server as a `tower::Service`, for the HTTP server of the program: hyper's, or axum's `Router::nest_service`,
/// which removes the prefix from the path. It answers like its own listener: polls, long polls, streams, files,
/// problems and WebSockets. WebSockets work over HTTP/1.1, and over HTTP/2 if the HTTP server supports RFC 8441.
/// Clones are the same service.
///
/// Replies are made on the caller's runtime, which must be tokio's. The threads of the [`Running`] server serve
/// WebSockets, so it must exist as long as they do.
///
/// # The client's address
/// The address is taken from [`ConnectionEnds`] in the request's extensions, or from the result of
/// [`peer_from`](Self::peer_from). Without it, the client is not considered to be on this machine, and no per-address
/// limit applies. The server recognizes the user of a client on this machine only if it knows its own end of the
/// connection as well, from [`ConnectionEnds`] or from the listener that the service is [`behind`](Self::behind).
///
/// # Hosts and origins
/// The server's own names are `localhost`, the loopback addresses, the addresses on which it listens, or any address
/// if it has no listener itself, and [`Options::allowed_hosts`](crate::Options::allowed_hosts). A request for any other
/// host gets 421. The rules for origins also apply.
///
/// # Limits
/// A request counts as a connection until its reply is written; the limit is [`Limits::connections_max`]. A header that
/// is longer than [`Limits::header_bytes_max`], or has more fields than [`Limits::header_fields_max`], gets 431.
/// Timeouts for the client's input belong to the HTTP server. When a client takes nothing of a reply, the server drops
/// the rest once it needs the memory, and over HTTP/2 also after [`Limits::write_timeout`]; for HTTP/1, see
/// [`behind`](Self::behind). [`Limits::memory_max`] does not include the pieces of replies that the HTTP server has
/// taken and not written: they are copies of at most 4 KiB, and hyper takes at most 16 of them for each connection.
///
/// # Cancel safety
/// Dropping the future of a reply, or the reply's body, ends the request: its reader ends, and nothing more is
/// published. Events that were handed to a topic before stay there.
#[derive(Clone)]
pub struct Service {
    shared: Arc<ServiceState>,
    find_peer: fn(&Extensions) -> Option<ConnectionEnds>,
    /// The server's end of every connection, if it is known.
    own: Option<SocketAddr>,
}

struct ServiceState {
    site: Arc<Site>,
    stop: Stop,
    /// The senders to the threads that serve WebSockets.
    threads: Vec<UnboundedSender<Upgraded>>,
    next: AtomicUsize,
    open: OpenRequests,
}

impl Running {
    /// Returns the server as a service of another HTTP server. It may have its own listeners as well, or none.
    #[must_use]
    pub fn service(&self) -> Service {
        let shared = ServiceState {
            site: Arc::clone(&self.site),
            stop: Stop::new(self.stop.subscribe()),
            threads: self.upgraded.clone(),
            next: AtomicUsize::new(0),
            open: self.open.clone(),
        };
        Service { shared: Arc::new(shared), find_peer: |_| None, own: None }
    }
}

impl Service {
    /// Sets the function that finds the ends of a request's connection in its extensions, if there is no
    /// [`ConnectionEnds`]. With axum's `into_make_service_with_connect_info::<SocketAddr>()`:
    /// `service.peer_from(|found| found.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.into()))`.
    #[must_use]
    pub fn peer_from(self, find_peer: fn(&Extensions) -> Option<ConnectionEnds>) -> Self {
        Self { find_peer, ..self }
    }

    /// Prepares the TCP listener of the HTTP server; call it before the listener accepts. On Linux, the system then
    /// closes each of its connections whose client takes nothing for
    /// [`Limits::write_timeout`]. The listener's address becomes the server's end of each
    /// connection, unless the listener accepts at all addresses, or [`ConnectionEnds`] have that end.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn behind(self, listener: &impl AsFd) -> io::Result<Self> {
        let listener = SockRef::from(listener);
        #[cfg(target_os = "linux")]
        listener.set_tcp_user_timeout(Some(self.shared.site.limits.write_timeout))?;
        let own = listener.local_addr()?.as_socket().filter(|own| !own.ip().is_unspecified());
        Ok(Self { own, ..self })
    }

    fn peer(&self, extensions: &Extensions) -> Peer {
        let ends = extensions.get().copied().or_else(|| (self.find_peer)(extensions));
        ends.map_or(Peer::Unknown, |ends: ConnectionEnds| {
            let ends = ConnectionEnds { own: ends.own.or(self.own), ..ends };
            Peer::between(ends, Door::Common).with_owner()
        })
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (shared, peer) = (Arc::clone(&self.shared), self.peer(request.extensions()));
        Box::pin(async move { Ok(shared.answer(peer, request.map(Body::new)).await) })
    }
}

impl ServiceState {
    async fn answer(&self, peer: Peer, mut request: Request<Body>) -> Response<Body> {
        let (site, is_http2) = (&self.site, request.version() >= Version::HTTP_2);
        if is_too_large(&request, &site.limits) {
            return arrival::refuse_too_large(site, peer, &request);
        }
        let admitted = if self.stop.is_stopping() {
            Err(Problem::new(Kind::Stopping, "the server is stopping"))
        } else {
            site.permit(peer)
        };
        let upgrade = match is_http2 {
            true => as_in_http1(&mut request),
            false => Ok(take_upgrade(&mut request)),
        };
        let (permit, upgrade) = match admitted.and_then(|permit| Ok((permit, upgrade?))) {
            Ok(admitted) => admitted,
            Err(problem) => return arrival::refuse(site, peer, &request, problem).into_parts().0,
        };
        let open = self.open.one_more();
        let mut reply = routes::answer(site, peer, request, self.stop.clone()).await;
        if is_http2 {
            reply.response = as_in_http2(without_success(reply.response, upgrade.is_some()));
        }
        let (mut response, handoff) = reply.into_parts();
        if !is_http2 && self.stop.is_stopping() && handoff.is_none() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        match (handoff, upgrade) {
            (None, _) => {
                // Over HTTP/1 the HTTP server, or the system, tells a slow client from one that is gone.
                let timeout = is_http2.then_some(site.limits.write_timeout);
                response.map(|body| relayed(body, (permit, open), timeout, &site.memory))
            }
            (Some(handoff), Some(stream)) => {
                self.hand_on(Upgraded { stream, handoff, permit });
                response
            }
            (Some(handoff), None) => {
                handoff.refuse(response, Problem::new(Kind::BadHandshake, NOT_UPGRADED))
            }
        }
    }

    /// Passes a WebSocket to the next thread. Permits limit their number.
    fn hand_on(&self, upgraded: Upgraded) {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len().max(1);
        if let Some(thread) = self.threads.get(next) {
            // Fails after the server has stopped, when nobody is served any more.
            let _ = thread.send(upgraded);
        }
    }
}

/// Returns true if a listener of this server would not read the header of this request.
fn is_too_large(request: &Request<Body>, limits: &Limits) -> bool {
    let (target, fields) = (request.uri(), request.headers());
    let target = target.path().len() + target.query().map_or(0, str::len);
    let bytes = |(name, value): (&HeaderName, &HeaderValue)| {
        name.as_str().len() + value.len() + ": \r\n".len()
    };
    fields.len() > limits.header_fields_max
        || target + fields.iter().map(bytes).sum::<usize>() > limits.header_bytes_max
}

fn take_upgrade(request: &mut Request<Body>) -> Option<OnUpgrade> {
    request.extensions_mut().remove()
}
