//! The query of a list: `limit`, and for topics also `after`.

use anemone_hub::{TopicName, TopicNameError};

use super::parameter::{bad, parse_limit};
use crate::Problem;

/// Parses the query of a list, which takes only `limit`.
pub(crate) fn limit_alone(
    query: Option<&str>,
    default: usize,
    max: usize,
) -> Result<usize, Problem> {
    let mut given = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    match (given.next(), given.next()) {
        (None, _) => Ok(default),
        (Some((name, value)), None) if name == "limit" => parse_limit(&value, max),
        (Some((name, _)), Some((again, _))) if name == "limit" && again == name => {
            Err(bad("limit", "is given twice"))
        }
        (Some((name, _)), other) => {
            let name = other.filter(|_| name == "limit").map_or(name, |(name, _)| name);
            let name: String = name.chars().take(40).collect();
            Err(bad(&name, "is not a parameter: this path takes only limit"))
        }
    }
}

/// Parses the query of the list of topics: the name before its page, and the most topics in it.
pub(crate) fn topics(
    query: Option<&str>,
    max: usize,
) -> Result<(Option<TopicName>, usize), Problem> {
    let (mut after, mut limit) = (None, None);
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let is_again = match &*name {
            "after" => {
                let explain = |error: TopicNameError| {
                    bad("after", &format!("must be a topic's name: {error}"))
                };
                after.replace(value.parse().map_err(explain)?).is_some()
            }
            "limit" => limit.replace(parse_limit(&value, max)?).is_some(),
            _ => {
                let name: String = name.chars().take(40).collect();
                return Err(bad(&name, "is not a parameter: this path takes after and limit"));
            }
        };
        if is_again {
            return Err(bad(&name, "is given twice"));
        }
    }
    Ok((after, limit.unwrap_or(max)))
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
