//! The options that all operations share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anemone_ws::{Connect, rustls::ClientConfig};
use http::{HeaderName, HeaderValue};
use tokio::time::timeout;

use crate::address::{Address, Scheme};
use crate::{Error, Retry, UrlError};

/// Limits on the memory for data from a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The longest message, line or block of an event stream. Default 1 MiB; the default limit of a server for an event
    /// is 64 KiB.
    pub event_bytes_max: usize,
    /// The longest page. Default 8 MiB; a server's page ends soon after 1 MiB of data.
    pub page_bytes_max: usize,
    /// The longest body of a reply that is returned in one piece. Default 16 MiB. A stream may be longer.
    pub reply_bytes_max: usize,
    /// The most bytes of a stream's items that wait for their call, if several calls share a connection. Beyond that,
    /// the connection stops reading. Default 2 MiB, two of a server's longest items.
    pub waiting_bytes_max: usize,
    /// The most topics of a subscription to several topics. Default 4,096, more than the token of any server can name.
    pub topics_max: usize,
    /// The most open calls of a client; further calls wait. Default 256: fewer than the requests that a server accepts
    /// at once on a multiplexed connection (1,000), and fewer than the connections that it accepts from one address.
    pub calls_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            event_bytes_max: 1 << 20,
            page_bytes_max: 8 << 20,
            reply_bytes_max: 16 << 20,
            waiting_bytes_max: 2 << 20,
            topics_max: 4096,
            calls_max: 256,
        }
    }
}

/// The time limits of connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeouts {
    /// The longest time to open a connection. Default 10 s.
    pub connect: Duration,
    /// The longest time from an open connection to the server's first item. Default 10 s. A server sends the position
    /// at once, so a late first item means that something holds the stream back.
    pub answer: Duration,
    /// The longest time between two signs of life. Default 45 s, three heartbeats of a server.
    pub stall: Duration,
    /// The time between two polls. Default 1 s.
    pub poll_interval: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            stall: Duration::from_secs(45),
            poll_interval: Duration::from_secs(1),
        }
    }
}

impl Timeouts {
    /// Waits for `work`, which opens a connection. It is an error if the server does not answer in time.
    pub(crate) async fn await_answer<T>(
        self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let limit = self.connect.saturating_add(self.answer);
        timeout(limit, work).await.unwrap_or(Err(Error::Unanswered { limit }))
    }
}

/// The options that subscriptions and publishers share.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) retry: Retry,
    /// The words for the log line about a new attempt.
    pub(crate) retry_advice: &'static str,
}

/// The setters of the options that subscriptions, publishers and lists of topics share. Each type provides `with`.
macro_rules! option_setters {
    () => {
        /// Adds a header field to each request or handshake, such as `Authorization`. The fields of a WebSocket
        /// handshake and of HTTP framing cannot be set.
        #[must_use = "the option is set in what is returned"]
        pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.with(|options| options.fields.push((name.into(), value.into())))
        }

        /// Sets the TLS configuration. Its ALPN protocols must be empty or `http/1.1`. Default: trusts the root
        /// certificates of this machine.
        #[must_use = "the option is set in what is returned"]
        pub fn tls(self, config: std::sync::Arc<anemone_ws::rustls::ClientConfig>) -> Self {
            self.with(|options| options.tls = Some(config))
        }

        /// Sets the time limits.
        #[must_use = "the option is set in what is returned"]
        pub fn timeouts(self, timeouts: crate::Timeouts) -> Self {
            self.with(|options| options.timeouts = timeouts)
        }
    };
}
pub(crate) use option_setters;

/// The header fields that this crate sets itself, and fields that would break a WebSocket handshake.
const OWN_FIELDS: [&str; 5] =
    ["host", "upgrade", "connection", "content-length", "transfer-encoding"];

impl Options {
    /// Checks that the header fields can be sent to this address.
    pub(crate) fn check(&self, address: &Address) -> Result<(), Error> {
        self.fields.iter().try_for_each(|(name, value)| Self::check_field(name, value))?;
        match address.scheme == Scheme::Tcp && !self.fields.is_empty() {
            true => Err(UrlError::FieldsByTcp.into()),
            false => Ok(()),
        }
    }

    /// Checks that this crate does not set the header field itself, and that the field is valid.
    pub(crate) fn check_field(name: &str, value: &str) -> Result<(), Error> {
        let name = name.to_ascii_lowercase();
        if OWN_FIELDS.contains(&&*name) || name.starts_with("sec-websocket-") {
            return Err(Error::HeaderReserved { name });
        }
        let is_valid =
            HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value).is_ok();
        match is_valid {
            true => Ok(()),
            false => Err(Error::HeaderInvalid { name: name.escape_debug().to_string() }),
        }
    }

    /// Returns the options of a connection to this URL, `ws://` or `wss://`.
    pub(crate) fn connect(&self, url: String) -> Connect {
        let connect = Connect::new(url).timeout(self.timeouts.connect);
        match &self.tls {
            Some(tls) => connect.tls(Arc::clone(tls)),
            None => connect,
        }
    }
}

impl fmt::Debug for Options {
    /// Omits the values of fields, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}
