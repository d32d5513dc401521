//! The query of a reader: `after`, `since`, `wait`, `limit`, `mode`, `frame`, `Prefer`, `Last-Event-ID`, `Accept`.
//!
//! Owns their syntax. An invalid value is a problem that names the parameter; nothing is guessed or ignored.

mod frame_name;
mod last_event_id;
mod list;
mod many;
mod parameter;
mod representation;
mod since;

use std::time::Duration;

use anemone_hub::{PageLimit, Start, UnixTime};
use anemone_wire::{After, AfterError, Mode, PositionError};

pub(crate) use self::frame_name::FrameName;
pub(crate) use self::list::{
    RunsQuery, TopicsPage, asks_for_state, limit_alone, list_page, no_parameters,
};
pub(crate) use self::many::{ManyQuery, TopicChoices, asks_for_topics, one_topic_each};
pub(crate) use self::parameter::{bad, take_each};
use self::parameter::{parse_limit, take_pairs};
pub use self::representation::prefers_html;
pub(crate) use self::representation::{
    JSON, Need, Representation, choose, frame_missing, prefers, prefers_page,
};
use crate::reply::problem::excerpt;
use crate::request::client::Client;
use crate::request::fields::{self, Fields};
use crate::{Limits, Problem};

/// A parsed request of a reader.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    /// The place to begin; `None` leaves it to the transport.
    pub(crate) start: Option<Start>,
    pub(crate) wait: Option<Wait>,
    pub(crate) page: PageLimit,
    /// The events for a reader that is behind.
    pub(crate) mode: Mode,
    /// The function that a forever-frame calls.
    pub(crate) frame: Option<FrameName>,
    /// True if the id of the last event says where to begin.
    pub(crate) is_resumed: bool,
}

/// The time limit of a long poll.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Wait {
    pub(crate) duration: Duration,
    /// True if it was requested with `Prefer`, which must be acknowledged (RFC 7240 section 3).
    pub(crate) is_preference: bool,
    /// True if it is shorter than requested, which must be reported.
    pub(crate) is_cut: bool,
}

impl Wait {
    /// Limits the wait to the timeout of a possible proxy, unless there is certainly none. Some proxies do not reveal
    /// themselves: HAProxy, and nginx by default, forward requests unchanged. An additional request now and then
    /// costs a client less than an error from the proxy.
    pub(crate) fn cut(self, wait_proxied: Duration, client: Client) -> Self {
        if self.duration <= wait_proxied || client.check_local().is_ok() {
            return self;
        }
        Self { duration: wait_proxied, is_cut: true, ..self }
    }
}

impl Query {
    pub(crate) fn parse(
        query: Option<&str>,
        fields: Fields<'_>,
        limits: &Limits,
    ) -> Result<Self, Problem> {
        let known = "a topic takes after, since, limit, wait, mode and frame";
        Self::parse_with(query, fields, limits, known, &mut |name, value| {
            one_place(name, value).map(Some)
        })
    }

