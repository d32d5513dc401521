//! A service's stream over HTTP: its lines unchanged, or as server-sent events.

use std::time::Duration;

use anemone_wire::{EndReason, Item};
use anemone_ws::Memory;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Response, header};
use tokio::time::timeout;

use super::items::{Division, Items, ItemsError, check_lines};
use super::media_type::NDJSON;
use crate::memory::counted;
use crate::reply::body::{self, Body, STREAM_CACHING};
use crate::request::fields::Fields;
use crate::request::query::{Representation, prefers};
use crate::{Kind, Problem};

const LINES: Representation =
    Representation { media_type: NDJSON, ranges: &["application/*", "*/*"], needs: None };
const EVENTS: Representation = Representation::named("text/event-stream");

/// Returns true if a client takes a stream rather as server-sent events, which it must name.
pub(crate) fn wants_events(fields: Fields<'_>) -> bool {
    // Most clients of services accept anything.
    let accepts_anything = fields.all("accept").all(|accepted| accepted == b"*/*");
    !accepts_anything && prefers(fields, &EVENTS, &LINES)
}

/// Returns the reply as it goes over HTTP. A stream becomes server-sent events if the client wants them; in either case,
/// a line that is too long ends it.
pub(crate) fn over_http(
    reply: Response<Body>,
    wants_events: bool,
    heartbeat: Duration,
    memory: &Memory,
) -> Response<Body> {
    if Division::of(&reply) != Division::Lines {
        return reply;
    }
    let mut reply =
        if wants_events { as_events(reply, heartbeat, memory) } else { reply.map(check_lines) };
    let headers = reply.headers_mut();
    set_default(headers, header::CACHE_CONTROL.as_str(), STREAM_CACHING);
    // Tells nginx and similar proxies not to buffer the stream.
    set_default(headers, "x-accel-buffering", "no");
    headers.append(header::VARY, HeaderValue::from_static("accept"));
    reply
}

fn set_default(headers: &mut HeaderMap, name: &'static str, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}

fn as_events(reply: Response<Body>, heartbeat: Duration, memory: &Memory) -> Response<Body> {
    let (mut head, body) = reply.into_parts();
    let items = Items::of(Response::from_parts(head.clone(), body), memory);
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS.media_type));
    Response::from_parts(head, events(items, heartbeat, memory.clone()))
}

/// Returns the body with an event for each item, with a comment after each `heartbeat` without one, and with the end.
fn events(items: Items, heartbeat: Duration, memory: Memory) -> Body {
    body::stream(stream::unfold(Some(items), move |items| {
        let memory = memory.clone();
        async move {
            let mut items = items?;
            Some(match timeout(heartbeat, items.next()).await {
                Err(_) => (Bytes::from_static(b":\n\n"), Some(items)),
                Ok(Some(Ok(item))) => (counted(&memory, event(&item)), Some(items)),
                Ok(Some(Err(error))) => (failed(&error), None),
                Ok(None) => (ended(), None),
            })
        }
    }))
}

/// Returns the event with an item. A CR would end its line (HTML, section 9.2.6).
fn event(item: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(item.len() + 8);
    for line in item.split(|byte| *byte == b'\r') {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event
}

fn ended() -> Bytes {
    let mut text = String::new();
    Item::End(EndReason::Ended).write_block(&mut text);
    text.into()
}

fn failed(error: &ItemsError) -> Bytes {
    let problem = Problem::new(Kind::Internal, error.to_string()).to_json();
    let end = format!(r#"{{"end":{{"reason":"failed","problem":{problem}}}}}"#);
    format!("event: end\ndata: {end}\n\n").into()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::time::sleep;

    use super::*;

    /// The body of a stream of these lines, each of which comes 20 s after the one before.
    async fn events_of(lines: &'static [&'static str]) -> String {
        let lines = stream::unfold(lines.iter(), |mut lines| async {
            let line = lines.next()?;
            sleep(Duration::from_secs(20)).await;
            Some((Bytes::from_static(line.as_bytes()), lines))
        });
        let reply = Response::builder().header("content-type", NDJSON).header("content-length", 9);
        let reply = reply.body(body::stream(lines)).unwrap();
        let reply = over_http(reply, true, Duration::from_secs(15), &Memory::default());
        assert_eq!(reply.headers().get("content-length"), None);
        let body = reply.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_item_is_an_event_and_a_quiet_stream_has_comments() {
        let end = "event: end\ndata: {\"end\":{\"reason\":\"ended\"}}\n\n";
        let events = events_of(&["1\n2\n", "3\n"]).await;
        assert_eq!(events, format!(":\n\ndata: 1\n\ndata: 2\n\n:\n\ndata: 3\n\n{end}"));
    }

    #[test]
    fn no_line_of_an_event_has_a_cr() {
        assert_eq!(event(b"{\r}"), b"data: {\ndata: }\n\n");
    }
}
