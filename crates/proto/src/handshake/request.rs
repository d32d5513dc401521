//! The server's side of the handshake: a client's request, and the response (RFC 6455 section 4.2).

use std::borrow::Cow;

use super::fields::{is_token, members, single};
use super::{FIELDS_MAX, Fields, HANDSHAKE_BYTES_MAX, HandshakeError, accept_key, key};
use crate::extension::{self, DeflateConfig, NegotiatedDeflate};

/// The parts of a request that the handshake depends on.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a, F: Fields + ?Sized> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// True if the version is HTTP/1.1 or later.
    pub is_http_1_1: bool,
    /// The header fields.
    pub fields: &'a F,
}

/// The response to an accepted handshake, with status 101.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HandshakeResponse {
    /// The value of `Sec-WebSocket-Accept`.
    pub accept: String,
    /// The chosen subprotocol, if any: the first of the client's that the server supports.
    pub subprotocol: Option<String>,
    /// The negotiated compression, if any. It is the value of `Sec-WebSocket-Extensions` and the argument of
    /// [`Connection::with_deflate`](crate::Connection::with_deflate).
    pub deflate: Option<NegotiatedDeflate>,
}

/// Checks a request against section 4.2.1 and chooses a subprotocol among `supported`. Accepts no extension.
///
/// # Errors
/// Returns the first unmet requirement.
pub fn respond<F: Fields + ?Sized>(
    offer: Offer<'_, F>,
    supported: &[&str],
) -> Result<HandshakeResponse, HandshakeError> {
    respond_with(offer, supported, None)
}

/// Checks a request like [`respond`]. If `deflate` is given, also accepts the first offer of permessage-deflate that
/// this end supports (RFC 7692 section 5.1). An unsupported offer is declined and is no error.
///
/// # Errors
/// As [`respond`].
pub fn respond_with<F: Fields + ?Sized>(
    offer: Offer<'_, F>,
    supported: &[&str],
    deflate: Option<&DeflateConfig>,
) -> Result<HandshakeResponse, HandshakeError> {
    let fields = offer.fields;
    if offer.method != "GET" {
        return Err(HandshakeError::MethodNotGet(offer.method.chars().take(40).collect()));
    }
    if !offer.is_http_1_1 {
        return Err(HandshakeError::HttpTooOld);
    }
    if !matches!(single(fields, "host"), Ok(Some(_))) {
        return Err(HandshakeError::HostInvalid);
    }
    if !asks_for_web_socket(fields) {
        return Err(HandshakeError::UpgradeMissing);
    }
    if !members(fields, "connection").any(|member| member.eq_ignore_ascii_case(b"upgrade")) {
        return Err(HandshakeError::ConnectionMissing);
    }
    if !matches!(single(fields, "sec-websocket-version"), Ok(Some(b"13"))) {
        return Err(HandshakeError::VersionUnsupported);
    }
    let key = match single(fields, "sec-websocket-key") {
        Ok(Some(key)) if key::is_key(key) => {
            str::from_utf8(key).map_err(|_| HandshakeError::KeyInvalid)?
        }
        _ => return Err(HandshakeError::KeyInvalid),
    };
    let is_empty = fields.values("content-length").all(|len| len.trim_ascii() == b"0");
    if !is_empty || fields.values("transfer-encoding").next().is_some() {
        return Err(HandshakeError::BodyPresent);
    }
    let subprotocol = choose(fields, supported)?;
    // The field is always parsed, since section 9.1 allows no other grammar.
    let offers = extension::parse(fields.values("sec-websocket-extensions"))
        .map_err(|_| HandshakeError::ExtensionsInvalid)?;
    let deflate = deflate.and_then(|config| extension::accept(&offers, config));
    Ok(HandshakeResponse { accept: accept_key(key), subprotocol, deflate })
}

/// Returns true if the header fields ask for a WebSocket (section 4.2.1, item 3), whether or not the request is
/// valid.
#[must_use]
pub fn asks_for_web_socket<F: Fields + ?Sized>(fields: &F) -> bool {
    members(fields, "upgrade").any(|member| member.eq_ignore_ascii_case(b"websocket"))
}

