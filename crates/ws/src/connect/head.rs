//! Reads the head of an HTTP response, and part of the body of a refusal.
//!
//! Owns the limits on reading before the connection is open.

use std::time::Duration;

use anemone_proto::handshake::{FIELDS_MAX, HANDSHAKE_BYTES_MAX, ResponseError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::deadline::Deadline;
use super::error::{ConnectError, Refusal, Step};

const BODY_BYTES_MAX: usize = 4096;
/// The time to wait for a refusal's body, which only explains.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// A response with a complete head.
#[derive(Debug)]
pub(super) struct Head {
    /// All bytes received, from the status line on.
    bytes: Vec<u8>,
    /// The length of the head.
    len: usize,
    refusal: Refusal,
}

pub(super) async fn ask<S>(stream: &mut S, request: &str, step: Step) -> Result<Head, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let failed = |source| ConnectError::Stream { step, source };
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    read(stream, step).await
}

/// Reads the head of the first final response, and skips interim ones (RFC 9110 section 15.2).
async fn read<S>(stream: &mut S, step: Step) -> Result<Head, ConnectError>
where
    S: AsyncRead + Unpin,
{
    let invalid = |error| match step {
        Step::Proxy => ConnectError::ProxyResponse(error),
        _ => ConnectError::Response(error),
    };
    let mut bytes = Vec::new();
    let mut skipped = 0;
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).await;
        let read = match read.map_err(|source| ConnectError::Stream { step, source })? {
            0 => {
                let source = std::io::ErrorKind::UnexpectedEof.into();
                return Err(ConnectError::Stream { step, source });
            }
            len => &buffer[..len],
        };
        bytes.extend_from_slice(read);
        // A head cannot be complete without a line break, so single bytes do not make it parse again.
        while read.contains(&b'\n')
            && let Some(head) = parse(&mut bytes).map_err(invalid)?
        {
            skipped += head.len;
            if head.refusal.status == 101 || head.refusal.status >= 200 {
                return Ok(head);
            }
            bytes = head.bytes;
            bytes.drain(..head.len);
        }
        if skipped + bytes.len() > HANDSHAKE_BYTES_MAX {
            return Err(invalid(ResponseError::TooLong { limit: HANDSHAKE_BYTES_MAX }));
        }
    }
}

/// Takes a head out of `bytes`, if it is complete.
fn parse(bytes: &mut Vec<u8>) -> Result<Option<Head>, ResponseError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = response.parse(bytes).map_err(ResponseError::of_parser)?;
    let httparse::Status::Complete(len) = parsed else { return Ok(None) };
    if len > HANDSHAKE_BYTES_MAX {
        return Err(ResponseError::TooLong { limit: HANDSHAKE_BYTES_MAX });
    }
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let refusal = Refusal {
        status: response.code.unwrap_or_default(),
        reason: response.reason.unwrap_or_default().to_owned(),
        fields: response
            .headers
            .iter()
            .map(|field| (field.name.to_owned(), text(field.value)))
            .collect(),
        body: String::new(),
    };
    Ok(Some(Head { bytes: std::mem::take(bytes), len, refusal }))
}

impl Head {
    pub(super) fn status(&self) -> u16 {
        self.refusal.status
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.refusal.field(name)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of bytes after the head.
    pub(super) fn rest_len(&self) -> usize {
        self.bytes.len() - self.len
    }

    /// Returns the response as a refusal, with the part of its body that arrives soon. A passed deadline only
    /// shortens the body.
    pub(super) async fn refusal<S>(mut self, stream: &mut S, deadline: &Deadline) -> Refusal
    where
        S: AsyncRead + Unpin,
    {
        let is_chunked = self.field("transfer-encoding").is_some();
        let announced = self.field("content-length").and_then(|len| len.trim().parse().ok());
        let limit = match announced {
            Some(len) if !is_chunked => BODY_BYTES_MAX.min(len),
            _ => BODY_BYTES_MAX,
        };
        let mut body = self.bytes.split_off(self.len);
        let is_whole =
            |body: &[u8]| body.len() >= limit || is_chunked && body.ends_with(b"0\r\n\r\n");
        let read = async {
            // An error while reading the body does not change the refusal.
            while !is_whole(&body) && stream.read_buf(&mut body).await.is_ok_and(|len| len > 0) {}
        };
        let soon = Instant::now() + BODY_TIMEOUT;
        let _ = timeout_at(deadline.at.map_or(soon, |at| at.min(soon)), read).await;
        body.truncate(limit);
        if is_chunked {
            body = join_chunks(&body);
        }
        self.refusal.body = String::from_utf8_lossy(&body).into_owned();
        self.refusal
    }
}

/// Returns the payload of a chunked body (RFC 9112 section 7.1), as far as it arrived and is valid.
fn join_chunks(mut body: &[u8]) -> Vec<u8> {
    let mut joined = Vec::new();
    while let Ok(httparse::Status::Complete((begin, len))) = httparse::parse_chunk_size(body) {
        let rest = &body[begin..];
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
        let (chunk, rest) = rest.split_at(len);
        joined.extend_from_slice(chunk);
        if chunk.is_empty() {
            break;
        }
        body = rest.strip_prefix(b"\r\n").unwrap_or(rest);
    }
    joined
}
