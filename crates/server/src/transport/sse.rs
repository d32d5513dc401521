//! Server-sent events (HTML, section 9.2): an endless reply, one block of lines for each event.
//!
//! `id` is the position, so an `EventSource` that reconnects says where it was with `Last-Event-ID`. The
//! stream opens with an `id` and no data, which dispatches nothing and yet gives a quiet reader a
//! position to resume from.

use std::fmt::Write as _;
use std::time::Duration;

use anemone_hub::Page;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, header};
use tokio::time::timeout;

use crate::body::{self, Body};
use crate::reading::Reader;
use crate::routes::{Read, Stop};
use crate::{Problem, encode};

/// How long an `EventSource` waits before it reconnects, in milliseconds.
const RETRY_MS: u32 = 1000;

/// Without `after`, what comes from now on.
pub(crate) fn answer(
    read: Read,
    heartbeat: Duration,
    stop: Stop,
) -> Result<Response<Body>, Problem> {
    let reader = read.open_stream()?;
    let opening = format!("retry: {RETRY_MS}\nid: {}\n\n", reader.position());
    let state = Stream { reader, heartbeat, stop, opening: Some(opening) };
    let pieces = stream::unfold(state, |mut state| async move {
        let piece = state.next().await?;
        Some((Bytes::from(piece), state))
    });
    let mut response = Response::new(body::stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// One reader's stream. A piece is made when the one before has been written, from wherever the
/// log is by then.
struct Stream {
    reader: Reader,
    heartbeat: Duration,
    stop: Stop,
    opening: Option<String>,
}

impl Stream {
    /// The next piece; `None` when the server stops.
    async fn next(&mut self) -> Option<String> {
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        tokio::select! {
            ready = timeout(self.heartbeat, self.reader.ready()) => match ready {
                Ok(()) => self.reader.read().ok().map(|page| blocks(&page)),
                Err(_) => Some(":\n\n".to_owned()),
            },
            () = self.stop.stopped() => None,
        }
    }
}

/// A page as event blocks. Data is one line of JSON, so it needs one `data:` line.
fn blocks(page: &Page) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    if let Some(gap) = &page.gap {
        let _ =
            write!(out, "event: gap\nid: {}\ndata: {}\n\n", gap.resume, encode::gap_notice(gap));
    }
    for event in &page.events {
        let (epoch, offset, data) = (page.next.epoch, event.offset, event.data.as_str());
        let _ = write!(out, "id: {epoch}-{offset}\ndata: {data}\n\n");
    }
    out
}
