//! The representation of a topic that `Accept` asks for.

use super::frame_name::FrameName;
use super::parameter::bad;
use crate::request::fields::{self, Fields};
use crate::{Kind, Problem};

/// The representation that a topic is read in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Representation {
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
/// `frame` asks for the one that has a use for it.
pub(crate) fn representation(
    given: &(impl Fields + ?Sized),
    frame: Option<&FrameName>,
) -> Result<Representation, Problem> {
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
        let html = (html > 0.0).then(|| Representation::ForeverFrame(name.clone()));
        return html
            .ok_or_else(|| not_acceptable("with frame, a topic is available only as text/html"));
    }
    // A stream is only given to a client that names it: `*/*` is what curl sends unasked, and one that takes any
    // text does not expect one without end.
    let json = weight(&accept, "application/json", &["application/*", "*/*"]);
    let [event_stream, ndjson, html] = ["text/event-stream", "application/x-ndjson", "text/html"]
        .map(|named| weight(&accept, named, &[]));
    match () {
        () if ndjson > json.max(event_stream) => Ok(Representation::Ndjson),
        () if event_stream > json => Ok(Representation::EventStream),
        () if json > 0.0 => Ok(Representation::Json),
        () if html > 0.0 => {
            Err(bad("frame", "is missing: to read a topic as text/html, add frame=NAME"))
        }
        () => Err(not_acceptable(
            "a topic is available as application/json, application/x-ndjson or text/event-stream, and with \
             frame=NAME as text/html",
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

    fn accept(value: &str, frame: Option<&str>) -> Result<Representation, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        let frame = frame.map(|name| FrameName::new(name).unwrap());
        representation(&headers, frame.as_ref())
            .map_err(|problem| problem.into_response().status().as_u16())
    }

    #[test]
    fn accept_chooses_the_representation() {
        for (value, form) in [
            ("*/*", Ok(Representation::Json)),
            ("", Ok(Representation::Json)),
            (" , ", Ok(Representation::Json)),
            ("text/event-stream", Ok(Representation::EventStream)),
            ("text/event-stream, */*", Ok(Representation::Json)),
            ("text/event-stream, application/json;q=0.5", Ok(Representation::EventStream)),
            ("application/json, text/event-stream;q=0.5", Ok(Representation::Json)),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Ok(Representation::Json)),
            ("application/*", Ok(Representation::Json)),
            // Nobody gets a stream who did not name it.
            ("text/*", Err(406)),
            ("text/*, application/json;q=0.1", Ok(Representation::Json)),
            ("text/*, */*;q=0.1", Ok(Representation::Json)),
            ("application/json;q=0, application/*", Err(406)),
            ("application/json;q=0.1, application/*", Ok(Representation::Json)),
            ("application/json;q=0, */*", Err(406)),
            ("text/*;q=0.5, application/json", Ok(Representation::Json)),
            ("a/b;c=\", text/event-stream\", application/json;q=0.1", Ok(Representation::Json)),
            (
                "text/event-stream; Q=0.1, application/json;a=\"q=0\"; q=0.2",
                Ok(Representation::Json),
            ),
            ("application/json;q=nan", Ok(Representation::Json)),
            ("application/x-ndjson", Ok(Representation::Ndjson)),
            ("APPLICATION/X-NDJSON", Ok(Representation::Ndjson)),
            ("application/x-ndjson, */*;q=0.1", Ok(Representation::Ndjson)),
            ("application/x-ndjson, */*", Ok(Representation::Json)),
            ("application/x-ndjson, text/event-stream", Ok(Representation::EventStream)),
            ("application/x-ndjson, text/event-stream;q=0.9", Ok(Representation::Ndjson)),
            ("application/x-ndjson;q=0, text/event-stream;q=0.1", Ok(Representation::EventStream)),
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
        let html = || Ok(Representation::ForeverFrame(FrameName::new("app.receive").unwrap()));
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
