//! What a reader asks for: `after`, `wait`, `limit`, `Prefer`, `Last-Event-ID`, `Accept`.
//!
//! Owns their syntax. Anything that does not say what it must is a problem that names it; nothing is guessed and
//! nothing is ignored.

use std::time::Duration;

use anemone_hub::{After, PageLimit};
use http::{HeaderMap, header};

use crate::{Kind, Limits, Problem};

/// A reader's request, understood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Query {
    /// Where to begin; `None` leaves it to the transport.
    pub(crate) after: Option<After>,
    /// How long to wait for an event.
    pub(crate) wait: Option<Wait>,
    /// How much one page may hold.
    pub(crate) page: PageLimit,
}

/// How long a long poll may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wait {
    pub(crate) duration: Duration,
    /// Asked for with `Prefer`, which is to be acknowledged (RFC 7240 section 3).
    pub(crate) is_preference: bool,
}

impl Query {
    /// Reads the query and header fields of a request.
    pub(crate) fn parse(
        query: Option<&str>,
        headers: &HeaderMap,
        limits: &Limits,
    ) -> Result<Self, Problem> {
        let mut parsed = Self { after: None, wait: None, page: limits.page };
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if seen.iter().any(|earlier| *earlier == name) {
                return Err(bad(&name, "is given twice"));
            }
            match &*name {
                "after" => parsed.after = Some(parse_after("after", &value)?),
                "wait" => {
                    let duration = parse_wait("wait", &value, limits.wait_max)?;
                    parsed.wait = Some(Wait { duration, is_preference: false });
                }
                "limit" => parsed.page.events_max = parse_limit(&value, limits.page.events_max)?,
                _ => {
                    let name = name.chars().take(40).collect::<String>();
                    return Err(bad(
                        &name,
                        "is not a parameter: a topic takes after, wait and limit",
                    ));
                }
            }
            seen.push(name.into_owned());
        }
        if parsed.wait.is_none() {
            parsed.wait = preferred_wait(headers, limits.wait_max)?;
        }
        if let Some(id) = headers.get("last-event-id") {
            // An EventSource reconnects with the URL it began with: what it saw last counts more.
            let id = id.to_str().map_err(|_| bad("Last-Event-ID", "is not a position"))?;
            parsed.after = Some(parse_after("Last-Event-ID", id)?);
        }
        Ok(parsed)
    }
}

fn bad(name: &str, detail: &str) -> Problem {
    Problem::new(Kind::BadParameter, format!("{name} {detail}"))
}

fn parse_after(name: &str, value: &str) -> Result<After, Problem> {
    value
        .parse()
        .map_err(|error| bad(name, &format!("must be a position, earliest or latest: {error}")))
}

/// Seconds, decimals allowed; RFC 7240 section 4.3 has whole ones.
fn parse_wait(name: &str, value: &str, max: Duration) -> Result<Duration, Problem> {
    let explain = |detail: &str| {
        let value: String = value.chars().take(40).collect();
        bad(name, &format!("is {value:?}: {detail}"))
    };
    let is_decimal = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = match value.parse() {
        Ok(seconds) if is_decimal => seconds,
        Ok(seconds) if seconds < 0.0 => return Err(explain("must not be negative")),
        _ => return Err(explain("must be a number of seconds, as 5 or 0.3")),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration <= max => Ok(duration),
        _ => Err(explain(&format!("at most {} s are allowed", max.as_secs_f64()))),
    }
}

fn parse_limit(value: &str, max: usize) -> Result<usize, Problem> {
    match value.parse() {
        Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
        _ => {
            let value: String = value.chars().take(40).collect();
            Err(bad("limit", &format!("is {value:?}: must be a whole number from 1 to {max}")))
        }
    }
}

/// `Prefer: wait=N` (RFC 7240): the first `wait` counts, other preferences are not ours to judge.
/// Section 2 would have us ignore a wait that we cannot honour; then a client that asked for an
/// hour would poll in a loop without knowing why, so it is told instead.
fn preferred_wait(headers: &HeaderMap, max: Duration) -> Result<Option<Wait>, Problem> {
    for field in headers.get_all("prefer") {
        let field = field.to_str().map_err(|_| bad("Prefer", "is not ASCII"))?;
        for preference in field.split(',') {
            let preference = preference.split(';').next().unwrap_or_default();
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            if name.trim().eq_ignore_ascii_case("wait") {
                let duration = parse_wait("Prefer: wait", value.trim().trim_matches('"'), max)?;
                return Ok(Some(Wait { duration, is_preference: true }));
            }
        }
    }
    Ok(None)
}

/// The form a topic is read in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// A page of events.
    Json,
    /// An endless event stream.
    EventStream,
}

