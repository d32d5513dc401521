//! Bodies: of replies, whole or a stream of pieces; of requests, whole.

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};

/// The body of every reply.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body that is there already.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body made piece by piece, each only once the one before has been written.
pub(crate) fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync()
}

/// The whole of a request's body, which may have so many bytes.
///
/// It is copied as it comes: each piece keeps the buffer that it was read into, and a client can send
/// pieces of one byte.
pub(crate) async fn whole<B>(
    body: B,
    bytes_max: usize,
) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>
where
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let mut body = pin!(Limited::new(body, bytes_max));
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(piece) = frame?.into_data() {
            whole.extend_from_slice(&piece);
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::{FutureExt, stream};

    use super::*;

    /// A piece that counts as long as it is kept.
    struct Piece {
        _counted: Arc<()>,
    }

    impl AsRef<[u8]> for Piece {
        fn as_ref(&self) -> &[u8] {
            b"x"
        }
    }

    #[test]
    fn a_body_keeps_none_of_its_pieces() {
        let kept = Arc::new(());
        let pieces = (0..1000).map({
            let kept = Arc::clone(&kept);
            move |_| {
                assert_eq!(Arc::strong_count(&kept), 2, "the piece before is let go");
                Ok::<_, Infallible>(Frame::data(Bytes::from_owner(Piece {
                    _counted: Arc::clone(&kept),
                })))
            }
        });
        let body = StreamBody::new(stream::iter(pieces));
        assert_eq!(whole(body, 1000).now_or_never().unwrap().unwrap(), [b'x'; 1000]);
    }
}
