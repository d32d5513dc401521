//! The items of a service's reply, one at a time.
//!
//! The body is polled only for the next item, so a service goes on only as fast as its items are taken.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anemone_ws::{Memory, Reservation};
use bytes::Bytes;
use http::{Response, header};
use http_body::{Body as _, Frame, SizeHint};

use super::media_type::MediaType;
use crate::memory::counted;
use crate::reply::body::{Body, pieces};

/// The most bytes of an item. A whole one is held, so it is no longer than what a client may publish at once.
pub(crate) const ITEM_BYTES_MAX: usize = 1 << 20;

/// The most bytes of a part of a body that is no stream. It is the most that a stream of events holds for a client, too.
const PART_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Division {
    /// A stream: each line that is not empty is an item.
    Lines,
    /// The body is one item, or none if it is empty.
    Whole,
    /// Parts as the service makes them.
    Parts,
}

impl Division {
    pub(crate) fn of(reply: &Response<Body>) -> Self {
        Self::with(MediaType::of(reply.headers()), reply)
    }

    pub(crate) fn with(media_type: MediaType, reply: &Response<Body>) -> Self {
        let len = reply.body().size_hint().exact();
        let is_encoded = reply.headers().contains_key(header::CONTENT_ENCODING);
        if media_type == MediaType::Ndjson && !is_encoded {
            Self::Lines
        } else if len.is_some_and(|len| len <= ITEM_BYTES_MAX as u64) {
            Self::Whole
        } else {
            Self::Parts
        }
    }
}

/// An error of a reply after its beginning.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ItemsError {
    #[error("an item is longer than {ITEM_BYTES_MAX} bytes")]
    TooLong,
    #[error("the reply failed midway")]
    Failed(#[source] io::Error),
}

#[derive(Debug)]
pub(crate) struct Items {
    body: Body,
    division: Division,
    /// The rest of the last piece of the body.
    rest: Bytes,
    /// The beginning of an item whose end has not come.
    begun: Vec<u8>,
    /// Counts `begun`.
    held: Reservation,
    is_over: bool,
}

impl Items {
    /// Returns the items of a reply; what they hold counts in `memory`.
    pub(crate) fn of(reply: Response<Body>, memory: &Memory) -> Self {
        let division = Division::of(&reply);
        Self::new(reply.into_body(), division, memory)
    }

    pub(crate) fn new(body: Body, division: Division, memory: &Memory) -> Self {
        let (rest, begun, held) = (Bytes::new(), Vec::new(), memory.reservation());
        Self { body, division, rest, begun, held, is_over: false }
    }

    pub(crate) fn division(&self) -> Division {
        self.division
    }

    /// Returns the next item; `None` at the end, and after an error.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, ItemsError>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next item; `None` at the end, and after an error.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ItemsError>>> {
        loop {
            match self.take() {
                Ok(None) if self.is_over => return Poll::Ready(None),
                Ok(None) => {}
                Ok(Some(item)) => return Poll::Ready(Some(Ok(item))),
                Err(error) => return self.fail(error),
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return self.fail(ItemsError::Failed(error)),
                None => self.is_over = true,
            }
        }
    }

    fn fail(&mut self, error: ItemsError) -> Poll<Option<Result<Bytes, ItemsError>>> {
        self.is_over = true;
        (self.body, self.rest, self.begun) = (Body::default(), Bytes::new(), Vec::new());
        self.held.set(0);
        Poll::Ready(Some(Err(error)))
    }

    /// Takes an item of what has come. If there is none, nothing of the last piece is left.
    fn take(&mut self) -> Result<Option<Bytes>, ItemsError> {
        match self.division {
            Division::Lines => self.take_line(),
            Division::Whole => self.take_whole(),
            Division::Parts => Ok(self.take_part()),
        }
    }

    fn take_line(&mut self) -> Result<Option<Bytes>, ItemsError> {
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let end = self.rest.split_to(end + 1);
            let line = self.complete(end.slice(..end.len() - 1))?;
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
        self.begin()?;
        if !self.is_over {
            return Ok(None);
        }
        let last = self.complete(Bytes::new())?;
        Ok(Some(last).filter(|last| !last.is_empty()))
    }

    fn take_whole(&mut self) -> Result<Option<Bytes>, ItemsError> {
        if self.begun.is_empty() && self.body.is_end_stream() {
            self.is_over = true;
            return Ok(Some(std::mem::take(&mut self.rest)).filter(|whole| !whole.is_empty()));
        }
        self.begin()?;
        if !self.is_over {
            return Ok(None);
        }
        let whole = self.complete(Bytes::new())?;
        Ok(Some(whole).filter(|whole| !whole.is_empty()))
    }

    fn take_part(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        let end = part_end(&self.rest);
        Some(self.rest.split_to(end))
    }

    /// Keeps the rest of the last piece as the beginning of an item.
    fn begin(&mut self) -> Result<(), ItemsError> {
        let rest = std::mem::take(&mut self.rest);
        check_len(self.begun.len() + rest.len())?;
        if !rest.is_empty() {
            self.begun.extend_from_slice(&rest);
            self.held.set(self.begun.capacity());
        }
        Ok(())
    }

    /// Returns the item that ends with these bytes; a line loses the CR of its line end.
    fn complete(&mut self, end: Bytes) -> Result<Bytes, ItemsError> {
        let mut item = end;
        if !self.begun.is_empty() {
            self.begun.extend_from_slice(&item);
            item = counted(self.held.memory(), std::mem::take(&mut self.begun));
            self.held.set(0);
        }
        if self.division == Division::Lines && item.ends_with(b"\r") {
            item.truncate(item.len() - 1);
        }
        check_len(item.len()).map(|()| item)
    }
}

