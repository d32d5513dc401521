//! The server's limits, and compression.

use std::sync::Arc;

use anemone_proto::{CompressionLevel, Config, DeflateConfig, WindowBits};
use anemone_server::{Limit, Limits};
use anemone_services::CollectionOptions;

use super::table::Table;
use super::values::{GIB, amount, boolean, number, size};

/// Reads `[limits]`, and in it those of the records of `/messages`; `deflate` is a separate table.
pub(super) fn read(
    mut table: Table<'_>,
    deflate: Option<DeflateConfig>,
) -> (Limits, CollectionOptions) {
    let messages = messages(table.table("messages"));
    let mut limits = Limits { deflate, ..Limits::default() };
    for (key, config) in [
        ("websocket", &mut limits.websocket),
        ("multiplexed", &mut limits.multiplexed),
        ("echo", &mut limits.echo),
    ] {
        connection(table.table(key), Arc::make_mut(config));
    }
    set(&mut table, Limits::TABLE, &mut limits);
    table.finish();
    (limits, messages)
}

/// Reads the limits of the records of `/messages`.
fn messages(mut table: Table<'_>) -> CollectionOptions {
    let default = CollectionOptions::default();
    let options = CollectionOptions {
        records_max: table.value("records_max", default.records_max, number(1..=1_000_000)),
        bytes_max: table.value("bytes_max", default.bytes_max, size(4096..=GIB)),
        finds_max: table.value("finds_max", default.finds_max, number(1..=1000)),
        finds_waiting_per_client_max: table.value(
            "finds_waiting_per_client_max",
            default.finds_waiting_per_client_max,
            number(0..=1_000_000),
        ),
        ..default
    };
    table.finish();
    options
}

/// Reads the limits of one kind of connection.
fn connection(mut table: Table<'_>, config: &mut Config) {
    let given = set(&mut table, Limits::WEBSOCKET_TABLE, config);
    // A larger limit for messages also applies to single frames.
    if !given.contains(&"frame_bytes_max") {
        config.frame_bytes_max = config.message_bytes_max;
    }
    table.finish();
}

/// Sets the limits in the table, and returns their keys.
fn set<L: Clone>(
    table: &mut Table<'_>,
    all: &'static [Limit<L>],
    limits: &mut L,
) -> Vec<&'static str> {
    let mut given = Vec::new();
    for limit in all {
        if let Some(found) = table.optional(limit.key, amount(limit)) {
            limit.set(limits, found.value);
            given.push(limit.key);
        }
    }
    given
}

/// Reads `[deflate]`; `None` if it is disabled.
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
