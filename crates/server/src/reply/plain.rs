//! Replies whose bytes are the same whoever writes them: the thread's loop, or the HTTP server.

use std::cell::RefCell;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::response::Parts;
use http::{Response, StatusCode, Version, header};

use crate::Kind;
use crate::reply::head::{HEAD_BYTES, write_head};
use crate::reply::protection;

/// Longer replies are for the HTTP server, which copies nothing.
pub(crate) const PLAIN_BYTES_MAX: usize = 16 << 10;

/// Returns true if the reply to a `GET` over HTTP/1.1, with a body of this length, is plain: its body is not empty by its
/// status, and its fields do not decide how it ends.
pub(crate) fn is_plain(head: &Parts, len: usize) -> bool {
    let has_body = !matches!(
        head.status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    );
    let is_known = head.status.canonical_reason().is_some() && !head.status.is_informational();
    let is_usual = head.version == Version::HTTP_11
        // Another one could be a reason phrase, or panic when it is dropped.
        && head.extensions.len() == usize::from(head.extensions.get::<Kind>().is_some());
    let mut lens = head.headers.get_all(header::CONTENT_LENGTH).iter();
    let is_len = match (lens.next(), lens.next()) {
        (None, _) => true,
        (Some(told), None) => told.as_bytes() == len.to_string().as_bytes(),
        (Some(_), Some(_)) => false,
    };
    let is_left_alone = |name| {
        !matches!(
            name,
            &header::CONNECTION
                | &header::DATE
                | &header::TRAILER
                | &header::TRANSFER_ENCODING
                | &header::UPGRADE
        )
    };
    has_body && is_known && is_usual && is_len && head.headers.keys().all(is_left_alone)
}

/// Returns the bytes of a plain reply, with the protective fields that it does not set itself, in the order of the HTTP
/// server.
pub(crate) fn encode(reply: &Response<Bytes>) -> Vec<u8> {
    let (headers, body) = (reply.headers(), reply.body());
    let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len());
    write_head(reply, &mut bytes);
    protection::write_missing(headers, &mut bytes);
    if !headers.contains_key(header::CONTENT_LENGTH) {
        // A vector takes all bytes.
        let _ = write!(bytes, "content-length: {}\r\n", body.len());
    }
    write_date(&mut bytes);
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

thread_local! {
    /// The field `Date` of this second, and the second.
    static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

/// Writes the field `Date`, which changes once a second.
fn write_date(bytes: &mut Vec<u8>) {
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(of, date)| {
        if *of != second || date.is_empty() {
            (*of, *date) = (second, format!("date: {}\r\n", httpdate::fmt_http_date(now)));
        }
        bytes.extend_from_slice(date.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use hyper::ext::ReasonPhrase;

    use super::*;

    fn is_plain_with(change: impl FnOnce(&mut Response<()>)) -> bool {
        let mut reply = Response::new(());
        change(&mut reply);
        is_plain(&reply.into_parts().0, 5)
    }

    fn has_field(name: &'static str, value: &'static str) -> impl FnOnce(&mut Response<()>) {
        move |reply| {
            reply.headers_mut().append(name, HeaderValue::from_static(value));
        }
    }

    fn with<T: Clone + Send + Sync + 'static>(extension: T) -> http::Extensions {
        let mut extensions = http::Extensions::new();
        extensions.insert(extension);
        extensions
    }

    #[test]
    fn a_reply_is_plain_unless_its_status_or_a_field_says_how_it_ends() {
        assert!(is_plain_with(|_| {}));
        for (status, expected) in [
            (200, true),
            (201, true),
            (204, false),
            (205, false),
            (301, true),
            (304, false),
            (404, true),
            (500, true),
            (103, false),
            (299, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_plain_with(|reply| *reply.status_mut() = status), expected, "{status}");
        }
        for (name, value, expected) in [
            ("content-length", "5", true),
            ("content-length", "6", false),
            ("content-length", "05", false),
            ("content-type", "text/plain", true),
            ("connection", "close", false),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT", false),
            ("trailer", "a", false),
            ("transfer-encoding", "chunked", false),
            ("upgrade", "a", false),
        ] {
            assert_eq!(is_plain_with(has_field(name, value)), expected, "{name}: {value}");
        }
        let twice = |reply: &mut Response<()>| {
            has_field("content-length", "5")(reply);
            has_field("content-length", "5")(reply);
        };
        assert!(!is_plain_with(twice));
        assert!(!is_plain_with(|reply| *reply.version_mut() = Version::HTTP_10));
        let reason = ReasonPhrase::from_static(b"Fine");
        assert!(!is_plain_with(|reply| reply.extensions_mut().extend(with(reason))));
        assert!(!is_plain_with(|reply| reply.extensions_mut().extend(with(7))));
        assert!(is_plain_with(|reply| reply.extensions_mut().extend(with(Kind::Internal))));
    }
}
