//! Items: the things that a stream tells, each one JSON object.
//!
//! NDJSON has one in a line, a forever-frame in a call and `anemone.events` in a message. The other transports have forms
//! of their own for some of them. Event data passes through as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{After, EndReason, Gap, Malformed, Position, UnixTime};

/// One of the things that a stream tells of a topic, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// Reading begins here. Its object is that of [`Item::Quiet`], and is read as this one.
    Begin(Position),
    /// Nothing came for a while, and reading stands here.
    Quiet(Position),
    /// An event.
    Event {
        /// Reading goes on after this.
        position: Position,
        /// The time at which it was published; older servers do not say so by every transport.
        time: Option<UnixTime>,
        /// One JSON value, as it was published.
        data: Cow<'a, str>,
    },
    /// Events are missing.
    Gap(Gap),
    /// Events were passed over before the next one.
    Skipped {
        /// The number of them.
        count: u64,
        /// The last of them, which is no part of the object: some transports tell it beside that.
        last: Option<Position>,
    },
    /// Nothing more will come.
    End(EndReason),
}

/// All members there are. What is not known is passed over, so that servers can have more to say.
#[derive(Deserialize)]
struct Object<'a> {
    position: Option<Position>,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    /// `null` is data, too.
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
    gap: Option<Gap>,
    skipped: Option<u64>,
    end: Option<EndReason>,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Reads a time. One that cannot be read is no reason to pass the event over.
pub(crate) fn time(text: Option<&RawValue>) -> Option<UnixTime> {
    text.and_then(|text| text.get().parse().ok())
}

impl<'a> Item<'a> {
    /// Reads an object; `None` when it says something that is not known here.
    ///
    /// # Errors
    /// When it is no object, or one that no server sends.
    pub fn parse(text: &'a str) -> Result<Option<Self>, Malformed> {
        let object: Object<'_> = serde_json::from_str(text)?;
        if let Some(data) = object.data {
            let position = object.position.ok_or(Malformed::NoPosition)?;
            let (time, data) = (time(object.time), data.get().into());
            return Ok(Some(Self::Event { position, time, data }));
        }
        Ok(match object {
            Object { gap: Some(gap), .. } => Some(Self::Gap(gap)),
            Object { skipped: Some(count), .. } => Some(Self::Skipped { count, last: None }),
            Object { end: Some(reason), .. } => Some(Self::End(reason)),
            Object { position: Some(position), .. } => Some(Self::Begin(position)),
            _ => None,
        })
    }

    /// Appends its object.
    pub fn write(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Begin(position) | Self::Quiet(position) => {
                write!(out, r#"{{"position":"{position}"}}"#)
            }
            Self::Event { position, time: Some(time), data } => {
                write!(out, r#"{{"position":"{position}","time":{time},"data":{data}}}"#)
            }
            Self::Event { position, time: None, data } => {
                write!(out, r#"{{"position":"{position}","data":{data}}}"#)
            }
            Self::Gap(gap) => {
                out.push_str(r#"{"gap":"#);
                gap.write(After::Position, out);
                out.write_char('}')
            }
            Self::Skipped { count, .. } => write!(out, r#"{{"skipped":{count}}}"#),
            Self::End(reason) => {
                out.push_str(r#"{"end":"#);
                reason.write(After::Anew, out);
                out.write_char('}')
            }
        };
    }

    /// The position that reading goes on from after it, if it has one.
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

    /// The same with data of its own.
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
            assert_eq!(Item::parse(text).unwrap(), Some(item), "{text}");
        }
        assert_eq!(written(&Item::Quiet(at("9-5"))), written(&Item::Begin(at("9-5"))));
        assert_eq!(Item::parse(r#"{"weather":"fine"}"#).unwrap(), None);
    }

    #[test]
    fn a_time_that_is_none_loses_no_event() {
        for time in ["-1", "1e300", "\"noon\"", "null", "[]"] {
            let text = format!(r#"{{"position":"a-1","time":{time},"data":1}}"#);
            let Some(Item::Event { time: None, .. }) = Item::parse(&text).unwrap() else {
                panic!("{text}")
            };
        }
    }

    #[test]
    fn what_cannot_be_an_item_is_an_error() {
        for text in
            ["", "17", "[]", "{", r#"{"position":"x"}"#, r#"{"data":1}"#, r#"{"skipped":-1}"#]
        {
            assert!(Item::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(item in item()) {
            let text = written(&item);
            prop_assert_eq!(Item::parse(&text).unwrap(), Some(item));
        }
    }
}
