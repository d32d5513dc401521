//! The JSON forms of pages, events and gaps. Event data passes through as it is.

use std::fmt::Write as _;

use anemone_hub::{Event, Gap, GapReason, Page};

/// `{"reason":…,"after":P,"missed":N|null,"resume":P}`.
fn gap(out: &mut String, gap: &Gap) {
    let reason = match gap.reason {
        GapReason::Retention => "retention",
        GapReason::Epoch => "epoch",
    };
    let missed = gap.missed.map_or_else(|| "null".to_owned(), |missed| missed.to_string());
    let (after, resume) = (gap.after, gap.resume);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        r#"{{"reason":"{reason}","after":"{after}","missed":{missed},"resume":"{resume}"}}"#
    );
}

/// A gap on its own: `{"gap":{…}}`.
pub(crate) fn gap_notice(notice: &Gap) -> String {
    let mut out = String::from(r#"{"gap":"#);
    gap(&mut out, notice);
    out.push('}');
    out
}

/// `{"epoch":…,"first":…,"next":P,"gap":{…},"events":[{"offset":…,"time":…,"data":…}]}`, `gap` only
/// when there is one.
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
        gap(&mut out, notice);
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

/// One message of the subprotocol `anemone.events`: `{"position":P,"time":…,"data":…}`.
pub(crate) fn positioned_event(page: &Page, event: &Event) -> String {
    let (epoch, offset) = (page.next.epoch, event.offset);
    let (time, data) = (event.time, event.data.as_str());
    format!(r#"{{"position":"{epoch}-{offset}","time":{time},"data":{data}}}"#)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anemone_hub::{Data, Epoch, Position, UnixTime};

    use super::*;

    fn example() -> Page {
        let position = |offset| Position { epoch: Epoch::from_bits(9), offset };
        let event = |offset| {
            let time = UnixTime::from_micros(1_789_000_000_123_456);
            Arc::new(Event { offset, time, data: Data::parse(r#"{"speed": 2.740}"#).unwrap() })
        };
        Page {
            first: 4,
            gap: Some(Gap {
                reason: GapReason::Retention,
                after: position(1),
                missed: Some(2),
                resume: position(3),
            }),
            events: vec![event(4), event(5)],
            next: position(5),
        }
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
    fn messages_carry_the_position_after_them() {
        let page = example();
        assert_eq!(
            positioned_event(&page, &page.events[0]),
            r#"{"position":"9-4","time":1789000000123.456,"data":{"speed": 2.740}}"#
        );
        let notice = gap_notice(&Gap { missed: None, ..page.gap.unwrap() });
        assert!(notice.contains(r#""missed":null"#), "{notice}");
    }
}
