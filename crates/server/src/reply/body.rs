//! Bodies of replies and requests, whole or in pieces.

use std::any::Any;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};

/// The body of every reply, and of each request for a [`Mount`](crate::Mount). An error in a reply's body ends
/// the connection, or the HTTP/2 stream, before the reply is complete.
#[derive(Debug)]
pub struct Body(BodyContent);

#[derive(Debug)]
enum BodyContent {
    /// The rest of a body that existed from the beginning. It takes no memory of its own.
    Whole(Bytes),
    /// Pieces, which come as somebody makes them.
    Pieces(UnsyncBoxBody<Bytes, io::Error>),
    /// Nothing, in place of content that is not sent. Its length says nothing.
    Omitted,
}

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

impl Body {
    /// Creates a body of a body of any kind.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let mut given = Some(body);
        let any: &mut dyn Any = &mut given;
        if let Some(Some(whole)) = any.downcast_mut::<Option<Full<Bytes>>>() {
            return full(bytes_of(whole));
        }
        if let Some(same) = any.downcast_mut::<Option<Self>>() {
            return same.take().unwrap_or_default();
        }
        match given {
            Some(body) if !body.is_end_stream() => pieces(body.map_err(io_error)),
            _ => Self::default(),
        }
    }

    /// Takes the body if all of it is there, and not longer than `bytes_max`. Otherwise it stays as it is, although it may
    /// have been polled, with a waker that wakes nobody.
    pub(crate) fn take_whole(&mut self, bytes_max: usize) -> Option<Bytes> {
        let body = match &mut self.0 {
            BodyContent::Whole(rest) => {
                return (rest.len() <= bytes_max).then(|| std::mem::take(rest));
            }
            BodyContent::Pieces(body) => body,
            BodyContent::Omitted => return Some(Bytes::new()),
        };
        let len = body.size_hint().exact()?;
        if len > bytes_max as u64 {
            return None;
        }
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(&mut cx) else { return None };
        let data = match &frame {
            Some(Ok(frame)) => frame.data_ref().cloned(),
            Some(Err(_)) => None,
            None => Some(Bytes::new()),
        };
        let is_over = frame.is_none() || body.is_end_stream();
        if let Some(data) = data.filter(|data| is_over && data.len() as u64 == len) {
            *self = Self::default();
            return Some(data);
        }
        let rest = std::mem::replace(body, Self::default().boxed_unsync());
        *self = pieces(PutBack { frame: Some(frame), rest });
        None
    }

    /// Returns the rest of the body if it existed from the beginning, otherwise the body.
    pub(crate) fn into_whole(self) -> Result<Bytes, Self> {
        match self.0 {
            BodyContent::Whole(bytes) => Ok(bytes),
            BodyContent::Omitted => Ok(Bytes::new()),
            pieces @ BodyContent::Pieces(_) => Err(Self(pieces)),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self(BodyContent::Whole(Bytes::new()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            BodyContent::Whole(rest) if rest.is_empty() => Poll::Ready(None),
            BodyContent::Whole(rest) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(rest))))),
            BodyContent::Pieces(body) => Pin::new(body).poll_frame(cx),
            BodyContent::Omitted => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyContent::Whole(rest) => rest.is_empty(),
            BodyContent::Pieces(body) => body.is_end_stream(),
            BodyContent::Omitted => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyContent::Whole(rest) => SizeHint::with_exact(rest.len() as u64),
            BodyContent::Pieces(body) => body.size_hint(),
            BodyContent::Omitted => SizeHint::default(),
        }
    }
}

/// A body after its first frame, with that frame before it.
struct PutBack {
    frame: Option<Option<io::Result<Frame<Bytes>>>>,
    rest: UnsyncBoxBody<Bytes, io::Error>,
}

impl http_body::Body for PutBack {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.frame.take() {
            Some(frame) => Poll::Ready(frame),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frame.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let Some(Some(Ok(frame))) = &self.frame else { return self.rest.size_hint() };
        let len = frame.data_ref().map_or(0, Bytes::len) as u64;
        let (rest, mut hint) = (self.rest.size_hint(), SizeHint::new());
        hint.set_lower(rest.lower() + len);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + len);
        }
        hint
    }
}

/// Takes the bytes of a body that has no other pieces.
fn bytes_of(body: &mut Full<Bytes>) -> Bytes {
    let taken = Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()));
    match taken {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    }
}

/// Returns the error unchanged if it is one of IO.
fn io_error(error: impl Into<BoxError>) -> io::Error {
    error.into().downcast().map_or_else(io::Error::other, |error| *error)
}

/// Returns the body of a reply whose content is not sent, and perhaps not made.
pub(crate) fn omitted() -> Body {
    Body(BodyContent::Omitted)
}

/// Returns a body of bytes that exist already.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Body(BodyContent::Whole(bytes.into()))
}

/// The `Cache-Control` of a stream. `no-transform` (RFC 9111 section 5.2.2.6) forbids a proxy to compress it: an encoder
/// can keep the end of each event until the next one comes.
pub(crate) const STREAM_CACHING: &str = "no-store, no-transform";

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
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    response
}

