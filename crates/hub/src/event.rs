//! Events: an offset, a time and one JSON value.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::log::Entry;
use crate::{DataError, UnixTime};

/// One entry of a topic's log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Its number in its epoch, from 1.
    pub offset: u64,
    /// When it was published, or when its source says it happened.
    pub time: UnixTime,
    /// What it carries.
    pub data: Data,
}

/// What an event carries: one JSON value in UTF-8, on one line, shared by all who read it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Data(Bytes);

impl Data {
    /// Writes `value` as JSON.
    ///
    /// # Errors
    /// [`DataError`] when `value` has no JSON form (a map whose keys are not strings, say).
    pub fn json(value: &impl Serialize) -> Result<Self, DataError> {
        Ok(Self(serde_json::to_vec(value)?.into()))
    }

    /// Takes text that is one JSON value already, and takes line breaks between its tokens out.
    ///
    /// # Errors
    /// [`DataError`] when it is not JSON.
    pub fn parse(text: &str) -> Result<Self, DataError> {
        let value: &RawValue = serde_json::from_str(text)?;
        let text = value.get();
        // A line break in JSON can only stand between tokens: within a string it must be escaped.
        if text.contains(['\n', '\r']) {
            return Ok(Self(text.replace(['\n', '\r'], "").into_bytes().into()));
        }
        Ok(Self(Bytes::copy_from_slice(text.as_bytes())))
    }

    /// The JSON text that a log kept.
    pub(crate) fn from_log(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Every constructor takes its bytes from a `str`, or from serde_json, which writes UTF-8.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The JSON text as shared bytes; cloning copies nothing.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

/// What an event costs in a log's byte count beside its data: its own size and its place.
pub(crate) const EVENT_OVERHEAD_BYTES: u64 = (size_of::<Event>() + size_of::<Entry>()) as u64;

impl Event {
    /// What this event counts for in [`Retention::bytes_max`](crate::Retention::bytes_max).
    pub(crate) fn cost_bytes(&self) -> u64 {
        self.data.0.len() as u64 + EVENT_OVERHEAD_BYTES
    }
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
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "a", "1 2", "\"a\nb\"", "nul"] {
            assert!(Data::parse(text).is_err(), "{text:?} was accepted");
        }
    }
}
