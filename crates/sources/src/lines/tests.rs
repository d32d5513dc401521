use proptest::prelude::*;

use super::*;

/// The bytes of each line, and true if it is too long.
type Seen = Vec<(Vec<u8>, bool)>;

fn seen(line: Line<'_>) -> (Vec<u8>, bool) {
    match line {
        Line::Whole(line) => (line.to_vec(), false),
        Line::TooLong(start) => (start.to_vec(), true),
    }
}

fn lines<'a>(bytes_max: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    all(Lines::new(bytes_max), pieces)
}

fn all<'a>(mut lines: Lines, pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut found = Vec::new();
    for mut piece in pieces {
        while let Some(line) = lines.next(&mut piece) {
            found.push(seen(line));
        }
    }
    found.extend(lines.finish().map(seen));
    assert_eq!(lines.finish(), None);
    found
}

fn texts(bytes: &[u8]) -> Vec<String> {
    lines(32, [bytes]).iter().map(|(line, _)| line.escape_ascii().to_string()).collect()
}

#[test]
fn a_line_ends_at_lf_and_a_cr_before_it_goes_with_it() {
    assert_eq!(texts(b"a\nb\r\nc\rd\r\r\n\n\r\n \nrest"), ["a", "b", "c\\rd\\r", " ", "rest"]);
}

#[test]
fn a_byte_order_mark_before_a_line_is_no_part_of_it() {
    let bytes = "\u{feff}a\r\n\u{feff}\n\u{feff}\r\n\u{feff}b\nc\u{feff}\n\u{feff}d".as_bytes();
    let expected = ["a", "b", "c\u{feff}", "d"].map(|text| (text.as_bytes().to_vec(), false));
    assert_eq!(lines(32, [bytes]), expected);
    assert_eq!(lines(32, bytes.chunks(1)), expected);
    // Nor does it count.
    for (text, is_too_long) in [("\u{feff}abcd\r\n", false), ("\u{feff}abcde\n", true)] {
        let expected = [(b"abcd".to_vec(), is_too_long)];
        assert_eq!(lines(4, [text.as_bytes()]), expected, "{text:?}");
        assert_eq!(lines(4, text.as_bytes().chunks(1)), expected, "{text:?}");
    }
}

#[test]
fn the_end_of_the_stream_ends_its_last_line() {
    assert_eq!(texts(b"a\nb"), ["a", "b"]);
    assert_eq!(texts(b"a\nb\r"), ["a", "b"]);
    assert_eq!(texts(b"a\n\r"), ["a"]);
    assert_eq!(texts(b""), [""; 0]);
}

#[test]
fn a_stream_after_the_end_of_another_begins_with_a_line_of_its_own() {
    let mut lines = Lines::new(4);
    assert_eq!(lines.next(&mut &b"too long"[..]), Some(Line::TooLong(b"too ")));
    assert_eq!(lines.finish(), None);
    assert_eq!(lines.next(&mut &b"ok\n"[..]), Some(Line::Whole(b"ok")));
}

#[test]
fn a_line_of_the_limit_is_whole_whatever_ends_it_and_one_more_byte_is_too_long() {
    let (whole, long) = (|line: &[u8]| (line.to_vec(), false), (b"abcd".to_vec(), true));
    for end in ["", "\n", "\r", "\r\n"] {
        let bytes = format!("abcd{end}");
        assert_eq!(lines(4, [bytes.as_bytes()]), [whole(b"abcd")], "{end:?}");
        assert_eq!(lines(4, bytes.as_bytes().chunks(1)), [whole(b"abcd")], "{end:?}");
    }
    assert_eq!(lines(4, [&b"abcde\nok\n"[..]]), [long.clone(), whole(b"ok")]);
    for bytes in [&b"abcd\re\nok\n"[..], b"abcd\r\r\nok\n"] {
        assert_eq!(lines(4, [bytes]), [long.clone(), whole(b"ok")]);
        assert_eq!(lines(4, bytes.chunks(1)), [long.clone(), whole(b"ok")]);
    }
}

#[test]
fn a_line_that_is_too_long_is_told_before_it_ends() {
    let mut lines = Lines::new(4);
    let mut piece = &b"abcde"[..];
    assert_eq!(lines.next(&mut piece), Some(Line::TooLong(b"abcd")));
    for mut more in [&b"fgh"[..], b"ijk\n"] {
        assert_eq!(lines.next(&mut more), None);
    }
    assert_eq!(lines.next(&mut &b"ok\n"[..]), Some(Line::Whole(b"ok")));
}

