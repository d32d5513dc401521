//! Every bound that stands between the server and its peers.

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::PageLimit;
use anemone_ws::proto;

/// Bounds of a server. Each is checked where its peer can reach it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Most connections at once, all threads together. Default 10,000. One more is answered
    /// with 503 and closed.
    pub connections_max: usize,
    /// How long a TLS handshake may take. Default 10 s. The connection is closed.
    pub tls_handshake_timeout: Duration,
    /// HTTP/2: most requests and WebSockets at once on one connection. Default 100, the least that
    /// RFC 9113 section 6.5.2 advises. One more is refused, for the client to try again.
    pub http2_streams_max: u32,
    /// How long a request's header may take, and how long a connection may wait between requests.
    /// Default 30 s. The connection is closed.
    pub header_timeout: Duration,
    /// Longest header of a request, in bytes. Default 16 KiB; at least 8 KiB. Answered with 431.
    pub header_bytes_max: usize,
    /// Most header fields of a request. Default 100. Answered with 431.
    pub header_fields_max: usize,
    /// How long the body of a request may take. Default 30 s. Answered with 408.
    pub body_timeout: Duration,
    /// How long a reply may be stuck because the client does not read. Default 30 s. The
    /// connection is closed.
    pub write_timeout: Duration,
    /// Longest `wait` of a long poll. Default 120 s. A longer one is answered with 400.
    pub wait_max: Duration,
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
    /// The same for `/echo`, whose largest message also bounds the body of a `POST`. Default: as
    /// [`proto::Config`] says, 16 MiB.
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
    /// How long open requests and connections may take to end once the server stops. Default 5 s.
    pub shutdown_grace: Duration,
}

const LINE_BYTES_MAX: usize = 4 << 10;
const BATCH_BYTES_MAX: usize = 1 << 20;

impl Default for Limits {
    fn default() -> Self {
        let websocket = proto::Config {
            frame_bytes_max: 64 << 10,
            message_bytes_max: 64 << 10,
            ..proto::Config::default()
        };
        let message_bytes_max = (LINE_BYTES_MAX + BATCH_BYTES_MAX) as u64;
        let multiplexed = proto::Config {
            frame_bytes_max: message_bytes_max,
            message_bytes_max,
            ..proto::Config::default()
        };
        Self {
            connections_max: 10_000,
            tls_handshake_timeout: Duration::from_secs(10),
            http2_streams_max: 100,
            header_timeout: Duration::from_secs(30),
            header_bytes_max: 16 << 10,
            header_fields_max: 100,
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            wait_max: Duration::from_secs(120),
            page: PageLimit::default(),
            batch_bytes_max: BATCH_BYTES_MAX,
            batch_events_max: 1_000,
            publish_timeout: Duration::from_secs(30),
            stream_bytes_max: 64 << 10,
            heartbeat: Duration::from_secs(15),
            websocket: Arc::new(websocket),
            echo: Arc::default(),
            broadcast_bytes_max: 1 << 20,
            deflate: Some(proto::DeflateConfig::default()),
            multiplexed: Arc::new(multiplexed),
            multiplexed_requests_max: 1_000,
            multiplexed_waiting_bytes_max: 4 << 20,
            multiplexed_line_bytes_max: LINE_BYTES_MAX,
            shutdown_grace: Duration::from_secs(5),
        }
    }
}
