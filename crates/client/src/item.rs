//! The items of a subscription, and their JSON forms.

use std::sync::Arc;
use std::time::Duration;

use crate::text::{one_line, quoted};
use crate::{After, EndReason, Error, Gap, Position, Token, UnixTime, Via};

/// An item from a server, over any transport.
#[derive(Clone, Debug)]
pub(crate) enum ServerItem {
    /// An item for a reader of one topic.
    One(anemone_wire::Item<'static>),
    /// An item for a reader of several topics.
    Several(anemone_wire::ReadItem),
}

impl From<anemone_wire::Item<'_>> for ServerItem {
    fn from(item: anemone_wire::Item<'_>) -> Self {
        Self::One(item.into_owned())
    }
}

/// An item of a subscription, in order.
///
/// ```
/// use anemone_client::Item;
///
/// let item = Item::Event { position: "4zq81x-42".parse()?, time: None, data: "2.74".into() };
/// let shown = match &item {
///     Item::Event { position, data, .. } => format!("{position}: {data}"),
///     Item::Gap(gap) => format!("events are missing: {gap}"),
///     _ => String::new(),
/// };
/// assert_eq!(shown, "4zq81x-42: 2.74");
/// assert_eq!(item.to_json().as_deref(), Some(r#"{"position":"4zq81x-42","data":2.74}"#));
/// # Ok::<(), anemone_client::PositionError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Item {
    /// The position at which reading begins. It comes once, before any other item of the topic.
    Position(Position),
    /// An event. Each event comes once.
    Event {
        /// The position after the event.
        position: Position,
        /// The time at which the server received the event. Older servers do not send it with SSE and the multiplexed
        /// transports.
        time: Option<UnixTime>,
        /// The data as JSON, as the server sent it.
        data: String,
    },
    /// Events are missing, and cannot be read any more.
    Gap(Gap),
    /// With [`Mode::Latest`](crate::Mode::Latest): the number of events that were skipped.
    Skipped(u64),
    /// The topic has ended; no more items follow.
    End {
        /// The reason.
        reason: EndReason,
    },
    /// An item of one of several topics: an event, a gap, skipped events or the end of the topic.
    ///
    /// The subscription continues after the end of a topic. A topic that is created again is read again. If the reader
    /// was too slow, the topic continues after the gap on the next connection. The deletion of a topic may be reported
    /// twice.
    Of {
        /// The name of the topic.
        topic: Arc<str>,
        /// The event, the gap, the skipped events or the end.
        item: Box<Self>,
    },
    /// A token with the places in all topics, if there are several. It comes when reading begins, and after topics have
    /// joined or left. After each event, the place in its topic is the event's position ([`Token::set`]).
    Token(Token),
    /// A connection is open, and the server's messages are valid.
    Connected {
        /// The transport.
        via: Via,
    },
    /// The connection failed or could not be opened. The subscription continues by itself.
    Disconnected {
        /// The transport that has failed.
        via: Via,
        /// The error.
        error: Arc<Error>,
        /// The time until the next attempt.
        retry_in: Duration,
        /// The transport of the next attempt.
        next: Via,
    },
}

impl Item {
    /// Returns the line for the item in a server's NDJSON, without a line feed; `None` for an item about the
    /// connection.
    #[must_use]
    pub fn to_json(&self) -> Option<String> {
        let mut out = String::new();
        match self {
            // A subscription that goes on after `resume` begins anew by itself.
            Self::End { reason } => {
                out.push_str(r#"{"end":"#);
                reason.write(After::Position, &mut out);
                out.push('}');
            }
            Self::Of { topic, item } => {
                let item = item.to_json()?;
                out = format!(r#"{{"topic":{},{}"#, quoted(topic), item.strip_prefix('{')?);
            }
            Self::Token(token) => out = format!(r#"{{"position":"{token}"}}"#),
            _ => self.to_wire()?.write(&mut out),
        }
        Some(out)
    }

    fn to_wire(&self) -> Option<anemone_wire::Item<'_>> {
        use anemone_wire::Item as WireItem;
        Some(match self {
            Self::Position(position) => WireItem::Begin(*position),
            Self::Event { position, time, data } => {
                WireItem::Event { position: *position, time: *time, data: one_line(data) }
            }
            Self::Gap(gap) => WireItem::Gap(gap.clone()),
            Self::Skipped(count) => WireItem::Skipped { count: *count, last: None },
            Self::End { .. }
            | Self::Of { .. }
            | Self::Token(_)
            | Self::Connected { .. }
            | Self::Disconnected { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GapReason;

    #[test]
    fn items_have_the_lines_of_a_server() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        let time = Some(UnixTime::from_micros(1_789_000_000_123_450));
        let data = "{\"a\":\n 1.50}".to_owned();
        let gap =
            Gap { reason: GapReason::Epoch, after: at("a-1"), missed: None, resume: at("b-0") };
        let cases = [
            (Item::Position(at("a-0")), r#"{"position":"a-0"}"#),
            (
                Item::Event { position: at("a-1"), time, data: data.clone() },
                r#"{"position":"a-1","time":1789000000123.450,"data":{"a":  1.50}}"#,
            ),
            (
                Item::Event { position: at("a-1"), time: None, data },
                r#"{"position":"a-1","data":{"a":  1.50}}"#,
            ),
            (
                Item::Gap(gap),
                r#"{"gap":{"reason":"epoch","after":"a-1","missed":null,"resume":"b-0"}}"#,
            ),
            (Item::Skipped(3), r#"{"skipped":3}"#),
            (Item::End { reason: EndReason::Deleted }, r#"{"end":{"reason":"deleted"}}"#),
        ];
        for (item, line) in cases {
            assert_eq!(item.to_json().as_deref(), Some(line));
        }
        assert_eq!(Item::Connected { via: Via::Sse }.to_json(), None);
    }
}
