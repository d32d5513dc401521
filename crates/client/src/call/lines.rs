//! The lines of an NDJSON body, whatever their items are. Pure.

use std::mem;

use bytes::{Bytes, BytesMut};

use crate::Malformed;

/// Takes lines from a body that comes in pieces of any size. Empty lines are ignored.
#[derive(Debug)]
pub(super) struct Lines {
    line_bytes_max: usize,
    buffer: BytesMut,
    /// The number of bytes at the start of the buffer that are known to have no line feed.
    searched: usize,
}

impl Lines {
    /// Creates a reader of lines of up to `line_bytes_max` bytes, without LF.
    pub(super) fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, buffer: BytesMut::new(), searched: 0 }
    }

    /// Takes a piece of the body. All complete lines of the pieces before must have been returned.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Returns the next line, without its line feed; `None` if more of the body is needed.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, Malformed> {
        loop {
            let rest = &self.buffer[self.searched..];
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return self.check(self.searched).map(|()| None);
            };
            let line = self.buffer.split_to(mem::take(&mut self.searched) + end + 1);
            self.check(line.len() - 1)?;
            if let Some(line) = without_end(line.freeze()) {
                return Ok(Some(line));
            }
        }
    }

    /// Returns the last line of a body that ended without a line feed.
    pub(super) fn last(&mut self) -> Option<Bytes> {
        self.searched = 0;
        without_end(mem::take(&mut self.buffer).freeze())
    }

    fn check(&self, len: usize) -> Result<(), Malformed> {
        let limit = self.line_bytes_max;
        if len <= limit { Ok(()) } else { Err(Malformed::TooLong { limit }) }
    }
}

/// Returns the line without white space around it; `None` if nothing is left.
fn without_end(line: Bytes) -> Option<Bytes> {
    let text = line.trim_ascii();
    (!text.is_empty()).then(|| line.slice_ref(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(pieces: &[&[u8]], limit: usize) -> Result<Vec<Bytes>, Malformed> {
        let (mut lines, mut found) = (Lines::new(limit), Vec::new());
        for piece in pieces {
            lines.feed(piece);
            while let Some(line) = lines.next()? {
                found.push(line);
            }
        }
        found.extend(lines.last());
        Ok(found)
    }

    #[test]
    fn each_line_is_an_item_and_empty_lines_are_none() {
        assert_eq!(lines(&[b"1\r\n\n  \n{\"a\":", b"2}\n3"], 9).unwrap(), ["1", "{\"a\":2}", "3"]);
        assert_eq!(lines(&[b"", b"\n\n"], 9).unwrap(), [""; 0]);
    }

    #[test]
    fn one_byte_over_the_limit_is_refused() {
        assert_eq!(lines(&[b"1234", b"5\n"], 5).unwrap(), ["12345"]);
        for pieces in [[&b"123456\n"[..], b""], [b"123", b"456"]] {
            assert!(matches!(lines(&pieces, 5), Err(Malformed::TooLong { limit: 5 })));
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(text in "[ab\n]{0,60}", cut in 0_usize..60) {
            let (first, rest) = text.as_bytes().split_at(cut.min(text.len()));
            let expected: Vec<&str> = text.split('\n').filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(lines(&[first, rest], 60).unwrap(), expected);
        }
    }
}
