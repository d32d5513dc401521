//! The one JSON object that NDJSON has in a line, and a WebSocket in a message.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Malformed, Wire};
use crate::{EndReason, Gap, GapReason, Position, UnixTime};

/// All members there are. What is not known is passed over, so that servers can have more to say.
#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    position: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    /// `null` is data, too.
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
    gap: Option<GapObject>,
    skipped: Option<u64>,
    end: Option<End>,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

#[derive(Deserialize)]
pub(crate) struct GapObject {
    reason: String,
    after: String,
    missed: Option<u64>,
    resume: String,
}

#[derive(Deserialize)]
struct End {
    reason: String,
    gap: Option<GapObject>,
}

/// The meaning of the text; `None` when it is something not known here.
pub(crate) fn parse(text: &str) -> Result<Option<Wire>, Malformed> {
    let object: Object<'_> = serde_json::from_str(text)?;
    if let Some(data) = object.data {
        let position = position(&object.position.ok_or(Malformed::NoPosition)?)?;
        let time = time(object.time);
        return Ok(Some(Wire::Event { position, time, data: data.get().to_owned() }));
    }
    Ok(match object {
        Object { gap: Some(gap), .. } => Some(Wire::Gap(gap.parse()?)),
        Object { skipped: Some(count), .. } => Some(Wire::Skipped(count)),
        Object { end: Some(end), .. } => {
            let gap = end.gap.map(GapObject::parse).transpose()?;
            Some(Wire::End(EndReason::of(&end.reason, gap)))
        }
        Object { position: Some(text), .. } => Some(Wire::Standing(position(&text)?)),
        _ => None,
    })
}

/// The same as bytes.
pub(crate) fn parse_bytes(bytes: &[u8]) -> Result<Option<Wire>, Malformed> {
    parse(std::str::from_utf8(bytes)?)
}

impl GapObject {
    pub(crate) fn parse(self) -> Result<Gap, Malformed> {
        Ok(Gap {
            reason: GapReason::of(&self.reason),
            after: position(&self.after)?,
            missed: self.missed,
            // With `~` where a reader was ended: reading begins there.
            resume: position(self.resume.strip_suffix('~').unwrap_or(&self.resume))?,
        })
    }
}

/// One that cannot be a time is no reason to pass the event over.
pub(super) fn time(text: Option<&RawValue>) -> Option<UnixTime> {
    text.and_then(|text| text.get().parse().ok())
}

pub(super) fn position(text: &str) -> Result<Position, Malformed> {
    text.parse().map_err(|_| Malformed::NoPosition)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Position {
        text.parse().unwrap()
    }

    #[test]
    fn each_object_is_what_its_members_say() {
        let cases = [
            (r#"{"position":"a-0"}"#, Some(Wire::Standing(at("a-0")))),
            (
                r#"{"position":"a-1","time":1789000000123.456,"data":{"n": 1.50}}"#,
                Some(Wire::Event {
                    position: at("a-1"),
                    time: Some(UnixTime::from_micros(1_789_000_000_123_456)),
                    data: r#"{"n": 1.50}"#.into(),
                }),
            ),
            (
                r#"{"position":"a-1","data":null}"#,
                Some(Wire::Event { position: at("a-1"), time: None, data: "null".into() }),
            ),
            (
                r#"{"gap":{"reason":"retention","after":"a-1","missed":2,"resume":"a-3"}}"#,
                Some(Wire::Gap(Gap {
                    reason: GapReason::Retention,
                    after: at("a-1"),
                    missed: Some(2),
                    resume: at("a-3"),
                })),
            ),
            (r#"{"skipped":7}"#, Some(Wire::Skipped(7))),
            (r#"{"end":{"reason":"deleted"}}"#, Some(Wire::End(EndReason::Deleted))),
            (r#"{"end":{"reason":"bored"}}"#, Some(Wire::End(EndReason::Other("bored".into())))),
            (r#"{"weather":"fine"}"#, None),
        ];
        for (text, wire) in cases {
            assert_eq!(parse(text).unwrap(), wire, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_an_item_is_an_error() {
        for text in
            ["", "17", "[]", "{", r#"{"position":"x"}"#, r#"{"data":1}"#, r#"{"skipped":-1}"#]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(matches!(parse_bytes(b"\"\xff\""), Err(Malformed::NotUtf8)));
    }
}
