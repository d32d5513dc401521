//! Items: events and notices as JSON objects ("Notices" and "Streams over HTTP" in `docs/PROTOCOL.md`).
//!
//! A line of NDJSON, a call of a forever-frame and a message of `anemone.events` are one item each. Event data is copied
//! unchanged.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{After, EndReason, Gap, Malformed, Position, UnixTime};

/// An event or a notice of a stream. An event is `{"position":P,"time":MS,"data":…}`; each notice has one member.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// The position where reading begins: `{"position":P}`.
    Begin(Position),
    /// A heartbeat with the position of the reader. It is written like [`Item::Begin`], and read as that.
    Quiet(Position),
    /// An event.
    Event {
        /// The event's position.
        position: Position,
        /// The time at which it was published. Some older servers leave it out.
        time: Option<UnixTime>,
        /// One JSON value, as it was published.
        data: Cow<'a, str>,
    },
    /// Missing events: `{"gap":{…}}`.
    Gap(Gap),
    /// Events that were skipped before the next one, in [`Mode::Latest`](crate::Mode::Latest): `{"skipped":N}`.
    Skipped {
        /// Their number.
        count: u64,
        /// The position of the last one. The object does not have it, but some transports tell it.
        last: Option<Position>,
    },
    /// The end of the stream: `{"end":{…}}`.
    End(EndReason),
}

/// All members. Others are ignored, so that newer servers can add some.
#[derive(Deserialize)]
struct ItemObject<'a> {
    position: Option<Position>,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    /// `Some` for `null`, which is data, too.
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
    gap: Option<Gap>,
    skipped: Option<u64>,
    end: Option<EndReason>,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Reads a time. An invalid one counts as none, so that no event is lost for it.
pub(crate) fn time(text: Option<&RawValue>) -> Option<UnixTime> {
    text.and_then(|text| text.get().parse().ok())
}

impl<'a> Item<'a> {
    /// The subprotocol whose messages are items ("Plain WebSocket" in `docs/PROTOCOL.md`).
    pub const SUBPROTOCOL: &'static str = "anemone.events";

    /// Reads an item; `None` for an unknown notice.
    ///
    /// # Errors
    /// When the text is no JSON object, or has an invalid member.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let object: ItemObject<'_> = serde_json::from_str(str::from_utf8(bytes)?)?;
        if let Some(data) = object.data {
            let position = object.position.ok_or(Malformed::NoPosition)?;
            let (time, data) = (time(object.time), data.get().into());
            return Ok(Some(Self::Event { position, time, data }));
        }
        Ok(match object {
            ItemObject { gap: Some(gap), .. } => Some(Self::Gap(gap)),
            ItemObject { skipped: Some(count), .. } => Some(Self::Skipped { count, last: None }),
            ItemObject { end: Some(reason), .. } => Some(Self::End(reason)),
            ItemObject { position: Some(position), .. } => Some(Self::Begin(position)),
            _ => None,
        })
    }

    /// Appends the JSON object, without a line feed.
    pub fn write(&self, out: &mut String) {
        out.push('{');
        self.write_members(out);
        out.push('}');
    }

    pub(crate) fn write_members(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Begin(position) | Self::Quiet(position) => {
                write!(out, r#""position":"{position}""#)
            }
            Self::Event { position, time: Some(time), data } => {
                write!(out, r#""position":"{position}","time":{time},"data":{data}"#)
            }
            Self::Event { position, time: None, data } => {
                write!(out, r#""position":"{position}","data":{data}"#)
            }
            Self::Gap(gap) => {
                out.push_str(r#""gap":"#);
                return gap.write(After::Position, out);
            }
            Self::Skipped { count, .. } => write!(out, r#""skipped":{count}"#),
            Self::End(reason) => {
                out.push_str(r#""end":"#);
                return reason.write(After::Anew, out);
            }
        };
    }

    /// The position after which reading continues, if the item has one.
    #[must_use]
    pub const fn position(&self) -> Option<Position> {
        match self {
            Self::Begin(position) | Self::Quiet(position) | Self::Event { position, .. } => {
                Some(*position)
            }
            Self::Gap(gap) => Some(gap.resume),
            Self::Skipped { last, .. } => *last,
            Self::End(_) => None,
        }
    }

    /// Returns the item with its own copy of the data.
    #[must_use]
    pub fn into_owned(self) -> Item<'static> {
        match self {
            Self::Begin(position) => Item::Begin(position),
            Self::Quiet(position) => Item::Quiet(position),
            Self::Event { position, time, data } => {
                Item::Event { position, time, data: data.into_owned().into() }
            }
            Self::Gap(gap) => Item::Gap(gap),
            Self::Skipped { count, last } => Item::Skipped { count, last },
            Self::End(reason) => Item::End(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::item;

    fn written(item: &Item<'_>) -> String {
        let mut out = String::new();
        item.write(&mut out);
        out
    }

    #[test]
    fn each_item_is_one_object() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        let time = Some(UnixTime::from_micros(1_789_000_000_123_456));
        let (after, resume) = (at("9-1"), at("9-3"));
        let gap = Gap { reason: "retention".to_owned().into(), after, missed: Some(2), resume };
        let cases = [
            (Item::Begin(at("9-0")), r#"{"position":"9-0"}"#),
            (
                Item::Event { position: at("9-4"), time, data: r#"{"speed": 2.740}"#.into() },
                r#"{"position":"9-4","time":1789000000123.456,"data":{"speed": 2.740}}"#,
            ),
            (
                Item::Event { position: at("9-4"), time: None, data: "null".into() },
                r#"{"position":"9-4","data":null}"#,
            ),
            (
                Item::Gap(gap.clone()),
                r#"{"gap":{"reason":"retention","after":"9-1","missed":2,"resume":"9-3"}}"#,
            ),
            (Item::Skipped { count: 7, last: None }, r#"{"skipped":7}"#),
            (Item::End(EndReason::Deleted), r#"{"end":{"reason":"deleted"}}"#),
            (
                Item::End(EndReason::TooSlow { gap: Some(gap) }),
                r#"{"end":{"reason":"too-slow","gap":{"reason":"retention","after":"9-1","missed":2,"resume":"9-3~"}}}"#,
            ),
            (Item::End(EndReason::Other("bored".into())), r#"{"end":{"reason":"bored"}}"#),
        ];
        for (item, text) in cases {
            assert_eq!(written(&item), text);
            assert_eq!(Item::parse(text.as_bytes()).unwrap(), Some(item), "{text}");
        }
        assert_eq!(written(&Item::Quiet(at("9-5"))), written(&Item::Begin(at("9-5"))));
        assert_eq!(Item::parse(r#"{"weather":"fine"}"#.as_bytes()).unwrap(), None);
    }

    #[test]
    fn a_time_that_is_none_loses_no_event() {
        for time in ["-1", "1e300", "\"noon\"", "null", "[]"] {
            let text = format!(r#"{{"position":"a-1","time":{time},"data":1}}"#);
            let Some(Item::Event { time: None, .. }) = Item::parse(text.as_bytes()).unwrap() else {
                panic!("{text}")
            };
        }
    }

    #[test]
    fn what_cannot_be_an_item_is_an_error() {
        for text in
            ["", "17", "[]", "{", r#"{"position":"x"}"#, r#"{"data":1}"#, r#"{"skipped":-1}"#]
        {
            assert!(Item::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(item in item()) {
            let text = written(&item);
            prop_assert_eq!(Item::parse(text.as_bytes()).unwrap(), Some(item));
        }
    }
}
