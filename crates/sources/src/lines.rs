//! Splits a stream of bytes into lines of text, and turns a line into an event's data.
//!
//! Owns the end, the length and the meaning of a line. The bytes come from [`exec`](crate::exec),
//! [`file`](mod@crate::file) and [`stdin`](crate::stdin), which share these rules:
//!
//! - A line ends at LF; a CR right before it belongs to the line end. A CR anywhere else is part of
//!   the line. The last line of a stream needs no LF: the end of the stream ends it.
//! - Standard output of a run is different ([`Lines::with_cr`]): there a CR alone ends a line, too. Programs write it
//!   before or after a line that the next one replaces on a terminal.
//! - A byte order mark at the beginning of a line is no part of it: it stands before the first line of a file, and within
//!   files that were put together.
//! - An empty line is no event. A line of blanks is one.
//! - A line longer than the limit ([`BYTES_MAX_DEFAULT`]) is **skipped** whole, counted as a bad line, and reported
//!   with its beginning. It is not cut: half a JSON object would become a string, and half of `12345` another number.
//! - Bytes that are not UTF-8 are replaced by U+FFFD, and the line is counted as a bad one too.
//! - A line that is one JSON value becomes that value, unchanged except for surrounding blanks. `5` is JSON, so `echo
//!   5` gives the number 5, and `true` and `null` are no strings either. Any other line becomes a JSON string: for
//!   example a line of `vmstat`, which has many numbers, or `007`, which is not a JSON number.
//! - A line that would be JSON but for `NaN` or `Infinity` in place of a number becomes a string, too, and counts as a bad
//!   line, so that somebody learns of it.
//! - A line of UTF-16 is skipped, and counts as a bad line.

use std::borrow::Cow;
use std::io::BufRead as _;

use anemone_hub::Data;
use anemone_wire::{TextFault, without_mark};

/// The longest line by default, in bytes without its end: 64 KiB. Log lines and measurements are shorter, and each
/// source can hold one.
pub const BYTES_MAX_DEFAULT: usize = 64 << 10;

/// A line without its end; never empty.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Line<'a> {
    /// The whole line.
    Whole(&'a [u8]),
    /// The beginning of a line that is longer than the limit, as far as the limit allows. The rest is skipped.
    TooLong(&'a [u8]),
}

/// Finds the lines in a stream of bytes that arrives in pieces. The result does not depend on the pieces. Holds at
/// most one line.
#[derive(Debug)]
pub struct Lines {
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    bytes_max: usize,
    /// True if a CR alone ends a line.
    ends_at_cr: bool,
    /// True if `partial` was returned as a line.
    given: bool,
    /// True if `partial` is the beginning of a line that is too long.
    too_long: bool,
    /// True in the rest of a line that is too long.
    skipping: bool,
}

impl Lines {
    /// Begins a stream. Lines may have `bytes_max` bytes without their end, at least 1.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            partial: Vec::new(),
            bytes_max: bytes_max.max(1),
            ends_at_cr: false,
            given: false,
            too_long: false,
            skipping: false,
        }
    }

    /// Begins a stream in which CR, LF and CRLF each end a line.
    #[must_use]
    pub fn with_cr(bytes_max: usize) -> Self {
        Self { ends_at_cr: true, ..Self::new(bytes_max) }
    }

    /// Takes bytes from the front of `bytes` up to the end of the next line, and returns that line; `None` once all
    /// are taken. A line that is too long is returned as soon as that is known, since it may never end.
    pub fn next<'a, 'b: 'a>(&'a mut self, bytes: &mut &'b [u8]) -> Option<Line<'a>> {
        self.forget_given();
        while !bytes.is_empty() {
            let (piece, ended) = split_line(bytes, self.ends_at_cr);
            if self.skipping {
                self.skipping = !ended;
            } else if ended && self.partial.is_empty() {
                // The usual case copies nothing.
                let line = content(piece);
                if !line.is_empty() {
                    return Some(limited(line, self.bytes_max));
                }
            } else if self.take(piece, ended) {
                return Some(self.current_line());
            }
        }
        None
    }

    /// Ends the stream; returns a last line without a line end. Later bytes begin another stream.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        self.forget_given();
        self.given = true;
        self.skipping = false;
        let line = content(&self.partial);
        (!line.is_empty()).then(|| limited(line, self.bytes_max))
    }

    /// Drops what has come of the current line, which begins anew.
    pub(crate) fn restart(&mut self) {
        self.partial.clear();
        (self.given, self.too_long, self.skipping) = (false, false, false);
    }

    /// Adds a piece to the current line. Returns true if the line is to be returned now.
    fn take(&mut self, piece: &[u8], ended: bool) -> bool {
        // Some bytes more than the limit: a byte order mark, and a CR that may turn out to belong to the line end.
        let room = (self.bytes_max + MARK.len() + 1).saturating_sub(self.partial.len());
        self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
        let may_be_mark = !ended && MARK.starts_with(&self.partial);
        let too_long =
            piece.len() > room || (!may_be_mark && content(&self.partial).len() > self.bytes_max);
        self.skipping = too_long && !ended;
        self.given = too_long || ended;
        if too_long {
            // The bytes after the limit are not the line end.
            let mark = self.partial.len() - without_mark(&self.partial).len();
            self.partial.truncate(mark + self.bytes_max);
            self.too_long = true;
        } else if self.given && content(&self.partial).is_empty() {
            self.forget_given();
        }
        self.given
    }

    fn current_line(&self) -> Line<'_> {
        if self.too_long {
            return Line::TooLong(without_mark(&self.partial));
        }
        Line::Whole(content(&self.partial))
    }

    fn forget_given(&mut self) {
        if std::mem::take(&mut self.given) {
            self.partial.clear();
            self.too_long = false;
        }
    }
}

