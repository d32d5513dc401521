//! Pages: the answers to polls and long polls ("Poll and long poll" in `docs/PROTOCOL.md`).

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::item::time;
use crate::{After, EndReason, Gap, Item, Malformed, Position, UnixTime};

/// The events after a position, and the position to ask for next.
///
/// `E` is an iterator of events for a writer, and a `Vec` for a reader.
///
/// ```
/// use anemone_wire::Page;
///
/// let text = br#"{"epoch":"4zq81x","first":1,"next":"4zq81x-2","events":[
///     {"offset":1,"data":2.74},{"offset":2,"data":2.81}]}"#;
/// let page = Page::parse(text)?;
/// assert_eq!(page.events[1].data, "2.81");
/// assert!(page.gap.is_none());
/// assert_eq!(format!("/topics/wind?after={}", page.next), "/topics/wind?after=4zq81x-2");
/// # Ok::<(), anemone_wire::Malformed>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Page<E> {
    /// The offset of the oldest event in the log, or of the next event if the log is empty.
    pub first: u64,
    /// The position to ask for next.
    pub next: Position,
    /// The gap before the events, if there is one.
    pub gap: Option<Gap>,
    /// The number of events that were skipped after the gap.
    pub skipped: u64,
    /// The reason why nothing follows these events, if that is so.
    pub end: Option<EndReason>,
    /// The events, with consecutive offsets up to that of `next`.
    pub events: E,
}

/// An event of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageEvent<'a> {
    /// The offset, in the epoch of `next`.
    pub offset: u64,
    /// The time at which it was published, if the server says so.
    pub time: Option<UnixTime>,
    /// One JSON value, as it was published.
    pub data: Cow<'a, str>,
}

#[derive(Deserialize)]
struct PageObject<'a> {
    epoch: String,
    #[serde(default)]
    first: u64,
    next: Position,
    gap: Option<Gap>,
    #[serde(default)]
    skipped: u64,
    end: Option<EndReason>,
    #[serde(borrow)]
    events: Vec<EventObject<'a>>,
}

#[derive(Deserialize)]
struct EventObject<'a> {
    offset: u64,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl<'a, E: IntoIterator<Item = PageEvent<'a>>> Page<E> {
    /// Appends `{"epoch":…,"first":N,"next":P,"gap":{…},"skipped":N,"end":{…},"events":[{"offset":N,"time":MS,"data":…}]}`
    /// and a line feed. `gap`, `skipped` and `end` are left out if there is none.
    pub fn write(self, out: &mut String) {
        let Self { first, next, gap, skipped, end, events } = self;
        // Writing to a string cannot fail.
        let _ = write!(out, r#"{{"epoch":"{}","first":{first},"next":"{next}""#, next.epoch);
        if let Some(gap) = gap {
            out.push_str(r#","gap":"#);
            gap.write(After::Position, out);
        }
        if skipped > 0 {
            let _ = write!(out, r#","skipped":{skipped}"#);
        }
        if let Some(end) = end {
            out.push_str(r#","end":"#);
            end.write(After::Anew, out);
        }
        out.push_str(r#","events":["#);
        for (index, PageEvent { offset, time, data }) in events.into_iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = match time {
                Some(time) => {
                    write!(out, r#"{comma}{{"offset":{offset},"time":{time},"data":{data}}}"#)
                }
                None => write!(out, r#"{comma}{{"offset":{offset},"data":{data}}}"#),
            };
        }
        out.push_str("]}\n");
    }

    /// The items of the page, in order.
    pub fn into_items(self) -> impl Iterator<Item = Item<'a>> {
        let Self { next, gap, skipped, end, events, .. } = self;
        let mut events = events.into_iter().peekable();
        let last = events.peek().map_or(next, |first| next.at(first.offset.saturating_sub(1)));
        let skipped = (skipped > 0).then_some(Item::Skipped { count: skipped, last: Some(last) });
        let events = events.map(move |PageEvent { offset, time, data }| Item::Event {
            position: next.at(offset),
            time,
            data,
        });
        gap.map(Item::Gap).into_iter().chain(skipped).chain(events).chain(end.map(Item::End))
    }
}

impl<'a> Page<Vec<PageEvent<'a>>> {
    /// Reads a page.
    ///
    /// # Errors
    /// When the text is no page, or its members contradict one another.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let PageObject { epoch, first, next, gap, skipped, end, events } =
            serde_json::from_slice(bytes)?;
        let last = events.last().map_or(next.offset, |event| event.offset);
        if next.epoch.to_string() != epoch || last != next.offset {
            return Err(Malformed::Page);
        }
        let event = |EventObject { offset, time: at, data }: EventObject<'a>| {
            let (time, data) = (time(at), data.get().into());
            PageEvent { offset, time, data }
        };
        let events = events.into_iter().map(event).collect();
        Ok(Self { first, next, gap, skipped, end, events })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::page;

    #[test]
    fn a_page_is_json_and_data_keeps_its_spelling() {
        let text = "{\"epoch\":\"9\",\"first\":4,\"next\":\"9-5\",\
             \"gap\":{\"reason\":\"retention\",\"after\":\"9-1\",\"missed\":2,\"resume\":\"9-3\"},\"skipped\":7,\"end\":{\"reason\":\"ended\"},\"events\":[\
             {\"offset\":4,\"time\":1789000000123.456,\"data\":{\"speed\": 2.740}},\
             {\"offset\":5,\"time\":1789000000123.456,\"data\":{\"speed\": 2.740}}]}\n";
        let mut out = String::new();
        Page::parse(text.as_bytes()).unwrap().write(&mut out);
        assert_eq!(out, text);
    }

    #[test]
    fn a_page_is_its_notices_and_its_events() {
        let page = Page::parse(
            br#"{"epoch":"9","first":4,"next":"9-8",
                 "gap":{"reason":"retention","after":"9-1","missed":2,"resume":"9-3"},"skipped":3,"end":{"reason":"ended"},
                 "events":[{"offset":7,"time":1789000000123,"data":null},{"offset":8,"data":[]}],"more":1}"#,
        );
        let page = page.unwrap();
        let next = page.next;
        assert_eq!((next.to_string().as_str(), page.events.len()), ("9-8", 2));
        let items: Vec<_> = page.into_items().collect();
        let [Item::Gap(gap), skipped, first, second, end] = &items[..] else { panic!("{items:?}") };
        assert_eq!(skipped, &Item::Skipped { count: 3, last: Some(next.at(6)) });
        assert_eq!(gap.missed, Some(2));
        let event = |offset, time, data: &'static str| Item::Event {
            position: next.at(offset),
            time,
            data: data.into(),
        };
        assert_eq!(first, &event(7, Some(UnixTime::from_micros(1_789_000_000_123_000)), "null"));
        assert_eq!(second, &event(8, None, "[]"));
        assert_eq!(end, &Item::End(EndReason::Ended));
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
            assert!(Page::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(page in page()) {
            let mut out = String::new();
            page.clone().write(&mut out);
            prop_assert_eq!(Page::parse(out.as_bytes()).unwrap(), page);
        }
    }
}
