//! The short way into the thread's loop: a plain connection that begins with a WebSocket handshake, or with a
//! request for a stream, all of it in one piece, is answered where its bytes were read.
//!
//! It has no rules of its own: what is refused, cut or anything else goes to the HTTP server, which has the
//! words for it. So a handshake costs neither a task nor a second epoll set, as most do not need them, and a
//! stream none of the 16 KiB of buffers that the HTTP server keeps for each connection.

use std::rc::Rc;

use anemone_ws::Agreed;
use anemone_ws::reactor::{Handler, Opening};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, Version};
use tokio::sync::OwnedSemaphorePermit;

use crate::client::Client;
use crate::connection::{Carrier, Guest, Local, hand_over};
use crate::routes::{self, Begun, Reply, Site};
use crate::stream::in_loop::InLoop;
use crate::transport::{ndjson, sse};

/// Requests with more fields take the long way.
const FIELDS_MAX: usize = 64;

/// Decides what becomes of a connection that begins with `first`.
pub(crate) fn decide(
    local: Rc<Local>,
    client: Client,
    permit: OwnedSemaphorePermit,
    first: &[u8],
) -> Opening {
    match parse(&local.site, first) {
        Some((Asked::WebSocket, request, len)) => {
            if let Some(Reply { response, handover: Some(handover) }) =
                routes::shake_hands(&local.site, client, &request)
            {
                let answer = Answer(encode(&response));
                return hand_over(&local, first[len..].to_vec(), handover, permit, answer);
            }
        }
        // Another request behind it would not be answered.
        Some((Asked::Stream, request, len)) if len == first.len() => {
            if let Some(Begun { reader, form, head }) = routes::begin_stream(&local.site, &request)
            {
                let mut response = encode(&head);
                let stream = InLoop::new(&local, reader, form, permit, &mut response);
                return Opening::reply(response, local.site.limits.write_timeout, stream);
            }
        }
        _ => {}
    }
    let first = first.to_vec();
    Opening::elsewhere(move |stream| local.admit(Guest { stream, first, permit }))
}

/// What a request may be for, by a first look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asked {
    WebSocket,
    Stream,
}

impl Asked {
    fn of(fields: &[httparse::Header<'_>]) -> Option<Self> {
        let is = |field: &httparse::Header<'_>, name| field.name.eq_ignore_ascii_case(name);
        if fields.iter().any(|field| is(field, "upgrade")) {
            return Some(Self::WebSocket);
        }
        let has_body = ["content-length", "transfer-encoding", "expect"];
        let has_body = fields.iter().any(|field| has_body.iter().any(|name| is(field, name)));
        let streams = [sse::FORM.content_type, ndjson::FORM.content_type];
        let mut accepted = fields.iter().filter(|field| is(field, "accept"));
        let is_stream = accepted.any(|field| {
            str::from_utf8(field.value).is_ok_and(|value| streams.iter().any(|s| value.contains(s)))
        });
        (is_stream && !has_body).then_some(Self::Stream)
    }
}

/// A WebSocket handshake in HTTP/1.1 or a request for a stream, and its length in bytes.
fn parse(site: &Site, bytes: &[u8]) -> Option<(Asked, Request<()>, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(len) = head.parse(bytes).ok()? else { return None };
    let asked = Asked::of(head.headers)?;
    let limits = &site.limits;
    let is_within =
        len <= limits.header_bytes_max && head.headers.len() <= limits.header_fields_max;
    if !is_within || head.version != Some(1) {
        return None;
    }
    // One copy that all values share.
    let shared = Bytes::copy_from_slice(&bytes[..len]);
    let mut request = Request::builder()
        .method(head.method?)
        .uri(head.path.filter(|path| path.starts_with('/'))?)
        .version(Version::HTTP_11)
        .body(())
        .ok()?;
    request.headers_mut().reserve(head.headers.len());
    for field in head.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let value = HeaderValue::from_maybe_shared(stretch(&shared, bytes, field.value)).ok()?;
        request.headers_mut().append(name, value);
    }
    Some((asked, request, len))
}

/// The stretch of a copy that `part` is of its original.
fn stretch(copy: &Bytes, original: &[u8], part: &[u8]) -> Bytes {
    let start = part.as_ptr().addr() - original.as_ptr().addr();
    copy.slice(start..start + part.len())
}

/// The bytes of a response without a body.
fn encode<B>(response: &Response<B>) -> Vec<u8> {
    let status = response.status();
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(b"HTTP/1.1 ");
    bytes.extend_from_slice(status.as_str().as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    bytes.extend_from_slice(b"\r\n");
    for (name, value) in response.headers() {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// The response to a handshake; the WebSocket follows on the same stream.
struct Answer(Vec<u8>);

impl Carrier for Answer {
    type Carried = Opening;

    fn carry<H: Handler + 'static>(self, agreed: Agreed, handler: H) -> Opening {
        Opening::web_socket(self.0, agreed, handler)
    }
}
