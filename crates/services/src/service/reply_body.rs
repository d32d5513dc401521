//! The body of a reply: bytes, or a page of records that becomes JSON piece by piece.

use std::convert::Infallible;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use serde_json::json;

use crate::{Found, FoundRecord, Query};

/// The bytes after which a piece of a page ends. A page that nobody reads takes no more memory than a piece. After each piece,
/// the thread serves its other clients: otherwise a page of a MiB, which a socket can take at once, would keep it for
/// milliseconds.
const PIECE_BYTES: usize = 32 << 10;

/// The body of a resource's reply. Its length is known at its beginning.
pub struct ReplyBody {
    left: u64,
    unsent: Unsent,
    /// True after a piece, until the thread has served others.
    gives_way: bool,
}

/// The part that is not sent yet.
enum Unsent {
    Whole(Bytes),
    Page { before: &'static str, records: vec::IntoIter<FoundRecord>, tail: String },
}

impl ReplyBody {
    pub(super) fn page(query: &Query, Found { total, data }: Found) -> Self {
        let (before, records) = ("{\"data\":[", data.into_iter());
        let about = json!({"limit": query.limit, "skip": query.skip, "total": total}).to_string();
        let tail = about.replacen('{', "],", 1);
        let commas = records.len().saturating_sub(1);
        let of_records: usize = records.as_slice().iter().map(FoundRecord::json_bytes).sum();
        let left = (before.len() + of_records + commas + tail.len()) as u64;
        Self { left, unsent: Unsent::Page { before, records, tail }, gives_way: false }
    }
}

impl Unsent {
    fn piece(&mut self) -> Bytes {
        let (before, records, tail) = match self {
            Self::Whole(bytes) => return mem::take(bytes),
            Self::Page { before, records, tail } => (before, records, tail),
        };
        let mut bytes = before.len();
        let fits = |record: &&FoundRecord| {
            let fits = bytes < PIECE_BYTES;
            bytes += if fits { record.json_bytes() + 1 } else { 0 };
            fits
        };
        let count = records.as_slice().iter().take_while(fits).count();
        let mut piece = Vec::with_capacity(bytes + tail.len());
        for record in records.take(count) {
            piece.extend_from_slice(mem::replace(before, ",").as_bytes());
            record.write_json(&mut piece);
        }
        if records.len() == 0 {
            // The beginning of a page without records.
            let before = before.trim_start_matches(',');
            piece.extend_from_slice(before.as_bytes());
            piece.extend_from_slice(mem::take(tail).as_bytes());
        }
        piece.into()
    }
}

impl<T: Into<Bytes>> From<T> for ReplyBody {
    fn from(bytes: T) -> Self {
        let bytes = bytes.into();
        Self { left: bytes.len() as u64, unsent: Unsent::Whole(bytes), gives_way: false }
    }
}

impl Default for ReplyBody {
    fn default() -> Self {
        Bytes::new().into()
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyBody").field("left", &self.left).finish_non_exhaustive()
    }
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if mem::take(&mut self.gives_way) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.gives_way = true;
        let piece = self.unsent.piece();
        self.left = self.left.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
