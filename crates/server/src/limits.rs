//! Every bound that stands between the server and its peers.

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::PageLimit;
use anemone_ws::proto;
use tokio::sync::Semaphore;

use crate::memory;

/// Bounds of a server. Each is checked where its peer can reach it. Numbers are at least 1, and times
/// at least a millisecond and at most [`TIME_MAX`](Self::TIME_MAX), where nothing else is said; a server
/// with others is not [bound](crate::Server::bind).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Most connections at once, all threads together. Default 10,000. One more is answered
    /// with 503 and closed.
    pub connections_max: usize,
    /// Most connections at once from one address, of IPv6 from one /64. Default `None`, a tenth of `connections_max`, at
    /// least 1: enough for an office behind one address, and it takes ten to have all. One more is answered with 503 and
    /// closed. Clients of this machine and proxies that are trusted have as many as there are; and one in a hundred of all,
    /// from 1 to 8, is kept for the former. Behind a trusted proxy the requests, streams and WebSockets of each client's own
    /// address count in the same way.
    pub connections_per_address_max: Option<usize>,
    /// Most bytes that are held for peers, all together: bodies and messages as they come, replies and events that are not
    /// taken, payloads that wait to be kept. Default: half of what the machine or its control group has. Above it what is new
    /// is answered with 503, and those are let go who have had something held for the longest time, then those who have
    /// most open. What is open and quiet counts as well.
    pub memory_max: Option<usize>,
    /// The time that a TLS handshake may take. Default 10 s. The connection is closed.
    pub tls_handshake_timeout: Duration,
    /// HTTP/2: most requests and WebSockets at once on one connection. Default 100, the least that
    /// RFC 9113 section 6.5.2 advises. One more is refused, for the client to try again.
    pub http2_streams_max: u32,
    /// The time that a request's header may take, and that a connection may wait between requests.
    /// Default 30 s. The connection is closed.
    pub header_timeout: Duration,
    /// Longest header of a request, in bytes. Default 16 KiB; at least 8 KiB. Answered with 431.
    pub header_bytes_max: usize,
    /// Most header fields of a request. Default 100; at most 10,000. Answered with 431.
    pub header_fields_max: usize,
    /// The time that the body of a request may take. Default 30 s. Answered with 408.
    pub body_timeout: Duration,
    /// The time that a reply may be stuck because the client does not read. Default 30 s. The
    /// connection is closed.
    pub write_timeout: Duration,
    /// Longest `wait` of a long poll. Default 120 s; may be nothing. A longer one is answered with 400.
    pub wait_max: Duration,
    /// Longest `wait` of a long poll that may come by a proxy. Default 50 s, less than the 60 s after which nginx and Apache
    /// give up by default; may be nothing. A longer one is cut to this.
    pub wait_proxied: Duration,
    /// Largest page of a poll; `limit` may ask for less. Default 1,000 events and 1 MiB of data.
    pub page: PageLimit,
    /// Publishing: largest body. Default 1 MiB. Answered with 413.
    pub batch_bytes_max: usize,
    /// Publishing: most events in a body. Default 1,000. Answered with 413.
    pub batch_events_max: usize,
    /// Publishing: how long it may take until the events are kept. Default 30 s. Answered with 503; they may
    /// be kept yet, so a retry needs an idempotency key.
    pub publish_timeout: Duration,
    /// Most bytes of data that a stream (SSE, NDJSON, forever-frame, WebSocket) reads from the log at once, and so
    /// holds for a client that does not read. Default 64 KiB.
    pub stream_bytes_max: u64,
    /// A stream (SSE, NDJSON, forever-frame, multiplexed) that was quiet for this long shows that it is alive. Default
    /// 15 s. WebSockets have their pings.
    pub heartbeat: Duration,
    /// WebSocket: limits on frames and messages, pings and time-outs. Default: 64 KiB a message,
    /// the rest as [`proto::Config`] says.
    pub websocket: Arc<proto::Config>,
    /// The same for `/echo`, whose largest message also bounds the body of a `POST`. Default: 1 MiB a message, for
    /// all of one is kept until it is whole; the rest as [`proto::Config`] says.
    pub echo: Arc<proto::Config>,
    /// `/broadcast`: most bytes of messages that each thread keeps for members who are slow, and most that
    /// are on their way to a thread. Default 1 MiB. A member that is further behind is closed with 1008.
    pub broadcast_bytes_max: usize,
    /// Compression of WebSocket messages (RFC 7692) as it is negotiated; `None` for never. Default:
    /// for messages from 512 bytes, without context takeover.
    pub deflate: Option<proto::DeflateConfig>,
    /// Multiplexed (`/ws` and TCP): limits on messages, pings and time-outs, of which TCP has the longest
    /// message, the idle time-out and the close time-out. Default: 1 MiB and 4 KiB a message, a line and a
    /// body; the rest as [`proto::Config`] says.
    pub multiplexed: Arc<proto::Config>,
    /// Multiplexed: most requests that are open at once on one connection. Default 1,000. One more is
    /// answered with 429.
    pub multiplexed_requests_max: usize,
    /// Multiplexed: most bytes of payloads whose events wait to be kept, on one connection; one payload that is
    /// longer waits alone. Default 4 MiB. One more is answered with 429.
    pub multiplexed_waiting_bytes_max: usize,
    /// Multiplexed: longest first line of a message, in bytes. Default 4 KiB. Answered with 400.
    pub multiplexed_line_bytes_max: usize,
    /// Most topics that readers wait for before there is an event in them, all threads together. Default 10,000: each costs
    /// up to 2.5 KiB, which count in `memory_max`. One more is answered with 503; a poll, which does not wait, never is.
    pub awaited_topics_max: usize,
    /// Most of these that one address, or one /64 of IPv6, waits for. Default `None`, a tenth of `awaited_topics_max`, at
    /// least 1. Clients of this machine wait for as many as there may be.
    pub awaited_topics_per_address_max: Option<usize>,
    /// The time that open requests and connections may take to end once the server stops. Default 5 s; may be
    /// nothing.
    pub shutdown_grace: Duration,
}

