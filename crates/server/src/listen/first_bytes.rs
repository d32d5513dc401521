//! The fast path in the thread's loop: a whole WebSocket handshake, a whole request for a stream, and a whole `GET` for a
//! service that answers at once are answered where their bytes were read.
//!
//! It has no rules of its own: refused, incomplete and all other requests go to the HTTP server, which words the
//! answers. A handshake and a call therefore need no task and no second epoll set, and a stream none of the 16 KiB of
//! buffers that the HTTP server keeps for each connection.

use std::mem::MaybeUninit;
use std::rc::Rc;

use anemone_ws::reactor::Opening;
use http::Version;
use httparse::Header;

use crate::Limits;
use crate::clients::permits::ConnectionPermit;
use crate::listen::at_once::{self, AtOnce};
use crate::listen::guest::{FirstRequest, Guest, Guests};
use crate::local::Local;
use crate::peer::Peer;
use crate::reply::head::{HEAD_BYTES, write_head};
use crate::request::fields::Fields;
use crate::request::handshake::Head;
use crate::routes::{self, LoopStream};
use crate::stream::in_loop::InLoop;

/// Requests with more fields take the slow path.
const FIELDS_MAX: usize = 64;

/// So do requests with one of these fields, since the HTTP server handles bodies and their framing.
const LONG_WAY: [&str; 3] = ["content-length", "transfer-encoding", "expect"];

/// A connection in the thread's loop, before it is known what becomes of it.
pub(super) struct Undecided {
    pub(super) local: Rc<Local>,
    pub(super) guests: Guests,
    pub(super) peer: Peer,
    pub(super) permit: ConnectionPermit,
}

impl Undecided {
    /// Passes the connection to the HTTP server, which gets the bytes of its first request again.
    fn go_the_long_way(self: Box<Self>, first: FirstRequest) -> Opening {
        Opening::elsewhere(move |stream| {
            let Self { guests, peer, permit, .. } = *self;
            guests.admit(Guest { stream, peer, permit, first });
        })
    }
}

/// The bytes that are awaited if a request is incomplete.
#[derive(Clone, Copy)]
enum Awaits {
    /// None: the HTTP server waits for the rest.
    Nothing,
    /// The rest of its head.
    Head,
}

/// Decides about a connection that begins with `first`.
pub(super) fn decide(undecided: Box<Undecided>, first: &[u8]) -> Opening {
    decide_on(undecided, first, Awaits::Nothing)
}

fn decide_on(undecided: Box<Undecided>, bytes: &[u8], awaits: Awaits) -> Opening {
    let Undecided { local, peer, .. } = &*undecided;
    let (site, peer) = (&local.site, *peer);
    let mut fields = [MaybeUninit::uninit(); FIELDS_MAX];
    match (parse(&site.limits, bytes, &mut fields), awaits) {
        (Ok(request), _) => match at_once::answer(site, peer, &request) {
            // A read often ends within one of many requests, so the rest of the next one is awaited here, for as long as
            // the HTTP server would wait.
            Some(AtOnce::Reply(reply)) => Opening::answered(request.len, reply, |next| {
                decide_on(undecided, next, Awaits::Head)
            }),
            Some(AtOnce::Begun(begun)) => {
                let first = FirstRequest { bytes: bytes.to_vec(), begun: Some(begun) };
                undecided.go_the_long_way(first)
            }
            None => begin_other(undecided, &request, bytes),
        },
        (Err(Unparsed::Incomplete), Awaits::Head) => {
            let bytes_max = site.limits.header_bytes_max;
            Opening::more(bytes_max, move |bytes| decide_on(undecided, bytes, Awaits::Head))
        }
        (Err(_), _) => undecided.go_the_long_way(bytes.to_vec().into()),
    }
}

/// Begins a WebSocket or a stream, if the request asks for one.
fn begin_other(undecided: Box<Undecided>, request: &Request<'_>, bytes: &[u8]) -> Opening {
    let Request { head, len, .. } = request;
    let (local, peer) = (Rc::clone(&undecided.local), undecided.peer);
    if let Some((response, handoff)) = routes::shake_hands(&local.site, peer, head) {
        return handoff.opening(&local, bytes[*len..].to_vec(), undecided.permit, response);
    }
    // A further request after it would not be answered.
    if *len == bytes.len()
        && let Some(LoopStream { reader, encoding, head, place }) =
            routes::begin_stream(&local.site, peer, head)
    {
        let (mut response, permit) =
            (Vec::with_capacity(HEAD_BYTES), undecided.permit.beside(place));
        write_head(&head, &mut response);
        response.extend_from_slice(b"\r\n");
        let stream = InLoop::new(&local, reader, encoding, permit, &mut response);
        return Opening::reply(response, local.site.limits.write_timeout, stream);
    }
    undecided.go_the_long_way(bytes.to_vec().into())
}

/// A request in the loop.
pub(super) struct Request<'a> {
    pub(super) head: Head<'a>,
    pub(super) target: &'a str,
    /// Its length in bytes.
    len: usize,
}

/// The reason why bytes are not a request for the fast path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unparsed {
    /// More bytes may make them one.
    Incomplete,
    /// The HTTP server is to judge them.
    LongWay,
}

/// Parses an HTTP/1.1 request.
fn parse<'a>(
    limits: &Limits,
    bytes: &'a [u8],
    fields: &'a mut [MaybeUninit<Header<'a>>],
) -> Result<Request<'a>, Unparsed> {
    let mut request = httparse::Request::new(&mut []);
    let len = match request.parse_with_uninit_headers(bytes, fields) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if bytes.len() < limits.header_bytes_max => {
            return Err(Unparsed::Incomplete);
        }
        Ok(httparse::Status::Partial) | Err(_) => return Err(Unparsed::LongWay),
    };
    let httparse::Request { method, path: target, version, headers } = request;
    let is_within = len <= limits.header_bytes_max && headers.len() <= limits.header_fields_max;
    let target = target.filter(|target| target.starts_with('/'));
    let (Some(method), Some(target), true, Some(1)) = (method, target, is_within, version) else {
        return Err(Unparsed::LongWay);
    };
    let (path, query) = match target.bytes().position(|byte| byte == b'?') {
        Some(end) => (&target[..end], Some(&target[end + 1..])),
        None => (target, None),
    };
    if path.bytes().any(|byte| byte == b'%') {
        return Err(Unparsed::LongWay);
    }
    let fields = Fields::Parsed(headers);
    let head = Head { method, version: Version::HTTP_11, path, query, fields };
    let is_long = LONG_WAY.iter().any(|name| head.fields.has(name));
    if is_long { Err(Unparsed::LongWay) } else { Ok(Request { head, target, len }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a request with this many fields takes the fast path.
    fn is_short(limits: &Limits, count: usize) -> bool {
        let more = "a: b\r\n".repeat(count - 1);
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{more}\r\n");
        let mut fields = [MaybeUninit::uninit(); FIELDS_MAX];
        parse(limits, request.as_bytes(), &mut fields).is_ok()
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
            parse(&limits, request, &mut [MaybeUninit::uninit(); FIELDS_MAX]).is_ok()
        };
        assert!(is_short(request.len()));
        assert!(!is_short(request.len() - 1));
    }
}
