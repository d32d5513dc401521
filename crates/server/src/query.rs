//! What a reader asks for: `after`, `since`, `wait`, `limit`, `mode`, `frame`, `Prefer`, `Last-Event-ID`, `Accept`.
//!
//! Owns their syntax. Anything that does not say what it must is a problem that names it; nothing is guessed and
//! nothing is ignored.

mod since;

use std::time::Duration;

use anemone_hub::{After, PageLimit, TopicName, TopicNameError};

use crate::client::Client;
use crate::fields::{self, Fields};
use crate::reading::{Mode, now};
use crate::{Kind, Limits, Problem};

/// A reader's request, understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    /// Where to begin; `None` leaves it to the transport.
    pub(crate) after: Option<After>,
    /// Whether that is a position where reading begins anew, and not how far it came.
    pub(crate) is_anew: bool,
    /// How long to wait for an event.
    pub(crate) wait: Option<Wait>,
    /// How much one page may hold.
    pub(crate) page: PageLimit,
    /// What to do when behind.
    pub(crate) mode: Mode,
    /// The function that a forever-frame calls.
    pub(crate) frame: Option<FrameName>,
}

/// The function of a page that a forever-frame in it calls: identifiers with dots between them, so that it can
/// stand in a script as it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FrameName(String);

impl FrameName {
    /// The longest name, in bytes.
    const BYTES_MAX: usize = 64;

    fn new(name: &str) -> Option<Self> {
        let is_identifier = |part: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
            part.bytes().all(allowed) && part.bytes().next().is_some_and(|b| !b.is_ascii_digit())
        };
        let fits = name.len() <= Self::BYTES_MAX && name.split('.').all(is_identifier);
        fits.then(|| Self(name.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// How long a long poll may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wait {
    pub(crate) duration: Duration,
    /// Asked for with `Prefer`, which is to be acknowledged (RFC 7240 section 3).
    pub(crate) is_preference: bool,
    /// Less than was asked for, which is to be told.
    pub(crate) is_cut: bool,
}

impl Wait {
    /// At most as long as a proxy may wait for us, unless it is certain that there is none. Some say nothing: HAProxy, and
    /// nginx as it is configured at first, pass a request on as if it was their own. One request more in a while costs a
    /// client less than an error of the proxy's.
    pub(crate) fn cut(self, wait_proxied: Duration, client: Client) -> Self {
        if self.duration <= wait_proxied || client.check_local().is_ok() {
            return self;
        }
        Self { duration: wait_proxied, is_cut: true, ..self }
    }
}

impl Query {
    /// Reads the query and header fields of a request.
    pub(crate) fn parse(
        query: Option<&str>,
        fields: &(impl Fields + ?Sized),
        limits: &Limits,
    ) -> Result<Self, Problem> {
        let (page, mode) = (limits.page, Mode::All);
        let (after, is_anew, wait, frame) = (None, false, None, None);
        let mut parsed = Self { after, is_anew, wait, page, mode, frame };
        let mut since = None;
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if seen.iter().any(|earlier| *earlier == name) {
                return Err(bad(&name, "is given twice"));
            }
            match &*name {
                "after" => parsed.begin("after", &value)?,
                "since" => since = Some(parse_since(&value)?),
                "wait" => {
                    let duration = parse_wait("wait", &value, limits.wait_max)?;
                    parsed.wait = Some(Wait { duration, is_preference: false, is_cut: false });
                }
                "limit" => parsed.page.events_max = parse_limit(&value, limits.page.events_max)?,
                "mode" => parsed.mode = parse_mode(&value)?,
                "frame" => parsed.frame = Some(parse_frame(&value)?),
                _ => {
                    let name = name.chars().take(40).collect::<String>();
                    return Err(bad(
                        &name,
                        "is not a parameter: a topic takes after, since, limit, wait, mode and frame",
                    ));
                }
            }
            seen.push(name.into_owned());
        }
        if let Some(since) = since
            && parsed.after.replace(since).is_some()
        {
            return Err(bad("since", "and after both say where to begin: give one of them"));
        }
        if parsed.wait.is_none() {
            parsed.wait = preferred_wait(fields, limits.wait_max)?;
        }
        if let Some(id) = fields.first("last-event-id") {
            // An EventSource reconnects with the URL it began with: what it saw last counts more.
            let id = str::from_utf8(id).map_err(|_| bad("Last-Event-ID", "is not a position"))?;
            parsed.begin("Last-Event-ID", id)?;
        }
        Ok(parsed)
    }

    /// Takes where reading begins.
    fn begin(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let anew = value.strip_suffix(ANEW).and_then(|position| position.parse().ok());
        let after = anew.map_or_else(|| value.parse(), |position| Ok(After::Position(position)));
        let explain = |error| {
            let what = "must be a position, earliest, latest or -N for the last N events";
            bad(name, &format!("{what}: {error}"))
        };
        (self.after, self.is_anew) = (Some(after.map_err(explain)?), value.ends_with(ANEW));
        Ok(())
    }
}

/// After a position: reading begins there. A poll's position is how far the polls before it came, and who was ended
/// for being too slow could never go on at one where events go faster than it asks.
pub(crate) const ANEW: char = '~';

fn bad(name: &str, detail: &str) -> Problem {
    Problem::new(Kind::BadParameter, format!("{name} {detail}"))
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

/// A time: how long ago, or which.
fn parse_since(value: &str) -> Result<After, Problem> {
    since::parse(value, now()).map(After::Since).ok_or_else(|| {
        let value: String = value.chars().take(40).collect();
        let detail = format!(
            "is {value:?}: must be how long ago, as 10m or 2h (ms, s, m, h, d), or a time, as 2026-11-22T10:00:00Z or \
             1789000000123 (milliseconds since 1970)"
        );
        bad("since", &detail)
    })
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

/// The query of a list, which takes `limit` and nothing else.
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
            Err(bad(&name, "is not a parameter: this takes limit alone"))
        }
    }
}

