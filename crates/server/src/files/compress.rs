//! Compresses replies with files, if that is worthwhile.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower_http::CompressionLevel;
use tower_http::compression::Compression;
use tower_service::Service;

use crate::reply::body::{Body, holding};

/// The most replies that are compressed at once, over all threads; others are sent uncompressed. Each occupies its
/// thread for half a millisecond at a time, in turn with others.
const AT_ONCE: usize = 8;

/// The sizes of files that are compressed, anew for each reply on the thread that serves it. A smaller one fits into
/// a packet anyway, and a megabyte takes 7 ms.
const COMPRESSED_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 20;

/// The beginnings of types that become smaller: text of any kind, and WebAssembly. Most others are compressed
/// already.
const COMPRESSIBLE: [&str; 8] = [
    "application/javascript",
    "application/json",
    "application/manifest+json",
    "application/wasm",
    "application/xhtml+xml",
    "application/xml",
    "image/svg+xml",
    "text/",
];

/// The right to compress, for a limited number of replies.
#[derive(Clone, Debug)]
pub(super) struct Compressor(Arc<Semaphore>);

impl Default for Compressor {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Compressor {
    /// Compresses a reply if its client accepts that: a whole file, never a range. A compressed file has a weak tag,
    /// since its bytes differ from those of which another reply has a range.
    pub(super) async fn compress(
        &self,
        fields: &HeaderMap,
        response: Response<Body>,
    ) -> Response<Body> {
        let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() else { return response };
        let mut response = compressed(fields, response).await;
        if !response.headers().contains_key(header::CONTENT_ENCODING) {
            return response;
        }
        if let Some(tag) = response.headers().get(header::ETAG).and_then(weak) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response.map(|body| holding(body, permit))
    }
}

async fn compressed(fields: &HeaderMap, response: Response<Body>) -> Response<Body> {
    let mut request = Request::new(());
    if let Some(accepted) = fields.get(header::ACCEPT_ENCODING) {
        request.headers_mut().insert(header::ACCEPT_ENCODING, accepted.clone());
    }
    let is_worth_while =
        |status: StatusCode, _: http::Version, fields: &HeaderMap, _: &http::Extensions| {
            status == StatusCode::OK && is_worth_while(fields)
        };
    let mut compression = Compression::new(Made(Some(response)))
        .quality(CompressionLevel::Fastest)
        .compress_when(is_worth_while);
    let response = match compression.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    response.map(|body| Body::new(body.map_err(io::Error::other)))
}

fn is_worth_while(fields: &HeaderMap) -> bool {
    let text = |name| fields.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let bytes = text(header::CONTENT_LENGTH).and_then(|len| len.parse().ok());
    let is_compressible = text(header::CONTENT_TYPE)
        .is_some_and(|kind| COMPRESSIBLE.iter().any(|begin| kind.starts_with(begin)));
    is_compressible && bytes.is_some_and(|bytes: u64| COMPRESSED_BYTES.contains(&bytes))
}

/// Returns the weak form of a strong tag (RFC 9110 section 8.8.3).
pub(super) fn weak(tag: &HeaderValue) -> Option<HeaderValue> {
    let tag = tag.to_str().ok().filter(|tag| tag.starts_with('"'))?;
    HeaderValue::try_from(format!("W/{tag}")).ok()
}

/// A finished reply in the form of a service.
struct Made(Option<Response<Body>>);

impl Service<Request<()>> for Made {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(self.0.take().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;
    use crate::reply::body::full;

    async fn compressed(
        compressor: &Compressor,
        kind: &str,
        bytes: usize,
        accepted: &str,
    ) -> Response<Body> {
        let response = Response::builder()
            .header("content-type", kind)
            .header("content-length", bytes)
            .header("etag", "\"x\"")
            .header("accept-ranges", "bytes");
        let response = response.body(full(vec![b' '; bytes])).unwrap();
        let fields = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
        compressor.compress(&fields, response).await
    }

    #[tokio::test]
    async fn so_many_are_compressed_at_once_and_the_next_goes_as_it_is() {
        let compressor = Compressor::default();
        let next = async || {
            let reply = compressed(&compressor, "text/css", 1 << 10, "gzip").await;
            let is_compressed = reply.headers().contains_key("content-encoding");
            (reply, is_compressed)
        };
        let mut all = Vec::new();
        for _ in 0..AT_ONCE {
            all.push(next().await);
        }
        assert!(all.iter().all(|(_, is_compressed)| *is_compressed));
        assert!(!next().await.1 && !next().await.1);
        all.pop();
        assert!(next().await.1);
        assert!(next().await.1, "the one before is gone");
    }

    #[tokio::test]
    async fn what_is_compressible_and_of_a_middling_size_is_compressed_for_those_who_take_it() {
        const HTML: &str = "text/html; charset=utf-8";
        for (kind, bytes, accepted, is_compressed) in [
            (HTML, 1 << 10, "gzip", true),
            (HTML, 1 << 20, "br, gzip, deflate", true),
            (HTML, (1 << 10) - 1, "gzip", false),
            (HTML, (1 << 20) + 1, "gzip", false),
            (HTML, 1 << 10, "br", false),
            (HTML, 1 << 10, "gzip;q=0", false),
            ("image/svg+xml", 1 << 10, "gzip", true),
            ("text/javascript", 1 << 10, "gzip", true),
            ("application/wasm", 1 << 10, "gzip", true),
            ("image/png", 1 << 10, "gzip", false),
            ("application/octet-stream", 1 << 10, "gzip", false),
        ] {
            let reply = compressed(&Compressor::default(), kind, bytes, accepted).await;
            let what = format!("{kind} {bytes} {accepted}");
            let coding = reply.headers().get("content-encoding");
            assert_eq!(coding.is_some(), is_compressed, "{what}");
            let tag = if is_compressed { "W/\"x\"" } else { "\"x\"" };
            assert_eq!(reply.headers()["etag"], tag, "{what}");
            assert_eq!(reply.headers().contains_key("content-length"), !is_compressed, "{what}");
            let len = reply.body().size_hint().exact();
            assert_eq!(len.is_none(), is_compressed, "{what}");
        }
    }
}
