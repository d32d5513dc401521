//! Where a topic must be for something to be published: `If-Match` (RFC 9110 section 13.1.1).

use anemone_hub::Position;
use http::{HeaderMap, header};

use crate::entity_tag;

/// What is asked of the topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Expected {
    /// Nothing.
    Anything,
    /// That it is there.
    Topic,
    /// That its newest event is at one of these positions.
    Heads(Vec<Position>),
}

impl Expected {
    /// What the fields of a request say.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        if !headers.contains_key(header::IF_MATCH) {
            return Self::Anything;
        }
        let mut heads = Vec::new();
        for tag in entity_tag::list(headers, header::IF_MATCH) {
            if tag == "*" {
                return Self::Topic;
            }
            heads.extend(entity_tag::position(tag));
        }
        Self::Heads(heads)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn entity_tags_are_positions() {
        let of = |fields: &[&'static str]| {
            let field = |value: &&'static str| (header::IF_MATCH, HeaderValue::from_static(value));
            Expected::of(&fields.iter().map(field).collect())
        };
        let heads = |texts: &[&str]| {
            Expected::Heads(texts.iter().map(|text| text.parse().unwrap()).collect())
        };
        assert_eq!(of(&[]), Expected::Anything);
        assert_eq!(of(&["*"]), Expected::Topic);
        for (fields, texts) in [
            (&["\"1.ya-3\""][..], &["ya-3"][..]),
            (&["\"ya-3\""], &["ya-3"]),
            (&["\"1.ya-3\" , \"a,b\", \"ya-0\"", "\"7.b-1\""], &["ya-3", "ya-0", "b-1"]),
            (&[""], &[]),
            (&["W/\"1.ya-3\""], &[]),
            (&["ya-3"], &[]),
            (&["\".ya-3\"", "\"x.ya-3\"", "\"1.2.ya-3\"", "\"1.ya-03\""], &[]),
        ] {
            assert_eq!(of(fields), heads(texts), "{fields:?}");
        }
    }
}
