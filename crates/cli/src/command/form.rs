//! The output formats of an event's data.

use std::borrow::Cow;

use anemone_client::{json_or_string, one_line};
use anemone_sources::BYTE_ORDER_MARK;

pub(super) fn data(json: &str) -> Vec<u8> {
    with_line_end(one_line(json).into_owned().into_bytes())
}

/// Returns the line from which `anemone pub` and `serve --stdin` make this event: text itself, unless it looks like
/// JSON or is not a line.
pub(super) fn line(json: &str) -> Vec<u8> {
    // A byte order mark at the beginning of a line would be no part of the text.
    let is_line = |text: &String| {
        !text.trim().is_empty()
            && !text.contains(['\n', '\r'])
            && !text.starts_with(BYTE_ORDER_MARK)
    };
    let text = text(json).filter(is_line);
    match text.filter(|text| matches!(json_or_string(text), Cow::Owned(_))) {
        Some(text) => with_line_end(text.into_bytes()),
        None => data(json),
    }
}

/// Returns the event as it was published: text with a line feed at its end, bytes exactly, and anything else as JSON.
pub(super) fn raw(json: &str) -> Vec<u8> {
    if let Some(text) = text(json) {
        return with_line_end(text.into_bytes());
    }
    bytes(json).unwrap_or_else(|| data(json))
}

fn with_line_end(mut line: Vec<u8>) -> Vec<u8> {
    if !line.ends_with(b"\n") {
        line.push(b'\n');
    }
    line
}

fn text(json: &str) -> Option<String> {
    json.starts_with('"').then(|| serde_json::from_str(json).ok())?
}

/// Returns the bytes of `{"base64":"…"}`, the form of binary events.
fn bytes(json: &str) -> Option<Vec<u8>> {
    let object: serde_json::Map<_, _> = serde_json::from_str(json).ok()?;
    let text = object.get("base64").filter(|_| object.len() == 1)?.as_str()?;
    from_base64(text.as_bytes())
}

/// Decodes padded base64 (RFC 4648 section 4).
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (groups, []) = text.as_chunks::<4>() else { return None };
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (at, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || padding > 0 && at + 1 < groups.len() {
            return None;
        }
        let digits = group[..4 - padding].iter().map(|byte| value(*byte).map(u32::from));
        let bits = digits.collect::<Option<Vec<u32>>>()?;
        let bits = bits.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * padding);
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(json: &str) -> [String; 3] {
        [data(json), line(json), raw(json)].map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn each_form_has_its_text() {
        for (json, data, line, raw) in [
            ("\" r  b  swpd\"", "\" r  b  swpd\"\n", " r  b  swpd\n", " r  b  swpd\n"),
            ("{\"a\":\n1.50}", "{\"a\": 1.50}\n", "{\"a\": 1.50}\n", "{\"a\": 1.50}\n"),
            ("\"17\"", "\"17\"\n", "\"17\"\n", "17\n"),
            ("\"\"", "\"\"\n", "\"\"\n", "\n"),
            ("\" \"", "\" \"\n", "\" \"\n", " \n"),
            ("\"a\\nb\\n\"", "\"a\\nb\\n\"\n", "\"a\\nb\\n\"\n", "a\nb\n"),
            ("\"\\ud800\"", "\"\\ud800\"\n", "\"\\ud800\"\n", "\"\\ud800\"\n"),
            ("{\"base64\":\"AAo=\"}", "{\"base64\":\"AAo=\"}\n", "{\"base64\":\"AAo=\"}\n", "\0\n"),
            (
                "{\"base64\":\"A\"}",
                "{\"base64\":\"A\"}\n",
                "{\"base64\":\"A\"}\n",
                "{\"base64\":\"A\"}\n",
            ),
        ] {
            assert_eq!(all(json), [data, line, raw], "{json}");
        }
        // Every one of them is the same event again.
        for text in
            ["a", " a ", "17", "\"a\"", "", "{", "a\tb", "\u{feff}", "\u{feff}a", "a\\", "null"]
        {
            let json = serde_json::to_string(text).unwrap();
            let line = String::from_utf8(line(&json)).unwrap();
            assert_eq!(json_or_string(line.strip_suffix('\n').unwrap()), json);
        }
    }

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let all: Vec<u8> = (0..=255).collect();
        for len in 0..=all.len() {
            let text = anemone_proto::handshake::base64(&all[..len]);
            assert_eq!(raw(&format!("{{\"base64\":\"{text}\"}}")), all[..len]);
        }
        for text in ["A", "AA", "A===", "AA==AA==", "AA=A", "====", "A\n==", "AÄ="] {
            assert_eq!(from_base64(text.as_bytes()), None, "{text}");
        }
    }
}