const LINE_BYTES_MAX: usize = 4 << 10;
const BATCH_BYTES_MAX: usize = 1 << 20;
const ECHO_BYTES_MAX: u64 = 1 << 20;

/// The HTTP server keeps at least so much of a connection.
const HEADER_BYTES_MIN: usize = 8 << 10;
/// Well below what the HTTP server can keep, which is 24,576.
const HEADER_FIELDS_MAX: usize = 10_000;

/// A limit that no server can keep to.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// A number.
    #[error("limit {name} is {value}, must be from {least} to {most}")]
    Number {
        /// Which of [`Limits`].
        name: &'static str,
        /// Its value.
        value: u64,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// A time.
    #[error("limit {name} is {value:?}, must be from {least:?} to {most:?}")]
    Time {
        /// Which of [`Limits`].
        name: &'static str,
        /// Its value.
        value: Duration,
        /// The least that it may be.
        least: Duration,
        /// The most that it may be.
        most: Duration,
    },
}

impl Limits {
    /// The longest of all times: a year. A clock has no room for some longer ones.
    pub const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

    /// The bytes that `memory_max` comes to on this machine, now: what it says, or half of what the machine or its control
    /// group has.
    #[must_use]
    pub fn memory_bytes_max(&self) -> usize {
        self.memory_max.unwrap_or_else(memory::bytes_max)
    }