/// The query of the list of topics: the name that its page begins after, and how many it has at most.
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
                return Err(bad(&name, "is not a parameter: this takes after and limit"));
            }
        };
        if is_again {
            return Err(bad(&name, "is given twice"));
        }
    }
    Ok((after, limit.unwrap_or(max)))
}

fn parse_mode(value: &str) -> Result<Mode, Problem> {
    match value {
        "all" => Ok(Mode::All),
        "latest" => Ok(Mode::Latest),
        _ => {
            let value: String = value.chars().take(40).collect();
            Err(bad("mode", &format!("is {value:?}: must be all or latest")))
        }
    }
}

fn parse_frame(value: &str) -> Result<FrameName, Problem> {
    FrameName::new(value).ok_or_else(|| {
        let value: String = value.chars().take(80).collect();
        let detail = format!(
            "is {value:?}: must be identifiers of A-Z a-z 0-9 _ $ with dots between them, as in app.receive, \
             at most {} bytes",
            FrameName::BYTES_MAX
        );
        bad("frame", &detail)
    })
}

/// `Prefer: wait=N` (RFC 7240): the first `wait` counts, other preferences are not ours to judge.
/// Section 2 would have us ignore a wait that we cannot honour; then a client that asked for an
/// hour would poll in a loop without knowing why, so it is told instead.
fn preferred_wait(given: &(impl Fields + ?Sized), max: Duration) -> Result<Option<Wait>, Problem> {
    for field in given.all("prefer") {
        let field = str::from_utf8(field).map_err(|_| bad("Prefer", "is not UTF-8"))?;
        // Each is a pair, and parameters, of which `wait` has none.
        let preferences =
            fields::split(field, ',').filter_map(|own| fields::split(own, ';').next());
        let mut pairs = preferences.map(fields::pair);
        if let Some((_, value)) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("wait")) {
            let duration = parse_wait("Prefer: wait", &value, max)?;
            return Ok(Some(Wait { duration, is_preference: true, is_cut: false }));
        }
    }
    Ok(None)
}

/// The form a topic is read in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// A page of events.
    Json,
    /// An endless event stream.
    EventStream,
    /// Endless lines.
    Ndjson,
    /// An endless document, whose scripts call this.
    ForeverFrame(FrameName),
}

