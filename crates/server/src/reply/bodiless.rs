//! Replies to `HEAD`: the head of the reply to a `GET`, and no content (RFC 9110 section 9.3.2).
//!
//! HTTP servers differ in what they do with the content of such a reply: over HTTP/2, hyper sends it. So it is removed here,
//! for every transport and every kind of reply.

use http::{HeaderValue, Response, StatusCode, header};
use http_body::Body as _;

use crate::reply::body::{Body, omitted};

/// Removes the content of a reply, and says how long it is where that is known.
pub(crate) fn head_alone(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let has_content = !matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    // A length of nothing may be that of content which was not made.
    if let Some(bytes) = body.size_hint().exact().filter(|bytes| has_content && *bytes > 0) {
        head.headers.entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(bytes));
    }
    Response::from_parts(head, omitted())
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::reply::body::{empty, full, reply, stream as streamed};

    fn length(response: &Response<Body>) -> Option<&str> {
        assert!(response.body().is_end_stream());
        let length = response.headers().get(header::CONTENT_LENGTH);
        length.map(|length| length.to_str().unwrap())
    }

    #[test]
    fn a_head_says_the_length_that_is_known_and_no_other() {
        let of = |body| head_alone(reply("text/plain", "no-store", body));
        assert_eq!(length(&of(full("four"))), Some("4"));
        assert_eq!(length(&of(streamed(stream::pending()))), None);
        // What was not made has no length, and neither has a body that a service has left out.
        assert_eq!(length(&of(omitted())), None);
        assert_eq!(length(&of(full(""))), None);
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED] {
            assert_eq!(length(&head_alone(empty(status))), None, "{status}");
        }
    }

    #[test]
    fn a_length_that_a_service_has_given_stays() {
        let mut given = reply("text/plain", "no-store", full(""));
        given.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("1000"));
        assert_eq!(length(&head_alone(given)), Some("1000"));
    }
}
