//! The query of a list: `limit`, for topics also `after` and `prefix`, and for runs `service` and `state`.

use anemone_hub::run::RunState;
use anemone_hub::{TopicName, TopicNameError};

use super::parameter::{bad, parse_limit, take_each};
use crate::Problem;
use crate::reply::problem::excerpt;

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

/// Parses the query of a list in pages, which takes `after`, the id of the last item before the page, and `limit`.
pub(crate) fn list_page<T, E: std::fmt::Display>(
    query: Option<&str>,
    default: usize,
    max: usize,
    parse_id: impl Fn(&str) -> Result<T, E>,
) -> Result<(Option<T>, usize), Problem> {
    let (mut after, mut limit) = (None, default);
    take_each(query, "this path takes only after and limit", |name, value| {
        match name {
            "after" => {
                let bad_id = |error| bad("after", &format!("is {:?}: {error}", excerpt(value, 40)));
                after = Some(parse_id(value).map_err(bad_id)?);
            }
            "limit" => limit = parse_limit(value, max)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((after, limit))
}

pub(crate) fn no_parameters(query: Option<&str>) -> Result<(), Problem> {
    take_each(query, "this path takes none", |_, _| Ok(false))
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

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct RunsQuery {
    /// The path of the service whose runs are in it; none for all services.
    pub(crate) service: Option<String>,
    /// The states of the runs in it; all if there are none.
    pub(crate) states: Vec<RunState>,
    pub(crate) limit: usize,
}

impl RunsQuery {
    pub(crate) fn parse(query: Option<&str>, max: usize) -> Result<Self, Problem> {
        let mut parsed = Self { service: None, states: Vec::new(), limit: max };
        take_each(query, "this path takes only limit, service and state", |name, value| {
            match name {
                "limit" => parsed.limit = parse_limit(value, max)?,
                "service" => parsed.service = Some(parse_service(value)?),
                "state" => parsed.states = parse_states(value)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(parsed)
    }
}

/// Parses the path of a service, which need not be there: a service of an earlier configuration has no runs.
fn parse_service(value: &str) -> Result<String, Problem> {
    let is_path = value.starts_with('/');
    let detail = || format!("is {:?}: must be a path, such as /primes", excerpt(value, 40));
    is_path.then(|| value.to_owned()).ok_or_else(|| bad("service", &detail()))
}

/// Parses the states of runs, separated by commas.
fn parse_states(value: &str) -> Result<Vec<RunState>, Problem> {
    let mut states = Vec::new();
    for name in value.split(',') {
        let state = RunState::of(name).ok_or_else(|| {
            let known = RunState::ALL.map(RunState::as_str).join(", ");
            let name = excerpt(name, 40);
            bad(
                "state",
                &format!("has {name:?}: must be one or more of {known}, with commas between"),
            )
        })?;
        if states.contains(&state) {
            return Err(bad("state", &format!("has {state} twice")));
        }
        states.push(state);
    }
    Ok(states)
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TopicsPage {
    /// The name before the page.
    pub(crate) after: Option<TopicName>,
    /// The beginning of the names in it; empty for all.
    pub(crate) prefix: String,
    pub(crate) limit: usize,
}

impl TopicsPage {
    pub(crate) fn parse(query: Option<&str>, max: usize) -> Result<Self, Problem> {
        let mut page = Self { after: None, prefix: String::new(), limit: max };
        let explain =
            |error: TopicNameError| bad("after", &format!("must be a topic's name: {error}"));
        let known = "this path takes after, limit and prefix, or topic to read several topics";
        take_each(query, known, |name, value| {
            match name {
                "after" => page.after = Some(value.parse().map_err(explain)?),
                "limit" => page.limit = parse_limit(value, max)?,
                "prefix" => page.prefix = parse_prefix(value)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(page)
    }

    /// Returns the query of the page after this name. Names need no escaping.
    pub(crate) fn query_after(&self, name: &str) -> String {
        let Self { prefix, limit, .. } = self;
        let prefix = if prefix.is_empty() { String::new() } else { format!("prefix={prefix}&") };
        format!("?{prefix}after={name}&limit={limit}")
    }
}

/// Parses the beginning of names, which may be empty.
fn parse_prefix(value: &str) -> Result<String, Problem> {
    let begins_names = value.is_empty() || value.parse::<TopicName>().is_ok();
    let detail = "must be the beginning of a topic's name: A-Z a-z 0-9 . _ -, at most 128";
    begins_names.then(|| value.to_owned()).ok_or_else(|| bad("prefix", detail))
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
    fn the_list_of_runs_takes_limit_service_and_states() {
        use RunState::{Cancelled, Done, Failed, Queued, Running};
        let of = |query| RunsQuery::parse(Some(query), 9).map_err(|problem| problem.to_json());
        for (query, service, states, limit) in [
            ("", None, &[][..], 9),
            ("state=running", None, &[Running], 9),
            ("service=/a/b", Some("/a/b"), &[], 9),
            ("limit=2&service=%2Fa&state=failed%2Cdone", Some("/a"), &[Failed, Done], 2),
            (
                "state=queued,running,done,failed,cancelled",
                None,
                &[Queued, Running, Done, Failed, Cancelled],
                9,
            ),
        ] {
            let service = service.map(str::to_owned);
            let expected = RunsQuery { service, states: states.to_vec(), limit };
            assert_eq!(of(query), Ok(expected), "{query}");
        }
        for (query, part) in [
            ("state=", r#"state has \"\": must be one or more of queued, running, done"#),
            ("state=Running", r#"state has \"Running\""#),
            ("state=done,", r#"state has \"\""#),
            ("state=done,done", "state has done twice"),
            ("state=done&state=failed", "state is given twice"),
            ("service=", r#"service is \"\": must be a path, such as /primes"#),
            ("service=primes", r#"service is \"primes\""#),
            ("service=/a&service=/b", "service is given twice"),
            ("limit=10", "from 1 to 9"),
            (
                "after=latest",
                "after is not a parameter: this path takes only limit, service and state",
            ),
        ] {
            let error = of(query).unwrap_err();
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
    fn the_list_of_topics_takes_after_limit_and_prefix() {
        let of = |query| TopicsPage::parse(Some(query), 9).map_err(|problem| problem.to_json());
        for (query, after, prefix, limit) in [
            ("", None, "", 9),
            ("limit=1&prefix=", None, "", 1),
            ("after=wind", Some("wind"), "", 9),
            ("limit=9&after=%77ind", Some("wind"), "", 9),
            ("prefix=w.&after=wind", Some("wind"), "w.", 9),
        ] {
            let after = after.map(|name| name.parse().unwrap());
            let expected = TopicsPage { after, prefix: prefix.to_owned(), limit };
            assert_eq!(of(query), Ok(expected), "{query}");
        }
        assert_eq!(of("prefix=w&limit=2").unwrap().query_after("wx"), "?prefix=w&after=wx&limit=2");
        assert_eq!(of("after=w").unwrap().query_after("wx"), "?after=wx&limit=9");
        for (query, part) in [
            ("limit=0", "from 1 to 9"),
            ("limit=10", "from 1 to 9"),
            ("after=", "after must be a topic's name"),
            ("after=a%2Fb", "after must be a topic's name"),
            ("limit=1&limit=1", "limit is given twice"),
            ("after=a&after=a", "after is given twice"),
            ("prefix=-a", "prefix must be the beginning"),
            ("prefix=a*", "prefix must be the beginning"),
            ("prefix=$", "prefix must be the beginning"),
            ("prefix=a&prefix=a", "prefix is given twice"),
            ("mode=all", "mode is not a parameter"),
        ] {
            let error = of(query).unwrap_err();
            assert!(error.contains("bad-parameter") && error.contains(part), "{query}: {error}");
        }
    }
}