/// Chooses by `Accept` (RFC 9110 section 12.5.1): the highest weight wins; when equal JSON, then the event stream.
/// `frame` asks for the one form that has a use for it.
pub(crate) fn form(
    given: &(impl Fields + ?Sized),
    frame: Option<&FrameName>,
) -> Result<Form, Problem> {
    let accepted: Vec<&str> =
        given.all("accept").filter_map(|value| str::from_utf8(value).ok()).collect();
    let mut accept = accepted.join(",");
    // One with nothing in it asks for nothing in particular, as none does.
    if fields::split(&accept, ',').all(str::is_empty) {
        accept = "*/*".to_owned();
    }
    let not_acceptable = |what: &str| {
        let accept: String = accept.chars().take(80).collect();
        Problem::new(Kind::NotAcceptable, format!("Accept is {accept:?}, {what}"))
    };
    if let Some(name) = frame {
        let html = weight(&accept, "text/html", &["text/*", "*/*"]);
        let form = (html > 0.0).then(|| Form::ForeverFrame(name.clone()));
        return form.ok_or_else(|| not_acceptable("with frame a topic is read as text/html alone"));
    }
    // A stream is only given to a client that names it: `*/*` is what curl sends unasked, and one that takes any
    // text does not expect one without end.
    let json = weight(&accept, "application/json", &["application/*", "*/*"]);
    let [event_stream, ndjson, html] = ["text/event-stream", "application/x-ndjson", "text/html"]
        .map(|named| weight(&accept, named, &[]));
    match () {
        () if ndjson > json.max(event_stream) => Ok(Form::Ndjson),
        () if event_stream > json => Ok(Form::EventStream),
        () if json > 0.0 => Ok(Form::Json),
        () if html > 0.0 => {
            Err(bad("frame", "is missing: as text/html a topic is read with frame=NAME"))
        }
        () => Err(not_acceptable(
            "a topic is read as application/json, application/x-ndjson or text/event-stream, and as text/html with \
             frame=NAME",
        )),
    }
}

