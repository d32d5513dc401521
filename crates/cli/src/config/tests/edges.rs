//! Every range, at both of its ends and right beside them.

use super::*;

/// A key and the text before it, its first and last valid value, and the values beyond.
type Edges<'a> = (&'a str, [&'a str; 2], [&'a str; 2]);

#[track_caller]
fn assert_edges(before: &str, (key, [first, last], beyond): Edges<'_>) {
    for value in [first, last] {
        let text = format!("{before}{key} = {value}");
        if let Err(error) = read(&text, &[]) {
            panic!("{text}: {error}");
        }
    }
    for value in beyond {
        let text = format!("{before}{key} = {value}");
        let found = faults(&text, &[]);
        assert!(found.len() == 1 && found[0].contains("from"), "{text}: {found:?}");
    }
}

const COUNTS: ([&str; 2], [&str; 2]) = (["1", "1000000"], ["0", "1000001"]);
const SIZES: ([&str; 2], [&str; 2]) = (["1", "'1GiB'"], ["0", "1073741825"]);
const TIMES: ([&str; 2], [&str; 2]) = (["'1ms'", "'1d'"], ["'0s'", "'86400001ms'"]);

#[test]
fn numbers_of_the_server_have_their_range() {
    for (key, values, beyond) in [
        ("threads", ["1", "1024"], ["0", "1025"]),
        ("limits.connections_max", COUNTS.0, COUNTS.1),
        ("limits.page_events_max", COUNTS.0, COUNTS.1),
        ("limits.batch_events_max", COUNTS.0, COUNTS.1),
        ("limits.multiplexed_requests_max", COUNTS.0, COUNTS.1),
        ("limits.messages.records_max", COUNTS.0, COUNTS.1),
        ("limits.messages.finds_max", ["1", "1000"], ["0", "1001"]),
        ("limits.messages.finds_waiting_per_client_max", ["0", "1000000"], ["-1", "1000001"]),
        ("limits.http2_streams_max", ["1", "10000"], ["0", "10001"]),
        ("limits.header_fields_max", ["1", "10000"], ["0", "10001"]),
        ("limits.websocket.fragments_max", ["1", "1000000000"], ["0", "1000000001"]),
        ("deflate.level", ["1", "9"], ["0", "10"]),
        ("deflate.own_window_bits", ["9", "15"], ["8", "16"]),
        ("deflate.peer_window_bits", ["9", "15"], ["8", "16"]),
    ] {
        assert_edges("", (key, values, beyond));
    }
}

#[test]
fn sizes_of_the_server_have_their_range() {
    for key in ["page", "batch", "stream", "broadcast"] {
        assert_edges("", (&format!("limits.{key}_bytes_max"), SIZES.0, SIZES.1));
    }
    for table in ["websocket", "multiplexed", "echo"] {
        for key in ["message_bytes_max", "frame_bytes_max"] {
            assert_edges("", (&format!("limits.{table}.{key}"), SIZES.0, SIZES.1));
        }
    }
    for (key, values, beyond) in [
        ("limits.header_bytes_max", ["8192", "'1MiB'"], ["8191", "1048577"]),
        ("limits.multiplexed_line_bytes_max", ["64", "'1MiB'"], ["63", "1048577"]),
        ("limits.messages.bytes_max", ["4096", "'1GiB'"], ["4095", "1073741825"]),
        ("data.segment_bytes_max", ["4096", "'1GiB'"], ["4095", "1073741825"]),
        ("data.queue_bytes_max", ["65536", "'1GiB'"], ["65535", "1073741825"]),
    ] {
        assert_edges("", (key, values, beyond));
    }
    for key in ["deflate.compress_bytes_min", "data.memory_bytes_max"] {
        assert_edges("", (key, ["0", "'1GiB'"], ["1073741825", "'2GiB'"]));
    }
}

#[test]
fn times_of_the_server_have_their_range() {
    for key in [
        "tls_handshake_timeout",
        "header_timeout",
        "body_timeout",
        "service_timeout",
        "write_timeout",
        "publish_timeout",
        "websocket.message_timeout",
        "multiplexed.ping_interval",
        "echo.idle_timeout",
        "echo.close_timeout",
    ] {
        assert_edges("", (&format!("limits.{key}"), TIMES.0, TIMES.1));
    }
    // Clients take a stream that is quiet for 20 s for dead.
    assert_edges("", ("limits.heartbeat", ["'1ms'", "'15s'"], ["'0s'", "'15001ms'"]));
    for key in ["wait_max", "wait_proxied"] {
        assert_edges("", (&format!("limits.{key}"), ["'0s'", "'1d'"], ["'86400001ms'", "'2d'"]));
    }
    assert_edges("", ("limits.run_time_max", ["'1ms'", "'36500d'"], ["'0s'", "'36501d'"]));
    assert_edges("", ("limits.run_retention", ["'0s'", "'30d'"], ["'36501d'", "'40000d'"]));
    let hour = ["'0s'", "'1h'"];
    assert_edges("", ("limits.shutdown_grace", hour, ["'3600001ms'", "'1d'"]));
    assert_edges("", ("data.fsync_interval", ["'1ms'", "'1h'"], ["'0s'", "'3600001ms'"]));
}

