//! A body with a known length, which reports its own end: hyper does not poll it after that.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, header};
use http_body::{Frame, SizeHint};

use crate::reply::body::{Body, pieces};

/// Makes the body of a reply as long as its `Content-Length`.
pub(super) fn measured(response: Response<Body>) -> Response<Body> {
    let len = response.headers().get(header::CONTENT_LENGTH);
    let len = len.and_then(|len| len.to_str().ok()).and_then(|len| len.parse().ok());
    match len {
        Some(left) => response.map(|body| pieces(Measured { body, left })),
        None => response,
    }
}

struct Measured {
    body: Body,
    /// The number of bytes still to come.
    left: u64,
}

impl http_body::Body for Measured {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        self.left = self.left.saturating_sub(bytes.map_or(0, |bytes| bytes.len() as u64));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use http_body_util::BodyExt;

    use super::*;
    use crate::reply::body::stream;

    #[tokio::test]
    async fn a_body_is_at_its_end_with_its_last_byte() {
        let pieces = ["ab", "c"].map(|piece| Bytes::from_static(piece.as_bytes()));
        let body = stream(futures_util::stream::iter(pieces));
        let response = Response::builder().header("content-length", 3).body(body).unwrap();
        let mut body = measured(response).into_body();
        for left in [3, 1] {
            assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(left), false));
            body.frame().await.unwrap().unwrap();
        }
        assert!(body.is_end_stream());
    }
}
