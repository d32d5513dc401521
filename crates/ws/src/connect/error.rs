//! The errors of opening a connection.

use std::fmt;
use std::io;
use std::time::Duration;

use anemone_proto::handshake::ResponseError;

pub use super::url::UrlError;

/// An error of opening a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is not a WebSocket URL.
    #[error("cannot connect to this URL")]
    Url(#[source] UrlError),
    /// The proxy's URL is not the URL of an HTTP proxy.
    #[error("proxy URL is not valid")]
    ProxyUrl(#[source] UrlError),
    /// A subprotocol is not a token, or is given twice (section 4.1, item 10).
    #[error("subprotocol {0:?} is not a token, or is given twice")]
    SubprotocolInvalid(String),
    /// The name of a header field is not a token, or its value has control characters.
    #[error("header field {name} has a character that is not allowed")]
    HeaderInvalid {
        /// The name of the field; its value may be secret.
        name: String,
    },
    /// The handshake sets this header field itself.
    #[error("header field {name} is reserved for the handshake")]
    HeaderReserved {
        /// Its name.
        name: String,
    },
    /// The URL is that of a Unix socket, which a proxy cannot reach.
    #[error("a proxy cannot connect to a Unix socket")]
    UnixByProxy,
    /// The URL is `wss://`, and the feature `tls` of this crate is off.
    #[error("wss needs the feature `tls`, which this build lacks")]
    TlsUnavailable,
    /// The URL is `wss://`, and there is no cryptography: no configuration was given, the program has not installed a
    /// `CryptoProvider`, and the feature `aws-lc-rs` of this crate is off.
    #[error(
        "wss needs cryptography: give a configuration, install a `CryptoProvider`, or turn the feature \
         `aws-lc-rs` on"
    )]
    TlsProviderMissing,
    /// Connecting took too long.
    #[error("not connected within {limit:?}, stopped at {step}")]
    TimedOut {
        /// The step that failed.
        step: Step,
        /// [`Connect::timeout`](super::Connect::timeout).
        limit: Duration,
    },
    /// The system, the network or TLS failed. For a bad certificate, the source contains a `rustls::Error`.
    #[error("{step} failed{}", hint(source))]
    Stream {
        /// The step that failed.
        step: Step,
        /// The cause.
        source: io::Error,
    },
    /// The proxy's response to CONNECT is not valid HTTP.
    #[error("proxy gave an invalid response")]
    ProxyResponse(#[source] ResponseError),
    /// The proxy sent bytes into the tunnel before the client did.
    #[error("proxy sent {len} bytes into the tunnel by itself")]
    ProxySpoke {
        /// The number of bytes.
        len: usize,
    },
    /// The proxy opened no tunnel, for example with 407 (credentials), 403 or 502.
    #[error("proxy answered {0}")]
    ProxyRefused(Box<Refusal>),
    /// The server redirects the client. Connect to `location` if it is trusted, with `ws` or `wss` in place of `http`
    /// or `https`.
    #[error("server answered {status} and redirects {}", destination(location.as_deref()))]
    Redirected {
        /// 300 to 399.
        status: u16,
        /// The `Location` field, possibly relative to the URL.
        location: Option<String>,
    },
    /// The server refused the connection, for example with 401, 403, 404, 426, 429 or 503.
    #[error("server answered {0}")]
    Refused(Box<Refusal>),
    /// The server's response does not meet section 4.1.
    #[error("server gave an invalid response")]
    Response(#[source] ResponseError),
}

impl ConnectError {
    /// Returns true if the server's certificate is invalid: not trusted, or another server's.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn is_about_certificate(&self) -> bool {
        let Self::Stream { step: Step::Tls, source } = self else { return false };
        matches!(tls_cause(source), Some(tokio_rustls::rustls::Error::InvalidCertificate(_)))
    }
}

#[cfg(feature = "tls")]
fn tls_cause(error: &io::Error) -> Option<&tokio_rustls::rustls::Error> {
    error.get_ref().and_then(|cause| cause.downcast_ref())
}

/// Returns a hint at the cause, where the error itself does not name it.
fn hint(source: &io::Error) -> &'static str {
    #[cfg(feature = "tls")]
    if is_not_tls(source) {
        return ", the server does not seem to speak TLS";
    }
    let _ = source;
    ""
}

/// Returns true if the peer answered with something other than a TLS record, for example plain HTTP.
#[cfg(feature = "tls")]
fn is_not_tls(error: &io::Error) -> bool {
    use tokio_rustls::rustls::{Error, InvalidMessage};
    matches!(tls_cause(error), Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)))
}

/// Describes the target of a redirect.
fn destination(location: Option<&str>) -> String {
    match location {
        Some(location) => format!("to {}, which is not followed", printable(location)),
        None => "without saying where to".to_owned(),
    }
}

/// Limits the length of a peer's text, and removes characters that could confuse a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(200).collect()
}

/// A step of connecting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Looking up the addresses of a name.
    Lookup,
    /// Opening TCP to the server or the proxy.
    Tcp,
    /// Connecting to the Unix socket.
    Unix,
    /// Asking the proxy for a tunnel.
    Proxy,
    /// The TLS handshake.
    Tls,
    /// The WebSocket handshake.
    Handshake,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lookup => "name lookup",
            Self::Tcp => "TCP connection",
            Self::Unix => "connection to the Unix socket",
            Self::Proxy => "proxy tunnel",
            Self::Tls => "TLS handshake",
            Self::Handshake => "WebSocket handshake",
        })
    }
}

/// A response that refuses a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: String,
}

impl Refusal {
    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the first header field of this name, such as `WWW-Authenticate` or `Retry-After`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let named = |(field, _): &&(String, String)| field.eq_ignore_ascii_case(name);
        self.fields.iter().find(named).map(|(_, value)| value.as_str())
    }

    /// Returns the body as far as it arrived within a second, at most 4 KiB. Often it is text, or a problem in JSON
    /// (RFC 9457). Bytes that are not UTF-8 are replaced. It is the peer's text: sanitize it before display.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Returns the first line of a body in text or JSON.
    fn detail(&self) -> Option<String> {
        let kind = self.field("content-type")?;
        if !kind.starts_with("text/plain") && !kind.contains("json") {
            return None;
        }
        let line = self.body.lines().find(|line| !line.trim().is_empty())?;
        Some(printable(line))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if !self.reason.is_empty() {
            write!(f, " {}", self.reason)?;
        }
        self.detail().map_or(Ok(()), |detail| write!(f, ": {detail}"))
    }
}
