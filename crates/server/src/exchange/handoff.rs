//! The reply to a request, and the handoff of its connection after the handshake of a WebSocket.

use std::marker::PhantomData;
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;

use anemone_ws::Negotiated;
use anemone_ws::proto::{CloseCode, CloseFrame, NegotiatedDeflate};
use anemone_ws::reactor::{Handler, Opening};
use http::{HeaderName, Response, header};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Problem;
use crate::clients::access::{AccessLine, AnswerKind};
use crate::clients::connections::described::WireProtocol;
use crate::clients::permits::ConnectionPermit;
use crate::clients::places::Place;
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::local::Local;
use crate::reply::body::{Body, holding};
use crate::stop::Stop;
use crate::transport_name::TransportName;

/// A reply, with the handoff of the connection if it answers a handshake.
pub(crate) struct Reply {
    pub(crate) response: Response<Body>,
    pub(crate) handoff: Option<Handoff>,
    /// The request's line in the access log, unless the handoff has it.
    pub(crate) access: AccessLine,
}

impl Reply {
    /// Keeps the request's line in the access log, its client, and the place of a trusted proxy's client until the reply or the
    /// WebSocket is over.
    pub(crate) fn keeping(
        self,
        access: AccessLine,
        client: Option<SocketAddr>,
        place: Option<Place>,
    ) -> Self {
        let Self { response, handoff, .. } = self;
        match (handoff, place) {
            (Some(handoff), place) => {
                let handoff = Some(handoff.keeping(access, client, place));
                Self { handoff, ..response.into() }
            }
            (None, Some(place)) => {
                Self { access, ..response.map(|body| holding(body, place)).into() }
            }
            (None, None) => Self { access, ..response.into() },
        }
    }

    /// Returns the response and the handoff. The response keeps the log line until it is over.
    pub(crate) fn into_parts(self) -> (Response<Body>, Option<Handoff>) {
        let Self { response, handoff, access } = self;
        if let Some(handoff) = &handoff {
            handoff.access.set_status(response.status().as_u16());
        }
        (access.follow(response), handoff)
    }
}

impl From<Response<Body>> for Reply {
    fn from(response: Response<Body>) -> Self {
        Self { response, handoff: None, access: AccessLine::default() }
    }
}

/// The successor of a connection: the handler that its transport makes.
pub(crate) struct Successor(Box<dyn MakeHandler>);

impl Successor {
    pub(crate) fn new<H: Handler + 'static>(
        make: impl FnOnce(&Local, ConnectionPermit, Visit) -> H + Send + 'static,
    ) -> Self {
        Self(Box::new(Maker { make, made: PhantomData }))
    }
}

/// The fields that let the page of another origin see a reply.
const SEEN_BY_PAGE: [HeaderName; 3] =
    [header::ACCESS_CONTROL_ALLOW_ORIGIN, header::ACCESS_CONTROL_EXPOSE_HEADERS, header::VARY];

/// The handoff of a connection after its handshake.
pub(crate) struct Handoff {
    successor: Successor,
    transport: TransportName,
    limits: LimitsTable,
    deflate: Option<NegotiatedDeflate>,
    /// Its place among the connections of a trusted proxy's client.
    place: Option<Place>,
    client: Option<SocketAddr>,
    access: AccessLine,
}

impl Handoff {
    pub(crate) fn new(
        successor: Successor,
        transport: TransportName,
        limits: LimitsTable,
        deflate: Option<NegotiatedDeflate>,
    ) -> Self {
        let (client, access) = Default::default();
        Self { successor, transport, limits, deflate, place: None, client, access }
    }

    /// Sets the request's line in the access log, its client, and the place of a trusted proxy's client.
    pub(crate) fn keeping(
        self,
        access: AccessLine,
        client: Option<SocketAddr>,
        place: Option<Place>,
    ) -> Self {
        Self { access, client, place, ..self }
    }

    /// Returns a problem as the response instead of the accepted one, for the same page to see.
    pub(crate) fn refuse(self, accepted: Response<Body>, problem: Problem) -> Response<Body> {
        let mut refused = problem.into_response();
        for name in SEEN_BY_PAGE {
            if let Some(value) = accepted.headers().get(&name) {
                refused.headers_mut().insert(name, value.clone());
            }
        }
        self.access.follow(refused)
    }

