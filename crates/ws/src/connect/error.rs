//! Why a connection was not opened.

use std::fmt;
use std::io;
use std::time::Duration;

use anemone_proto::handshake::ResponseError;

pub use super::url::UrlError;

/// A connection that was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is not one of a WebSocket.
    #[error("cannot connect to this URL")]
    Url(#[source] UrlError),
    /// The proxy's URL is not one of an HTTP proxy.
    #[error("proxy URL is not valid")]
    ProxyUrl(#[source] UrlError),
    /// A subprotocol's name is not a token, or given twice (section 4.1, item 10).
    #[error("subprotocol {0:?} is not a token, or is given twice")]
    SubprotocolInvalid(String),
    /// A header field's name is not a token, or its value has control characters.
    #[error("header field {name} has a character that is not allowed")]
    HeaderInvalid {
        /// Its name; the value may be secret.
        name: String,
    },
    /// The handshake sets this header field itself.
    #[error("header field {name} is reserved for the handshake")]
    HeaderReserved {
        /// Its name.
        name: String,
    },
    /// `wss://` without the feature `tls` of this crate.
    #[error("wss needs the feature `tls`, which this build lacks")]
    TlsUnavailable,
    /// `wss://` without cryptography: no configuration was given, the program has installed no
    /// `CryptoProvider`, and the feature `aws-lc-rs` of this crate is off.
    #[error(
        "wss needs cryptography: give a configuration, install a `CryptoProvider`, or turn the feature \
         `aws-lc-rs` on"
    )]
    TlsProviderMissing,
    /// The time-out passed.
    #[error("not connected within {limit:?}, stopped at {step}")]
    TimedOut {
        /// The step that failed.
        step: Step,
        /// [`Connect::timeout`](super::Connect::timeout).
        limit: Duration,
    },
    /// The system, the network or TLS failed. A bad certificate is here too, as a `rustls::Error`
    /// inside `source`.
    #[error("{step} failed{}", hint(source))]
    Stream {
        /// The step that failed.
        step: Step,
        /// Why.
        source: io::Error,
    },
    /// The proxy's answer to CONNECT is not what HTTP says.
    #[error("proxy gave an invalid response")]
    ProxyResponse(#[source] ResponseError),
    /// The proxy sent this many bytes before anything was sent to the server.
    #[error("proxy sent {len} bytes into the tunnel by itself")]
    ProxySpoke {
        /// The number of bytes that came with its response.
        len: usize,
    },
    /// The proxy opened no tunnel: 407 wants other credentials, 403 and 502 have reasons of its own.
    #[error("proxy answered {0}")]
    ProxyRefused(Box<Refusal>),
    /// The server wants the client to go elsewhere. Connect to `location` if it is trusted: `http` and
    /// `https` stand for `ws` and `wss` there.
    #[error("server answered {status} and redirects {}", destination(location.as_deref()))]
    Redirected {
        /// 300 to 399.
        status: u16,
        /// The `Location` field, possibly relative to the URL.
        location: Option<String>,
    },
    /// The server opened no connection: 401, 403, 404, 426, 429, 503 and so on.
    #[error("server answered {0}")]
    Refused(Box<Refusal>),
    /// The server's response does not do what section 4.1 asks for.
    #[error("server gave an invalid response")]
    Response(#[source] ResponseError),
}

/// The meaning of a failure, where that is known and it does not say so itself.
fn hint(source: &io::Error) -> &'static str {
    #[cfg(feature = "tls")]
    if is_not_tls(source) {
        return ", the server does not seem to speak TLS";
    }
    let _ = source;
    ""
}

/// Whether the peer answered with something other than a TLS record, plain HTTP for instance.
#[cfg(feature = "tls")]
fn is_not_tls(error: &io::Error) -> bool {
    use tokio_rustls::rustls::{Error, InvalidMessage};
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    matches!(cause, Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)))
}

/// The words for where a redirect leads to.
fn destination(location: Option<&str>) -> String {
    match location {
        Some(location) => format!("to {}, which is not followed", printable(location)),
        None => "without saying where to".to_owned(),
    }
}

/// The words of a peer, bounded and without what could confuse a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(200).collect()
}

/// The steps of connecting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// The addresses of a name are being looked up.
    Lookup,
    /// TCP to the server or the proxy is being opened.
    Tcp,
    /// The proxy has been asked for a tunnel.
    Proxy,
    /// The TLS handshake is under way.
    Tls,
    /// The WebSocket handshake is under way.
    Handshake,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lookup => "name lookup",
            Self::Tcp => "TCP connection",
            Self::Proxy => "proxy tunnel",
            Self::Tls => "TLS handshake",
            Self::Handshake => "WebSocket handshake",
        })
    }
}

/// A response that says no.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: String,
}

impl Refusal {
    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first header field of this name, as `WWW-Authenticate`, `Proxy-Authenticate` or `Retry-After`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let named = |(field, _): &&(String, String)| field.eq_ignore_ascii_case(name);
        self.fields.iter().find(named).map(|(_, value)| value.as_str())
    }

    /// The body as far as it came in a second, at most 4 KiB: often text, or a problem in JSON
    /// (RFC 9457). What is not UTF-8 is replaced. It is the peer's: show it with care.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The body's first line, if it is meant to be read.
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