    /// Parses a query whose `after` and `Last-Event-ID` `place` parses. `known` lists the parameters.
    fn parse_with(
        query: Option<&str>,
        fields: Fields<'_>,
        limits: &Limits,
        known: &str,
        place: &mut PlaceParser<'_>,
    ) -> Result<Self, Problem> {
        let (page, mode) = (limits.page, Mode::All);
        let (start, wait, frame) = (None, None, None);
        let mut parsed = Self { start, wait, page, mode, frame, is_resumed: false };
        let (mut since, mut has_after) = (None, false);
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let own = pairs.filter(|(name, _)| !last_event_id::is_added(name));
        take_pairs(own, known, |name, value| {
            match name {
                "after" => (parsed.start, has_after) = (place("after", value)?, true),
                "since" => since = Some(parse_since(value)?),
                "wait" => {
                    let duration = parse_wait("wait", value, limits.wait_max)?;
                    parsed.wait = Some(Wait { duration, is_preference: false, is_cut: false });
                }
                "limit" => parsed.page.events_max = parse_limit(value, limits.page.events_max)?,
                "mode" => parsed.mode = parse_mode(value)?,
                "frame" => parsed.frame = Some(frame_name::parse(value)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if since.is_some() && has_after {
            return Err(bad("since", "and after both say where to begin: give only one of them"));
        }
        parsed.start = since.or(parsed.start);
        if parsed.wait.is_none() {
            parsed.wait = preferred_wait(fields, limits.wait_max)?;
        }
        if let Some(id) = last_event_id::find(query, fields)? {
            // An EventSource reconnects with its original URL, so the last event that it saw takes precedence.
            parsed.start = place("Last-Event-ID", &id)?;
            parsed.is_resumed = true;
        }
        Ok(parsed)
    }
}

/// Parses the place to begin, given the name of the parameter and its value.
type PlaceParser<'a> = dyn FnMut(&str, &str) -> Result<Option<Start>, Problem> + 'a;

/// Parses the place to begin in one topic.
fn one_place(name: &str, value: &str) -> Result<Start, Problem> {
    let after: Result<After, _> = value.parse();
    after.map(Start::from).map_err(|AfterError { text }| {
        let what = "must be a position, earliest, latest or -N for the last N events";
        bad(name, &format!("{what}: {}", PositionError { text }))
    })
}

/// Parses seconds, with decimals; RFC 7240 section 4.3 has only whole ones.
fn parse_wait(name: &str, value: &str, max: Duration) -> Result<Duration, Problem> {
    let explain = |detail: &str| bad(name, &format!("is {:?}: {detail}", excerpt(value, 40)));
    let is_decimal = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = match value.parse() {
        Ok(seconds) if is_decimal => seconds,
        Ok(seconds) if seconds < 0.0 => return Err(explain("must not be negative")),
        _ => return Err(explain("must be a number of seconds, such as 5 or 0.3")),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration <= max => Ok(duration),
        _ => Err(explain(&format!("at most {} s are allowed", max.as_secs_f64()))),
    }
}

/// Parses a duration before now, or a time.
fn parse_since(value: &str) -> Result<Start, Problem> {
    since::parse(value, UnixTime::now()).map(Start::Since).ok_or_else(|| {
        let value = excerpt(value, 40);
        let detail = format!(
            "is {value:?}: must be an age, such as 10m or 2h (ms, s, m, h, d), or a time, such as \
             2026-11-22T10:00:00Z or 1789000000123 (milliseconds since 1970)"
        );
        bad("since", &detail)
    })
}

fn parse_mode(value: &str) -> Result<Mode, Problem> {
    Mode::of(value).ok_or_else(|| {
        let value = excerpt(value, 40);
        bad("mode", &format!("is {value:?}: must be all or latest"))
    })
}

/// Parses `Prefer: wait=N` (RFC 7240): the first `wait` counts, and other preferences are ignored. Section 2 asks to
/// ignore a wait that is too long; but then a client that asks for an hour would poll in a loop without an
/// explanation, so it is an error here.
fn preferred_wait(given: Fields<'_>, max: Duration) -> Result<Option<Wait>, Problem> {
    for field in given.all("prefer") {
        let field = str::from_utf8(field).map_err(|_| bad("Prefer", "is not UTF-8"))?;
        // Each preference is a pair with parameters, of which `wait` has none.
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

/// Returns true if a request need not wait for its work: `Prefer: respond-async` (RFC 7240 section 4.1).
pub(crate) fn prefers_async(given: Fields<'_>) -> bool {
    let is_asked = |field: &str| {
        let preferences = fields::split(field, ',');
        preferences
            .filter_map(|own| fields::split(own, ';').next().map(fields::pair))
            .any(|(name, _)| name.eq_ignore_ascii_case("respond-async"))
    };
    given.all("prefer").filter_map(|field| str::from_utf8(field).ok()).any(is_asked)
}

#[cfg(test)]
mod tests;
