//! The opening handshake (RFC 6455 section 4.2), between the HTTP server and the state machine.

use anemone_ws::proto::DeflateConfig;
use anemone_ws::proto::handshake::{self, HandshakeError, HandshakeResponse, Offer, respond_with};
use http::{HeaderValue, Request, StatusCode, Version};

use crate::request::fields::Fields;
use crate::{Kind, Problem};

/// The head of a request, for a handshake.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) version: Version,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) fields: Fields<'a>,
}

impl<'a> Head<'a> {
    pub(crate) fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method().as_str(),
            version: request.version(),
            path: request.uri().path(),
            query: request.uri().query(),
            fields: request.headers().into(),
        }
    }

    pub(crate) fn asks_for_web_socket(&self) -> bool {
        handshake::asks_for_web_socket(&self.fields)
    }

    /// Refuses a handshake that a proxy has changed into another request: most proxies remove `Upgrade` unless they
    /// are configured to forward it, and leave the rest (RFC 9110 section 7.6.1). The client could not understand
    /// another answer.
    pub(crate) fn refuse_lost(&self) -> Result<(), Problem> {
        if self.fields.has("upgrade") || !self.fields.has("sec-websocket-key") {
            return Ok(());
        }
        let detail = "this is a WebSocket handshake without Upgrade: a proxy on the way has removed it; \
                      configure the proxy to forward WebSockets, or use plain HTTP";
        let problem = Problem::new(Kind::BadHandshake, detail).status(StatusCode::UPGRADE_REQUIRED);
        Err(problem.field("upgrade", HeaderValue::from_static("websocket")))
    }

    /// Accepts the handshake, or returns the first unmet requirement.
    pub(crate) fn accept(
        &self,
        subprotocols: &[&str],
        deflate: Option<&DeflateConfig>,
    ) -> Result<HandshakeResponse, Problem> {
        let offer = Offer {
            method: self.method,
            is_http_1_1: self.version >= Version::HTTP_11,
            fields: &self.fields,
        };
        respond_with(offer, subprotocols, deflate).map_err(refusal)
    }
}

fn refusal(error: HandshakeError) -> Problem {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let problem = Problem::new(Kind::BadHandshake, error.to_string()).status(status);
    error.fields().iter().fold(problem, |problem, (name, value)| {
        problem.field(name, HeaderValue::from_static(value))
    })
}
