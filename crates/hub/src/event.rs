//! Events: an offset, a time and one JSON value.

use anemone_wire::{BYTE_ORDER_MARK, is_too_deep};
use bytes::Bytes;
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
/// [`DEPTH_MAX`](crate::DEPTH_MAX) levels of arrays and objects.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Data(Bytes);

impl Data {
    /// Writes `value` as JSON.
    ///
    /// # Errors
    /// [`DataError`] when `value` has no JSON form, for example a map whose keys are not strings, or is nested too deeply.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self, DataError> {
        let text = serde_json::to_vec(value)?;
        if is_too_deep(&text) { Err(DataError::TooDeep) } else { Ok(Self::exactly(text)) }
    }

    /// Takes text that is one JSON value, and removes a byte order mark before it and line breaks between its tokens.
    ///
    /// # Errors
    /// [`DataError`] when it is not JSON, or nested too deeply.
    pub fn parse(text: &str) -> Result<Self, DataError> {
        let value: &RawValue = serde_json::from_str(without_mark(text))?;
        let text = value.get();
        if is_too_deep(text.as_bytes()) {
            return Err(DataError::TooDeep);
        }
        // A line break in JSON can only stand between tokens, since strings escape it. The standard library searches
        // for one byte at a time much faster than for either of two.
        if text.contains('\n') || text.contains('\r') {
            return Ok(Self::exactly(text.replace(['\n', '\r'], "").into_bytes()));
        }
        Ok(Self(Bytes::copy_from_slice(text.as_bytes())))
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

    /// Takes JSON text that this crate has written, on one line.
    pub(crate) fn from_json(text: String) -> Self {
        Self::exactly(text.into_bytes())
    }

    /// Takes JSON text from a log.
    pub(crate) fn from_log(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
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
