//! The server's opening behind an HTTP server whose types are those of the crate `http`: hyper, axum, tower.
//!
//! Owns the way from a request of theirs to the verdict, and from there to a response of theirs. The rules are
//! those of [`handshake`](crate::proto::handshake), and the choices those of [`Accept`].

use std::borrow::Cow;
use std::sync::Arc;

use anemone_proto::Config;
use anemone_proto::handshake::{Accepted, HandshakeError, Offer, respond_with};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Accept, Agreed, WebSocket};

/// An accepted request: the response to it, and the connection over the stream that it came by.
///
/// ```
/// use anemone_ws::{Accept, refusal};
/// use http::{Request, Response};
///
/// /// Answers a request; `serve` would take the connection once the response is written.
/// fn answer(request: &Request<()>) -> Response<String> {
///     match Accept::default().subprotocols(["chat"]).upgrade(request) {
///         Ok(upgrade) => upgrade.response().map(|()| String::new()),
///         Err(error) => refusal(&error).map(|()| error.to_string()),
///     }
/// }
///
/// let request = Request::get("/chat")
///     .header("Host", "example.org")
///     .header("Upgrade", "websocket")
///     .header("Connection", "Upgrade")
///     .header("Sec-WebSocket-Version", "13")
///     .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
///     .body(())?;
/// let response = answer(&request);
/// assert_eq!(response.status(), 101);
/// assert_eq!(response.headers()["Sec-WebSocket-Accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
/// assert_eq!(answer(&Request::default()).status(), 400);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Upgrade {
    accepted: Accepted,
    config: Arc<Config>,
}

impl Accept {
    /// Judges a request that an HTTP server has parsed (RFC 6455 section 4.2.1). Its path and `Origin` are the
    /// caller's to judge, and so is the time that it takes: [`timeout`](Self::timeout) does not count here.
    ///
    /// A handshake by CONNECT, as HTTP/2 has it (RFC 8441), is refused like any other method.
    ///
    /// # Errors
    /// The first requirement that does not hold; [`refusal`] makes a response of it.
    pub fn upgrade<B>(&self, request: &Request<B>) -> Result<Upgrade, HandshakeError> {
        self.upgrade_parts(request.method(), request.version(), request.headers())
    }

    /// Judges a request, as [`upgrade`](Self::upgrade) does, of which the caller has the parts.
    ///
    /// # Errors
    /// As [`upgrade`](Self::upgrade).
    pub fn upgrade_parts(
        &self,
        method: &Method,
        version: Version,
        headers: &HeaderMap,
    ) -> Result<Upgrade, HandshakeError> {
        let offer = Offer {
            method: method.as_str(),
            is_http_1_1: version >= Version::HTTP_11,
            fields: headers,
        };
        let accepted = respond_with(offer, &self.supported(), self.deflate.as_ref())?;
        Ok(Upgrade { accepted, config: Arc::clone(&self.config) })
    }
}

impl Upgrade {
    /// The subprotocol that was chosen, if any.
    #[must_use]
    pub fn subprotocol(&self) -> Option<&str> {
        self.accepted.subprotocol.as_deref()
    }

    /// The response that ends the handshake. The HTTP server writes it, and then gives the
    /// stream away, as `hyper::upgrade::on` does.
    #[must_use]
    pub fn response(&self) -> Response<()> {
        switching_protocols(&self.accepted)
    }

    /// The connection over the stream that the HTTP server gave away, open.
    #[must_use]
    pub fn socket<S>(self, stream: S) -> WebSocket<S>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        WebSocket::server(stream, self.config, Vec::new())
            .agreed(self.accepted.subprotocol, self.accepted.deflate.as_ref())
    }

    /// The result of the handshake, for a [`Handler`](crate::reactor::Handler) of the loop or of
    /// [`drive`](crate::reactor::drive). Nothing came after the handshake, as far as this knows.
    #[must_use]
    pub fn agreed(self) -> Agreed {
        Agreed { config: self.config, deflate: self.accepted.deflate, first: Vec::new() }
    }
}

/// The response that ends an accepted handshake: 101 and its fields.
#[must_use]
pub fn switching_protocols(accepted: &Accepted) -> Response<()> {
    response(101, accepted.fields())
}

/// The response to a request that cannot be accepted: its status, and the fields that this must have. The
/// error itself is words for a body.
#[must_use]
pub fn refusal(error: &HandshakeError) -> Response<()> {
    response(error.status(), error.fields().iter().map(|&(name, value)| (name, value.into())))
}

fn response<'a>(
    status: u16,
    fields: impl Iterator<Item = (&'static str, Cow<'a, str>)>,
) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    for (name, value) in fields {
        // The names and values of a handshake are always those of fields.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(&*value))
        {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests;
