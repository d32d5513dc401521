//! The fast path into the thread's loop: if a plain connection begins with a whole WebSocket handshake, or with a
//! whole request for a stream, it is answered where its bytes were read.
//!
//! It has no rules of its own: refused, incomplete and all other requests go to the HTTP server, which words the
//! answers. A handshake therefore needs no task and no second epoll set, and a stream none of the 16 KiB of buffers
//! that the HTTP server keeps for each connection.

use std::mem::MaybeUninit;
use std::rc::Rc;

use anemone_ws::reactor::Opening;
use http::{Response, Version};
use httparse::Header;

use crate::Limits;
use crate::clients::permits::ConnectionPermit;
use crate::local::{Guest, Local};
use crate::peer::Peer;
use crate::request::fields::Fields;
use crate::request::handshake::Head;
use crate::routes::{self, LoopStream};
use crate::stream::in_loop::InLoop;

/// Requests with more fields take the slow path.
const FIELDS_MAX: usize = 64;

/// So do requests with one of these fields, since the HTTP server handles bodies and their framing.
const LONG_WAY: [&str; 3] = ["content-length", "transfer-encoding", "expect"];

/// Decides about a connection that begins with `first`.
pub(crate) fn decide(
    local: Rc<Local>,
    peer: Peer,
    permit: ConnectionPermit,
    first: &[u8],
) -> Opening {
    let mut fields = [MaybeUninit::uninit(); FIELDS_MAX];
    if let Some((head, len)) = parse(&local.site.limits, first, &mut fields) {
        if let Some((response, handoff)) = routes::shake_hands(&local.site, peer, &head) {
            return handoff.opening(&local, first[len..].to_vec(), permit, response);
        }
        // A further request after it would not be answered.
        if len == first.len()
            && let Some(LoopStream { reader, encoding, head, place }) =
                routes::begin_stream(&local.site, peer, &head)
        {
            let (mut response, permit) = (encode(&head), permit.beside(place));
            let stream = InLoop::new(&local, reader, encoding, permit, &mut response);
            return Opening::reply(response, local.site.limits.write_timeout, stream);
        }
    }
    let first = first.to_vec();
    Opening::elsewhere(move |stream| local.admit(Guest { stream, peer, first, permit }))
}

/// Parses an HTTP/1.1 request. Returns it with its length in bytes.
fn parse<'a>(
    limits: &Limits,
    bytes: &'a [u8],
    fields: &'a mut [MaybeUninit<Header<'a>>],
) -> Option<(Head<'a>, usize)> {
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, fields).ok()?;
    let httparse::Status::Complete(len) = parsed else { return None };
    let httparse::Request { method, path: target, version, headers } = request;
    let is_within = len <= limits.header_bytes_max && headers.len() <= limits.header_fields_max;
    if !is_within || version != Some(1) {
        return None;
    }
    let target = target.filter(|target| target.starts_with('/'))?;
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    if path.contains('%') {
        return None;
    }
    let fields = Fields::Parsed(headers);
    let head = Head { method: method?, version: Version::HTTP_11, path, query, fields };
    let is_long = LONG_WAY.iter().any(|name| head.fields.has(name));
    (!is_long).then_some((head, len))
}

/// Returns the bytes of a response's head.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a request with this many fields takes the fast path.
    fn is_short(limits: &Limits, count: usize) -> bool {
        let more = "a: b\r\n".repeat(count - 1);
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{more}\r\n");
        let mut fields = [MaybeUninit::uninit(); FIELDS_MAX];
        parse(limits, request.as_bytes(), &mut fields).is_some()
    }

    #[test]
    fn a_request_with_more_than_64_fields_takes_the_long_way() {
        assert!(is_short(&Limits::default(), 64));
        assert!(!is_short(&Limits::default(), 65));
    }

    #[test]
    fn a_request_with_more_fields_than_are_allowed_takes_the_long_way() {
        let limits = Limits { header_fields_max: 10, ..Limits::default() };
        assert!(is_short(&limits, 10));
        assert!(!is_short(&limits, 11));
    }

    #[test]
    fn a_header_that_is_longer_than_allowed_takes_the_long_way() {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let is_short = |header_bytes_max| {
            let limits = Limits { header_bytes_max, ..Limits::default() };
            parse(&limits, request, &mut [MaybeUninit::uninit(); FIELDS_MAX]).is_some()
        };
        assert!(is_short(request.len()));
        assert!(!is_short(request.len() - 1));
    }
}
