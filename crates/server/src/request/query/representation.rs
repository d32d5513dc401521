//! The representation of a topic that `Accept` chooses.

use std::collections::BTreeSet;

use http::HeaderMap;

use super::parameter::bad;
use crate::request::fields::{self, Fields};
use crate::{Kind, Problem};

const HTML: &str = "text/html";
/// The type that browsers name beside HTML in requests for pages, and programs do not.
const XHTML: &str = "application/xhtml+xml";

/// A representation of a topic, and the requests that choose it.
#[derive(Debug)]
pub(crate) struct Representation {
    pub(crate) media_type: &'static str,
    /// The ranges of media types that include it, the most specific first. A stream has none: curl sends `*/*` by
    /// default, and a client that accepts any text does not expect an endless one.
    pub(crate) ranges: &'static [&'static str],
    /// The parameter without which it is not chosen.
    pub(crate) needs: Option<Need>,
}

/// The representation of what is not read as a stream.
pub(crate) static JSON: Representation = Representation {
    media_type: "application/json",
    ranges: &["application/*", "*/*"],
    needs: None,
};

/// A parameter that a representation needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Need {
    Wait,
    /// The function of a page to call. With it, nothing else is chosen.
    Frame,
}

impl Representation {
    /// Creates a representation for clients that name its media type.
    pub(crate) const fn named(media_type: &'static str) -> Self {
        Self { media_type, ranges: &[], needs: None }
    }
}

