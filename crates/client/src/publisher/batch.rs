//! A batch: its content and its place.

use serde::Deserialize;

use crate::{Error, Malformed, Position};

/// The type of a body, which says what its events are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// One event, a JSON value.
    Json,
    /// One event, a string, in UTF-8.
    Text,
    /// One event, any bytes; it will read `{"base64":"…"}`.
    Binary,
    /// Many events, a JSON value a line: all of them are published, or none.
    Lines,
}

/// The place of a batch in its topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Published {
    /// The first event's position.
    pub first: Position,
    /// The last event's position.
    pub position: Position,
    /// The number of its events.
    pub count: u64,
}

/// The body of a reply.
#[derive(Deserialize)]
struct PublishReply {
    position: String,
    first: Option<String>,
    count: Option<u64>,
}

impl Published {
    pub(super) fn parse(text: &[u8]) -> Result<Self, Error> {
        let reply: PublishReply = serde_json::from_slice(text).map_err(Malformed::Json)?;
        let parse = |text: &str| text.parse::<Position>().map_err(|_| Malformed::NoPosition);
        let position = parse(&reply.position)?;
        let first = reply.first.as_deref().map_or(Ok(position), parse)?;
        Ok(Self { first, position, count: reply.count.unwrap_or(1) })
    }

    /// The position of each event, in order.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        (self.first.offset..=self.position.offset).map(|offset| self.position.at(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_says_where_each_event_is() {
        let published = Published::parse(br#"{"position":"a-4","first":"a-2","count":3}"#).unwrap();
        let positions: Vec<String> = published.positions().map(|at| at.to_string()).collect();
        assert_eq!(positions, ["a-2", "a-3", "a-4"]);
        let published = Published::parse(br#"{"position":"a-4"}"#).unwrap();
        assert_eq!((published.positions().count(), published.count), (1, 1));
        assert!(Published::parse(br#"{"position":"four"}"#).is_err());
    }
}
