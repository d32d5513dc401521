//! Topics that end readers that are too slow for their retention.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anemone_hub::{Data, Retention};
use anemone_server::{SlowReader, TopicRule, TopicRules};
use anemone_testing::multiplexed::{BOTH, Client};
use anemone_testing::{Fixture, Reply, send};
use serde_json::{Value, json};

/// With `wind`, which keeps 10 events and ends those who are slower than that.
fn start() -> Fixture {
    let retention = Retention { events_max: 10, ..Retention::default() };
    let wind = TopicRule {
        slow_reader: SlowReader::Close,
        retention,
        ..TopicRule::new("wind".parse().unwrap())
    };
    let change = |options: &mut anemone_server::Options| {
        options.topics = TopicRules::new([wind]).unwrap();
        options.tcp = Some("127.0.0.1:0".parse().unwrap());
        // A client does not read until all is published, which on a busy machine is long.
        let hour = Duration::from_secs(3600);
        let limits = &mut options.limits;
        limits.write_timeout = hour;
        for config in [&mut limits.websocket, &mut limits.multiplexed] {
            Arc::make_mut(config).idle_timeout = hour;
        }
    };
    Fixture::with(change, retention)
}

/// 25 MB, more than the sockets hold: a client that does not read has only a part of it, and the rest is removed. It asks
/// for what comes after `ya-0`, since who asks for the `earliest` event may begin with a gap instead.
const LAST: u64 = 250;

fn publish_large(fixture: &Fixture) {
    let filling = "x".repeat(100_000);
    for number in 1..=LAST {
        let data = Data::json(&json!({ "n": number, "filling": filling })).unwrap();
        fixture.wind.publish(SystemTime::now().into(), data).unwrap();
    }
}

/// The items that a reader received until its end: events up to some number, and a gap.
#[derive(Default)]
struct Ending {
    events: u64,
    end: Option<Value>,
}

impl Ending {
    /// Takes note of an object that is an event's data, or a notice.
    fn take(&mut self, told: &Value) {
        assert_eq!(self.end, None, "nothing comes after the end: {told}");
        match &told["end"] {
            Value::Null => {
                self.events += 1;
                assert_eq!(told["n"], self.events);
            }
            end => self.end = Some(end.clone()),
        }
    }

    fn check(self) {
        let end = self.end.unwrap();
        assert_eq!(end["reason"], "too-slow");
        assert!(self.events < LAST - 10, "{} events", self.events);
        // It may have fallen out before all was published.
        let missed = end["gap"]["missed"].as_u64().unwrap();
        let resume = self.events + missed;
        assert!(missed > 0 && resume <= LAST - 10, "{end}");
        check_gap_to(&end["gap"], self.events, resume, "~");
    }
}

/// That of a reader which comes when all is published.
fn check_gap(gap: &Value, after: u64) {
    check_gap_to(gap, after, LAST - 10, "");
}

fn check_gap_of_an_end(gap: &Value, after: u64) {
    check_gap_to(gap, after, LAST - 10, "~");
}

fn check_gap_to(gap: &Value, after: u64, resume: u64, anew: &str) {
    let expected = json!({
        "reason": "retention",
        "after": format!("ya-{after}"),
        "missed": resume - after,
        "resume": format!("ya-{resume}{anew}"),
    });
    assert_eq!(*gap, expected);
}

#[test]
fn a_websocket_is_told_and_closed_with_1008_and_the_numbers() {
    let fixture = start();
    let target = "/topics/wind?after=ya-0";
    let mut socket = fixture.websocket(target, &["anemone.events"], &[]);
    publish_large(&fixture);
    let mut ending = Ending::default();
    let closed = loop {
        let text = socket.next();
        if text.starts_with("close ") {
            break text;
        }
        let told: Value = serde_json::from_str(&text).unwrap();
        match (&told["position"], &told["data"]) {
            (Value::Null, _) => ending.take(&told),
            (_, Value::Null) => {}
            (_, data) => ending.take(data),
        }
    };
    let missed = &ending.end.as_ref().unwrap()["gap"]["missed"];
    let events = ending.events;
    let reason = format!("too slow: {missed} events after ya-{events} are no longer retained");
    assert_eq!(closed, format!("close 1008 {reason}"));
    ending.check();
}