impl AsRef<Self> for Representation {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Chooses by `Accept` (RFC 9110 section 12.5.1): the highest weight wins; among equal ones the first that is
/// offered. `given` are the parameters of the request that a representation may need.
pub(crate) fn choose<T: AsRef<Representation>>(
    offered: &[&'static T],
    fields: Fields<'_>,
    given: impl Fn(Need) -> bool,
) -> Result<&'static T, Problem> {
    let accept = accepted(fields);
    let is_chosen = |own: &Representation| match own.needs {
        Some(Need::Frame) => given(Need::Frame),
        Some(need) => given(need) && !given(Need::Frame),
        None => !given(Need::Frame),
    };
    let mut best = (0.0, None);
    for transport in offered.iter().filter(|transport| is_chosen((**transport).as_ref())) {
        let own = (*transport).as_ref();
        let weight = weight(&accept, own.media_type, own.ranges);
        if weight > best.0 {
            best = (weight, Some(*transport));
        }
    }
    best.1.ok_or_else(|| unacceptable(offered, &accept, given(Need::Frame)))
}

/// Returns true if `Accept` weighs one representation higher than another.
pub(crate) fn prefers(fields: Fields<'_>, own: &Representation, other: &Representation) -> bool {
    let accept = accepted(fields);
    let weight = |of: &Representation| weight(&accept, of.media_type, of.ranges);
    weight(own) > weight(other)
}

/// Returns true if the answer is an HTML page. A browser that opens the URL gets one, unless it prefers something else that is
/// offered; a program gets one if it accepts nothing else. `text/html` alone is no sign of a browser: Java's
/// `HttpURLConnection` names it first in each of its requests.
pub(crate) fn prefers_page<T: AsRef<Representation>>(
    offered: &[&'static T],
    fields: Fields<'_>,
) -> bool {
    let accept = accepted(fields);
    let is_navigation = fields.first("sec-fetch-mode") == Some(b"navigate");
    let page = weight(&accept, HTML, if is_navigation { &["text/*", "*/*"] } else { &[] });
    let others = offered.iter().map(|transport| (**transport).as_ref());
    let others = others.filter(|own| own.media_type != HTML);
    let other = others.map(|own| weight(&accept, own.media_type, own.ranges)).fold(0.0, f32::max);
    let is_browser = is_navigation || weight(&accept, XHTML, &[]) > 0.0;
    page > 0.0 && if is_browser { page >= other } else { other == 0.0 }
}

/// Returns true if a request is answered with an HTML page and not with JSON: that of a browser that opens a URL.
#[must_use]
pub fn prefers_html(headers: &HeaderMap) -> bool {
    prefers_page(&[&JSON], headers.into())
}

/// Returns the value of `Accept`, from all its fields.
fn accepted(fields: Fields<'_>) -> String {
    let accepted: Vec<&str> =
        fields.all("accept").filter_map(|value| str::from_utf8(value).ok()).collect();
    let accept = accepted.join(",");
    // An empty field means the same as none.
    if fields::split(&accept, ',').all(str::is_empty) { "*/*".to_owned() } else { accept }
}

/// Returns the problem of a request that accepts nothing of what is offered.
fn unacceptable<T: AsRef<Representation>>(
    offered: &[&'static T],
    accept: &str,
    has_frame: bool,
) -> Problem {
    let all = || offered.iter().map(|transport| (**transport).as_ref());
    let needs_frame = |own: &Representation| own.needs == Some(Need::Frame);
    let framed = all().filter(|own| needs_frame(own)).map(|own| own.media_type);
    if !has_frame && framed.clone().any(|named| weight(accept, named, &[]) > 0.0) {
        return frame_missing();
    }
    let (framed, accept) = (list(framed), accept.chars().take(80).collect::<String>());
    let detail = if has_frame {
        format!("Accept is {accept:?}, with frame, a topic is available only as {framed}")
    } else {
        let plain = list(all().filter(|own| !needs_frame(own)).map(|own| own.media_type));
        format!(
            "Accept is {accept:?}, a topic is available as {plain}, and with frame=NAME as {framed}"
        )
    };
    Problem::new(Kind::NotAcceptable, detail)
}

pub(crate) fn frame_missing() -> Problem {
    bad("frame", "is missing: to read a topic as text/html, add frame=NAME")
}

/// Lists media types in a sentence: `a, b or c`.
fn list(media_types: impl Iterator<Item = &'static str>) -> String {
    let sorted = BTreeSet::from_iter(media_types).into_iter().collect::<Vec<_>>();
    match sorted.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the weight that `Accept` gives a media type: that of its most specific range, 0 if it has none.
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
    use crate::transport;

    const JSON: &str = "application/json";
    const EVENT_STREAM: &str = "text/event-stream";
    const NDJSON: &str = "application/x-ndjson";

    fn chosen(value: &str, has_frame: bool) -> Result<&'static str, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        let given = |need| need == Need::Frame && has_frame;
        choose(transport::READING, (&headers).into(), given)
            .map(|own| own.representation.media_type)
    }

    fn accept(value: &str, has_frame: bool) -> Result<&'static str, u16> {
        chosen(value, has_frame).map_err(|problem| problem.code().as_u16())
    }

    #[test]
    fn who_takes_nothing_is_told_what_there_is() {
        let detail = |has_frame| chosen("image/png", has_frame).unwrap_err().detail().to_owned();
        // The last but one is the tests' own.
        assert_eq!(
            detail(false).replace(", text/csv or", " or"),
            "Accept is \"image/png\", a topic is available as application/json, application/x-ndjson or \
             text/event-stream, and with frame=NAME as text/html"
        );
        assert_eq!(
            detail(true),
            "Accept is \"image/png\", with frame, a topic is available only as text/html"
        );
    }

    #[test]
    fn accept_chooses_the_representation() {
        for (value, form) in [
            ("*/*", Ok(JSON)),
            ("", Ok(JSON)),
            (" , ", Ok(JSON)),
            ("text/event-stream", Ok(EVENT_STREAM)),
            ("text/event-stream, */*", Ok(JSON)),
            ("text/event-stream, application/json;q=0.5", Ok(EVENT_STREAM)),
            ("application/json, text/event-stream;q=0.5", Ok(JSON)),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Ok(JSON)),
            ("application/*", Ok(JSON)),
            // Nobody gets a stream who did not name it.
            ("text/*", Err(406)),
            ("text/*, application/json;q=0.1", Ok(JSON)),
            ("text/*, */*;q=0.1", Ok(JSON)),
            ("application/json;q=0, application/*", Err(406)),
            ("application/json;q=0.1, application/*", Ok(JSON)),
            ("application/json;q=0, */*", Err(406)),
            ("text/*;q=0.5, application/json", Ok(JSON)),
            ("a/b;c=\", text/event-stream\", application/json;q=0.1", Ok(JSON)),
            ("text/event-stream; Q=0.1, application/json;a=\"q=0\"; q=0.2", Ok(JSON)),
            ("application/json;q=nan", Ok(JSON)),
            ("application/x-ndjson", Ok(NDJSON)),
            ("APPLICATION/X-NDJSON", Ok(NDJSON)),
            ("application/x-ndjson, */*;q=0.1", Ok(NDJSON)),
            ("application/x-ndjson, */*", Ok(JSON)),
            ("application/x-ndjson, text/event-stream", Ok(EVENT_STREAM)),
            ("application/x-ndjson, text/event-stream;q=0.9", Ok(NDJSON)),
            ("application/x-ndjson;q=0, text/event-stream;q=0.1", Ok(EVENT_STREAM)),
            ("text/html", Err(400)),
            ("image/png", Err(406)),
            ("application/json;q=0", Err(406)),
            ("application/x-ndjson;q=0", Err(406)),
        ] {
            assert_eq!(accept(value, false), form, "{value}");
        }
    }

