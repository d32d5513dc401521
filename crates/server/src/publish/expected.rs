//! Conditions on a topic's state for publishing: `If-Match` (RFC 9110 section 13.1.1).

use anemone_hub::Position;
use http::{HeaderMap, header};

use crate::reply::entity_tag;
use crate::{Kind, Problem};

/// A condition on the topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Expected {
    /// No condition.
    Anything,
    /// The topic must exist.
    Topic,
    /// The topic's newest event must be at one of these positions.
    Heads(Vec<Position>),
}

impl Expected {
    /// Parses the condition in a request's fields. An invalid one is an error, since a client that then rereads the
    /// topic and tries again would get 412 forever.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        if !headers.contains_key(header::IF_MATCH) {
            return Ok(Self::Anything);
        }
        let (mut heads, mut has_tag) = (Vec::new(), false);
        for tag in entity_tag::list(headers, header::IF_MATCH).filter(|tag| !tag.is_empty()) {
            match tag {
                "*" => return Ok(Self::Topic),
                _ if entity_tag::is_one(tag) => heads.extend(entity_tag::position(tag)),
                _ => return Err(malformed(tag)),
            }
            has_tag = true;
        }
        if has_tag { Ok(Self::Heads(heads)) } else { Err(malformed("")) }
    }
}

fn malformed(said: &str) -> Problem {
    let said: String = said.chars().take(80).collect();
    let detail =
        format!("If-Match has {said:?}: must be * or entity tags in quotes, as \"4zq81x-42\"");
    Problem::new(Kind::BadParameter, detail)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn entity_tags_are_positions() {
        let of = |fields: &[&'static str]| {
            let field = |value: &&'static str| (header::IF_MATCH, HeaderValue::from_static(value));
            Expected::of(&fields.iter().map(field).collect()).map_err(|problem| problem.to_json())
        };
        let heads = |texts: &[&str]| {
            Ok(Expected::Heads(texts.iter().map(|text| text.parse().unwrap()).collect()))
        };
        assert_eq!(of(&[]), Ok(Expected::Anything));
        assert_eq!(of(&["*"]), Ok(Expected::Topic));
        for (fields, texts) in [
            (&["\"1.ya-3\""][..], &["ya-3"][..]),
            (&["\"ya-3\""], &["ya-3"]),
            (&["\"1.ya-3\" , \"a,b\", \"ya-0\"", "\"7.b-1\""], &["ya-3", "ya-0", "b-1"]),
            (&["W/\"1.ya-3\""], &[]),
            (&["", "\"ya-3\" ,,"], &["ya-3"]),
            (&["\".ya-3\"", "\"x.ya-3\"", "\"1.2.ya-3\"", "\"1.ya-03\""], &[]),
        ] {
            assert_eq!(of(fields), heads(texts), "{fields:?}");
        }
        for malformed in ["", " , ", "ya-3", "\"ya-3", "\"ya-3\", ya-4", "\"ya-3, \"ya-4\""] {
            let error = of(&[malformed]).unwrap_err();
            assert!(error.contains("bad-parameter") && error.contains("If-Match"), "{error}");
        }
    }
}
