//! The parameters for publishing: the idempotency key, and the content type where there are no fields.

use anemone_hub::{IdempotencyKey, IdempotencyKeyError};
use http::HeaderMap;

use super::Content;
use crate::reply::problem::excerpt;
use crate::request::query::{bad, take_each};
use crate::{Kind, Problem};

/// Returns the key of a request, from its field or its only parameter.
pub(crate) fn key(
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Option<IdempotencyKey>, Problem> {
    let mut given = Vec::new();
    take_each(query, "publishing takes key", |name, value| {
        given.push(("key", value.to_owned()));
        Ok(name == "key")
    })?;
    for field in headers.get_all("idempotency-key") {
        given.push(("Idempotency-Key", String::from_utf8_lossy(field.as_bytes()).into_owned()));
    }
    match &given[..] {
        [] => Ok(None),
        [(name, key)] => parse(name, key).map(Some),
        [..] => Err(Problem::new(Kind::BadParameter, "an idempotency key is given twice")),
    }
}

/// Returns the content type and the key of a multiplexed request.
pub(crate) fn of_multiplexed(
    query: Option<&str>,
) -> Result<(Content, Option<IdempotencyKey>), Problem> {
    let (mut content, mut key) = (Content::Json, None);
    take_each(query, "publishing takes key and type", |name, value| {
        match name {
            "type" => content = parse_type(value)?,
            "key" => key = Some(parse("key", value)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((content, key))
}

fn parse_type(value: &str) -> Result<Content, Problem> {
    match value {
        "json" => Ok(Content::Json),
        "ndjson" => Ok(Content::Lines),
        "text" => Ok(Content::Text),
        "binary" => Ok(Content::Binary),
        _ => {
            let value = excerpt(value, 40);
            Err(bad("type", &format!("is {value:?}: must be json, ndjson, text or binary")))
        }
    }
}

fn parse(name: &str, text: &str) -> Result<IdempotencyKey, Problem> {
    text.parse().map_err(|error: IdempotencyKeyError| bad(name, &error.to_string()))
}

/// Checks that a request to delete has no parameters.
pub(crate) fn no_parameters(query: Option<&str>) -> Result<(), Problem> {
    if query.is_some_and(|query| !query.is_empty()) {
        return Err(Problem::new(Kind::BadParameter, "deleting a topic takes no parameters"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplexed_request_says_what_its_payload_is() {
        let of = |query| of_multiplexed(query).map_err(|problem| problem.to_json());
        assert_eq!(of(None), Ok((Content::Json, None)));
        for (query, content) in [
            ("", Content::Json),
            ("type=json", Content::Json),
            ("type=ndjson", Content::Lines),
            ("type=text", Content::Text),
            ("type=binary", Content::Binary),
        ] {
            assert_eq!(of(Some(query)), Ok((content, None)), "{query}");
        }
        let key = Some("a+b".parse().unwrap());
        assert_eq!(of(Some("key=a%2Bb&type=ndjson")), Ok((Content::Lines, key)));
        for (query, part) in [
            ("type=", "must be json, ndjson, text or binary"),
            ("type=JSON", "must be json"),
            ("type=json&type=json", "type is given twice"),
            ("key=a&key=b", "key is given twice"),
            ("key=a+b", "key must be"),
            ("after=latest", "after is not a parameter: publishing takes key and type"),
        ] {
            let error = of(Some(query)).unwrap_err();
            assert!(error.contains("bad-parameter") && error.contains(part), "{query}: {error}");
        }
    }

    #[test]
    fn a_key_is_given_once_in_either_place() {
        let key = |query, fields: &[&str]| {
            let field = |value: &&str| ("idempotency-key".parse().unwrap(), value.parse().unwrap());
            let key = key(query, &fields.iter().map(field).collect());
            key.map_err(|problem| problem.to_json())
        };
        let parsed = || Ok(Some("a+b".parse().unwrap()));
        assert_eq!(key(None, &[]), Ok(None));
        assert_eq!(key(Some(""), &[]), Ok(None));
        assert_eq!(key(Some("key=a%2Bb"), &[]), parsed());
        assert_eq!(key(None, &["a+b"]), parsed());
        for (query, fields, part) in [
            (Some("key=a"), &["a"][..], "twice"),
            (Some("key=a&key=a"), &[], "twice"),
            (None, &["a", "b"], "twice"),
            (Some("key="), &[], "key must be"),
            (Some("key=a+b"), &[], "key must be"),
            (None, &["a b"], "Idempotency-Key must be"),
            (Some("after=latest"), &[], "after is not a parameter"),
        ] {
            let error = key(query, fields).unwrap_err();
            assert!(error.contains("bad-parameter") && error.contains(part), "{error}");
        }
    }
}