/// Returns the first offered subprotocol that is supported; the client offers them in order of preference.
fn choose<F: Fields + ?Sized>(
    fields: &F,
    supported: &[&str],
) -> Result<Option<String>, HandshakeError> {
    let mut offered: Vec<&[u8]> = Vec::new();
    for name in members(fields, "sec-websocket-protocol") {
        if !is_token(name) || offered.contains(&name) || offered.len() == FIELDS_MAX {
            return Err(HandshakeError::SubprotocolInvalid);
        }
        offered.push(name);
    }
    let chosen =
        offered.iter().find_map(|name| supported.iter().find(|own| own.as_bytes() == *name));
    Ok(chosen.map(|&name| name.to_owned()))
}

impl HandshakeResponse {
    /// The header fields of the response (section 4.2.2), in order.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let deflate = self.deflate.as_ref().map(|deflate| deflate.to_string().into());
        let fields = [
            ("Upgrade", Some("websocket".into())),
            ("Connection", Some("Upgrade".into())),
            ("Sec-WebSocket-Accept", Some(Cow::from(&self.accept))),
            ("Sec-WebSocket-Protocol", self.subprotocol.as_ref().map(Cow::from)),
            ("Sec-WebSocket-Extensions", deflate),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Returns the status line and the header fields, with the empty line after them.
    #[must_use]
    pub fn head(&self) -> String {
        let mut head = String::with_capacity(256);
        head.push_str("HTTP/1.1 101 Switching Protocols\r\n");
        for (name, value) in self.fields() {
            [name, ": ", &value, "\r\n"].iter().for_each(|piece| head.push_str(piece));
        }
        head.push_str("\r\n");
        head
    }
}

/// The server's handshake on a bare byte stream, without an HTTP server.
///
/// ```
/// use anemone_proto::handshake::ServerHandshake;
///
/// let request = "GET /chat HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\n\
///     Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
///     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// let (first, rest) = request.as_bytes().split_at(20);
///
/// let mut handshake = ServerHandshake::default();
/// assert_eq!(handshake.receive(first, &[])?, None);
/// let answered = handshake.receive(rest, &[])?.expect("the request is complete");
/// assert_eq!(answered.target, "/chat");
/// assert!(answered.response.head().starts_with("HTTP/1.1 101 "));
/// # Ok::<(), anemone_proto::handshake::HandshakeError>(())
/// ```
#[derive(Debug, Default)]
pub struct ServerHandshake {
    received: Vec<u8>,
    deflate: Option<DeflateConfig>,
}

/// An accepted request and its response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answered {
    /// The request's target, such as `/chat?room=1`.
    pub target: String,
    /// The response.
    pub response: HandshakeResponse,
    /// The bytes after the request: the first frames.
    pub rest: Vec<u8>,
}

impl ServerHandshake {
    /// Accepts offers of permessage-deflate. By default they are declined.
    #[must_use]
    pub fn with_deflate(mut self, config: DeflateConfig) -> Self {
        self.deflate = Some(config);
        self
    }

    /// Takes bytes from the client; returns `None` until the request is complete.
    ///
    /// # Errors
    /// As [`respond`]. Also when the bytes are not an HTTP request, or exceed the limits of this module. Answer with
    /// [`refusal`](Self::refusal) and close the stream.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        supported: &[&str],
    ) -> Result<Option<Answered>, HandshakeError> {
        self.received.extend_from_slice(bytes);
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        let parsed = request.parse(&self.received).map_err(|error| match error {
            httparse::Error::TooManyHeaders => HandshakeError::TooManyFields { limit: FIELDS_MAX },
            error => HandshakeError::NotHttp(error),
        })?;
        let len = match parsed {
            httparse::Status::Complete(len) => len,
            httparse::Status::Partial => self.received.len(),
        };
        if len > HANDSHAKE_BYTES_MAX {
            return Err(HandshakeError::TooLong { limit: HANDSHAKE_BYTES_MAX });
        }
        if parsed.is_partial() {
            return Ok(None);
        }
        let offer = Offer {
            method: request.method.unwrap_or_default(),
            is_http_1_1: request.version == Some(1),
            fields: &*request.headers,
        };
        let response = respond_with(offer, supported, self.deflate.as_ref())?;
        let target = request.path.unwrap_or_default().to_owned();
        Ok(Some(Answered { target, response, rest: self.received.split_off(len) }))
    }

    /// Returns the response that refuses a request.
    #[must_use]
    pub fn refusal(error: &HandshakeError) -> String {
        let fields: String =
            error.fields().iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = format!("{error}\n");
        format!(
            "HTTP/1.1 {} \r\n{fields}Content-Type: text/plain; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
            error.status(),
            text.len()
        )
    }
}
