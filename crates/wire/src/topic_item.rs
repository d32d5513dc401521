//! Items of several topics on one stream ("Many topics" in `docs/PROTOCOL.md`).
//!
//! An event or a notice is that of its own topic, with the member `topic` first. The position of the stream is a token.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::event_stream::RETRY_MS;
use crate::{Item, Malformed, Token};

/// An item of a stream of several topics.
#[derive(Clone, Debug, PartialEq)]
pub enum TopicItem<'a> {
    /// The place where reading begins or stands: `{"position":TOKEN}`.
    Begin,
    /// A heartbeat. It is written like [`TopicItem::Begin`], but as a comment in an event stream.
    Quiet,
    /// The place after topics have joined. It is written like [`TopicItem::Begin`], but in an event stream as an `id` alone.
    At,
    /// An event or a notice of one topic: `{"topic":NAME,…}`.
    Of {
        /// The name of the topic.
        topic: &'a str,
        /// The event, or the notice.
        item: Item<'a>,
    },
    /// The end of the stream, with the JSON of the problem: `{"end":{"reason":"failed","problem":{…}}}`.
    Failed(&'a str),
}

#[derive(Deserialize)]
struct Topic<'a> {
    #[serde(borrow)]
    topic: Option<&'a str>,
}

impl<'a> TopicItem<'a> {
    /// Reads an event or a notice of one topic; `None` for anything else.
    ///
    /// # Errors
    /// When the text is no JSON object, or has an invalid member.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let Topic { topic: Some(topic) } = serde_json::from_slice(bytes)? else { return Ok(None) };
        Ok(Item::parse(bytes)?.map(|item| Self::Of { topic, item }))
    }

    /// Returns true if it is an event.
    #[must_use]
    pub const fn is_event(&self) -> bool {
        matches!(self, Self::Of { item: Item::Event { .. }, .. })
    }

    /// Appends the JSON object. `token` is the place after the item.
    pub fn write(&self, token: &Token, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Begin | Self::Quiet | Self::At => write!(out, r#"{{"position":"{token}"}}"#),
            Self::Of { topic, item } => {
                let _ = write!(out, r#"{{"topic":"{topic}","#);
                item.write_members(out);
                out.write_char('}')
            }
            Self::Failed(problem) => {
                write!(out, r#"{{"end":{{"reason":"failed","problem":{problem}}}}}"#)
            }
        };
    }

    /// Appends the object as a line of NDJSON.
    pub fn write_line(&self, token: &Token, out: &mut String) {
        self.write(token, out);
        out.push('\n');
    }

    /// Appends the item as a block of an event stream. `id` is the token, left out of an event or a notice without
    /// `has_id`. The data of an event is the object, since an `EventSource` sees nothing else of a block.
    pub fn write_block(&self, token: &Token, has_id: bool, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Begin => write!(out, "retry: {RETRY_MS}\nid: {token}\n\n"),
            Self::Quiet => out.write_str(":\n\n"),
            Self::At => write!(out, "id: {token}\n\n"),
            Self::Of { .. } | Self::Failed(_) => {
                out.push_str(self.event_line());
                if has_id {
                    let _ = writeln!(out, "id: {token}");
                }
                out.push_str("data: ");
                self.write(token, out);
                out.write_str("\n\n")
            }
        };
    }

    /// The line with the name of a notice; an event has none.
    fn event_line(&self) -> &'static str {
        match self {
            Self::Of { item: Item::Gap(_), .. } => "event: gap\n",
            Self::Of { item: Item::Skipped { .. }, .. } => "event: skipped\n",
            Self::Of { item: Item::End(_), .. } | Self::Failed(_) => "event: end\n",
            Self::Begin | Self::Quiet | Self::At | Self::Of { .. } => "",
        }
    }
}

/// Appends a page of several topics: `{"next":TOKEN,"notices":[…],"events":[…]}` and a line feed, with items as JSON
/// objects, joined by commas. `notices` is left out if there is none.
pub fn write_topics_page(next: &Token, notices: &str, events: &str, out: &mut String) {
    let notices = match notices {
        "" => String::new(),
        _ => format!(r#""notices":[{notices}],"#),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, r#"{{"next":"{next}",{notices}"events":[{events}]}}"#);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::item;
    use crate::{EndReason, UnixTime};

    fn token() -> Token {
        "cpu:9-1,wind:9-4".parse().unwrap()
    }

    fn event() -> Item<'static> {
        let time = Some(UnixTime::from_micros(1_789_000_000_123_456));
        Item::Event { position: "9-4".parse().unwrap(), time, data: "{\"a\": 1}".into() }
    }

    #[test]
    fn each_item_has_its_topic() {
        let object =
            r#"{"topic":"wind","position":"9-4","time":1789000000123.456,"data":{"a": 1}}"#;
        let end = Item::End(EndReason::Deleted);
        let notice = r#"{"topic":"wind","end":{"reason":"deleted"}}"#;
        let of = |item| TopicItem::Of { topic: "wind", item };
        let failed = r#"{"end":{"reason":"failed","problem":{}}}"#;
        for (item, json, block) in [
            (TopicItem::Begin, r#"{"position":"cpu:9-1,wind:4"}"#, None),
            (TopicItem::Quiet, r#"{"position":"cpu:9-1,wind:4"}"#, Some(":\n\n".to_owned())),
            (
                TopicItem::At,
                r#"{"position":"cpu:9-1,wind:4"}"#,
                Some("id: cpu:9-1,wind:4\n\n".to_owned()),
            ),
            (of(event()), object, Some(format!("id: cpu:9-1,wind:4\ndata: {object}\n\n"))),
            (of(end), notice, Some(format!("event: end\nid: cpu:9-1,wind:4\ndata: {notice}\n\n"))),
            (TopicItem::Failed("{}"), failed, None),
        ] {
            let (mut line, mut written) = (String::new(), String::new());
            item.write_line(&token(), &mut line);
            item.write_block(&token(), true, &mut written);
            assert_eq!(line, format!("{json}\n"));
            block.into_iter().for_each(|block| assert_eq!(written, block));
        }
        let mut begin = String::new();
        TopicItem::Begin.write_block(&token(), true, &mut begin);
        assert_eq!(begin, "retry: 1000\nid: cpu:9-1,wind:4\n\n");
        let mut bare = String::new();
        of(event()).write_block(&token(), false, &mut bare);
        assert_eq!(bare, format!("data: {object}\n\n"));
        let mut page = String::new();
        write_topics_page(&token(), "", "1,2", &mut page);
        write_topics_page(&token(), "3", "", &mut page);
        let expected = "{\"next\":\"cpu:9-1,wind:4\",\"events\":[1,2]}\n\
                        {\"next\":\"cpu:9-1,wind:4\",\"notices\":[3],\"events\":[]}\n";
        assert_eq!(page, expected);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(item in item()) {
            let (mut text, item) = (String::new(), TopicItem::Of { topic: "a.b", item });
            item.write(&token(), &mut text);
            prop_assert_eq!(TopicItem::parse(text.as_bytes()).unwrap(), Some(item));
        }
    }
}
