//! Where a topic must be for something to be published: `If-Match` (RFC 9110 section 13.1.1).

use anemone_hub::Position;
use http::{HeaderMap, header};

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
        let mut fields = headers.get_all(header::IF_MATCH).iter().peekable();
        if fields.peek().is_none() {
            return Self::Anything;
        }
        let tags =
            fields.filter_map(|field| field.to_str().ok()).flat_map(|field| field.split(','));
        let mut heads = Vec::new();
        for tag in tags.map(str::trim) {
            if tag == "*" {
                return Self::Topic;
            }
            heads.extend(head(tag));
        }
        Self::Heads(heads)
    }
}

/// The position that an entity tag stands for: that of a poll, `"FIRST.NEXT"`, or `"POSITION"`. How much is still kept
/// makes no difference to what is appended. A weak tag is none (section 8.8.3.2), nor is anybody else's.
fn head(tag: &str) -> Option<Position> {
    let text = tag.strip_prefix('"')?.strip_suffix('"')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((first, next)) => next.parse().ok().filter(|_| is_number(first)),
        None => text.parse().ok(),
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