#[test]
fn what_holds_for_topics_has_its_range() {
    let topic = "[[topic]]\nname = \"a*\"\n";
    for (key, values, beyond) in [
        ("events_max", ["1", "1000000000000"], ["0", "1000000000001"]),
        ("bytes_max", ["1", "'1024TiB'"], ["0", "1125899906842625"]),
        ("age_max", ["'1s'", "'36500d'"], ["'999ms'", "'36501d'"]),
        ("event_bytes_max", ["1", "'1MiB'"], ["0", "1048577"]),
        ("topics_max", COUNTS.0, COUNTS.1),
        ("bytes_total_max", ["'16MiB'", "'1024TiB'"], ["0", "1125899906842625"]),
        ("keys_max", ["0", "10000000"], ["10000001", "-1"]),
        ("keys_age_max", TIMES.0, TIMES.1),
    ] {
        assert_edges(topic, (key, values, beyond));
    }
}

#[test]
fn what_runs_have_has_its_range() {
    let run = "[[run]]\npath = \"/a\"\ncommand = \"c\"\n";
    for (key, values, beyond) in [
        ("time_max", ["'1ms'", "'36500d'"], ["'0s'", "'36501d'"]),
        ("grace", ["'0s'", "'1h'"], ["'3600001ms'", "'1d'"]),
        ("output_bytes_max", ["1", "'1TiB'"], ["0", "1099511627777"]),
        ("line_bytes_max", ["1", "'1MiB'"], ["0", "1048577"]),
        ("processes_max", COUNTS.0, COUNTS.1),
        ("log_lines_max", ["0", "1000000"], ["1000001", "-1"]),
        ("report_interval", ["'1s'", "'1d'"], ["'999ms'", "'86400001ms'"]),
    ] {
        assert_edges(run, (key, values, beyond));
    }
}

#[test]
fn what_sources_have_has_its_range() {
    let source =
        |kind: &str, rest: &str| format!("[[source]]\ntopic = \"a\"\ntype = \"{kind}\"\n{rest}\n");
    let serial = source("serial", "device = \"d\"");
    let exec = source("exec", "command = \"c\"");
    let file = source("file", "path = \"p\"");
    let lines = ["1", "'16MiB'"];
    let reports = (["'1s'", "'1d'"], ["'999ms'", "'86400001ms'"]);
    let serial_lines = source("serial-lines", "device = \"d\"");
    for source in [&exec, &file, &source("stdin", ""), &serial_lines] {
        assert_edges(source, ("line_bytes_max", lines, ["0", "16777217"]));
        assert_edges(source, ("report_interval", reports.0, reports.1));
    }
    assert_edges(&serial, ("line_bytes_max", ["16", "65536"], ["15", "65537"]));
    for source in [&serial, &serial_lines] {
        assert_edges(source, ("baud", ["50", "4000000"], ["49", "4000001"]));
    }
    for key in ["silence_max", "poll_interval", "unasked_wait", "answer_wait", "configure_retry"] {
        assert_edges(&serial, (key, TIMES.0, TIMES.1));
    }
    for source in [&serial, &serial_lines, &exec] {
        let retry = format!("{source}retry_max = \"1d\"\n");
        assert_edges(&retry, ("retry_min", TIMES.0, TIMES.1));
    }
    assert_edges(&exec, ("good_run_min", TIMES.0, TIMES.1));
    assert_edges(&exec, ("grace", ["'0s'", "'1h'"], ["'3600001ms'", "'1d'"]));
    assert_edges(&exec, ("log_lines_max", ["0", "1000000"], ["1000001", "-1"]));
    assert_edges(&file, ("interval", ["'1ms'", "'1h'"], ["'0s'", "'3600001ms'"]));
    let host = source("host", "");
    assert_edges(&host, ("interval", ["'200ms'", "'1h'"], ["'199ms'", "'3600001ms'"]));
}