    fn is_page(fields: &[(&str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        prefers_page(transport::READING, (&headers).into())
    }

    #[test]
    fn a_page_is_for_browsers() {
        for (browser, accept) in [
            ("Firefox", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            (
                "Firefox 128",
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8",
            ),
            (
                "Chrome",
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
            ),
            ("Safari", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("Edge 12", "text/html, application/xhtml+xml, image/jxr, */*"),
            ("Internet Explorer 11", "text/html, application/xhtml+xml, */*"),
            (
                "Firefox 2",
                "text/xml,application/xml,application/xhtml+xml,text/html;q=0.9,text/plain;q=0.8,image/png,*/*;q=0.5",
            ),
            (
                "Safari 4",
                "application/xml,application/xhtml+xml,text/html;q=0.9,text/plain;q=0.8,image/png,*/*;q=0.5",
            ),
            (
                "Opera 12",
                "text/html, application/xml;q=0.9, application/xhtml+xml, image/png, image/webp, */*;q=0.1",
            ),
        ] {
            assert!(is_page(&[("accept", accept)]), "{browser}");
            assert!(is_page(&[("accept", accept), ("sec-fetch-mode", "navigate")]), "{browser}");
        }
        for accept in ["text/html", "text/html, */*", "text/*", "*/*", "", "text/html;q=0.5"] {
            assert!(is_page(&[("accept", accept), ("sec-fetch-mode", "navigate")]), "{accept}");
        }
        assert!(is_page(&[("sec-fetch-mode", "navigate")]));
    }

    #[test]
    fn programs_get_data_unless_they_accept_nothing_but_a_page() {
        for (program, accept) in [
            ("Java to 17", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"),
            ("Java from 18", "*/*"),
            ("curl, wget, requests, most link previews", "*/*"),
            ("Go, and others without one", ""),
            ("Lynx", "text/html, text/plain, text/css, text/sgml, */*;q=0.01"),
            ("axios", "application/json, text/plain, */*"),
            ("jQuery", "text/html, */*; q=0.01"),
            ("a link preview", "text/html,*/*;q=0.8"),
            ("Ruby on Rails", "text/html, application/json"),
            ("an EventSource", "text/event-stream"),
            ("a reader", "text/html;q=0.5, text/event-stream;q=0.4"),
            ("a reader", "text/html;q=0.5, text/event-stream"),
            ("nobody", "text/html;q=0"),
            ("nobody", "application/xhtml+xml"),
            ("nobody", "text/html, application/xhtml+xml;q=0, */*"),
            ("any text", "text/*"),
            ("JSON", "application/json"),
        ] {
            assert!(!is_page(&[("accept", accept)]), "{program}");
            assert!(!is_page(&[("accept", accept), ("sec-fetch-mode", "cors")]), "{program}");
        }
        let (json, xhtml) = ("application/json, ", "text/html;q=0.9, application/xhtml+xml");
        for fields in [("sec-fetch-mode", "navigate"), ("x-other", "")] {
            let accept = format!("{json}{xhtml}");
            assert!(!is_page(&[("accept", &accept), fields]), "JSON weighs more");
        }
        for accept in ["text/html", "text/html, text/plain;q=0.8", "text/html, image/png"] {
            assert!(is_page(&[("accept", accept)]), "{accept}");
        }
    }

    #[test]
    fn a_frame_is_html_or_nothing() {
        for (value, form) in [
            ("text/html", Ok(HTML)),
            ("*/*", Ok(HTML)),
            ("text/*;q=0.1, application/json", Ok(HTML)),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Ok(HTML)),
            ("text/html;q=0, */*", Err(406)),
            ("application/json", Err(406)),
            ("text/event-stream", Err(406)),
        ] {
            assert_eq!(accept(value, true), form, "{value}");
        }
    }
}
