//! The server's side of the opening handshake behind an HTTP server with the types of the crate `http`: hyper, axum,
//! tower.
//!
//! This module only converts types. The rules are in [`handshake`](crate::proto::handshake), and the options in
//! [`Accept`].

use std::borrow::Cow;
use std::sync::Arc;

use anemone_proto::Config;
use anemone_proto::handshake::{HandshakeError, HandshakeResponse, Offer, respond_with};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Accept, Negotiated, WebSocket};

/// An accepted request. It makes the response, and then the connection.
///
/// ```
/// use anemone_ws::{Accept, refusal};
/// use http::{Request, Response};
///
/// /// Answers a request. A server would open the connection once the response is written.
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
    response: HandshakeResponse,
    config: Arc<Config>,
}

impl Accept {
    /// Checks a request that an HTTP server has parsed (RFC 6455 section 4.2.1). The caller checks its path and
    /// `Origin`, and limits its time: [`timeout`](Self::timeout) has no effect here.
    ///
    /// A handshake by CONNECT, as in HTTP/2 (RFC 8441), is refused like any other method.
    ///
    /// # Errors
    /// Returns the first unmet requirement; [`refusal`] makes a response from it.
    pub fn upgrade<B>(&self, request: &Request<B>) -> Result<Upgrade, HandshakeError> {
        self.upgrade_parts(request.method(), request.version(), request.headers())
    }

    /// Checks the parts of a request, as [`upgrade`](Self::upgrade) does.
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
        let response = respond_with(offer, &self.supported(), self.deflate.as_ref())?;
        Ok(Upgrade { response, config: Arc::clone(&self.config) })
    }
}

impl Upgrade {
    /// Returns the subprotocol of the connection, if any.
    #[must_use]
    pub fn subprotocol(&self) -> Option<&str> {
        self.response.subprotocol.as_deref()
    }

    /// Returns the response that completes the handshake. The HTTP server writes it, and then hands over the stream, as
    /// `hyper::upgrade::on` does.
    #[must_use]
    pub fn response(&self) -> Response<()> {
        switching_protocols(&self.response)
    }

    /// Returns the open connection over the stream that the HTTP server handed over.
    #[must_use]
    pub fn socket<S>(self, stream: S) -> WebSocket<S>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        WebSocket::server(stream, self.config, Vec::new())
            .negotiated(self.response.subprotocol, self.response.deflate.as_ref())
    }

    /// Returns the result of the handshake, for a [`Handler`](crate::reactor::Handler) of the loop or of
    /// [`drive`](crate::reactor::drive). It assumes that no bytes followed the handshake.
    #[must_use]
    pub fn negotiated(self) -> Negotiated {
        Negotiated { config: self.config, deflate: self.response.deflate, first: Vec::new() }
    }
}

/// The response that ends an accepted handshake: 101 and its fields.
#[must_use]
pub fn switching_protocols(handshake: &HandshakeResponse) -> Response<()> {
    response(101, handshake.fields())
}

/// Makes the response to a refused request: its status, and the header fields that this status requires. The text of
/// the error can be the body.
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
        // The names and values of a handshake are always valid for fields.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(&*value))
        {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests;