/// The weight `Accept` gives a media type: that of its most specific range, 0 when it has none.
fn weight(accept: &str, media_type: &str, wildcards: &[&str]) -> f32 {
    let of = |wanted: &str| {
        let mut ranges = fields::split(accept, ',').map(|range| fields::split(range, ';'));
        let mut parameters = ranges.find_map(|mut parts| {
            parts.next().filter(|range| range.eq_ignore_ascii_case(wanted)).map(|_| parts)
        })?;
        let q = parameters.find_map(|part| {
            let (name, value) = fields::pair(part);
            name.eq_ignore_ascii_case("q").then_some(value)
        });
        let q = q.and_then(|q| q.parse().ok()).filter(|q| (0.0..=1.0).contains(q));
        Some(q.unwrap_or(1.0))
    };
    of(media_type).or_else(|| wildcards.iter().find_map(|wildcard| of(wildcard))).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;

    fn parse(query: &str, fields: &[(&'static str, &str)]) -> Result<Query, String> {
        let headers: HeaderMap = fields
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        Query::parse(Some(query), &headers, &Limits::default()).map_err(|problem| problem.to_json())
    }

    fn accept(value: &str, frame: Option<&str>) -> Result<Form, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        let frame = frame.map(|name| FrameName::new(name).unwrap());
        form(&headers, frame.as_ref()).map_err(|problem| problem.into_response().status().as_u16())
    }

    #[test]
    fn nothing_asked_is_nothing_set() {
        let (page, mode) = (Limits::default().page, Mode::All);
        let (after, is_anew, wait, frame) = (None, false, None, None);
        assert_eq!(parse("", &[]), Ok(Query { after, is_anew, wait, page, mode, frame }));
    }

    #[test]
    fn a_position_may_be_where_reading_begins_anew() {
        let begin = |query, fields: &[(&'static str, &str)]| {
            let Query { after, is_anew, .. } = parse(query, fields).unwrap();
            (after, is_anew)
        };
        let position = Some(After::Position("ya-3".parse().unwrap()));
        assert_eq!(begin("after=ya-3", &[]), (position, false));
        assert_eq!(begin("after=ya-3~", &[]), (position, true));
        assert_eq!(begin("after=ya-3%7E", &[]), (position, true));
        assert_eq!(begin("after=zz-1~", &[("last-event-id", "ya-3")]), (position, false));
        for query in ["after=~", "after=earliest~", "after=ya-3~~", "after=~ya-3"] {
            assert!(parse(query, &[]).unwrap_err().contains("must be a position"), "{query}");
        }
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
        for (prefer, millis) in [
            ("foo=\"a, wait=9\", wait=5", 5000),
            ("foo=\"\\\", wait=9\"; wait=8, wait=\"5\"; foo=\"a,b;c\"", 5000),
            ("foo; wait=9, wait=5, wait=6", 5000),
            ("WAIT = 5", 5000),
        ] {
            assert_eq!(wait("", &[("prefer", prefer)]), Some((millis, true)), "{prefer}");
        }
        let two = [("prefer", "foo=\"wait=9\""), ("prefer", "bar, wait=5")];
        assert_eq!(wait("", &two), Some((5000, true)));
        assert_eq!(wait("", &[("prefer", "foo=\"a, wait=9\"")]), None);
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
            "after=-0",
            "after=newest",
            "limit=0",
            "limit=1001",
            "limit=-1",
            "limit=x",
            "mode=",
            "mode=newest",
            "mode=Latest",
            "mode=all&mode=all",
            "frame=",
            "frame=1a",
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

    #[test]
    fn last_event_id_counts_more_than_the_url() {
        let query = parse("after=earliest", &[("last-event-id", "7-3")]).unwrap();
        assert_eq!(query.after, Some("7-3".parse().unwrap()));
    }

    #[test]
    fn mode_is_one_of_two_words() {
        assert_eq!(parse("mode=all", &[]).unwrap().mode, Mode::All);
        assert_eq!(parse("mode=latest", &[]).unwrap().mode, Mode::Latest);
    }

    #[test]
    fn a_frame_calls_what_can_stand_in_a_script_as_it_is() {
        let longest = "x".repeat(64);
        for name in ["f", "$", "_1", "app.receive", "a.b.c.d", "A9._.$9", &longest] {
            assert_eq!(FrameName::new(name).unwrap().as_str(), name);
        }
        let too_long = "x".repeat(65);
        for name in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "1",
            "a.1",
            "a b",
            "a(",
            "a;b",
            "a[0]",
            "</script>",
            "a\n",
            "a-b",
            "é",
            "\\u0061",
            &too_long,
        ] {
            assert_eq!(FrameName::new(name), None, "{name:?}");
        }
    }

    #[test]
    fn accept_chooses_the_form() {
        for (value, form) in [
            ("*/*", Ok(Form::Json)),
            ("", Ok(Form::Json)),
            (" , ", Ok(Form::Json)),
            ("text/event-stream", Ok(Form::EventStream)),
            ("text/event-stream, */*", Ok(Form::Json)),
            ("text/event-stream, application/json;q=0.5", Ok(Form::EventStream)),
            ("application/json, text/event-stream;q=0.5", Ok(Form::Json)),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Ok(Form::Json)),
            ("application/*", Ok(Form::Json)),
            // Nobody gets a stream who did not name it.
            ("text/*", Err(406)),
            ("text/*, application/json;q=0.1", Ok(Form::Json)),
            ("text/*, */*;q=0.1", Ok(Form::Json)),
            ("application/json;q=0, application/*", Err(406)),
            ("application/json;q=0.1, application/*", Ok(Form::Json)),
            ("application/json;q=0, */*", Err(406)),
            ("text/*;q=0.5, application/json", Ok(Form::Json)),
            ("a/b;c=\", text/event-stream\", application/json;q=0.1", Ok(Form::Json)),
            ("text/event-stream; Q=0.1, application/json;a=\"q=0\"; q=0.2", Ok(Form::Json)),
            ("application/json;q=nan", Ok(Form::Json)),
            ("application/x-ndjson", Ok(Form::Ndjson)),
            ("APPLICATION/X-NDJSON", Ok(Form::Ndjson)),
            ("application/x-ndjson, */*;q=0.1", Ok(Form::Ndjson)),
            ("application/x-ndjson, */*", Ok(Form::Json)),
            ("application/x-ndjson, text/event-stream", Ok(Form::EventStream)),
            ("application/x-ndjson, text/event-stream;q=0.9", Ok(Form::Ndjson)),
            ("application/x-ndjson;q=0, text/event-stream;q=0.1", Ok(Form::EventStream)),
            ("text/html", Err(400)),
            ("image/png", Err(406)),
            ("application/json;q=0", Err(406)),
            ("application/x-ndjson;q=0", Err(406)),
        ] {
            assert_eq!(accept(value, None), form, "{value}");
        }
    }

    #[test]
    fn a_frame_is_html_or_nothing() {
        let html = || Ok(Form::ForeverFrame(FrameName("app.receive".to_owned())));
        for (value, form) in [
            ("text/html", html()),
            ("*/*", html()),
            ("text/*;q=0.1, application/json", html()),
            ("text/html,application/xhtml+xml,*/*;q=0.8", html()),
            ("text/html;q=0, */*", Err(406)),
            ("application/json", Err(406)),
            ("text/event-stream", Err(406)),
        ] {
            assert_eq!(accept(value, Some("app.receive")), form, "{value}");
        }
    }
}
