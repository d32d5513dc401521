//! The JSON forms of pages, and of what streams tell. Event data passes through as it is.

use std::fmt::Write as _;

use crate::read::reader::{EndReason, Item, Page};
use crate::reply::gap;

/// An item as one object: an event is `{"position":P,"time":…,"data":…}`, anything else a notice with one member that
/// says what it is.
pub(crate) fn item(item: &Item<'_>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match item {
        Item::Begin(position) | Item::Quiet(position) => {
            write!(out, r#"{{"position":"{position}"}}"#)
        }
        Item::Gap(notice) => {
            out.push_str(r#"{"gap":"#);
            gap::to_json(out, notice);
            out.push('}');
            Ok(())
        }
        Item::Skipped { count, .. } => write!(out, r#"{{"skipped":{count}}}"#),
        Item::Event { position, event } => {
            let (time, data) = (event.time, event.data.as_str());
            write!(out, r#"{{"position":"{position}","time":{time},"data":{data}}}"#)
        }
        Item::End(reason) => {
            let _ = write!(out, r#"{{"end":{{"reason":"{}""#, reason.as_str());
            if let EndReason::TooSlow(missed) = reason {
                out.push_str(r#","gap":"#);
                gap::of_an_end(out, missed);
            }
            out.push_str("}}");
            Ok(())
        }
    };
}

/// `{"epoch":…,"first":…,"next":P,"gap":{…},"skipped":N,"events":[{"offset":…,"time":…,"data":…}]}`; `gap` and `skipped`
/// only when there is something to tell.
pub(crate) fn page(page: &Page) -> String {
    let data_bytes: usize = page.events.iter().map(|event| event.data.bytes().len() + 64).sum();
    let mut out = String::with_capacity(data_bytes + 128);
    let _ = write!(
        out,
        r#"{{"epoch":"{}","first":{},"next":"{}""#,
        page.next.epoch, page.first, page.next
    );
    if let Some(notice) = &page.gap {
        out.push_str(r#","gap":"#);
        gap::to_json(&mut out, notice);
    }
    if page.skipped > 0 {
        let _ = write!(out, r#","skipped":{}"#, page.skipped);
    }
    out.push_str(r#","events":["#);
    for (index, event) in page.events.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let (offset, time, data) = (event.offset, event.time, event.data.as_str());
        let _ = write!(out, r#"{comma}{{"offset":{offset},"time":{time},"data":{data}}}"#);
    }
    out.push_str("]}\n");
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anemone_hub::{Data, Epoch, Event, Gap, GapReason, Position, UnixTime};

    use super::*;

    fn example() -> Page {
        let position = |offset| Position { epoch: Epoch::from_bits(9), offset };
        let event = |offset| {
            let time = UnixTime::from_micros(1_789_000_000_123_456);
            Arc::new(Event { offset, time, data: Data::parse(r#"{"speed": 2.740}"#).unwrap() })
        };
        let page = anemone_hub::Page {
            first: 4,
            gap: Some(Gap {
                reason: GapReason::Retention,
                after: position(1),
                missed: Some(2),
                resume: position(3),
            }),
            events: vec![event(4), event(5)],
            next: position(5),
        };
        page.into()
    }

    fn notice(told: &Item<'_>) -> String {
        let mut out = String::new();
        item(told, &mut out);
        out
    }

    #[test]
    fn a_page_is_json_and_data_keeps_its_spelling() {
        let text = page(&example());
        assert_eq!(
            text,
            "{\"epoch\":\"9\",\"first\":4,\"next\":\"9-5\",\
             \"gap\":{\"reason\":\"retention\",\"after\":\"9-1\",\"missed\":2,\"resume\":\"9-3\"},\"events\":[\
             {\"offset\":4,\"time\":1789000000123.456,\"data\":{\"speed\": 2.740}},\
             {\"offset\":5,\"time\":1789000000123.456,\"data\":{\"speed\": 2.740}}]}\n"
        );
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }

    #[test]
    fn what_was_skipped_stands_before_the_events() {
        let page = page(&Page { skipped: 7, ..example() });
        assert!(page.contains(r#""resume":"9-3"},"skipped":7,"events":[{"offset":4,"#), "{page}");
    }

    #[test]
    fn each_item_is_one_object() {
        let page = Page { skipped: 2, ..example() };
        let items: Vec<String> = page.items().map(|item| notice(&item)).collect();
        assert_eq!(items.len(), 4);
        assert!(items[0].starts_with(r#"{"gap":{"reason":"retention","after":"9-1","missed":2,"#));
        assert_eq!(items[1], r#"{"skipped":2}"#);
        let event = r#"{"position":"9-4","time":1789000000123.456,"data":{"speed": 2.740}}"#;
        assert_eq!(items[2], event);
        let unknown = notice(&Item::Gap(&Gap { missed: None, ..page.gap.unwrap() }));
        assert!(unknown.contains(r#""missed":null"#), "{unknown}");
        for quiet in [Item::Begin(page.next), Item::Quiet(page.next)] {
            assert_eq!(notice(&quiet), r#"{"position":"9-5"}"#);
        }
        assert_eq!(notice(&Item::End(EndReason::Deleted)), r#"{"end":{"reason":"deleted"}}"#);
        let too_slow = notice(&Item::End(EndReason::TooSlow(page.gap.unwrap())));
        let gap = r#"{"reason":"retention","after":"9-1","missed":2,"resume":"9-3~"}"#;
        assert_eq!(too_slow, format!(r#"{{"end":{{"reason":"too-slow","gap":{gap}}}}}"#));
    }
}
