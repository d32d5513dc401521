//! Splits a stream of bytes into lines of text, and turns a line into an event's data.
//!
//! Owns the end, the length and the meaning of a line. The bytes come from [`exec`](crate::exec),
//! [`file`](mod@crate::file) and [`stdin`](crate::stdin). They share these rules:
//!
//! - A line ends at LF; a CR right before it belongs to the line end. A CR anywhere else is part of
//!   the line. The last line of a stream needs no LF: the end of the stream ends it.
//! - In the standard output of a run, a CR alone ends a line, too ([`Lines::with_cr`]). Programs write a CR alone when
//!   the next line is to replace the current one on a terminal.
//! - A byte order mark at the beginning of a line is not part of the line. It may stand before the first line of a
//!   file, and also later if several files were joined.
//! - An empty line is no event. A line of blanks is an event.
//! - A line longer than the limit (by default [`BYTES_MAX_DEFAULT`]) is **skipped** completely, counted as a bad line,
//!   and reported with its beginning. It is not cut, since half a JSON object would become a string, and half of
//!   `12345` another number.
//! - Bytes that are not UTF-8 are replaced by U+FFFD. The line is published, and counts as a bad line.
//! - A line that is one JSON value becomes that value, unchanged except for surrounding blanks. So `echo 5` gives the
//!   number 5, and neither `true` nor `null` becomes a string. Any other line becomes a JSON string: for example a line
//!   of `vmstat`, which has many numbers, or `007`, which is not a JSON number.
//! - A line may be JSON except that it has `NaN` or `Infinity` instead of a number. It becomes a string, and counts as
//!   a bad line, so that the fault is noticed.
//! - A line of UTF-16 is skipped, and counts as a bad line.

use std::borrow::Cow;
use std::io::BufRead as _;

use anemone_hub::Data;
use anemone_wire::{TextFault, without_mark};

/// The default limit of a line's length, in bytes without its end: 64 KiB. Log lines and measurements are shorter, and
/// each source may hold one line in memory.
pub const BYTES_MAX_DEFAULT: usize = 64 << 10;

/// A line without its end; never empty.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Line<'a> {
    /// A complete line.
    Whole(&'a [u8]),
    /// The beginning of a line that is longer than the limit. It has as many bytes as the limit allows.
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
    /// True if `partial` was returned as a line, and is no longer needed.
    given: bool,
    /// True if `partial` is the beginning of a line that is too long.
    too_long: bool,
    /// True while the rest of a line that is too long is skipped.
    skipping: bool,
}

impl Lines {
    /// Begins a stream. A line may have up to `bytes_max` bytes without its end; 0 counts as 1.
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

    /// Removes bytes from the front of `bytes` up to the end of the next line, and returns that line. Returns `None`
    /// once all bytes are removed. A line that is too long is returned as soon as that is known, since it may never
    /// end.
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

    /// Ends the stream. Returns the last line if it has no line end. Later bytes begin another stream.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        self.forget_given();
        self.given = true;
        self.skipping = false;
        let line = content(&self.partial);
        (!line.is_empty()).then(|| limited(line, self.bytes_max))
    }

    /// Forgets the bytes of the current line, since it begins anew.
    pub(crate) fn restart(&mut self) {
        self.partial.clear();
        (self.given, self.too_long, self.skipping) = (false, false, false);
    }

    /// Adds a piece to the current line. Returns true if the line can be returned now.
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

/// Removes the bytes up to the next line end, and the line end. Returns these bytes without the line end, and true.
/// Without a line end, returns all bytes and false.
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

/// Returns a line without a CR at its end, and without a byte order mark at its beginning.
fn content(line: &[u8]) -> &[u8] {
    without_mark(line.strip_suffix(b"\r").unwrap_or(line))
}

fn limited(line: &[u8], bytes_max: usize) -> Line<'_> {
    match line.get(..bytes_max) {
        Some(start) if line.len() > bytes_max => Line::TooLong(start),
        _ => Line::Whole(line),
    }
}

/// Returns a line as text. Bytes that are not UTF-8 are replaced by U+FFFD; the result is then [`Cow::Owned`].
#[must_use]
pub fn text(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line)
}

/// Returns the data of the event for a line: its JSON value, or otherwise the line as a JSON string.
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

/// Returns false if the text is certainly not JSON. That is so for most lines of prose, which then need not be parsed.
fn may_be_json(text: &str) -> bool {
    let first = text.trim_ascii_start().bytes().next();
    first.is_some_and(|first| b"{[\"-0123456789tfn".contains(&first))
}

/// Returns the fault of a line that its writer probably meant differently.
pub(crate) fn fault(line: &[u8], data: &Data) -> Option<TextFault> {
    // Of UTF-16 the last line end leaves one byte.
    let is_rest = line == [0];
    let is_string = || data.as_str().starts_with('"');
    if is_rest { Some(TextFault::Utf16) } else { is_string().then(|| TextFault::find(line))? }
}

#[cfg(test)]
mod tests;
