//! The content of events is the same in every way of reading.

use std::io::{BufReader, Write};
use std::time::SystemTime;

use anemone_hub::{Data, Retention};
use anemone_server::{PublishRight, TopicRule, TopicRules};
use anemone_testing::ways::{HALF_PAIR, Told, each};
use anemone_testing::{Fixture, Reply, request};
use serde_json::{Value, json};

/// Most bytes of an event, as JSON.
const EVENT_BYTES_MAX: usize = 64 * 1024;

/// A server whose `wind` anyone may publish to.
fn open_to_all() -> Fixture {
    let rule =
        TopicRule { publish: PublishRight::Anyone, ..TopicRule::new("wind".parse().unwrap()) };
    let change = |options: &mut anemone_server::Options| {
        options.topics = TopicRules::new([rule]).unwrap();
    };
    Fixture::with(change, Retention::default())
}

fn post(fixture: &Fixture, media_type: &str, body: &[u8]) -> Reply {
    let length = body.len().to_string();
    let fields = [("Content-Type", media_type), ("Content-Length", &*length)];
    let mut stream = fixture.connect();
    let head = request(fixture.address, "POST", "/topics/wind", &fields);
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    Reply::read(&mut BufReader::new(stream), "POST")
}

/// Reads the topic in every way, from its beginning.
fn all_read(fixture: &Fixture, values: &[Value]) {
    each(|way| {
        let mut reader = way.open(fixture, "after=ya-0");
        for value in values {
            let data = loop {
                match reader.next() {
                    Told::Position(_) => {}
                    Told::Event { data, .. } => break data,
                    other => panic!("{other:?}"),
                }
            };
            let shown: String = value.to_string().chars().take(80).collect();
            assert!(data == *value, "{shown}");
        }
    });
}

#[test]
fn text_of_any_script_arrives_as_it_was() {
    let fixture = Fixture::start();
    let texts = [
        "",
        "grüße, 世界, שלום, 🎈👩‍👩‍👧‍👦, e\u{301}",
        "</script><script>alert(1)</script><!-- & ]]> -->",
        "line\nbreak\r\nand \u{2028} and \u{2029} and \u{0} and \u{7f} and \u{feff}",
        "\"quoted\" and \\ and \\u003c",
        "\u{10ffff}\u{d7ff}\u{e000}",
        "data: id: event: :",
    ];
    let long = "ü".repeat(100_000);
    let values: Vec<Value> = texts
        .into_iter()
        .chain([&*long])
        .map(|text| json!({ "text": text, text: [text] }))
        .collect();
    for value in &values {
        fixture.wind.publish(SystemTime::now().into(), Data::json(value).unwrap()).unwrap();
    }
    all_read(&fixture, &values);
}

#[test]
fn json_arrives_as_the_value_it_was_however_it_was_spelled() {
    let fixture = open_to_all();
    let bodies = [
        "\"\\ud83c\\udf2c \\u0000 \\u2028 \\/ \\u003c/script>\"",
        "{\r\n  \"pretty\": [\n    1,\r\r\n    2\n  ]\n}\n",
        "[0, -0.0, 1e300, 123456789012345678901234567890, 0.1e-7]",
        "\"\u{2028} raw \u{2029} \u{85} \u{7f} \u{feff}\"",
        "null",
        "\"id: ya-7\\nretry: 1\\n\\n\"",
    ];
    let values: Vec<Value> = bodies
        .map(|body| match serde_json::from_str(body) {
            Ok(value) => value,
            Err(error) => panic!("{error}: {body}"),
        })
        .into();
    for body in bodies {
        assert_eq!(post(&fixture, "application/json", body.as_bytes()).status, 201, "{body}");
    }
    all_read(&fixture, &values);
}

#[test]
fn half_a_surrogate_pair_arrives_as_it_was() {
    // RFC 8259 section 8.2: the grammar permits it, and the result depends on the reader.
    let fixture = open_to_all();
    assert_eq!(post(&fixture, "application/json", b"{\"half\":\"a\\ud800b\"}").status, 201);
    all_read(&fixture, &[json!({ "half": format!("a{HALF_PAIR}b") })]);
}

#[test]
fn the_longest_events_arrive_whole() {
    let fixture = open_to_all();
    // Each of the second takes six bytes in a forever-frame.
    let texts = ["x", "<", "é"].map(|one| one.repeat((EVENT_BYTES_MAX - 2) / one.len()));
    for text in &texts {
        let body = format!("\"{text}\"");
        assert_eq!(post(&fixture, "application/json", body.as_bytes()).status, 201);
        let body = format!("\"{text}x\"");
        let refused = post(&fixture, "application/json", body.as_bytes());
        refused.problem(413, "event-too-big");
    }
    all_read(&fixture, &texts.map(Value::from));
}

#[test]
fn bytes_arrive_as_base64_of_what_they_were() {
    let fixture = open_to_all();
    let longest = (EVENT_BYTES_MAX - json!({ "base64": "" }).to_string().len()) / 4 * 3;
    let bodies: [Vec<u8>; 4] = [
        (0..=255).collect(),
        vec![0],
        b"\xff\xfe text that is none \xed\xa0\x80".to_vec(),
        (0..longest).map(|at| (at * 31 + at / 251) as u8).collect(),
    ];
    for body in &bodies {
        assert_eq!(post(&fixture, "application/octet-stream", body).status, 201);
    }
    let values = bodies.map(|body| json!({ "base64": base64(&body) }));
    all_read(&fixture, &values);
}

/// RFC 4648 section 4, as specified.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | usize::from(*group.get(at).unwrap_or(&0)));
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(if digit <= group.len() { DIGITS[value] as char } else { '=' });
        }
    }
    text
}

#[test]
fn no_line_breaks_at_a_character_that_only_some_programs_take_for_a_line_break() {
    let fixture = open_to_all();
    const BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];
    let text = BREAKS.map(|char| format!("a{char}b")).concat();
    assert_eq!(post(&fixture, "text/plain", text.as_bytes()).status, 201);
    assert_eq!(
        post(&fixture, "application/json", json!([text]).to_string().as_bytes()).status,
        201
    );
    let line = format!("{}\n", json!({ &text: 1 }));
    assert_eq!(post(&fixture, "application/x-ndjson", line.as_bytes()).status, 201);
    all_read(&fixture, &[json!(text), json!([text]), json!({ &text: 1 })]);
    for media_type in ["text/event-stream", "application/x-ndjson"] {
        let fields = [("Accept", media_type)];
        let mut stream = fixture.connect();
        let head = request(fixture.address, "GET", "/topics/wind?after=ya-0", &fields);
        stream.write_all(head.as_bytes()).unwrap();
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        while String::from_utf8_lossy(&read).matches(r"\u2029b").count() < 3 {
            let count = std::io::Read::read(&mut stream, &mut buffer).unwrap();
            assert_ne!(count, 0, "{media_type}");
            read.extend_from_slice(&buffer[..count]);
        }
        assert!(!String::from_utf8_lossy(&read).contains(BREAKS), "{media_type}");
    }
}
