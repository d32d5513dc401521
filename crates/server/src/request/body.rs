//! Receives whole bodies of requests.

use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use anemone_ws::{Memory, Reservation};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout};

use crate::reply::body::Body;
use crate::request::fields;
use crate::stop::Stop;
use crate::{Kind, Limits, Problem};

#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyBounds {
    pub(crate) bytes_max: usize,
    pub(crate) time_max: Duration,
}

impl BodyBounds {
    /// Returns the limits for bodies of up to `bytes_max` bytes.
    pub(crate) fn new(limits: &Limits, bytes_max: usize) -> Self {
        Self { bytes_max, time_max: limits.body_timeout }
    }
}

/// Receives the body of a request, within the limits on its length and time. `stop` is `None` if the caller waits for
/// the end of the server.
pub(crate) async fn receive(
    request: Request<Body>,
    bounds: BodyBounds,
    memory: &Memory,
    stop: Option<Stop>,
) -> Result<Received, Problem> {
    let (head, body) = request.into_parts();
    check_content_coding(&head.headers)?;
    let (BodyBounds { bytes_max, time_max }, begun) = (bounds, Instant::now());
    // Reading makes the server tell a waiting client to continue (RFC 9110 section 10.1.1).
    let is_held_back = head.headers.contains_key(header::EXPECT);
    if is_held_back && body.size_hint().lower() > bytes_max as u64 {
        return Err(BodyError::TooBig.problem(bytes_max));
    }
    let received = tokio::select! {
        received = timeout(time_max, whole(body, bytes_max, memory.reservation())) => received,
        () = memory.must_release(begun) => return Err(Problem::overloaded()),
        () = stopped(stop) => return Err(Problem::new(Kind::Stopping, "the server is stopping")),
    };
    let late = |_| {
        let detail = format!("the body took longer than {time_max:?}");
        Problem::new(Kind::BodyTimeout, detail)
    };
    received.map_err(late)?.map_err(|error| error.problem(bytes_max))
}

async fn stopped(stop: Option<Stop>) {
    match stop {
        Some(mut stop) => stop.stopped().await,
        None => std::future::pending().await,
    }
}

/// Refuses a body with a content coding (RFC 9110 section 8.4).
fn check_content_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(coding) = unknown(headers, header::CONTENT_ENCODING, "identity") else {
        return Ok(());
    };
    let detail = format!("Content-Encoding is {coding:?}; only unencoded bodies are accepted");
    let problem = Problem::new(Kind::UnsupportedEncoding, detail);
    Err(problem.field("accept-encoding", HeaderValue::from_static("identity")))
}

/// Refuses a request with another transfer coding than chunks (RFC 9112 section 6.1). If chunks are not the last
/// coding, the end of the body is unknown, and the request is refused earlier.
pub(crate) fn check_transfer_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(coding) = unknown(headers, header::TRANSFER_ENCODING, "chunked") else {
        return Ok(());
    };
    let detail = format!("Transfer-Encoding is {coding:?}; only chunked is supported");
    let problem = Problem::new(Kind::UnsupportedTransferCoding, detail);
    Err(problem.field("connection", HeaderValue::from_static("close")))
}

/// Returns the first coding in a list that is not `known`.
fn unknown(headers: &HeaderMap, name: HeaderName, known: &str) -> Option<String> {
    let is_known = |coding: &str| coding.is_empty() || coding.eq_ignore_ascii_case(known);
    headers.get_all(name).iter().find_map(|field| {
        let codings = String::from_utf8_lossy(field.as_bytes());
        let coding = fields::split(&codings, ',').find(|coding| !is_known(coding))?;
        Some(coding.chars().take(40).collect())
    })
}

/// A received body, which counts in the memory while it exists.
#[derive(Debug)]
pub(crate) struct Received {
    bytes: Vec<u8>,
    /// Freed together with the body.
    _held: Reservation,
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Received> for Bytes {
    fn from(received: Received) -> Self {
        Self::from_owner(received)
    }
}

#[derive(Debug)]
enum BodyError {
    TooBig,
    /// Too much memory is held for bodies and other data.
    Overloaded,
    Broken(String),
}

impl BodyError {
    fn problem(self, bytes_max: usize) -> Problem {
        match self {
            Self::TooBig => {
                let detail = format!("the body is larger than {bytes_max} bytes");
                Problem::new(Kind::BodyTooBig, detail)
            }
            Self::Overloaded => Problem::overloaded(),
            Self::Broken(detail) => Problem::new(Kind::BadBody, detail),
        }
    }
}

/// The most bytes of a too big body that are read and discarded. Most clients do not read before they have sent
/// everything, and may never see the reply if the connection closes before.
const DISCARDED_BYTES_MAX: usize = 8 << 20;

/// Receives a whole body.
///
/// The bytes are copied: each piece keeps the buffer into which it was read, and a client can send pieces of one
/// byte.
async fn whole<B>(body: B, bytes_max: usize, mut held: Reservation) -> Result<Received, BodyError>
where
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let mut body = pin!(body);
    let (mut whole, mut bytes) = (Vec::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| BodyError::Broken(error.into().to_string()))?;
        let Ok(piece) = frame.into_data() else { continue };
        bytes = bytes.saturating_add(piece.len());
        if bytes <= bytes_max {
            whole.extend_from_slice(&piece);
        } else if bytes - bytes_max > DISCARDED_BYTES_MAX {
            break;
        } else {
            whole = Vec::new();
        }
        held.set(whole.capacity());
        if held.memory().is_exceeded() {
            return Err(BodyError::Overloaded);
        }
    }
    if bytes > bytes_max {
        Err(BodyError::TooBig)
    } else {
        Ok(Received { bytes: whole, _held: held })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures_util::{FutureExt, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;

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
        let memory = Memory::default();
        let received = whole(body, 1000, memory.reservation()).now_or_never().unwrap().unwrap();
        assert_eq!(received.as_ref(), [b'x'; 1000]);
        assert!(memory.held_bytes() >= 1000);
        drop(received);
        assert_eq!(memory.held_bytes(), 0);
    }
}