/// Returns a body whose pieces are made one after the other, each after the one before was written.
pub(crate) fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    Body::new(StreamBody::new(pieces.map(|piece| Ok::<_, io::Error>(Frame::data(piece)))))
}

/// Returns a body that polls another one, even an empty one, which may hold something.
pub(crate) fn pieces(
    body: impl http_body::Body<Data = Bytes, Error = io::Error> + Send + 'static,
) -> Body {
    Body(BodyContent::Pieces(body.boxed_unsync()))
}

/// Returns a body that keeps `what` until it is written or dropped.
pub(crate) fn holding(body: Body, what: impl Send + 'static) -> Body {
    pieces(held(body, what))
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{FutureExt, stream};

    use super::*;

    /// A body in pieces, the last of which is perhaps an error.
    fn pieces(pieces: Vec<Result<&'static str, io::Error>>) -> Body {
        let pieces = pieces.into_iter().map(|piece| Ok(Frame::data(Bytes::from(piece?))));
        Body::new(StreamBody::new(stream::iter(pieces.collect::<Vec<io::Result<_>>>())))
    }

    #[test]
    fn a_body_that_exists_is_whole_whatever_it_is_in() {
        for body in [full("all"), Body::new(full("all")), Body::new(Full::from("all"))] {
            assert_eq!((body.is_end_stream(), body.size_hint().exact()), (false, Some(3)));
            assert_eq!(body.into_whole().unwrap(), "all");
        }
        let empty = http_body_util::Empty::<Bytes>::new();
        for body in [Body::default(), Body::new(Full::default()), Body::new(empty)] {
            assert_eq!((body.is_end_stream(), body.size_hint().exact()), (true, Some(0)));
            assert_eq!(body.into_whole().unwrap(), "");
        }
    }

    #[test]
    fn a_whole_body_has_one_frame() {
        let mut body = full("all");
        let frame = body.frame().now_or_never().unwrap().unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "all");
        assert!(body.is_end_stream());
        assert!(body.frame().now_or_never().unwrap().is_none());
    }

    /// A body with a length, of any other kind.
    struct Told(Body, u64);

    impl http_body::Body for Told {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            Pin::new(&mut self.0).poll_frame(cx)
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_end_stream()
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.1)
        }
    }

    #[test]
    fn a_body_of_any_kind_is_taken_whole_up_to_so_many_bytes() {
        let axum = |text: &'static str| Body::new(axum::body::Body::from(text));
        for body in [full("four"), Body::new(Full::from("four")), axum("four")] {
            let mut body = body;
            assert_eq!(body.take_whole(3), None);
            assert_eq!(body.take_whole(4).unwrap(), "four");
        }
        assert_eq!(Body::default().take_whole(0).unwrap(), "");
        assert_eq!(axum("").take_whole(0).unwrap(), "");
    }

    #[test]
    fn a_body_that_is_not_whole_stays_as_it_is() {
        let take = |parts: Vec<Result<&'static str, io::Error>>, len| {
            let mut body = Body::new(Told(pieces(parts), len));
            assert_eq!(body.take_whole(100), None);
            body
        };
        let body = take(vec![Ok("a"), Ok("bc")], 3);
        assert_eq!(body.collect().now_or_never().unwrap().unwrap().to_bytes(), "abc");
        // It is not as long as it says.
        let body = take(vec![Ok("a")], 2);
        assert_eq!(body.collect().now_or_never().unwrap().unwrap().to_bytes(), "a");
        let body = take(vec![Err(io::ErrorKind::TimedOut.into())], 2);
        let error = body.collect().now_or_never().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Its length is not known.
        let mut unknown = pieces(vec![Ok("a")]);
        assert_eq!(unknown.take_whole(100), None);
        assert_eq!(unknown.collect().now_or_never().unwrap().unwrap().to_bytes(), "a");
        let waiting = stream::pending::<io::Result<Frame<Bytes>>>();
        let mut waiting = Body::new(Told(Body::new(StreamBody::new(waiting)), 3));
        assert_eq!(waiting.take_whole(100), None);
        assert!(waiting.frame().now_or_never().is_none());
    }

    #[test]
    fn pieces_come_one_after_the_other() {
        let body = Body::new(pieces(vec![Ok("a"), Ok("b")])).into_whole().unwrap_err();
        assert_eq!(body.collect().now_or_never().unwrap().unwrap().to_bytes(), "ab");
    }

    #[test]
    fn an_error_of_io_stays_as_it_is_and_any_other_becomes_one() {
        let fail = |body: Body| body.collect().now_or_never().unwrap().unwrap_err();
        let error = fail(pieces(vec![Ok("a"), Err(io::ErrorKind::TimedOut.into())]));
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let other = [Err::<Frame<Bytes>, _>(BoxError::from("a bug"))];
        let error = fail(Body::new(StreamBody::new(stream::iter(other))));
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::Other, "a bug".to_owned()));
        let never = stream::empty::<Result<Frame<Bytes>, Infallible>>();
        assert!(Body::new(StreamBody::new(never)).collect().now_or_never().unwrap().is_ok());
    }
}
