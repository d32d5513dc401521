//! Conversions of text into one line, into JSON, and into a form that is safe on a terminal.

use std::borrow::Cow;

use anemone_wire::BYTE_ORDER_MARK;
use serde_json::value::RawValue;

/// Returns the same JSON in one line. Line breaks stand only between tokens, since a string must escape them.
#[must_use]
pub fn one_line(json: &str) -> Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => json.replace(['\n', '\r'], " ").into(),
        false => json.into(),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    // A string always has a JSON form.
    serde_json::to_string(text).unwrap_or_default()
}

/// Returns the text, encoded as the value of a query parameter.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Escapes the control characters in text from a peer. Quotes and backslashes stay unchanged, since the peer may have
/// escaped something already.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '"' | '\'' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

/// Returns the JSON of an event that a user has typed. Text that is one JSON value stays as it is; any other text
/// becomes a JSON string. A byte order mark at the beginning is removed.
#[must_use]
pub fn json_or_string(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => text.into(),
        Err(_) => quoted(text).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_said_is_shown_with_its_quotes_and_without_its_escapes() {
        assert_eq!(shown("this server's \"names\""), "this server's \"names\"");
        assert_eq!(shown("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(shown("a\\u001b and C:\\x"), "a\\u001b and C:\\x");
    }

    #[test]
    fn a_key_goes_into_a_query() {
        assert_eq!(encoded("a+b&c=d"), "a%2Bb%26c%3Dd");
    }

    #[test]
    fn what_is_no_json_is_a_string() {
        for (text, json) in [
            ("{\"n\": 1.50}", "{\"n\": 1.50}"),
            ("17", "17"),
            ("hello", "\"hello\""),
            ("1 2", "\"1 2\""),
            ("say \"hi\"", "\"say \\\"hi\\\"\""),
            ("", "\"\""),
            ("\u{feff}{}", "{}"),
            ("\u{feff}hi", "\"hi\""),
        ] {
            assert_eq!(json_or_string(text), json);
        }
    }
}
