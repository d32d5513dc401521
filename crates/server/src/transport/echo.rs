//! `/echo`: what is sent comes back. By `POST` a body, by WebSocket each message.

use anemone_ws::proto::{Message, Sender};
use anemone_ws::reactor::Handler;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use crate::body::full;
use crate::handshake;
use crate::routes::{Handover, Reply};
use crate::{Kind, Limits, Problem};

/// Answers a `POST` with its body, and a handshake with a connection.
pub(crate) async fn answer(request: Request<Incoming>, limits: &Limits) -> Result<Reply, Problem> {
    if *request.method() != Method::POST {
        let accepted = handshake::accept(&request, &[])?;
        let handover = Some(Handover::Echo);
        return Ok(Reply { response: handshake::switching_protocols(accepted), handover });
    }
    let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
    let limit = usize::try_from(limits.echo.message_bytes_max).unwrap_or(usize::MAX);
    let body = Limited::new(request.into_body(), limit).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            Problem::new(Kind::BodyTooBig, format!("the body is larger than {limit} bytes"))
        } else {
            Problem::new(Kind::BadBody, error.to_string())
        }
    })?;
    let mut response = Response::new(full(body.to_bytes()));
    let octets = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type.unwrap_or(octets));
    Ok(response.into())
}

/// Sends each message back.
#[derive(Debug)]
pub(crate) struct Echo {
    _permit: OwnedSemaphorePermit,
}

impl Echo {
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit }
    }
}

impl Handler for Echo {
    fn message(&mut self, message: Message<'_>, sender: &mut Sender) {
        // Refused once closing: then there is nobody to send it back to.
        let _ = sender.send(message);
    }
}
