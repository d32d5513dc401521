//! The answer to a publisher ("`POST /topics/NAME`" in `docs/PROTOCOL.md`).

use std::fmt::Write as _;

use serde::Deserialize;

use crate::{Malformed, Position};

/// The place of a batch in its topic: `{"position":P,"first":P,"count":N}`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Published {
    /// The position of its first event.
    pub first: Position,
    /// The position of its last event.
    pub position: Position,
}

/// The longest answer, in bytes: its names, two positions and a count.
const JSON_BYTES_MAX: usize =
    r#"{"position":"","first":"","count":}"#.len() + 2 * Position::TEXT_BYTES_MAX + 20;

#[derive(Deserialize)]
struct PublishedObject {
    position: Position,
    first: Option<Position>,
}

impl Published {
    /// Reads the answer. One without `first` is about a single event.
    ///
    /// # Errors
    /// When the text is no JSON object, or has an invalid position.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let PublishedObject { position, first } = serde_json::from_slice(bytes)?;
        Ok(Self { first: first.unwrap_or(position), position })
    }

    /// The JSON object, without a line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { first, position } = self;
        // Grows once.
        let mut json = String::with_capacity(JSON_BYTES_MAX);
        // Writing to a string cannot fail.
        let _ = write!(
            json,
            r#"{{"position":"{position}","first":"{first}","count":{}}}"#,
            self.count()
        );
        json
    }

    /// The number of events.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.position.offset.saturating_add(1).saturating_sub(self.first.offset)
    }

    /// The position of each event, in order.
    pub fn positions(&self) -> impl Iterator<Item = Position> + use<> {
        let position = self.position;
        (self.first.offset..=position.offset).map(move |offset| position.at(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_says_where_each_event_is() {
        let text = r#"{"position":"a-4","first":"a-2","count":3}"#;
        let published = Published::parse(text.as_bytes()).unwrap();
        assert_eq!(published.to_json(), text);
        let positions: Vec<String> = published.positions().map(|at| at.to_string()).collect();
        assert_eq!(positions, ["a-2", "a-3", "a-4"]);
        let published = Published::parse(br#"{"position":"a-4"}"#).unwrap();
        assert_eq!((published.positions().count(), published.count()), (1, 1));
        assert!(Published::parse(br#"{"position":"four"}"#).is_err());
    }
}
