//! A service's stream over HTTP: its lines unchanged, or as server-sent events.

use anemone_wire::{EndReason, Item};
use anemone_ws::Memory;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Response, header};

use super::items::{Items, ItemsError, NDJSON, check_lines, is_stream};
use crate::memory::counted;
use crate::reply::body::{self, Body};
use crate::request::fields::Fields;
use crate::request::query::{Representation, prefers};
use crate::{Kind, Problem};

const LINES: Representation =
    Representation { media_type: NDJSON, ranges: &["application/*", "*/*"], needs: None };
const EVENTS: Representation =
    Representation { media_type: "text/event-stream", ranges: &["text/*", "*/*"], needs: None };

/// Returns true if a client takes a stream rather as server-sent events.
pub(crate) fn wants_events(fields: Fields<'_>) -> bool {
    let names_none = fields.all("accept").all(|value| value == b"*/*");
    !names_none && prefers(fields, &EVENTS, &LINES)
}

/// Returns the reply as it goes over HTTP. A stream becomes server-sent events if the client wants them; in either case,
/// a line that is too long ends it.
pub(crate) fn over_http(
    reply: Response<Body>,
    wants_events: bool,
    memory: &Memory,
) -> Response<Body> {
    if !is_stream(reply.headers()) {
        return reply;
    }
    let mut reply = if wants_events { as_events(reply, memory) } else { reply.map(check_lines) };
    let headers = reply.headers_mut();
    set_default(headers, header::CACHE_CONTROL.as_str(), "no-store");
    // Tells nginx and similar proxies not to buffer the stream.
    set_default(headers, "x-accel-buffering", "no");
    headers.append(header::VARY, HeaderValue::from_static("accept"));
    reply
}

fn set_default(headers: &mut HeaderMap, name: &'static str, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}

fn as_events(reply: Response<Body>, memory: &Memory) -> Response<Body> {
    let (mut head, body) = reply.into_parts();
    let items = Items::of(Response::from_parts(head.clone(), body), memory);
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS.media_type));
    Response::from_parts(head, events(items, memory.clone()))
}

/// Returns the body with an event for each item, and with the end.
fn events(items: Items, memory: Memory) -> Body {
    body::stream(stream::unfold((Some(items), memory), |(items, memory)| async move {
        let mut items = items?;
        Some(match items.next().await {
            Some(Ok(item)) => (counted(&memory, event(&item)), (Some(items), memory)),
            Some(Err(error)) => (failed(&error), (None, memory)),
            None => (ended(), (None, memory)),
        })
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
