//! Text for a line, for JSON and for a terminal.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// The same JSON in one line: outside of strings a line break is space, and in them there is none.
#[must_use]
pub fn one_line(json: &str) -> Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => json.replace(['\n', '\r'], " ").into(),
        false => json.into(),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    // Strings always have a JSON form.
    serde_json::to_string(text).unwrap_or_default()
}

/// The words of a peer, with their control characters escaped; quotes stay as they are.
pub(crate) fn shown(text: &str) -> String {
    text.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'")
}

/// The JSON of an event that somebody typed: the text itself if it is one JSON value, else a string of it.
#[must_use]
pub fn json_or_string(text: &str) -> Cow<'_, str> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => text.into(),
        Err(_) => quoted(text).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_json_is_a_string() {
        for (text, json) in [
            ("{\"n\": 1.50}", "{\"n\": 1.50}"),
            ("17", "17"),
            ("hello", "\"hello\""),
            ("1 2", "\"1 2\""),
            ("say \"hi\"", "\"say \\\"hi\\\"\""),
            ("", "\"\""),
        ] {
            assert_eq!(json_or_string(text), json);
        }
    }
}