#[test]
fn a_plain_websocket_is_closed_with_1008_and_a_reason_that_says_where_to_go_on() {
    let fixture = start();
    let mut socket = fixture.websocket("/topics/wind?after=ya-0", &[], &[]);
    publish_large(&fixture);
    let mut ending = Ending::default();
    let closed = loop {
        let text = socket.next();
        if text.starts_with("close ") {
            break text;
        }
        ending.take(&serde_json::from_str(&text).unwrap());
    };
    let words = closed.strip_prefix("close 1008 too slow: retention, missed ").unwrap();
    let (missed, resume) = words.split_once(", resume ya-").unwrap();
    let [missed, resume] = [missed, resume].map(|number| number.parse::<u64>().unwrap());
    assert!(missed > 0 && resume <= LAST - 10, "{closed}");
    assert_eq!(resume, ending.events + missed, "{closed}");
}

#[test]
fn an_event_stream_ends_with_the_event_end() {
    let fixture = start();
    let mut stream = fixture.events("/topics/wind?after=ya-0", &[]);
    publish_large(&fixture);
    stream.block().unwrap();
    let mut ending = Ending::default();
    while let Some(block) = stream.block() {
        let data = block.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let told: Value = serde_json::from_str(data).unwrap();
        assert_eq!(block.starts_with("event: end\n"), told["end"].is_object(), "{told}");
        ending.take(&told);
    }
    ending.check();
}

#[test]
fn a_stream_of_lines_ends_with_the_notice() {
    for (target, accept, before, after) in [
        ("/topics/wind?after=ya-0", "application/x-ndjson", "", "\n"),
        ("/topics/wind?after=ya-0&frame=f", "text/html", "<script>parent.f(", ")</script>\n"),
    ] {
        let fixture = start();
        let mut stream = fixture.connect();
        let frame = [("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Site", "same-origin")];
        send(&mut stream, "GET", target, &[&[("Accept", accept)], &frame[..]].concat());
        let mut stream = BufReader::new(stream);
        assert_eq!(Reply::read_head(&mut stream).status, 200);
        publish_large(&fixture);
        let mut ending = Ending::default();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if line == "0\r\n" {
                break;
            }
            let json = line.strip_prefix(before).and_then(|line| line.strip_suffix(after));
            let Some(Ok(told)) = json.map(serde_json::from_str::<Value>) else { continue };
            match (&told["data"], &told["end"]) {
                (Value::Null, Value::Null) => {}
                (Value::Null, _) => ending.take(&told),
                (data, _) => ending.take(data),
            }
        }
        ending.check();
    }
}

#[test]
fn a_multiplexed_reader_has_a_final_status_and_the_connection_goes_on() {
    for carrier in BOTH {
        let fixture = start();
        let mut client = Client::open(carrier, &fixture);
        assert_eq!(client.ask("GET r /topics/wind?after=ya-0").status, 100);
        publish_large(&fixture);
        let mut ending = Ending::default();
        let last = loop {
            let reply = client.next();
            match reply.status {
                206 | 110 => ending.take(&reply.json()),
                _ => break reply,
            }
        };
        last.problem(410, "r", "too-slow");
        assert_eq!(last.json()["gap"], ending.end.as_ref().unwrap()["gap"]);
        ending.check();
        assert_eq!(client.ask("GET r /clock").status, 200);
    }
}

