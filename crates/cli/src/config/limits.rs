//! Every limit of the server, and compression.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::PageLimit;
use anemone_proto::{CompressionLevel, Config, DeflateConfig, WindowBits};
use anemone_server::Limits;

use super::table::Table;
use super::values::{DAY, GIB, HOUR, KIB, MIB, MILLISECOND, boolean, duration, number, size};

/// Any size that a machine may have room for.
const SIZES: RangeInclusive<u64> = 1..=GIB;
/// Any number of connections, requests or events.
const COUNTS: RangeInclusive<usize> = 1..=1_000_000;
/// No time-out is shorter than what a timer can tell, or longer than a day.
const TIMES: RangeInclusive<Duration> = MILLISECOND..=DAY;

/// `[limits]`; `deflate` stands beside it.
pub(super) fn read(mut table: Table<'_>, deflate: Option<DeflateConfig>) -> Limits {
    let default = Limits::default();
    let websocket = connection(table.table("websocket"), &default.websocket);
    let multiplexed = connection(table.table("multiplexed"), &default.multiplexed);
    let echo = connection(table.table("echo"), &default.echo);
    let t = &mut table;
    let limits = Limits {
        connections_max: t.value("connections_max", default.connections_max, number(COUNTS)),
        connections_per_address_max: t
            .optional("connections_per_address_max", number(COUNTS))
            .map(|count| count.value),
        memory_max: t.optional("memory_max", size(MIB..=1 << 50)).map(|bytes| bytes.value),
        tls_handshake_timeout: time(t, "tls_handshake_timeout", default.tls_handshake_timeout),
        http2_streams_max: t.value(
            "http2_streams_max",
            default.http2_streams_max,
            number(1..=10_000),
        ),
        header_timeout: time(t, "header_timeout", default.header_timeout),
        header_bytes_max: t.value(
            "header_bytes_max",
            default.header_bytes_max,
            size(8 * KIB..=MIB),
        ),
        header_fields_max: t.value(
            "header_fields_max",
            default.header_fields_max,
            number(1..=10_000),
        ),
        body_timeout: time(t, "body_timeout", default.body_timeout),
        write_timeout: time(t, "write_timeout", default.write_timeout),
        wait_max: time(t, "wait_max", default.wait_max),
        wait_proxied: time(t, "wait_proxied", default.wait_proxied),
        page: PageLimit {
            events_max: t.value("page_events_max", default.page.events_max, number(COUNTS)),
            bytes_max: t.value("page_bytes_max", default.page.bytes_max, size(SIZES)),
        },
        batch_bytes_max: t.value("batch_bytes_max", default.batch_bytes_max, size(SIZES)),
        batch_events_max: t.value("batch_events_max", default.batch_events_max, number(COUNTS)),
        publish_timeout: time(t, "publish_timeout", default.publish_timeout),
        stream_bytes_max: t.value("stream_bytes_max", default.stream_bytes_max, size(SIZES)),
        heartbeat: time(t, "heartbeat", default.heartbeat),
        websocket: Arc::new(websocket),
        echo: Arc::new(echo),
        broadcast_bytes_max: t.value(
            "broadcast_bytes_max",
            default.broadcast_bytes_max,
            size(SIZES),
        ),
        deflate,
        multiplexed: Arc::new(multiplexed),
        multiplexed_requests_max: t.value(
            "multiplexed_requests_max",
            default.multiplexed_requests_max,
            number(COUNTS),
        ),
        awaited_topics_max: t.value(
            "awaited_topics_max",
            default.awaited_topics_max,
            number(COUNTS),
        ),
        awaited_topics_per_address_max: t
            .optional("awaited_topics_per_address_max", number(COUNTS))
            .map(|count| count.value),
        multiplexed_waiting_bytes_max: t.value(
            "multiplexed_waiting_bytes_max",
            default.multiplexed_waiting_bytes_max,
            size(SIZES),
        ),
        multiplexed_line_bytes_max: t.value(
            "multiplexed_line_bytes_max",
            default.multiplexed_line_bytes_max,
            size(64..=MIB),
        ),
        shutdown_grace: t.value(
            "shutdown_grace",
            default.shutdown_grace,
            duration(Duration::ZERO..=HOUR),
        ),
    };
    table.finish();
    limits
}

fn time(table: &mut Table<'_>, key: &'static str, default: Duration) -> Duration {
    table.value(key, default, duration(TIMES))
}

/// The bounds that one kind of connection sets its peer.
fn connection(mut table: Table<'_>, default: &Config) -> Config {
    let t = &mut table;
    let message_bytes_max = t.value("message_bytes_max", default.message_bytes_max, size(SIZES));
    let config = Config {
        message_bytes_max,
        // Whoever allows larger messages wants them in one frame, too.
        frame_bytes_max: t.value("frame_bytes_max", message_bytes_max, size(SIZES)),
        fragments_max: t.value("fragments_max", default.fragments_max, number(1..=1_000_000_000)),
        message_timeout: time(t, "message_timeout", default.message_timeout),
        ping_interval: time(t, "ping_interval", default.ping_interval),
        idle_timeout: time(t, "idle_timeout", default.idle_timeout),
        close_timeout: time(t, "close_timeout", default.close_timeout),
    };
    table.finish();
    config
}

/// `[deflate]`; `None` when it is switched off.
pub(super) fn deflate(mut table: Table<'_>) -> Option<DeflateConfig> {
    let default = DeflateConfig::default();
    let t = &mut table;
    let enabled = t.value("enabled", true, boolean);
    let mut bits = |key, default: WindowBits| {
        let range = WindowBits::MIN.get()..=WindowBits::MAX.get();
        WindowBits::new(t.value(key, default.get(), number(range))).unwrap_or(default)
    };
    let own_window_bits = bits("own_window_bits", default.own_window_bits);
    let peer_window_bits = bits("peer_window_bits", default.peer_window_bits);
    let levels = CompressionLevel::FASTEST.get()..=CompressionLevel::SMALLEST.get();
    let level = t.value("level", default.level.get(), number(levels));
    let config = DeflateConfig {
        level: CompressionLevel::new(level).unwrap_or(default.level),
        compress_bytes_min: t.value(
            "compress_bytes_min",
            default.compress_bytes_min,
            size(0..=GIB),
        ),
        own_window_bits,
        peer_window_bits,
        own_context_takeover: t.value(
            "own_context_takeover",
            default.own_context_takeover,
            boolean,
        ),
        peer_context_takeover: t.value(
            "peer_context_takeover",
            default.peer_context_takeover,
            boolean,
        ),
    };
    table.finish();
    enabled.then_some(config)
}
