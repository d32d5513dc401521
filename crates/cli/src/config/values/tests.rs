use super::*;
use crate::config::place::Place;

fn node(content: Value) -> Node {
    Node { place: Place::Default, content }
}

fn text_node(text: &str) -> Node {
    node(Value::Text(text.to_owned()))
}

fn variable(text: &str) -> Node {
    node(Value::Variable(text.to_owned()))
}

fn integer(number: u64) -> Node {
    node(Value::Integer(number.to_string(), Some(number)))
}

#[test]
fn durations_are_a_number_and_a_unit() {
    let any = || duration(Duration::ZERO..=Duration::MAX);
    for (text, millis) in [
        ("0s", 0),
        ("1ms", 1),
        ("250ms", 250),
        ("30s", 30_000),
        ("5min", 300_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
    ] {
        assert_eq!(any()(&text_node(text)).unwrap().as_millis(), millis, "{text}");
        assert_eq!(any()(&variable(text)).unwrap().as_millis(), millis, "{text}");
    }
    for (text, part) in [
        ("", "expected a whole number with a unit"),
        ("s", "expected a whole number with a unit"),
        ("-1s", "expected a whole number with a unit"),
        ("1.5s", "the units are ms, s, min, h and d"),
        ("1 s", "the units are"),
        ("1S", "the units are"),
        ("1us", "the units are"),
        ("30", "it has no unit"),
        ("5m", "write min or ms"),
        ("99999999999999999999s", "expected a whole number"),
        ("18446744073709551615d", "the duration is too long"),
    ] {
        let error = any()(&text_node(text)).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn sizes_are_bytes_or_have_a_unit() {
    let any = || size::<u64>(0..=u64::MAX);
    for (text, bytes) in [
        ("0", 0),
        ("512", 512),
        ("1B", 1),
        ("4KiB", 4096),
        ("1MiB", 1 << 20),
        ("2GiB", 2 << 30),
        ("1TiB", 1 << 40),
    ] {
        assert_eq!(any()(&text_node(text)), Ok(bytes), "{text}");
        assert_eq!(any()(&variable(text)), Ok(bytes), "{text}");
    }
    assert_eq!(any()(&integer(7)), Ok(7));
    for (text, part) in [
        ("", "expected a whole number"),
        ("KiB", "expected a whole number"),
        ("1.5MiB", "the units are B, KiB"),
        ("64KB", "the units are B, KiB, MiB, GiB and TiB; 1KiB is 1024 bytes"),
        ("64k", "the units are"),
        ("18446744073709551615KiB", "number is too large"),
    ] {
        let error = any()(&text_node(text)).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn ranges_hold_at_their_edges() {
    for (bytes, is_fine) in [(4095, false), (4096, true), (8192, true), (8193, false)] {
        assert_eq!(size::<usize>(4096..=8192)(&integer(bytes)).is_ok(), is_fine, "{bytes}");
    }
    let error = size::<u64>(4096..=8192)(&text_node("9KiB")).unwrap_err();
    assert_eq!(error, "\"9KiB\" is not in the range from 4KiB to 8KiB");
    for (text, is_fine) in [("999ms", false), ("1s", true), ("1h", true), ("3601s", false)] {
        assert_eq!(duration(SECOND..=HOUR)(&text_node(text)).is_ok(), is_fine, "{text}");
    }
    let error = duration(SECOND..=HOUR)(&text_node("2h")).unwrap_err();
    assert_eq!(error, "\"2h\" is not in the range from 1s to 1h");
    for (value, is_fine) in [(0, false), (1, true), (5, true), (6, false)] {
        assert_eq!(number::<u8>(1..=5)(&integer(value)).is_ok(), is_fine, "{value}");
    }
    assert!(number::<u8>(0..=255)(&integer(256)).is_err());
}

#[test]
fn what_is_shown_can_be_written() {
    for text in ["0s", "1ms", "1500ms", "90s", "2min", "36h", "7d"] {
        assert_eq!(Time(parse_duration(text).unwrap()).to_string(), text);
    }
    for text in ["0B", "1B", "1500B", "4KiB", "1536KiB", "16MiB", "1GiB", "3TiB"] {
        assert_eq!(Size(parse_size(text).unwrap()).to_string(), text);
    }
}

#[test]
fn a_long_text_is_cut_where_it_is_shown() {
    let error = parse_duration(&"é".repeat(100)).unwrap_err();
    assert!(error.contains(&format!("\"{}\"…", "é".repeat(60))), "{error}");
}

#[test]
fn a_word_is_one_of_a_few() {
    let words = || word([("end", 1), ("start", 2)]);
    assert_eq!(words()(&text_node("start")), Ok(2));
    let error = words()(&text_node("strat")).unwrap_err();
    assert_eq!(error, "\"strat\" is not one of \"end\", \"start\"; did you mean \"start\"?");
    assert_eq!(words()(&text_node("x")).unwrap_err(), "\"x\" is not one of \"end\", \"start\"");
}
