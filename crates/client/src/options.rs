//! The options of a caller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anemone_ws::{Connect, rustls::ClientConfig};

use http::{HeaderName, HeaderValue};

use crate::address::{Address, Scheme};
use crate::{Error, Retry, UrlError};

/// Bounds on what a server can make a client keep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Longest message, line or block of an event stream. Default 1 MiB: an event of a server's default
    /// is at most 64 KiB.
    pub event_bytes_max: usize,
    /// Longest page. Default 8 MiB: a server's ends soon after 1 MiB of data.
    pub page_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { event_bytes_max: 1 << 20, page_bytes_max: 8 << 20 }
    }
}

/// The times that things may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeouts {
    /// From nothing to an open connection. Default 10 s.
    pub connect: Duration,
    /// From an open connection to the first thing that the server says. Default 10 s: a server says at once
    /// where reading begins, and what holds that back would hold back all the rest.
    pub answer: Duration,
    /// Between two signs of life. Default 45 s, which is three heartbeats of a server.
    pub stall: Duration,
    /// Between two polls. Default 1 s.
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

/// The options that subscriptions and publishers have in common.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) retry: Retry,
}

/// The setters of options that subscriptions, publishers and lists of topics have in common, by a `with` of their own.
macro_rules! option_setters {
    () => {
        /// One more header field of each request or handshake, as `Authorization`. The fields of a WebSocket's handshake and
        /// of HTTP's framing cannot be set.
        #[must_use = "the option is set in what is returned"]
        pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.with(|options| options.fields.push((name.into(), value.into())))
        }

        /// The settings of TLS. Its protocols for ALPN must be empty or `http/1.1`. Default: the roots that this machine
        /// trusts.
        #[must_use = "the option is set in what is returned"]
        pub fn tls(self, config: std::sync::Arc<anemone_ws::rustls::ClientConfig>) -> Self {
            self.with(|options| options.tls = Some(config))
        }

        /// The times that things may take.
        #[must_use = "the option is set in what is returned"]
        pub fn timeouts(self, timeouts: crate::Timeouts) -> Self {
            self.with(|options| options.timeouts = timeouts)
        }
    };
}
pub(crate) use option_setters;

/// The header fields that this crate sets itself, and what a WebSocket's handshake cannot go on with.
const OWN_FIELDS: [&str; 5] =
    ["host", "upgrade", "connection", "content-length", "transfer-encoding"];

impl Options {
    /// Returns whether its header fields can be sent to this address.
    pub(crate) fn check(&self, address: &Address) -> Result<(), Error> {
        for (name, value) in &self.fields {
            let name = name.to_ascii_lowercase();
            if OWN_FIELDS.contains(&&*name) || name.starts_with("sec-websocket-") {
                return Err(Error::HeaderReserved { name });
            }
            let is_valid = HeaderName::from_bytes(name.as_bytes()).is_ok()
                && HeaderValue::from_str(value).is_ok();
            if !is_valid {
                return Err(Error::HeaderInvalid { name: name.escape_debug().to_string() });
            }
        }
        match address.scheme == Scheme::Tcp && !self.fields.is_empty() {
            true => Err(UrlError::FieldsByTcp.into()),
            false => Ok(()),
        }
    }

    /// A connection to this URL, `ws://` or `wss://`.
    pub(crate) fn connect(&self, url: String) -> Connect {
        let connect = Connect::new(url).timeout(self.timeouts.connect);
        match &self.tls {
            Some(tls) => connect.tls(Arc::clone(tls)),
            None => connect,
        }
    }
}

impl fmt::Debug for Options {
    /// Leaves out the fields' values, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}
