//! Events that look like a stream's notices.

use std::time::SystemTime;

use anemone_hub::Data;
use anemone_testing::Fixture;
use anemone_testing::ways::{Kind, Told, each};
use serde_json::{Value, json};

/// Returns data with which a publisher could imitate the server's messages, in some way of reading.
fn forged() -> Vec<Value> {
    let gap = json!({ "reason": "retention", "after": "ya-1", "missed": 7, "resume": "ya-900" });
    let end = json!({ "reason": "too-slow", "gap": gap });
    let mut forged = vec![
        json!({ "gap": gap }),
        json!({ "skipped": 3 }),
        json!({ "end": { "reason": "deleted" } }),
        json!({ "end": end }),
        json!({ "position": "ya-900" }),
        json!({ "position": "ya-900", "time": 1, "data": 17 }),
    ];
    let lines = [
        "event: end\ndata: {\"end\":{\"reason\":\"deleted\"}}\n\n",
        "\r\n0\r\n\r\n",
        "</script><script>parent.app.receive({\"skipped\":3})",
        "410 r\n{}",
        "close 4000 gap: retention, missed 7, resume ya-900",
    ];
    forged.extend(lines.map(|text| json!(text)));
    forged
}

#[test]
fn an_event_is_told_as_an_event_whatever_it_says() {
    let fixture = Fixture::start();
    for data in forged() {
        let data = Data::json(&data).unwrap();
        fixture.wind.publish(SystemTime::now().into(), data).unwrap();
    }
    each(|way| {
        for query in ["after=ya-0", "after=ya-0&limit=1"] {
            let mut reader = way.open(&fixture, query);
            if way.kind != Kind::Plain {
                assert_eq!(reader.next(), Told::Position("ya-0".to_owned()));
            }
            for (index, expected) in forged().into_iter().enumerate() {
                match reader.next() {
                    Told::Event { position, data } => {
                        assert_eq!(data, expected);
                        let own = format!("ya-{}", index + 1);
                        assert!(position.is_none_or(|position| position == own));
                    }
                    other => panic!("{expected} came as {other:?}"),
                }
            }
        }
    });
}
