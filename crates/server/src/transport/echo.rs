//! `/echo`: what is sent comes back. By `POST` a body, by WebSocket each message.

use anemone_ws::Error;
use anemone_ws::proto::{CloseFrame, Message, Piece, Sender};
use anemone_ws::reactor::Handler;
use http::{HeaderValue, Method, Request, Response, header};
use hyper::body::Incoming;

use crate::clients::permits::ConnectionPermit;
use crate::exchange::handover::{Reply, Successor, Upgrade};
use crate::exchange::request_body::receive;
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::reply::body::full;
use crate::request::fields::Fields;
use crate::request::handshake::Head;
use crate::site::Site;
use crate::stop::Stop;
use crate::{Limits, Problem};

/// Answers a handshake.
pub(crate) fn accept<F: Fields + ?Sized>(
    head: &Head<'_, F>,
    limits: &Limits,
) -> Result<Upgrade, Problem> {
    let accepted = head.accept(&[], limits.deflate.as_ref())?;
    let successor = Successor::new(LimitsTable::Echo, |_, permit, visit| Echo::new(permit, visit));
    Ok(Upgrade { accepted, successor })
}

/// Answers a `POST` with its body.
pub(crate) async fn answer(
    request: Request<Incoming>,
    site: &Site,
    stop: Stop,
) -> Result<Reply, Problem> {
    if *request.method() != Method::POST {
        return accept(&Head::of(&request), &site.limits).map(Reply::from); // which says what is missing
    }
    // The whole body first: most clients do not read before they have sent everything.
    let bytes_max = usize::try_from(site.limits.echo.message_bytes_max).unwrap_or(usize::MAX);
    let body = receive(request, bytes_max, site, stop).await?;
    let mut response = Response::new(full(body));
    let headers = response.headers_mut();
    // Never the sender's own type: a page must not be made to show what somebody else had it send.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response.into())
}

/// Sends each message back.
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
    /// The first part of a large message goes back while the rest is still coming.
    fn takes_pieces(&self) -> bool {
        true
    }

    fn piece(&mut self, piece: Piece<'_>, sender: &mut Sender) {
        // Refused once closing: then there is nobody to send it back to.
        let _ = self
            .visit
            .counted(sender, |sender| sender.send_fragment(piece.kind, piece.bytes, piece.is_last));
    }

    fn message(&mut self, message: Message<'_>, sender: &mut Sender) {
        // Refused once closing: then there is nobody to send it back to.
        let _ = self.visit.counted(sender, |sender| sender.send(message));
    }

    fn error(&mut self, error: &Error) {
        self.visit.failed(error, PATH);
    }

    fn close(&mut self, frame: Option<&CloseFrame>) {
        self.visit.over(frame);
    }
}