/// Takes the bytes before the next LF, or CR if that ends a line, and this end; all bytes if there is none.
fn split_line<'a>(bytes: &mut &'a [u8], ends_at_cr: bool) -> (&'a [u8], bool) {
    let all = *bytes;
    let len = if ends_at_cr {
        let end = all.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        *bytes = end.map_or(&[], |end| &all[end + 1..]);
        end.map_or(all.len(), |end| end + 1)
    } else {
        // The fast search of the standard library. Reading a slice cannot fail.
        bytes.skip_until(b'\n').unwrap_or(all.len())
    };
    match &all[..len] {
        [piece @ .., b'\n'] => (piece, true),
        [piece @ .., b'\r'] if ends_at_cr => (piece, true),
        piece => (piece, false),
    }
}

const MARK: &[u8] = "\u{feff}".as_bytes();

/// Returns a line without the rest of its end, and without a byte order mark before it.
fn content(line: &[u8]) -> &[u8] {
    without_mark(line.strip_suffix(b"\r").unwrap_or(line))
}

fn limited(line: &[u8], bytes_max: usize) -> Line<'_> {
    match line.get(..bytes_max) {
        Some(start) if line.len() > bytes_max => Line::TooLong(start),
        _ => Line::Whole(line),
    }
}

/// Returns a line's text; [`Cow::Owned`] if some of it is not UTF-8 and was replaced by U+FFFD.
#[must_use]
pub fn text(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line)
}

/// Returns the data of a line's event: its JSON value, or else a JSON string.
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

/// Returns false for most lines of prose, which then need not be parsed.
fn may_be_json(text: &str) -> bool {
    let first = text.trim_ascii_start().bytes().next();
    first.is_some_and(|first| b"{[\"-0123456789tfn".contains(&first))
}

/// Returns the fault of a line that is not what its writer meant it to be.
pub(crate) fn fault(line: &[u8], data: &Data) -> Option<TextFault> {
    // Of UTF-16 the last line end leaves one byte.
    let is_rest = line == [0];
    let is_string = || data.as_str().starts_with('"');
    if is_rest { Some(TextFault::Utf16) } else { is_string().then(|| TextFault::find(line))? }
}

#[cfg(test)]
mod tests;
