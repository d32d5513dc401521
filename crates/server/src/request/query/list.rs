//! The query of a list: `limit`, and for topics also `after`.

use anemone_hub::{TopicName, TopicNameError};

use super::parameter::{bad, parse_limit, take_each};
use crate::Problem;

/// Parses the query of a list, which takes only `limit`.
pub(crate) fn limit_alone(
    query: Option<&str>,
    default: usize,
    max: usize,
) -> Result<usize, Problem> {
    let mut limit = default;
    take_each(query, "this path takes only limit", |name, value| {
        if name == "limit" {
            limit = parse_limit(value, max)?;
        }
        Ok(name == "limit")
    })?;
    Ok(limit)
}

/// Returns true if the query asks for the state of a run, which is a query of its own.
pub(crate) fn asks_for_state(query: Option<&str>) -> Result<bool, Problem> {
    let names = || form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    if !names().any(|(name, _)| name == "state") {
        return Ok(false);
    }
    take_each(query, "with state, this path takes nothing else", |name, value| match value {
        "" => Ok(name == "state"),
        _ if name == "state" => Err(bad("state", "takes no value")),
        _ => Ok(false),
    })?;
    Ok(true)
}

/// Parses the query of the list of topics: the name before its page, and the most topics in it.
pub(crate) fn topics(
    query: Option<&str>,
    max: usize,
) -> Result<(Option<TopicName>, usize), Problem> {
    let (mut after, mut limit) = (None, max);
    let explain = |error: TopicNameError| bad("after", &format!("must be a topic's name: {error}"));
    take_each(query, "this path takes after and limit", |name, value| {
        match name {
            "after" => after = Some(value.parse().map_err(explain)?),
            "limit" => limit = parse_limit(value, max)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((after, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_limit_alone() {
        let limit = |query| limit_alone(Some(query), 5, 9).map_err(|problem| problem.to_json());
        for (query, expected) in [("", 5), ("limit=1", 1), ("limit=9", 9)] {
            assert_eq!(limit(query), Ok(expected), "{query}");
        }
        for (query, part) in [
            ("limit=0", "from 1 to 9"),
            ("limit=10", "from 1 to 9"),
            ("limit=x", "from 1 to 9"),
            ("limit=1&limit=1", "limit is given twice"),
            ("limit=1&after=latest", "after is not a parameter"),
            ("mode=all", "mode is not a parameter"),
        ] {
            let error = limit(query).unwrap_err();
            assert!(error.contains("bad-parameter") && error.contains(part), "{query}: {error}");
        }
    }

    #[test]
    fn a_state_is_asked_for_alone() {
        let asks = |query| asks_for_state(query).map_err(|problem| problem.to_json());
        for (query, expected) in [
            (None, false),
            (Some(""), false),
            (Some("after=earliest&x"), false),
            (Some("state"), true),
            (Some("state="), true),
            (Some("st%61te"), true),
        ] {
            assert_eq!(asks(query), Ok(expected), "{query:?}");
        }
        for (query, part) in [
            ("state&after=earliest", "after is not a parameter: with state"),
            ("wait=1&state", "wait is not a parameter: with state"),
            ("state=1", "state takes no value"),
            ("state&state", "state is given twice"),
        ] {
            let error = asks(Some(query)).unwrap_err();
            assert!(error.contains("bad-parameter") && error.contains(part), "{query}: {error}");
        }
    }

    #[test]
    fn the_list_of_topics_takes_after_and_limit() {
        let of = |query| topics(Some(query), 9).map_err(|problem| problem.to_json());
        let name = |name: &str| Some(name.parse().unwrap());
        for (query, expected) in [
            ("", (None, 9)),
            ("limit=1", (None, 1)),
            ("after=wind", (name("wind"), 9)),
            ("limit=9&after=%77ind", (name("wind"), 9)),
        ] {
            assert_eq!(of(query), Ok(expected), "{query}");
        }
        for (query, part) in [
            ("limit=0", "from 1 to 9"),
            ("limit=10", "from 1 to 9"),
            ("after=", "after must be a topic's name"),
            ("after=a%2Fb", "after must be a topic's name"),
            ("limit=1&limit=1", "limit is given twice"),
            ("after=a&after=a", "after is given twice"),
            ("mode=all", "mode is not a parameter"),
        ] {
            let error = of(query).unwrap_err();
            assert!(error.contains("bad-parameter") && error.contains(part), "{query}: {error}");
        }
    }
}
