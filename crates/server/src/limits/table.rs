//! The table of all limits with their bounds, used by the server's checks and by configurations.

use anemone_ws::proto;

use super::limit::{Limit, LimitError, bytes, count, time};
use super::{Limits, LimitsTable};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MILLISECOND: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MILLISECOND;
const DAY: u64 = 24 * HOUR;
/// Any time at all.
const CENTURY: u64 = 36_500 * DAY;

/// The bounds of a number of connections, requests or events.
const COUNTS: (u64, u64) = (1, 1_000_000);
const SIZES: (u64, u64) = (1, GIB);
/// The bounds of a timeout: from the precision of timers to a day.
const TIMES: (u64, u64) = (MILLISECOND, DAY);
/// The longest interval of heartbeats: PROTOCOL.md promises a sign of life within 15 s, and clients take a connection that is
/// quiet for 20 s for dead.
const HEARTBEAT_MAX: u64 = 15_000 * MILLISECOND;
/// The bounds of a wait, which may be 0.
const WAITS: (u64, u64) = (0, DAY);
/// The bounds of a header; the HTTP server keeps at least this much of a connection.
const HEADERS: (u64, u64) = (8 * KIB, MIB);
/// The bounds of a number of fields, well below the 24,576 that the HTTP server supports.
const FIELDS: (u64, u64) = (1, 10_000);
/// The bounds of the memory; less than a page would leave no room for any client.
const MEMORY: (u64, u64) = (4 * KIB, 1 << 50);

impl Limits {
    /// The bounds of [`connections_max`](Self::connections_max).
    pub const CONNECTIONS_MAX: Limit<Self> =
        count("connections_max", COUNTS, |l| &mut l.connections_max);

    /// The bounds of [`memory_max`](Self::memory_max).
    pub const MEMORY_MAX: Limit<Self> = bytes("memory_max", MEMORY, |l| &mut l.memory_max);

    /// All limits except those of WebSockets.
    pub const TABLE: &[Limit<Self>] = &[
        Self::CONNECTIONS_MAX,
        count("connections_per_address_max", COUNTS, |l| &mut l.connections_per_address_max),
        Self::MEMORY_MAX,
        time("tls_handshake_timeout", TIMES, |l| &mut l.tls_handshake_timeout),
        count("http2_streams_max", (1, 10_000), |l| &mut l.http2_streams_max),
        time("header_timeout", TIMES, |l| &mut l.header_timeout),
        bytes("header_bytes_max", HEADERS, |l| &mut l.header_bytes_max),
        count("header_fields_max", FIELDS, |l| &mut l.header_fields_max),
        time("body_timeout", TIMES, |l| &mut l.body_timeout),
        time("service_timeout", TIMES, |l| &mut l.service_timeout),
        time("write_timeout", TIMES, |l| &mut l.write_timeout),
        time("wait_max", WAITS, |l| &mut l.wait_max),
        time("wait_proxied", WAITS, |l| &mut l.wait_proxied),
        count("page_events_max", COUNTS, |l| &mut l.page.events_max),
        bytes("page_bytes_max", SIZES, |l| &mut l.page.bytes_max),
        bytes("batch_bytes_max", SIZES, |l| &mut l.batch_bytes_max),
        count("batch_events_max", COUNTS, |l| &mut l.batch_events_max),
        time("publish_timeout", TIMES, |l| &mut l.publish_timeout),
        bytes("stream_bytes_max", SIZES, |l| &mut l.stream_bytes_max),
        time("heartbeat", (MILLISECOND, HEARTBEAT_MAX), |l| &mut l.heartbeat),
        bytes("broadcast_bytes_max", SIZES, |l| &mut l.broadcast_bytes_max),
        count("multiplexed_requests_max", COUNTS, |l| &mut l.multiplexed_requests_max),
        bytes("multiplexed_waiting_bytes_max", SIZES, |l| &mut l.multiplexed_waiting_bytes_max),
        bytes("multiplexed_line_bytes_max", (64, MIB), |l| &mut l.multiplexed_line_bytes_max),
        count("awaited_topics_max", COUNTS, |l| &mut l.awaited_topics_max),
        count("awaited_topics_per_address_max", COUNTS, |l| &mut l.awaited_topics_per_address_max),
        count("stream_topics_max", (1, 10_000), |l| &mut l.stream_topics_max),
        bytes("token_bytes_max", (64, 64 * KIB), |l| &mut l.token_bytes_max),
        count("index_events_max", COUNTS, |l| &mut l.index_events_max),
        count("runs_running_max", (1, 1_000), |l| &mut l.runs_running_max),
        count("runs_queued_max", COUNTS, |l| &mut l.runs_queued_max),
        count("runs_queued_per_address_max", COUNTS, |l| &mut l.runs_queued_per_address_max),
        time("run_time_max", (MILLISECOND, CENTURY), |l| &mut l.run_time_max),
        time("run_retention", (0, CENTURY), |l| &mut l.run_retention),
        count("run_events_max", (1, 1_000_000_000), |l| &mut l.run_events_max),
        bytes("run_bytes_max", SIZES, |l| &mut l.run_bytes_max),
        bytes("runs_bytes_max", MEMORY, |l| &mut l.runs_bytes_max),
        time("shutdown_grace", (0, HOUR), |l| &mut l.shutdown_grace),
    ];

    /// The limits of each kind of WebSocket: [`websocket`](Self::websocket), [`echo`](Self::echo) and
    /// [`multiplexed`](Self::multiplexed).
    pub const WEBSOCKET_TABLE: &[Limit<proto::Config>] = &[
        bytes("message_bytes_max", SIZES, |l| &mut l.message_bytes_max),
        bytes("frame_bytes_max", SIZES, |l| &mut l.frame_bytes_max),
        count("fragments_max", (1, 1_000_000_000), |l| &mut l.fragments_max),
        time("message_timeout", TIMES, |l| &mut l.message_timeout),
        time("ping_interval", TIMES, |l| &mut l.ping_interval),
        time("idle_timeout", TIMES, |l| &mut l.idle_timeout),
        time("close_timeout", TIMES, |l| &mut l.close_timeout),
    ];

    /// Finds the first limit out of its bounds.
    pub(crate) fn check(&self) -> Result<(), LimitError> {
        Self::TABLE.iter().try_for_each(|limit| limit.check(self))?;
        LimitsTable::ALL.iter().try_for_each(|table| {
            let limits = table.of(self);
            let checked = Self::WEBSOCKET_TABLE.iter().try_for_each(|limit| limit.check(limits));
            checked.map_err(|error| error.within(table.name()))
        })
    }
}