    /// Finds the first limit that no server can keep to.
    pub(crate) fn check(&self) -> Result<(), LimitError> {
        for (name, value, least, most) in [
            ("memory_max", self.memory_max.unwrap_or(usize::MAX), 1, usize::MAX),
            (
                "connections_per_address_max",
                self.connections_per_address_max.unwrap_or(1),
                1,
                usize::MAX,
            ),
            ("connections_max", self.connections_max, 1, Semaphore::MAX_PERMITS),
            ("http2_streams_max", self.http2_streams_max as usize, 1, usize::MAX),
            ("header_bytes_max", self.header_bytes_max, HEADER_BYTES_MIN, usize::MAX),
            ("header_fields_max", self.header_fields_max, 1, HEADER_FIELDS_MAX),
            ("page.events_max", self.page.events_max, 1, usize::MAX),
            ("batch_bytes_max", self.batch_bytes_max, 1, usize::MAX),
            ("batch_events_max", self.batch_events_max, 1, usize::MAX),
            ("broadcast_bytes_max", self.broadcast_bytes_max, 1, usize::MAX),
            ("multiplexed_requests_max", self.multiplexed_requests_max, 1, usize::MAX),
            ("multiplexed_waiting_bytes_max", self.multiplexed_waiting_bytes_max, 1, usize::MAX),
            ("multiplexed_line_bytes_max", self.multiplexed_line_bytes_max, 1, usize::MAX),
            ("awaited_topics_max", self.awaited_topics_max, 1, Semaphore::MAX_PERMITS),
            (
                "awaited_topics_per_address_max",
                self.awaited_topics_per_address_max.unwrap_or(1),
                1,
                usize::MAX,
            ),
        ] {
            number(name, value as u64, least as u64, most as u64)?;
        }
        number("page.bytes_max", self.page.bytes_max, 1, u64::MAX)?;
        number("stream_bytes_max", self.stream_bytes_max, 1, u64::MAX)?;
        let (none, some) = (Duration::ZERO, Duration::from_millis(1));
        for (name, value, least) in [
            ("tls_handshake_timeout", self.tls_handshake_timeout, some),
            ("header_timeout", self.header_timeout, some),
            ("body_timeout", self.body_timeout, some),
            ("write_timeout", self.write_timeout, some),
            ("wait_max", self.wait_max, none),
            ("wait_proxied", self.wait_proxied, none),
            ("publish_timeout", self.publish_timeout, some),
            ("heartbeat", self.heartbeat, some),
            ("shutdown_grace", self.shutdown_grace, none),
        ] {
            let most = Self::TIME_MAX;
            if value < least || value > most {
                return Err(LimitError::Time { name, value, least, most });
            }
        }
        Ok(())
    }
}

fn number(name: &'static str, value: u64, least: u64, most: u64) -> Result<(), LimitError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(LimitError::Number { name, value, least, most })
}

impl Default for Limits {
    fn default() -> Self {
        let of = |message_bytes_max| proto::Config {
            frame_bytes_max: message_bytes_max,
            message_bytes_max,
            ..proto::Config::default()
        };
        Self {
            connections_max: 10_000,
            connections_per_address_max: None,
            memory_max: None,
            tls_handshake_timeout: Duration::from_secs(10),
            http2_streams_max: 100,
            header_timeout: Duration::from_secs(30),
            header_bytes_max: 16 << 10,
            header_fields_max: 100,
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            wait_max: Duration::from_secs(120),
            wait_proxied: Duration::from_secs(50),
            page: PageLimit::default(),
            batch_bytes_max: BATCH_BYTES_MAX,
            batch_events_max: 1_000,
            publish_timeout: Duration::from_secs(30),
            stream_bytes_max: 64 << 10,
            heartbeat: Duration::from_secs(15),
            websocket: Arc::new(of(64 << 10)),
            echo: Arc::new(of(ECHO_BYTES_MAX)),
            broadcast_bytes_max: 1 << 20,
            deflate: Some(proto::DeflateConfig::default()),
            multiplexed: Arc::new(of((LINE_BYTES_MAX + BATCH_BYTES_MAX) as u64)),
            multiplexed_requests_max: 1_000,
            multiplexed_waiting_bytes_max: 4 << 20,
            multiplexed_line_bytes_max: LINE_BYTES_MAX,
            awaited_topics_max: 10_000,
            awaited_topics_per_address_max: None,
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

/// A table of limits on WebSockets, as `[limits.echo]` of the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LimitsTable {
    Websocket,
    Echo,
    Multiplexed,
}

impl LimitsTable {
    /// Its name below `limits`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Websocket => "websocket",
            Self::Echo => "echo",
            Self::Multiplexed => "multiplexed",
        }
    }

