//! Events: an offset, a time and one JSON value.

use std::borrow::Cow;

use anemone_wire::{BYTE_ORDER_MARK, is_too_deep};
use bytes::Bytes;
use memchr::memchr2_iter;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{DataError, UnixTime};

/// An entry of a topic's log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Its number in its epoch, from 1.
    pub offset: u64,
    /// The time at which it was published, or at which it happened according to its source.
    pub time: UnixTime,
    /// The data.
    pub data: Data,
}

/// The data of an event: one JSON value in UTF-8, on one line, shared by its readers. It has at most
/// [`DEPTH_MAX`](crate::DEPTH_MAX) levels of arrays and objects. What any program takes for a line break is escaped in its
/// strings, also U+0085, U+2028 and U+2029, at which Python's `str.splitlines` divides NDJSON and event streams.
///
/// ```
/// use anemone_hub::{Data, DataError};
///
/// assert_eq!(Data::json(&[1, 2])?.as_str(), "[1,2]");
/// assert_eq!(Data::parse("{\"speed\":\n2.74}")?.as_str(), r#"{"speed":2.74}"#);
/// assert!(matches!(Data::parse("2.74 m/s"), Err(DataError::Json(_))));
/// # Ok::<(), DataError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Data(Bytes);

impl Data {
    /// Writes `value` as JSON.
    ///
    /// # Errors
    /// [`DataError`] when `value` has no JSON form, for example a map whose keys are not strings, or is nested too deeply.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self, DataError> {
        let text = serde_json::to_vec(value)?;
        match is_too_deep(&text) {
            true => Err(DataError::TooDeep),
            false => Ok(Self::exactly(escape_breaks(text.into()).into_owned())),
        }
    }

    /// Takes text that is one JSON value, removes a byte order mark before it and line breaks between its tokens, and
    /// escapes those in its strings.
    ///
    /// # Errors
    /// [`DataError`] when it is not JSON, or nested too deeply.
    pub fn parse(text: &str) -> Result<Self, DataError> {
        let value: &RawValue = serde_json::from_str(without_mark(text))?;
        let text = value.get();
        if is_too_deep(text.as_bytes()) {
            return Err(DataError::TooDeep);
        }
        // These two can only stand between tokens, since strings escape them. The standard library searches for one
        // byte at a time much faster than for either of two.
        let text: Cow<'_, [u8]> = match text.contains('\n') || text.contains('\r') {
            true => text.replace(['\n', '\r'], "").into_bytes().into(),
            false => text.as_bytes().into(),
        };
        Ok(Self::shared(escape_breaks(text)))
    }

    /// Takes text that somebody typed: one JSON value like [`Data::parse`], or any other text as a string. A text
    /// that begins like an object, a string or an array is an error: its end is missing, or a shell has removed its
    /// quotes. A byte order mark before it is no part of it.
    ///
    /// # Errors
    /// [`DataError`] when it looks like JSON and is not, or is nested too deeply.
    pub fn typed(text: &str) -> Result<Self, DataError> {
        match Self::parse(text) {
            Err(DataError::Json(_)) if !looks_like_json(text) => Self::json(without_mark(text)),
            parsed => parsed,
        }
    }

    /// Writes an object with these members. It may have one level more than data of a single value.
    #[must_use]
    pub fn object(members: &[(&str, &Self)]) -> Self {
        let bytes = members.iter().map(|(name, value)| name.len() + value.0.len() + 4);
        let mut text = Vec::with_capacity(bytes.sum::<usize>() + 2);
        for (name, value) in members {
            text.push(if text.is_empty() { b'{' } else { b',' });
            // A string always has a JSON form.
            let _ = serde_json::to_writer(&mut text, name);
            text.push(b':');
            text.extend_from_slice(&value.0);
        }
        text.extend_from_slice(if text.is_empty() { b"{}" } else { b"}" });
        Self::exactly(text)
    }

    /// Takes no more memory than the text, unlike a vector, which may have twice the capacity.
    fn exactly(text: Vec<u8>) -> Self {
        Self(text.into_boxed_slice().into())
    }

    fn shared(text: Cow<'_, [u8]>) -> Self {
        match text {
            Cow::Borrowed(text) => Self(Bytes::copy_from_slice(text)),
            Cow::Owned(text) => Self::exactly(text),
        }
    }

    /// Takes JSON text that this crate has written, on one line.
    pub(crate) fn from_json(text: String) -> Self {
        Self::exactly(text.into_bytes())
    }

    /// Takes JSON text from a log, which an older version may have written.
    pub(crate) fn from_log(text: &str) -> Self {
        Self::shared(escape_breaks(text.as_bytes().into()))
    }

    /// Takes JSON text that its owner holds.
    #[cfg(test)]
    pub(crate) fn from_owner(text: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self(Bytes::from_owner(text))
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Every constructor takes its bytes from a `str`, or from serde_json, which writes UTF-8.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the JSON text as shared bytes; cloning copies nothing.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Escapes what some programs take for a line break, though JSON allows it in strings. It can stand nowhere else.
fn escape_breaks(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    // The first bytes of these characters, and of few others that are common.
    let breaks = memchr2_iter(0xC2, 0xE2, &text).filter_map(|at| match text[at..] {
        [0xC2, 0x85, ..] => Some((at, 2, r"\u0085")),
        [0xE2, 0x80, 0xA8, ..] => Some((at, 3, r"\u2028")),
        [0xE2, 0x80, 0xA9, ..] => Some((at, 3, r"\u2029")),
        _ => None,
    });
    let (mut escaped, mut done) = (Vec::new(), 0);
    for (at, bytes, escape) in breaks {
        escaped.extend_from_slice(&text[done..at]);
        escaped.extend_from_slice(escape.as_bytes());
        done = at + bytes;
    }
    if done == 0 {
        return text;
    }
    escaped.extend_from_slice(&text[done..]);
    escaped.into()
}

/// Returns true if the text begins like JSON. `[` also begins the lines of many logs, for example `[INFO]`.
fn looks_like_json(text: &str) -> bool {
    let text = without_mark(text).trim_start();
    let in_array = |rest: &str| {
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with(|c: char| "{[\"]-".contains(c) || c.is_ascii_digit())
    };
    text.starts_with(['{', '"']) || text.strip_prefix('[').is_some_and(in_array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_text_passes_through_but_for_line_breaks() {
        assert_eq!(Data::parse(" {\"a\": 1.50}\n").unwrap().as_str(), "{\"a\": 1.50}");
        assert_eq!(Data::parse("{\r\n\"a\":\n\"x\\n\"}").unwrap().as_str(), "{\"a\":\"x\\n\"}");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text() {
        assert_eq!(Data::parse("\u{feff}{\"a\":1}").unwrap().as_str(), "{\"a\":1}");
        assert_eq!(Data::typed("\u{feff}hello").unwrap().as_str(), "\"hello\"");
        assert!(Data::typed("\u{feff}{\"a\":").is_err());
        assert_eq!(Data::typed("a\u{feff}").unwrap().as_str(), "\"a\u{feff}\"");
    }

    #[test]
    fn line_breaks_of_other_programs_are_escaped_and_mean_the_same() {
        let text = "\u{85}a\u{2028}\u{2029}é\u{2027}\u{202a}\u{84}\u{86}…\u{2028}";
        let escaped = "\"\\u0085a\\u2028\\u2029é\u{2027}\u{202a}\u{84}\u{86}…\\u2028\"";
        let json = format!("{{\"{text}\":\n[\"{text}\"]}}");
        for (data, expected) in [
            (Data::json(text).unwrap(), escaped.to_owned()),
            (Data::typed(text).unwrap(), escaped.to_owned()),
            (Data::parse(&json).unwrap(), format!("{{{escaped}:[{escaped}]}}")),
            (Data::from_log(&format!("\"{text}\"")), escaped.to_owned()),
        ] {
            assert_eq!(data.as_str(), expected);
        }
        let back: String = serde_json::from_str(escaped).unwrap();
        assert_eq!(back, text);
        let plain = "\"grüße … 25 °C\"";
        assert_eq!(Data::parse(plain).unwrap().as_str(), plain);
    }

    #[test]
    fn what_is_typed_is_json_or_else_text_and_a_slip_is_neither() {
        for (text, data) in [
            ("{\"a\":1}", "{\"a\":1}"),
            (" 17\n", "17"),
            ("hello", "\"hello\""),
            ("a=1&b=%20+2", "\"a=1&b=%20+2\""),
            ("[INFO] up", "\"[INFO] up\""),
            ("1 2", "\"1 2\""),
            ("nul", "\"nul\""),
            (" ", "\" \""),
            ("", "\"\""),
        ] {
            assert_eq!(Data::typed(text).unwrap().as_str(), data);
        }
        for text in [
            "{\"a\":",
            "{a:1}",
            "{",
            " [1,",
            "[ ",
            "[]]",
            "[-",
            "\"a",
            "{\"a\":1} x",
            "[\"a",
            "[[",
            "[{",
        ] {
            assert!(Data::typed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "a", "1 2", "\"a\nb\"", "nul"] {
            assert!(Data::parse(text).is_err(), "{text:?} was accepted");
        }
    }
}
