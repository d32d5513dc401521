//! The events that topics keep: a great deal without limits, and told in words wherever somebody asks.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::fs;

use anemone_testing::process::{ask, command, output, serve};
use serde_json::Value;
use tempfile::tempdir;

/// A configuration with topics that programs on this machine may publish to.
const OPEN: &str = "[[topic]]\nname = \"open-*\"\npublish = \"loopback\"\n";

/// The output of a command that succeeds.
fn done(args: &[&str], input: &str) -> String {
    let output = output(command(args), input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// As many lines of numbers as `seq` prints.
fn seq(last: u64) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

fn listed(address: std::net::SocketAddr, name: &str) -> Value {
    let lines = done(&["topics", &format!("http://{address}"), "--output", "json"], "");
    let mut topics = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    topics.find(|topic| topic["name"] == name).unwrap()
}

#[test]
fn whatever_is_published_is_read_from_the_first_event_on_in_memory_and_on_disk() {
    let directory = tempdir().unwrap();
    let config = directory.path().join("anemone.toml");
    fs::write(&config, OPEN).unwrap();
    let (config, data) = (config.to_str().unwrap(), directory.path().join("data"));
    for storage in [&[][..], &["--data", data.to_str().unwrap()]] {
        let (_server, address) =
            serve(&[&["--threads", "1", "--config", config], storage].concat());
        let url = format!("http://{address}/topics/open-seq");
        done(&["pub", &url, "-"], &seq(20_000));
        let after = ["--after", "earliest", "--count", "20000", "--output", "data"];
        let read = done(&[&["sub", &url], &after[..]].concat(), "");
        assert!(read == seq(20_000), "{:?}", read.lines().next());
        assert_eq!(listed(address, "open-seq")["first"], 1);
        let told = if storage.is_empty() { "memory" } else { "disk" };
        let list = ask(address, "GET /topics HTTP/1.1", "");
        assert!(list.contains(&format!("\"storage\":\"{told}\"")), "{list}");
    }
}

#[test]
fn what_is_kept_is_what_the_flag_says_and_rules_come_first() {
    let directory = tempdir().unwrap();
    let config = directory.path().join("anemone.toml");
    let own = "[[topic]]\nname = \"own\"\nage_max = \"7d\"\nbytes_max = \"64MiB\"\n\
               [[topic]]\nname = \"few\"\nevents_max = 5\n";
    fs::write(&config, format!("keep = [\"1h\", \"3MiB\"]\n{OPEN}{own}")).unwrap();
    let config = config.to_str().unwrap();
    let (_server, address) = serve(&["--threads", "1", "--config", config, "--keep", "30d"]);
    let shared = "if it fits in 3 MiB shared by all topics";
    for (name, keeps) in [
        ("own", "7 d, at most 64 MiB".to_owned()),
        ("few", format!("30 d, at most 5 events, {shared}")),
    ] {
        assert_eq!(listed(address, name)["keeps"], keeps);
    }
    let url = |name: &str| format!("http://{address}/topics/open-{name}");
    done(&["pub", &url("quiet"), "-"], &seq(1_000));
    for _ in 0..3 {
        done(&["pub", &url("busy"), "-"], &seq(15_000));
    }
    let (quiet, busy) = (listed(address, "open-quiet"), listed(address, "open-busy"));
    assert_eq!(quiet["first"], 1, "{quiet}");
    let bytes = quiet["bytes"].as_u64().unwrap() + busy["bytes"].as_u64().unwrap();
    assert!(busy["first"].as_u64() > Some(1) && bytes <= 3 << 20, "{bytes}: {busy}");
}