    pub(crate) fn of(self, limits: &Limits) -> &Arc<proto::Config> {
        match self {
            Self::Websocket => &limits.websocket,
            Self::Echo => &limits.echo,
            Self::Multiplexed => &limits.multiplexed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fault of the defaults, once they are changed.
    fn wrong(change: impl FnOnce(&mut Limits)) -> Option<String> {
        let mut limits = Limits::default();
        change(&mut limits);
        limits.check().err().map(|error| error.to_string())
    }

    #[test]
    fn the_defaults_can_be_kept_to() {
        assert_eq!(wrong(|_| {}), None);
    }

    #[test]
    fn a_header_has_at_least_8_kib() {
        assert_eq!(wrong(|limits| limits.header_bytes_max = 8192), None);
        let short = wrong(|limits| limits.header_bytes_max = 8191).unwrap();
        assert!(short.starts_with("limit header_bytes_max is 8191, must be from 8192"), "{short}");
    }

    #[test]
    fn numbers_are_at_least_1() {
        assert_eq!(wrong(|limits| limits.connections_max = 1), None);
        type Change = fn(&mut Limits);
        let changes: [(&str, Change); 14] = [
            ("connections_max", |limits| limits.connections_max = 0),
            ("http2_streams_max", |limits| limits.http2_streams_max = 0),
            ("header_fields_max", |limits| limits.header_fields_max = 0),
            ("page.events_max", |limits| limits.page.events_max = 0),
            ("page.bytes_max", |limits| limits.page.bytes_max = 0),
            ("batch_bytes_max", |limits| limits.batch_bytes_max = 0),
            ("batch_events_max", |limits| limits.batch_events_max = 0),
            ("stream_bytes_max", |limits| limits.stream_bytes_max = 0),
            ("broadcast_bytes_max", |limits| limits.broadcast_bytes_max = 0),
            ("multiplexed_requests_max", |limits| limits.multiplexed_requests_max = 0),
            ("multiplexed_waiting_bytes_max", |limits| limits.multiplexed_waiting_bytes_max = 0),
            ("multiplexed_line_bytes_max", |limits| limits.multiplexed_line_bytes_max = 0),
            ("awaited_topics_max", |limits| limits.awaited_topics_max = 0),
            ("awaited_topics_per_address_max", |limits| {
                limits.awaited_topics_per_address_max = Some(0);
            }),
        ];
        for (name, change) in changes {
            let text = wrong(change).unwrap();
            assert!(text.starts_with(&format!("limit {name} is 0, must be from 1 to ")), "{text}");
        }
    }

    #[test]
    fn some_numbers_have_an_end() {
        assert_eq!(wrong(|limits| limits.header_fields_max = 10_000), None);
        assert!(wrong(|limits| limits.header_fields_max = 10_001).is_some());
        assert_eq!(wrong(|limits| limits.connections_max = Semaphore::MAX_PERMITS), None);
        assert!(wrong(|limits| limits.connections_max = Semaphore::MAX_PERMITS + 1).is_some());
    }

    #[test]
    fn times_are_between_a_millisecond_and_a_year() {
        let year = Limits::TIME_MAX;
        let ns = Duration::from_nanos(1);
        assert_eq!(wrong(|limits| limits.heartbeat = Duration::from_millis(1)), None);
        let short = wrong(|limits| limits.heartbeat = Duration::from_millis(1) - ns).unwrap();
        assert_eq!(short, "limit heartbeat is 999.999µs, must be from 1ms to 31536000s");
        assert_eq!(wrong(|limits| limits.header_timeout = year), None);
        assert!(wrong(|limits| limits.header_timeout = year + ns).is_some());
        assert_eq!(wrong(|limits| limits.shutdown_grace = Duration::ZERO), None);
        assert_eq!(wrong(|limits| limits.wait_max = Duration::ZERO), None);
        assert_eq!(wrong(|limits| limits.wait_proxied = Duration::ZERO), None);
    }

    #[test]
    fn nothing_is_quiet_for_as_long_as_proxies_wait_by_default() {
        let limits = Limits::default();
        let pings = [&limits.websocket, &limits.multiplexed].map(|own| own.ping_interval);
        for quiet in [limits.wait_proxied, limits.heartbeat, pings[0], pings[1]] {
            assert!(quiet <= Duration::from_secs(50), "{quiet:?}"); // HAProxy as Debian configures it
        }
    }
}
