//! Requests of HTTP/1.1 that are read in the thread's loop, and those that are left to the HTTP server.

use std::mem::MaybeUninit;

use http::Version;
use httparse::Header;

use crate::Limits;
use crate::request::fields::Fields;
use crate::request::handshake::Head;

/// Requests with more fields take the slow path.
pub(super) const FIELDS_MAX: usize = 64;

/// Requests with one of these fields take the slow path, too: the HTTP server handles bodies and their framing.
const LONG_WAY: [&str; 3] = ["content-length", "transfer-encoding", "expect"];

pub(super) struct Request<'a> {
    pub(super) head: Head<'a>,
    pub(super) target: &'a str,
    /// Its length in bytes.
    pub(super) len: usize,
}

/// The reason why bytes are not a request for the fast path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unparsed {
    /// More bytes may make them one.
    Incomplete,
    /// The HTTP server is to judge them.
    LongWay,
}

/// Parses an HTTP/1.1 request.
pub(super) fn parse<'a>(
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