/// Chooses by `Accept` (RFC 9110 section 12.5.1): the highest weight wins, JSON when equal.
pub(crate) fn form(headers: &HeaderMap) -> Result<Form, Problem> {
    let fields: Vec<&str> =
        headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    if fields.is_empty() {
        return Ok(Form::Json);
    }
    let accept = fields.join(",");
    // A stream is only given to a client that names it: `*/*` is what curl sends unasked.
    let json = weight(&accept, "application/json", &["application/*", "*/*"]);
    let stream = weight(&accept, "text/event-stream", &["text/*"]);
    match () {
        () if stream > json => Ok(Form::EventStream),
        () if json > 0.0 => Ok(Form::Json),
        () => {
            let accept: String = accept.chars().take(80).collect();
            let detail = format!(
                "Accept is {accept:?}, a topic is read as application/json or text/event-stream"
            );
            Err(Problem::new(Kind::NotAcceptable, detail))
        }
    }
}

/// The weight `Accept` gives a media type: that of its most specific range, 0 when it has none.
fn weight(accept: &str, media_type: &str, wildcards: &[&str]) -> f32 {
    let ranges = || accept.split(',').map(|range| range.split_once(';').unwrap_or((range, "")));
    let of = |wanted: &str| {
        ranges().find(|(range, _)| range.trim().eq_ignore_ascii_case(wanted)).map(
            |(_, parameters)| {
                let q = parameters.split(';').filter_map(|p| p.trim().strip_prefix("q=")).next();
                q.and_then(|q| q.parse().ok()).filter(|q| (0.0..=1.0).contains(q)).unwrap_or(1.0)
            },
        )
    };
    of(media_type).or_else(|| wildcards.iter().find_map(|wildcard| of(wildcard))).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str, fields: &[(&'static str, &str)]) -> Result<Query, String> {
        let headers = fields
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        Query::parse(Some(query), &headers, &Limits::default()).map_err(|problem| problem.to_json())
    }

    fn accept(value: &str) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        form(&headers).ok()
    }

    #[test]
    fn nothing_asked_is_nothing_set() {
        let query = Query { after: None, wait: None, page: Limits::default().page };
        assert_eq!(parse("", &[]), Ok(query));
    }

    #[test]
    fn wait_may_be_a_parameter_or_a_preference() {
        let wait = |query, fields: &[(&'static str, &str)]| {
            parse(query, fields)
                .unwrap()
                .wait
                .map(|wait| (wait.duration.as_millis(), wait.is_preference))
        };
        assert_eq!(wait("wait=0.3", &[]), Some((300, false)));
        assert_eq!(wait("wait=0", &[]), Some((0, false)));
        assert_eq!(wait("wait=120", &[]), Some((120_000, false)));
        assert_eq!(wait("", &[("prefer", "wait=5")]), Some((5000, true)));
        assert_eq!(
            wait("", &[("prefer", "return=minimal, Wait = \"7\"; foo")]),
            Some((7000, true))
        );
        assert_eq!(wait("wait=1", &[("prefer", "wait=5")]), Some((1000, false)));
        assert_eq!(wait("", &[("prefer", "respond-async")]), None);
    }

    #[test]
    fn a_wrong_wait_is_told_what_is_wrong_with_it() {
        for (value, part) in [
            ("-1", "negative"),
            ("-0.1", "negative"),
            ("120.1", "at most 120 s"),
            ("1e9", "number of seconds"),
            ("99999999999999999999999", "at most 120 s"),
            ("", "number of seconds"),
            ("abc", "number of seconds"),
            ("inf", "number of seconds"),
            ("NaN", "number of seconds"),
            ("1.2.3", "number of seconds"),
        ] {
            let error = parse(&format!("wait={value}"), &[]).unwrap_err();
            assert!(error.contains(part), "{value}: {error}");
            let error = parse("", &[("prefer", &format!("wait={value}"))]).unwrap_err();
            assert!(error.contains(part), "{value}: {error}");
        }
    }

    #[test]
    fn a_wrong_position_limit_or_name_is_refused() {
        for query in [
            "after=",
            "after=x",
            "after=-1",
            "after=newest",
            "limit=0",
            "limit=1001",
            "limit=-1",
            "limit=x",
            "foo=1",
            "after=latest&after=earliest",
            "After=latest",
        ] {
            let error = parse(query, &[]).unwrap_err();
            assert!(error.contains("bad-parameter"), "{query}: {error}");
        }
        assert!(parse("", &[("last-event-id", "nonsense")]).is_err());
    }

    #[test]
    fn last_event_id_counts_more_than_the_url() {
        let query = parse("after=earliest", &[("last-event-id", "7-3")]).unwrap();
        assert_eq!(query.after, Some("7-3".parse().unwrap()));
    }

    #[test]
    fn accept_chooses_the_form() {
        for (value, form) in [
            ("*/*", Some(Form::Json)),
            ("text/event-stream", Some(Form::EventStream)),
            ("text/event-stream, */*", Some(Form::Json)),
            ("text/event-stream, application/json;q=0.5", Some(Form::EventStream)),
            ("application/json, text/event-stream;q=0.5", Some(Form::Json)),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Some(Form::Json)),
            ("application/*", Some(Form::Json)),
            ("text/*", Some(Form::EventStream)),
            ("text/*;q=0.5, application/json", Some(Form::Json)),
            ("application/json;q=nan", Some(Form::Json)),
            ("image/png", None),
            ("application/json;q=0", None),
        ] {
            assert_eq!(accept(value), form, "{value}");
        }
    }
}