/// Returns the body of a stream that ends with an error at a line that is too long.
pub(crate) fn check_lines(body: Body) -> Body {
    pieces(CheckedLines { body, begun_bytes: 0, failure: None })
}

struct CheckedLines {
    body: Body,
    begun_bytes: usize,
    /// The error that ends the body at the next poll.
    failure: Option<io::Error>,
}

impl CheckedLines {
    fn check(&mut self, piece: &[u8]) -> Result<(), ItemsError> {
        let mut begun_bytes = self.begun_bytes;
        for line in piece.split(|byte| *byte == b'\n') {
            check_len(begun_bytes + line.len())?;
            self.begun_bytes = begun_bytes + line.len();
            begun_bytes = 0;
        }
        Ok(())
    }
}

impl http_body::Body for CheckedLines {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        let checked = frame.and_then(|frame| {
            let checked = frame.data_ref().map_or(Ok(()), |data| self.check(data));
            checked.map(|()| frame).map_err(io::Error::other)
        });
        match checked {
            Ok(frame) => Poll::Ready(Some(Ok(frame))),
            Err(failure) => {
                // Gives the HTTP server a turn to write the lines before, which it drops when the body fails.
                self.failure = Some(failure);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn check_len(len: usize) -> Result<(), ItemsError> {
    if len > ITEM_BYTES_MAX { Err(ItemsError::TooLong) } else { Ok(()) }
}

/// Returns the end of the first part of a piece, before the character that a cut would divide.
fn part_end(piece: &[u8]) -> usize {
    if piece.len() <= PART_BYTES_MAX {
        return piece.len();
    }
    let is_begin = |end: &usize| piece[*end] & 0b1100_0000 != 0b1000_0000;
    // A character has at most 4 bytes; anything longer is not text.
    (PART_BYTES_MAX - 3..=PART_BYTES_MAX).rev().find(is_begin).unwrap_or(PART_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};
    use proptest::prelude::*;

    use super::*;
    use crate::reply::body::{self, full};

    fn reply(content_type: &'static str, pieces: Vec<Vec<u8>>) -> Response<Body> {
        let pieces = stream::iter(pieces).map(Bytes::from);
        Response::builder().header("content-type", content_type).body(body::stream(pieces)).unwrap()
    }

    /// All items, and the error at the end.
    fn items(reply: Response<Body>) -> (Vec<Vec<u8>>, Option<String>) {
        let memory = Memory::default();
        let (mut items, mut taken) = (Items::of(reply, &memory), Vec::new());
        let error = loop {
            match items.next().now_or_never().unwrap() {
                Some(Ok(item)) => taken.push(item.to_vec()),
                Some(Err(error)) => break Some(error.to_string()),
                None => break None,
            }
        };
        assert!(items.next().now_or_never().unwrap().is_none(), "it is over");
        assert_eq!(memory.held_bytes(), 0);
        (taken, error)
    }

    fn lines(pieces: &[&str]) -> Vec<String> {
        let pieces = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
        let (items, error) = items(reply("application/x-ndjson", pieces));
        assert_eq!(error, None);
        items.into_iter().map(|item| String::from_utf8(item).unwrap()).collect()
    }

    #[test]
    fn each_line_that_is_not_empty_is_an_item() {
        assert_eq!(lines(&["1\n2\n"]), ["1", "2"]);
        assert_eq!(lines(&["1\r\n\r\n\n", "2"]), ["1", "2"]);
        assert_eq!(lines(&["{\"a\":", "1}", "\n[", "]\r", "\n"]), ["{\"a\":1}", "[]"]);
        assert_eq!(lines(&["", "\n"]), [""; 0]);
        assert_eq!(lines(&[]), [""; 0]);
    }

    proptest! {
        #[test]
        fn a_stream_may_be_cut_anywhere(
            all in prop::collection::vec("[ -~é]{1,9}", 0..9),
            cuts in prop::collection::vec(0_usize..200, 0..20),
        ) {
            let text = all.iter().map(|line| format!("{line}\n")).collect::<String>();
            let mut cuts = cuts.into_iter().map(|at| at.min(text.len())).collect::<Vec<_>>();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| text.as_bytes()[cut[0]..cut[1]].to_vec());
            let (items, error) = items(reply("application/x-ndjson; charset=utf-8", pieces.collect()));
            prop_assert_eq!(error, None);
            prop_assert_eq!(items, all.into_iter().map(String::into_bytes).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_item_has_at_most_a_mebibyte_in_any_number_of_pieces() {
        let line = |len: usize| [vec![b'x'; len], vec![b'\n']].concat();
        let too_long = Some("an item is longer than 1048576 bytes".to_owned());
        for piece_bytes in [1 << 10, 1 << 22] {
            let cut = |text: &[u8]| text.chunks(piece_bytes).map(<[u8]>::to_vec).collect();
            let of = |len| items(reply("application/x-ndjson", cut(&line(len))));
            assert_eq!(of(ITEM_BYTES_MAX), (vec![vec![b'x'; ITEM_BYTES_MAX]], None));
            assert_eq!(of(ITEM_BYTES_MAX + 1), (vec![], too_long.clone()));
        }
        let endless = (0..2000).map(|_| vec![b'x'; 1 << 10]).collect();
        assert_eq!(items(reply("application/x-ndjson", endless)), (vec![], too_long));
    }

    #[test]
    fn a_body_of_a_known_length_is_whole_and_any_other_comes_in_parts() {
        let known = |len: usize| Response::new(full(vec![b'x'; len]));
        assert_eq!(items(known(0)), (vec![], None));
        assert_eq!(items(known(ITEM_BYTES_MAX)), (vec![vec![b'x'; ITEM_BYTES_MAX]], None));
        let (parts, _) = items(known(ITEM_BYTES_MAX + 1));
        assert_eq!(
            parts.iter().map(Vec::len).collect::<Vec<_>>(),
            [&[65536; 16][..], &[1]].concat()
        );
        let unknown = reply("text/plain", vec![b"a\nb".to_vec(), vec![], b"c".to_vec()]);
        assert_eq!(items(unknown), (vec![b"a\nb".to_vec(), b"c".to_vec()], None));
        let encoded = Response::builder()
            .header("content-type", "application/x-ndjson")
            .header("content-encoding", "gzip")
            .body(full("1\n2\n"));
        assert_eq!(items(encoded.unwrap()), (vec![b"1\n2\n".to_vec()], None));
    }

    #[test]
    fn a_part_of_text_ends_with_a_character() {
        let text = format!("{}{}", "x".repeat(PART_BYTES_MAX - 1), "é".repeat(10));
        let (parts, _) = items(reply("text/plain", vec![text.clone().into_bytes()]));
        let parts = parts.iter().map(|part| str::from_utf8(part).unwrap()).collect::<Vec<_>>();
        assert_eq!((parts.concat(), parts[0].len()), (text, PART_BYTES_MAX - 1));
        let bytes = vec![0x80; PART_BYTES_MAX + 1];
        let (parts, _) = items(reply("application/octet-stream", vec![bytes]));
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [PART_BYTES_MAX, 1]);
    }

    #[test]
    fn a_line_that_is_too_long_ends_a_stream_that_is_passed_on() {
        let passed = |pieces: &[usize]| {
            let pieces = pieces.iter().map(|len| [b"1\n", &vec![b'x'; *len][..]].concat());
            let reply = reply("application/x-ndjson", pieces.collect()).map(check_lines);
            let mut collecting = Box::pin(reply.into_body().collect());
            // The failure comes a turn later.
            let collected = (&mut collecting).now_or_never().or_else(|| collecting.now_or_never());
            collected.unwrap().map(|all| all.to_bytes().len()).map_err(|error| error.to_string())
        };
        assert_eq!(passed(&[ITEM_BYTES_MAX - 1, 1]), Ok(ITEM_BYTES_MAX + 4));
        let too_long = Err("an item is longer than 1048576 bytes".to_owned());
        assert_eq!(passed(&[1, ITEM_BYTES_MAX + 1]), too_long);
    }

    #[test]
    fn the_items_before_a_failure_are_taken() {
        let pieces = [Ok("1\n2"), Err(io::Error::other("a bug"))];
        let pieces =
            stream::iter(pieces).map(|piece| Ok::<_, io::Error>(Frame::data(Bytes::from(piece?))));
        let body = Body::new(StreamBody::new(pieces));
        let reply = Response::builder().header("content-type", "application/x-ndjson").body(body);
        let failed = Some("the reply failed midway".to_owned());
        assert_eq!(items(reply.unwrap()), (vec![b"1".to_vec()], failed));
    }

    #[test]
    fn the_body_is_polled_only_for_the_next_item() {
        let made = Arc::new(AtomicUsize::new(0));
        let pieces = stream::unfold(Arc::clone(&made), |made| async {
            let number = made.fetch_add(1, Ordering::Relaxed);
            Some((Bytes::from(format!("{number}\n")), made))
        });
        let reply = Response::builder().header("content-type", "application/x-ndjson");
        let mut items = Items::of(reply.body(body::stream(pieces)).unwrap(), &Memory::default());
        for number in 0..3 {
            assert_eq!(made.load(Ordering::Relaxed), number);
            let item = items.next().now_or_never().unwrap().unwrap().unwrap();
            assert_eq!(item, number.to_string());
        }
    }
}