#[test]
fn a_poll_after_what_has_gone_is_410_and_one_that_begins_is_not() {
    let fixture = start();
    publish_large(&fixture);
    for wait in ["", "&wait=20"] {
        for after in [0, 1, LAST - 11] {
            let reply = fixture.get(&format!("/topics/wind?after=ya-{after}{wait}"), &[]);
            let missed = LAST - 10 - after;
            let detail = reply.problem(410, "too-slow");
            let expected =
                format!("too slow: {missed} events after ya-{after} are no longer retained");
            assert_eq!(detail, expected);
            check_gap_of_an_end(&reply.json()["gap"], after);
        }
        // The resume of that gap, and the beginning.
        for after in [format!("after=ya-{}", LAST - 10), "after=earliest".to_owned()] {
            let reply = fixture.get(&format!("/topics/wind?{after}{wait}"), &[]);
            assert_eq!(reply.numbers(), (LAST - 9..=LAST).collect::<Vec<_>>());
        }
    }
    let other_epoch = fixture.get("/topics/wind?after=zz-1", &[]);
    assert_eq!(other_epoch.json()["gap"]["reason"], "epoch");
}

#[test]
fn a_poll_that_goes_on_at_the_resume_of_a_410_is_not_ended_again() {
    let fixture = start();
    for wait in ["", "&wait=20"] {
        for limit in ["", "&limit=1"] {
            // Before each poll more is published than the topic keeps.
            let mut published = fixture.wind.info(SystemTime::now().into()).head.offset;
            let (mut after, mut accounted) = (format!("ya-{published}"), published);
            let (mut ended, mut pages) = (0, 0);
            for _ in 0..40 {
                fixture.publish(published + 1..=published + 15);
                published += 15;
                let target = format!("/topics/wind?after={after}{wait}{limit}");
                let reply = fixture.get(&target, &[]);
                let told = reply.json();
                let gap = &told["gap"];
                assert_eq!(gap["after"], format!("ya-{accounted}"), "{after}: {told}");
                accounted += gap["missed"].as_u64().unwrap();
                if reply.status == 410 {
                    ended += 1;
                    after = gap["resume"].as_str().unwrap().to_owned();
                } else {
                    pages += 1;
                    assert_eq!(gap["resume"], format!("ya-{accounted}"));
                    accounted += reply.numbers().len() as u64;
                    after = reply.next();
                }
                assert_eq!(after.trim_end_matches('~'), format!("ya-{accounted}"));
            }
            assert_eq!((ended, pages), (20, 20), "each end is one, and the poll after it a page");
        }
    }
}

#[test]
fn a_stream_that_begins_after_what_has_gone_begins_with_a_gap() {
    let fixture = start();
    fixture.publish(1..=LAST);
    for after in ["ya-1", "ya-1~"] {
        let target = format!("/topics/wind?after={after}");
        let mut socket = fixture.websocket(&target, &["anemone.events"], &[]);
        assert_eq!(socket.json()["position"], "ya-1");
        check_gap(&socket.json()["gap"], 1);
        assert_eq!(socket.json()["data"]["n"], LAST - 9);
    }
    let mut stream = fixture.events("/topics/wind", &[("Last-Event-ID", "ya-1")]);
    stream.block().unwrap();
    assert!(stream.block().unwrap().starts_with("event: gap\n"));
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        client.ask("GET r /topics/wind?after=ya-1").is_line(100, "r", "ya-1");
        let notice = client.next();
        assert_eq!(notice.status, 110);
        check_gap(&notice.json()["gap"], 1);
        assert_eq!(client.next().number(), LAST - 9);
    }
}

#[test]
fn a_reader_of_the_newest_alone_is_never_too_slow() {
    let fixture = start();
    let target = "/topics/wind?after=earliest&mode=latest";
    let mut socket = fixture.websocket(target, &["anemone.events"], &[]);
    let mut plain = fixture.websocket(target, &[], &[]);
    publish_large(&fixture);
    assert_eq!(socket.json()["position"], "ya-0");
    let mut seen = 0;
    while seen < LAST {
        let told = socket.json();
        if let Some(skipped) = told["skipped"].as_u64() {
            seen += skipped;
        } else if let Some(missed) = told["gap"]["missed"].as_u64() {
            seen += missed;
        } else {
            seen += 1;
            assert_eq!(told["data"]["n"], seen, "{}", told["end"]);
        }
    }
    while plain.json()["n"].as_u64().unwrap() < LAST {}
    let poll = fixture.get("/topics/wind?after=ya-1&mode=latest", &[]).json();
    assert_eq!(poll["events"][0]["offset"], LAST);
}
