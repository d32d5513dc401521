//! The opening handshake (RFC 6455 section 4.2), between the HTTP server and the state machine.

use anemone_ws::proto::DeflateConfig;
use anemone_ws::proto::handshake::{Accepted, Fields, HandshakeError, Offer, respond_with};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};

use crate::body::{Body, full};
use crate::{Kind, Problem};

/// Whether the request asks for a WebSocket.
pub(crate) fn is_asked<B>(request: &Request<B>) -> bool {
    let fields = request.headers().get_all(header::UPGRADE);
    let mut protocols =
        fields.iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

/// Accepts the request's handshake, or says which requirement does not hold.
pub(crate) fn accept<B>(
    request: &Request<B>,
    subprotocols: &[&str],
    deflate: Option<&DeflateConfig>,
) -> Result<Accepted, Problem> {
    let offer = Offer {
        method: request.method().as_str(),
        is_http_1_1: request.version() >= Version::HTTP_11,
        fields: &Headers(request.headers()),
    };
    respond_with(offer, subprotocols, deflate).map_err(refusal)
}

struct Headers<'a>(&'a HeaderMap);

impl Fields for Headers<'_> {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.get_all(name).into_iter().map(HeaderValue::as_bytes)
    }
}

/// The response that ends the handshake.
pub(crate) fn switching_protocols(accepted: Accepted) -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    let fields = [
        (header::SEC_WEBSOCKET_ACCEPT, Some(accepted.accept)),
        (header::SEC_WEBSOCKET_PROTOCOL, accepted.subprotocol),
        (header::SEC_WEBSOCKET_EXTENSIONS, accepted.deflate.map(|deflate| deflate.to_string())),
    ];
    for (name, value) in fields {
        // Base64, a token and an extension are always values of a field.
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
    response
}

fn refusal(error: HandshakeError) -> Problem {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let problem = Problem::new(Kind::BadHandshake, error.to_string()).status(status);
    error.fields().iter().fold(problem, |problem, (name, value)| {
        problem.field(name, HeaderValue::from_static(value))
    })
}
