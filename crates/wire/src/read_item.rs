//! The items for a reader of several topics, on a stream or in a page ("Many topics" in `docs/PROTOCOL.md`).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Item, Malformed, Token};

/// Something that a reader of several topics was told.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadItem {
    /// The places up to which everything was told: `{"position":TOKEN}`, an `id` alone, or `next` of a page.
    At(Token),
    /// An event or a notice of one topic: `{"topic":NAME,…}`.
    Of {
        /// The name of the topic.
        topic: Box<str>,
        /// The event, or the notice.
        item: Item<'static>,
    },
    /// The end of the stream, with the JSON of the problem.
    Failed(Box<str>),
}

#[derive(Deserialize)]
struct ReadObject<'a> {
    topic: Option<Box<str>>,
    #[serde(borrow)]
    position: Option<&'a RawValue>,
    #[serde(borrow)]
    end: Option<ProblemEnd<'a>>,
}

#[derive(Deserialize)]
struct ProblemEnd<'a> {
    #[serde(borrow)]
    problem: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReadPageObject<'a> {
    next: String,
    #[serde(borrow, default)]
    notices: Vec<&'a RawValue>,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

impl ReadItem {
    /// Reads an object; `None` for an unknown one.
    ///
    /// # Errors
    /// When the text is no JSON object, or has an invalid member.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let ReadObject { topic, position, end } = serde_json::from_slice(bytes)?;
        if let Some(topic) = topic {
            let item = Item::parse(bytes)?;
            return Ok(item.map(|item| Self::Of { topic, item: item.into_owned() }));
        }
        if let Some(token) = position {
            let token: String = serde_json::from_str(token.get())?;
            return Ok(Some(Self::At(token.parse()?)));
        }
        let problem = end.and_then(|end| end.problem);
        Ok(problem.map(|problem| Self::Failed(problem.get().into())))
    }

    /// Reads a page; the last item is its `next`.
    ///
    /// # Errors
    /// When the text is no page.
    pub fn parse_page(bytes: &[u8]) -> Result<Vec<Self>, Malformed> {
        let ReadPageObject { next, notices, events } = serde_json::from_slice(bytes)?;
        let mut items = Vec::with_capacity(notices.len() + events.len() + 1);
        for object in notices.into_iter().chain(events) {
            items.extend(Self::parse(object.get().as_bytes())?);
        }
        items.push(Self::At(next.parse()?));
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::item;
    use crate::{EventStream, ItemLines, TopicItem, write_topics_page};

    fn token() -> Token {
        "cpu:9-1,wind:9-4".parse().unwrap()
    }

    #[test]
    fn what_is_no_item_of_several_topics_is_refused_or_ignored() {
        for text in
            ["", "[]", r#"{"position":7}"#, r#"{"position":"9-4"}"#, r#"{"topic":"a","data":1}"#]
        {
            assert!(ReadItem::parse(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["{}", r#"{"weather":1}"#, r#"{"topic":"a"}"#, r#"{"end":{"reason":"other"}}"#]
        {
            assert_eq!(ReadItem::parse(text.as_bytes()).unwrap(), None, "{text}");
        }
        for text in ["{}", r#"{"next":"9-4","events":[]}"#, r#"{"next":"a:9-4","events":[1]}"#] {
            assert!(ReadItem::parse_page(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        /// Streams and pages are read as they were written, over any transport.
        #[test]
        fn what_is_written_is_read(items in prop::collection::vec(item(), 0..6), is_failed: bool) {
            let (mut lines, mut blocks, mut list) = <(String, String, String)>::default();
            let told = |item| TopicItem::Of { topic: "a.b", item };
            let end = if is_failed { TopicItem::Failed("{\"status\":400}") } else { TopicItem::At };
            let begin = [TopicItem::Begin];
            for item in begin.into_iter().chain(items.iter().cloned().map(told)).chain([end]) {
                item.write_line(&token(), &mut lines);
                item.write_block(&token(), true, &mut blocks);
            }
            for item in items.iter().cloned().map(told) {
                list.push_str(if list.is_empty() { "" } else { "," });
                item.write(&token(), &mut list);
            }
            let at = ReadItem::At(token());
            let told = items.into_iter().map(|item| ReadItem::Of { topic: "a.b".into(), item });
            let told: Vec<_> = told.collect();
            let last = if is_failed { ReadItem::Failed("{\"status\":400}".into()) } else { at.clone() };
            let expected: Vec<_> = [at.clone()].into_iter().chain(told.clone()).chain([last]).collect();
            let (mut stream, mut input, mut read) = (EventStream::new(10_000), blocks.as_bytes(), vec![]);
            while let Some(item) = stream.decode_topics(&mut input).unwrap() {
                read.push(item);
            }
            prop_assert_eq!(&read, &expected);
            let (mut stream, mut input, mut read) = (ItemLines::new(10_000), lines.as_bytes(), vec![]);
            while let Some(item) = stream.decode_topics(&mut input).unwrap() {
                read.push(item);
            }
            prop_assert_eq!(&read, &expected);
            let mut page = String::new();
            write_topics_page(&token(), &list, "", &mut page);
            let expected: Vec<_> = told.into_iter().chain([at]).collect();
            prop_assert_eq!(ReadItem::parse_page(page.as_bytes()).unwrap(), expected);
        }
    }
}
