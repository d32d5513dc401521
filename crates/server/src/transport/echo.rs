//! `/echo`: returns the body of a `POST`, and each message of a WebSocket; on a TCP port, plain bytes.

use std::any::Any;
use std::net::SocketAddr;

use anemone_ws::Error;
use anemone_ws::proto::{CloseFrame, Message, Output, Piece, Sender};
use anemone_ws::reactor::{Handler, StreamHandler};
use http::{Request, Response};

use crate::Problem;
use crate::clients::connections::described::{Described, WireProtocol};
use crate::clients::permits::ConnectionPermit;
use crate::exchange::handoff::Successor;
use crate::exchange::tcp_transport::TcpTransport;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport};
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::reply::body::{Body, full, reply};
use crate::request::body::{BodyBounds, receive};
use crate::site::Site;
use crate::stop::Stop;
use crate::transport_name::{TransportName, TransportWords};

pub(super) static TRANSPORT: HandshakeTransport = HandshakeTransport {
    name: TransportName::WEBSOCKET,
    subprotocols: &[],
    limits: LimitsTable::Echo,
    route: HandshakeRoute::Path {
        path: PATH,
        is_offered: |options| options.echo,
        take_over: |_, _, _| Ok(Successor::new(|_, permit, visit| Echo::new(permit, visit))),
        post: Some(|request, site, stop| Box::pin(answer(request, site, stop))),
    },
};

/// The TCP echo cannot send a refusal.
pub(super) static TCP: TcpTransport = TcpTransport {
    name: "tcp_echo",
    address: |options| options.tcp_echo,
    adopt: |local, stream, peer, permit| {
        let idle_timeout = local.site.limits.echo.idle_timeout;
        let echo = ByteEcho { client: peer.address(), _permit: permit };
        local.reactor.adopt_stream(stream, idle_timeout, echo);
    },
    refusal: |_| Vec::new(),
};

struct ByteEcho {
    client: Option<SocketAddr>,
    _permit: ConnectionPermit,
}

impl StreamHandler for ByteEcho {
    fn on_bytes(&mut self, bytes: &[u8], output: &mut Output) -> usize {
        output.extend_from_slice(bytes);
        bytes.len()
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        let name = TransportName::new(&TransportWords {
            name: "tcp-echo",
            why: "a connection to the port of the TCP echo",
        });
        Some(Box::new(Described::new(self.client, (name, WireProtocol::Tcp), None)))
    }
}

/// Answers a `POST` with its body.
async fn answer(
    request: Request<Body>,
    site: &Site,
    stop: Stop,
) -> Result<Response<Body>, Problem> {
    // The whole body is received first, since most clients do not read before they have sent everything.
    let bytes_max = usize::try_from(site.limits.echo.message_bytes_max).unwrap_or(usize::MAX);
    let bounds = BodyBounds::new(&site.limits, bytes_max);
    let body = receive(request, bounds, &site.memory, Some(stop)).await?;
    // A fixed type: with the sender's type, another site could make a page show content of its choice.
    Ok(reply("application/octet-stream", "no-store", full(body)))
}

#[derive(Debug)]
pub(crate) struct Echo {
    visit: Visit,
    _permit: ConnectionPermit,
}

const PATH: &str = "/echo";

impl Echo {
    pub(crate) fn new(permit: ConnectionPermit, visit: Visit) -> Self {
        Self { visit, _permit: permit }
    }
}

impl Handler for Echo {
    /// The first part of a large message is returned while the rest is still arriving.
    fn takes_pieces(&self) -> bool {
        true
    }

    fn on_piece(&mut self, piece: Piece<'_>, sender: &mut Sender) {
        // Fails once the connection is closing, when nobody receives the echo.
        let _ = self
            .visit
            .counted(sender, |sender| sender.send_fragment(piece.kind, piece.bytes, piece.is_last));
    }

    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
        // Fails once the connection is closing, when nobody receives the echo.
        let _ = self.visit.counted(sender, |sender| sender.send(message));
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.visit.describe(TRANSPORT.name, PATH)))
    }

    fn on_error(&mut self, error: &Error) {
        self.visit.record_error(error, PATH);
    }

    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        let described = self.visit.describe(TRANSPORT.name, PATH);
        self.visit.record_end(frame, &described);
    }
}