    /// Serves the WebSocket in the thread's loop on this stream; `first` are the bytes after the handshake.
    pub(crate) fn in_loop(
        self,
        local: &Local,
        first: Vec<u8>,
        permit: ConnectionPermit,
        stream: TcpStream,
    ) {
        let (handler, start) = self.start(local, first, permit, WireProtocol::Http1);
        handler.in_loop(start, stream);
    }

    /// Serves the WebSocket on a stream of the loop, after this response is written.
    pub(crate) fn opening(
        self,
        local: &Local,
        first: Vec<u8>,
        permit: ConnectionPermit,
        response: Vec<u8>,
    ) -> Opening {
        let (handler, start) = self.start(local, first, permit, WireProtocol::Http1);
        handler.opening(start, response)
    }

    /// Serves the WebSocket on this stream until it is over.
    pub(crate) fn in_task(
        self,
        local: &Local,
        first: Vec<u8>,
        permit: ConnectionPermit,
        (stream, stop, protocol): (impl ByteStream + 'static, Stop, WireProtocol),
    ) -> Task {
        let (handler, start) = self.start(local, first, permit, protocol);
        handler.in_task(start, Box::new(stream), stop)
    }

    fn start(
        self,
        local: &Local,
        first: Vec<u8>,
        permit: ConnectionPermit,
        protocol: WireProtocol,
    ) -> (Box<dyn MakeHandler>, Start<'_>) {
        let Self { successor, transport, limits, deflate, place, client, access } = self;
        let config = Arc::clone(limits.of(&local.site.limits));
        let permit = permit.beside(place);
        access.set_answer(AnswerKind::Stream(transport));
        let visit = Visit::new(&local.site, client, limits, access, protocol);
        (
            successor.0,
            Start { local, negotiated: Negotiated { config, deflate, first }, permit, visit },
        )
    }
}

pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> ByteStream for S {}

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Start<'a> {
    local: &'a Local,
    negotiated: Negotiated,
    permit: ConnectionPermit,
    visit: Visit,
}

/// Makes a handler and serves a connection with it.
trait MakeHandler: Send {
    fn in_loop(self: Box<Self>, start: Start<'_>, stream: TcpStream);
    fn opening(self: Box<Self>, start: Start<'_>, response: Vec<u8>) -> Opening;
    fn in_task(self: Box<Self>, start: Start<'_>, stream: Box<dyn ByteStream>, stop: Stop) -> Task;
}

struct Maker<F, H> {
    make: F,
    made: PhantomData<fn() -> H>,
}

impl<F, H> MakeHandler for Maker<F, H>
where
    F: FnOnce(&Local, ConnectionPermit, Visit) -> H + Send,
    H: Handler + 'static,
{
    fn in_loop(self: Box<Self>, start: Start<'_>, stream: TcpStream) {
        let Start { local, negotiated, permit, visit } = start;
        local.reactor.adopt(stream, negotiated, (self.make)(local, permit, visit));
    }

    fn opening(self: Box<Self>, start: Start<'_>, response: Vec<u8>) -> Opening {
        let Start { local, negotiated, permit, visit } = start;
        Opening::web_socket(response, negotiated, (self.make)(local, permit, visit))
    }

    fn in_task(
        self: Box<Self>,
        start: Start<'_>,
        stream: Box<dyn ByteStream>,
        mut stop: Stop,
    ) -> Task {
        let Start { local, negotiated, permit, visit } = start;
        let (handler, reactor) = ((self.make)(local, permit, visit), local.reactor.clone());
        Box::pin(async move {
            let shutdown = async {
                stop.stopped().await;
                shutdown_frame()
            };
            reactor.drive(stream, negotiated, handler, shutdown).await;
        })
    }
}

/// Returns the close frame of every WebSocket when the server stops.
pub(crate) fn shutdown_frame() -> CloseFrame {
    CloseFrame::new(CloseCode::GOING_AWAY, "the server is stopping")
}
