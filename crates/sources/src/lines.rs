//! Lines of text out of a stream of bytes, and what a line is as an event's data.
//!
//! Owns where a line ends, how long it may be and what becomes of it; where the bytes come from is
//! [`exec`](crate::exec)'s, [`file`](mod@crate::file)'s and [`stdin`](crate::stdin)'s business, which
//! all share these rules:
//!
//! - A line ends at LF; a CR right before it belongs to the line end. A CR anywhere else is part of
//!   the line. The last line of a stream needs no LF: the end of the stream ends it.
//! - An empty line says nothing and is no event. One of blanks is one.
//! - A line longer than the limit ([`BYTES_MAX_DEFAULT`]) is **skipped** whole, counted as a bad line
//!   and told with its beginning. It is not cut: half a JSON object would become a string, and half
//!   of `12345` another number.
//! - What is not UTF-8 is published with U+FFFD in its place, and counted as a bad line too.
//! - A line that is one JSON value is that value, as it is written; blanks around it are taken off.
//!   `5` is JSON, so `echo 5` gives the number 5, and `true` and `null` are no strings either. Any
//!   other line is a JSON string of all that is in it: a line of `vmstat`, which is many numbers, or
//!   `007`, which is none in JSON.

use std::borrow::Cow;
use std::io::BufRead as _;

use anemone_hub::Data;

/// Longest line, in bytes without its end: 64 KiB. More than any log line or measurement has, and
/// little enough to hold one for each source.
pub const BYTES_MAX_DEFAULT: usize = 64 << 10;

/// One line, without its end; never empty.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It is longer than the limit: as much of its beginning as the limit allows. Its rest is
    /// skipped.
    TooLong(&'a [u8]),
}

/// Finds the lines in a stream of bytes that comes in pieces. The same bytes give the same lines,
/// however they are split. Holds at most one line.
#[derive(Debug)]
pub struct Lines {
    /// The beginning of a line whose end was not seen yet.
    partial: Vec<u8>,
    bytes_max: usize,
    /// `partial` was given out as a line.
    given: bool,
    /// `partial` is the beginning of a line that is too long.
    too_long: bool,
    /// In the rest of a line that is too long.
    skipping: bool,
}

impl Lines {
    /// At the beginning of a stream. Lines may have `bytes_max` bytes without their end, at least 1.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            partial: Vec::new(),
            bytes_max: bytes_max.max(1),
            given: false,
            too_long: false,
            skipping: false,
        }
    }

    /// Takes bytes from the front of `bytes` up to the end of the next line, and gives that line;
    /// `None` once all are taken. A line that is too long is given as soon as it is known to be: it
    /// may never end.
    pub fn next<'a, 'b: 'a>(&'a mut self, bytes: &mut &'b [u8]) -> Option<Line<'a>> {
        self.forget_given();
        while !bytes.is_empty() {
            let (piece, ended) = split_line(bytes);
            if self.skipping {
                self.skipping = !ended;
            } else if ended && self.partial.is_empty() {
                // The usual case copies nothing.
                let line = without_cr(piece);
                if !line.is_empty() {
                    return Some(limited(line, self.bytes_max));
                }
            } else if self.take(piece, ended) {
                return Some(self.given_line());
            }
        }
        None
    }

    /// The stream has ended; gives its last line if that had no end of its own. What comes after
    /// this is another stream.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        self.forget_given();
        self.given = true;
        self.skipping = false;
        let line = without_cr(&self.partial);
        (!line.is_empty()).then(|| limited(line, self.bytes_max))
    }

    /// Adds to the line that was begun. Says whether it is to be given now.
    fn take(&mut self, piece: &[u8], ended: bool) -> bool {
        // One more than the limit: a CR there may turn out to belong to the line end.
        let room = self.bytes_max + 1 - self.partial.len();
        self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
        let too_long = piece.len() > room || without_cr(&self.partial).len() > self.bytes_max;
        self.skipping = too_long && !ended;
        self.given = too_long || ended;
        if too_long {
            // What stands after the limit is not the line end.
            self.partial.truncate(self.bytes_max);
            self.too_long = true;
        } else if self.given && without_cr(&self.partial).is_empty() {
            self.forget_given();
        }
        self.given
    }

    fn given_line(&self) -> Line<'_> {
        if self.too_long {
            return Line::TooLong(&self.partial);
        }
        Line::Whole(without_cr(&self.partial))
    }

    fn forget_given(&mut self) {
        if std::mem::take(&mut self.given) {
            self.partial.clear();
            self.too_long = false;
        }
    }
}

/// Takes what stands before the next LF, and that LF; all, if there is none.
fn split_line<'a>(bytes: &mut &'a [u8]) -> (&'a [u8], bool) {
    let all = *bytes;
    // The standard library's own search, the fast one. A slice cannot fail to be read.
    let len = bytes.skip_until(b'\n').unwrap_or(all.len());
    match &all[..len] {
        [piece @ .., b'\n'] => (piece, true),
        piece => (piece, false),
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn limited(line: &[u8], bytes_max: usize) -> Line<'_> {
    match line.get(..bytes_max) {
        Some(start) if line.len() > bytes_max => Line::TooLong(start),
        _ => Line::Whole(line),
    }
}

/// A line's text; [`Cow::Owned`] when some of it is not UTF-8 and was replaced by U+FFFD.
#[must_use]
pub fn text(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line)
}

/// The data of the event that a line is: the JSON value that it is, or else a JSON string.
#[must_use]
pub fn data(text: &str) -> Data {
    if may_be_json(text)
        && let Ok(value) = Data::parse(text)
    {
        return value;
    }
    #[expect(clippy::expect_used, reason = "every string has a JSON form")]
    Data::json(&text).expect("a string as JSON")
}

/// Spares most lines of prose the attempt.
fn may_be_json(text: &str) -> bool {
    let first = text.trim_ascii_start().bytes().next();
    first.is_some_and(|first| b"{[\"-0123456789tfn".contains(&first))
}

#[cfg(test)]
mod tests;