#[test]
fn json_stays_json_and_the_rest_becomes_a_string() {
    for json in ["{\"a\": 1.50}", "[1,2]", "5", "-0.5e3", "true", "null", "\"x\""] {
        assert_eq!(data(json).as_str(), json);
        assert_eq!(data(&format!("  {json}\t")).as_str(), json);
    }
    for (text, json) in [
        ("up 3 days", "\"up 3 days\""),
        (" 1  0  0 812", "\" 1  0  0 812\""),
        ("007", "\"007\""),
        ("5 6", "\"5 6\""),
        ("NaN", "\"NaN\""),
        ("nul", "\"nul\""),
        ("{\"a\":", "\"{\\\"a\\\":\""),
        ("\u{1b}[0m\u{fffd}", "\"\\u001b[0m\u{fffd}\""),
        (" ", "\" \""),
        ("a\u{2028}b", r#""a\u2028b""#),
    ] {
        assert_eq!(data(text).as_str(), json);
    }
}

#[test]
fn a_value_that_is_too_deep_for_readers_is_a_string() {
    let taken = "[".repeat(100) + &"]".repeat(100);
    assert_eq!(data(&taken).as_str(), taken);
    let deeper = format!("[{taken}]");
    assert_eq!(data(&deeper).as_str(), format!("\"{deeper}\""));
    let deep = "[".repeat(BYTES_MAX_DEFAULT / 2) + &"]".repeat(BYTES_MAX_DEFAULT / 2);
    assert_eq!(data(&deep).as_str(), format!("\"{deep}\""));
    assert!(data(&deep[1..]).as_str().starts_with('"'));
}

#[test]
fn what_is_not_utf_8_is_replaced() {
    assert!(matches!(text(b"gr\xc3\xbcn"), Cow::Borrowed("grün")));
    assert!(matches!(text(b"gr\xfcn\x00"), Cow::Owned(text) if text == "gr\u{fffd}n\0"));
}

#[test]
fn a_cr_alone_ends_a_line_of_a_run() {
    let texts = |bytes: &[u8]| {
        let found = all(Lines::with_cr(32), [bytes]);
        found.into_iter().map(|(line, _)| String::from_utf8(line).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(texts(b"\ra\rb\r\nc\n\rd\n\n \re"), ["a", "b", "c", "d", " ", "e"]);
    assert_eq!(texts(b"a\r"), ["a"]);
    // Short lines are never too long together.
    assert_eq!(all(Lines::with_cr(4), [&b"abcd\r".repeat(100)[..]]).len(), 100);
    let found = all(Lines::with_cr(4), [&b"abcde\rok\r"[..]]);
    assert_eq!(found, [(b"abcd".to_vec(), true), (b"ok".to_vec(), false)]);
}

/// Applies the rules to all bytes at once.
fn expected(bytes_max: usize, bytes: &[u8]) -> Seen {
    let lines = bytes.split(|byte| *byte == b'\n').map(content);
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| (line[..line.len().min(bytes_max)].to_vec(), line.len() > bytes_max)).collect()
}

proptest! {
    #[test]
    fn any_split_gives_the_same_lines(
        bytes in proptest::collection::vec(
            prop_oneof![
                6 => prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()].prop_map(|byte| vec![byte]),
                1 => Just(b"\xef\xbb\xbf".to_vec()),
            ], 0..200),
        piece_bytes in 1_usize..20,
        bytes_max in 1_usize..12,
    ) {
        let bytes = bytes.concat();
        let expected = expected(bytes_max, &bytes);
        prop_assert_eq!(&lines(bytes_max, [&bytes[..]]), &expected);
        prop_assert_eq!(&lines(bytes_max, bytes.chunks(piece_bytes)), &expected);
    }

    #[test]
    fn a_cr_that_ends_lines_is_as_good_as_an_lf(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a')], 0..200),
        piece_bytes in 1_usize..20,
        bytes_max in 1_usize..12,
    ) {
        let with_lf: Vec<u8> =
            bytes.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect();
        let found = all(Lines::with_cr(bytes_max), bytes.chunks(piece_bytes));
        prop_assert_eq!(&found, &expected(bytes_max, &with_lf));
    }

    #[test]
    fn any_line_is_one_json_value_and_text_survives(line in any::<String>()) {
        let data = data(&line);
        let value: serde_json::Value = serde_json::from_str(data.as_str()).unwrap();
        if Data::parse(&line).is_err() {
            prop_assert_eq!(value, line);
        }
    }
}
