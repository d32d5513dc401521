//! The page that a poll and a long poll are answered with.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::item::{self, GapObject, position};
use super::{Malformed, Wire};
use crate::Position;

/// A page, taken apart.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    /// The position to ask for next.
    pub(crate) next: Position,
    /// The number of its events.
    pub(crate) events: usize,
    /// The things that it says, in order; last, where reading stands then.
    pub(crate) wires: Vec<Wire>,
}

#[derive(Deserialize)]
struct Object<'a> {
    epoch: String,
    next: String,
    gap: Option<GapObject>,
    #[serde(default)]
    skipped: u64,
    #[serde(borrow)]
    events: Vec<Event<'a>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    offset: u64,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Reads a page.
pub(crate) fn parse(bytes: &[u8]) -> Result<Page, Malformed> {
    let object: Object<'_> = serde_json::from_slice(bytes)?;
    let next = position(&object.next)?;
    let last = object.events.last().map_or(next.offset, |event| event.offset);
    if next.epoch.to_string() != object.epoch || last != next.offset {
        return Err(Malformed::Page);
    }
    let events = object.events.len();
    let mut wires = Vec::with_capacity(events + 3);
    if let Some(gap) = object.gap {
        wires.push(Wire::Gap(gap.parse()?));
    }
    if object.skipped > 0 {
        wires.push(Wire::Skipped(object.skipped));
    }
    wires.extend(object.events.into_iter().map(|event| Wire::Event {
        position: next.at(event.offset),
        time: item::time(event.time),
        data: event.data.get().to_owned(),
    }));
    wires.push(Wire::Standing(next));
    Ok(Page { next, events, wires })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnixTime;

    #[test]
    fn a_page_is_its_notices_its_events_and_where_it_ends() {
        let page = parse(
            br#"{"epoch":"9","first":4,"next":"9-8",
                 "gap":{"reason":"retention","after":"9-1","missed":2,"resume":"9-3"},"skipped":3,
                 "events":[{"offset":7,"time":1789000000123,"data":null},{"offset":8,"data":[]}],"more":1}"#,
        );
        let page = page.unwrap();
        assert_eq!((page.next.to_string().as_str(), page.events), ("9-8", 2));
        let [Wire::Gap(gap), Wire::Skipped(3), first, second, Wire::Standing(_)] = &page.wires[..]
        else {
            panic!("{:?}", page.wires)
        };
        assert_eq!(gap.missed, Some(2));
        let event = |offset, time, data: &str| Wire::Event {
            position: page.next.at(offset),
            time,
            data: data.into(),
        };
        assert_eq!(first, &event(7, Some(UnixTime::from_micros(1_789_000_000_123_000)), "null"));
        assert_eq!(second, &event(8, None, "[]"));
    }

    #[test]
    fn a_page_that_contradicts_itself_is_none() {
        for text in [
            r#"{"epoch":"8","next":"9-8","events":[]}"#,
            r#"{"epoch":"9","next":"9-8","events":[{"offset":7,"data":1}]}"#,
            r#"{"epoch":"9","next":"9","events":[]}"#,
            r#"{"epoch":"9","next":"9-8"}"#,
            r#"{"name":"something else"}"#,
            "<html>",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
