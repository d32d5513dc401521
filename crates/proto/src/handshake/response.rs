//! The client's side of the handshake: its request, and the server's response (RFC 6455 section 4.1).

use super::fields::{members, single};
use super::{FIELDS_MAX, Fields, HANDSHAKE_BYTES_MAX, Nonce, ResponseError, accept_key};
use crate::extension::{self, DeflateConfig, NegotiatedDeflate};

/// The client's handshake.
///
/// ```
/// use anemone_proto::handshake::{ClientHandshake, Nonce, ServerHandshake};
///
/// let nonce = Nonce([7; 16]); // random, and another one for each connection
/// let mut client = ClientHandshake::new(nonce, &["chat"]);
/// let request = client.request("example.org", "/room", &[("Origin", "https://example.org")]);
///
/// let answered = ServerHandshake::default().receive(request.as_bytes(), &["chat"])?;
/// let response = answered.expect("the request is complete").response.head();
/// let established = client.receive(response.as_bytes())?.expect("the response is complete");
/// assert_eq!(established.subprotocol.as_deref(), Some("chat"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ClientHandshake {
    key: String,
    subprotocols: Vec<String>,
    deflate: Option<DeflateConfig>,
    received: Vec<u8>,
}

/// The result of a client's handshake.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Established {
    /// The subprotocol that the server chose, if any.
    pub subprotocol: Option<String>,
    /// The negotiated compression, if any, for [`Connection::with_deflate`](crate::Connection::with_deflate).
    pub deflate: Option<NegotiatedDeflate>,
    /// The bytes after the response: the first frames.
    pub rest: Vec<u8>,
}

impl ClientHandshake {
    /// Creates a handshake that offers `subprotocols`, in order of preference. `nonce` must be random and new for
    /// each connection.
    #[must_use]
    pub fn new(nonce: Nonce, subprotocols: &[&str]) -> Self {
        let subprotocols = subprotocols.iter().map(|&name| name.to_owned()).collect();
        Self { key: nonce.key(), subprotocols, deflate: None, received: Vec::new() }
    }

    /// Offers permessage-deflate (RFC 7692 section 5). By default no extension is offered.
    #[must_use]
    pub fn with_deflate(mut self, config: DeflateConfig) -> Self {
        self.deflate = Some(config);
        self
    }

    /// Returns the request's bytes. `host`, `target` and `fields` must not contain line breaks. `fields` are
    /// additional header fields, such as `Origin`.
    #[must_use]
    pub fn request(&self, host: &str, target: &str, fields: &[(&str, &str)]) -> String {
        let mut request = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {}\r\nSec-WebSocket-Version: 13\r\n",
            self.key
        );
        if !self.subprotocols.is_empty() {
            request += &format!("Sec-WebSocket-Protocol: {}\r\n", self.subprotocols.join(", "));
        }
        if let Some(config) = &self.deflate {
            request += &format!("Sec-WebSocket-Extensions: {}\r\n", extension::offer(config));
        }
        for (name, value) in fields {
            request += &format!("{name}: {value}\r\n");
        }
        request + "\r\n"
    }

    /// Takes bytes from the server; returns `None` until the response is complete.
    ///
    /// # Errors
    /// Returns the first unmet requirement of section 4.1. The caller must drop the connection.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<Established>, ResponseError> {
        self.received.extend_from_slice(bytes);
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response.parse(&self.received).map_err(ResponseError::of_parser)?;
        let len = match parsed {
            httparse::Status::Complete(len) => len,
            httparse::Status::Partial => self.received.len(),
        };
        if len > HANDSHAKE_BYTES_MAX {
            return Err(ResponseError::TooLong { limit: HANDSHAKE_BYTES_MAX });
        }
        if parsed.is_partial() {
            return Ok(None);
        }
        let status = response.code.unwrap_or_default();
        let subprotocol = self.check(status, response.headers)?;
        let deflate = self.check_extensions(response.headers)?;
        Ok(Some(Established { subprotocol, deflate, rest: self.received.split_off(len) }))
    }

    fn check(
        &self,
        status: u16,
        fields: &[httparse::Header<'_>],
    ) -> Result<Option<String>, ResponseError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if status != 101 {
            return Err(ResponseError::Status { status });
        }
        if !members(fields, "upgrade").any(|member| member.eq_ignore_ascii_case(b"websocket")) {
            return Err(ResponseError::UpgradeMissing);
        }
        if !members(fields, "connection").any(|member| member.eq_ignore_ascii_case(b"upgrade")) {
            return Err(ResponseError::ConnectionMissing);
        }
        let accept = accept_key(&self.key);
        if !matches!(single(fields, "sec-websocket-accept"), Ok(Some(value)) if value == accept.as_bytes())
        {
            return Err(ResponseError::AcceptInvalid);
        }
        let mut chosen = members(fields, "sec-websocket-protocol");
        match (chosen.next().map(text), chosen.next()) {
            (None, _) => Ok(None),
            (Some(name), None) if self.subprotocols.contains(&name) => Ok(Some(name)),
            (Some(name), _) => Err(ResponseError::SubprotocolNotOffered(name)),
        }
    }

    /// Checks item 5 of section 4.1: the server may choose only what was offered, and only once.
    fn check_extensions(
        &self,
        fields: &[httparse::Header<'_>],
    ) -> Result<Option<NegotiatedDeflate>, ResponseError> {
        let chosen = extension::parse(fields.values("sec-websocket-extensions"))
            .map_err(|_| ResponseError::ExtensionsInvalid)?;
        match (&chosen[..], &self.deflate) {
            ([], _) => Ok(None),
            ([one], Some(config)) if one.name == extension::NAME => {
                Ok(Some(extension::check(one, config)?))
            }
            ([first, ..], None) => Err(ResponseError::ExtensionNotOffered(first.name.to_owned())),
            ([first, rest @ ..], Some(_)) => {
                // Report the extension that should not be there: a foreign one, or ours a second time.
                let others = rest.iter().find(|other| other.name != extension::NAME);
                let wrong =
                    if first.name == extension::NAME { others.unwrap_or(first) } else { first };
                Err(ResponseError::ExtensionNotOffered(wrong.name.to_owned()))
            }
        }
    }
}
