//! Bodies of replies, whole or in pieces.

use std::error::Error;
use std::io;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};

/// The body of every reply, and of each request for a [`Mount`](crate::Mount). An error in a reply's body ends
/// the connection, or the HTTP/2 stream, before the reply is complete.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The error of a body of any kind.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Returns a body of bytes that exist already.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A reply with a body of this type, and with this `Cache-Control`.
pub(crate) fn reply(
    content_type: &'static str,
    caching: &'static str,
    body: Body,
) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}

/// Makes a reply without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = status;
    response
}

/// Converts a body of any kind. An empty one takes no memory.
pub(crate) fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    match body.is_end_stream() {
        true => Empty::new().map_err(|never| match never {}).boxed_unsync(),
        false => body.map_err(io::Error::other).boxed_unsync(),
    }
}

/// Returns a body whose pieces are made one after the other, each after the one before was written.
pub(crate) fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync()
}

/// Returns a body that keeps `what` until it is written or dropped.
pub(crate) fn holding(body: Body, what: impl Send + 'static) -> Body {
    held(body, what).boxed_unsync()
}

/// Like [`holding`], without memory of its own.
pub(crate) fn held<B: http_body::Body, W>(
    body: B,
    what: W,
) -> impl http_body::Body<Data = B::Data, Error = B::Error> {
    // Errors stay unchanged. The closure only holds `what`, and the length of the body stays known.
    body.map_err(move |error| {
        let _ = &what;
        error
    })
}
