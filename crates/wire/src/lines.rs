//! Lines in a stream of bytes, such as NDJSON ("Streams over HTTP" in `docs/PROTOCOL.md`).

use crate::Malformed;

/// Reads lines from a stream, which may come in pieces of any size. A line ends with LF or CR LF.
#[derive(Debug)]
pub struct Lines {
    line_bytes_max: usize,
    /// The bytes of an incomplete line; empty while lines come whole.
    partial: Vec<u8>,
    /// True once `partial` is complete and was returned.
    is_taken: bool,
}

impl Lines {
    /// Creates a reader of lines of up to `line_bytes_max` bytes, without LF.
    #[must_use]
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, partial: Vec::new(), is_taken: false }
    }

    /// Takes the next line from `input`, without its end; `None` when the input is used up. A line that is whole in
    /// `input` is not copied.
    ///
    /// # Errors
    /// [`Malformed::TooLong`]. The reader is useless then.
    pub fn decode<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'a [u8]>, Malformed> {
        if self.is_taken {
            // The next one that is cut may be long in coming.
            (self.partial, self.is_taken) = (Vec::new(), false);
        }
        let end = input.iter().position(|byte| *byte == b'\n');
        let (head, rest) = input.split_at(end.unwrap_or(input.len()));
        let limit = self.line_bytes_max;
        if self.partial.len() + head.len() > limit {
            return Err(Malformed::TooLong { limit });
        }
        *input = rest.split_first().map_or(rest, |(_, rest)| rest);
        if end.is_some() && self.partial.is_empty() {
            return Ok(Some(without_cr(head)));
        }
        self.partial.extend_from_slice(head);
        self.is_taken = end.is_some();
        Ok(end.map(|_| without_cr(&self.partial)))
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{cuts, pieces};

    fn lines(pieces: &[&[u8]], line_bytes_max: usize) -> Result<Vec<Vec<u8>>, Malformed> {
        let (mut parser, mut lines) = (Lines::new(line_bytes_max), Vec::new());
        for mut piece in pieces.iter().copied() {
            while let Some(line) = parser.decode(&mut piece)? {
                lines.push(line.to_vec());
            }
        }
        Ok(lines)
    }

    #[test]
    fn a_line_has_an_end_and_a_limit() {
        assert_eq!(lines(&[b"a\r\n\nb\nc"], 9).unwrap(), [&b"a"[..], b"", b"b"]);
        assert!(lines(&[b"1234\n", b"12", b"34\n"], 4).is_ok());
        assert!(lines(&[b"12", b"345"], 4).is_err());
        assert!(lines(&[b"12", b"345\n"], 4).is_err());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(text in "[ab\r\n]{0,60}", cuts in cuts()) {
            let whole = lines(&[text.as_bytes()], 100).unwrap();
            prop_assert_eq!(lines(&pieces(text.as_bytes(), &cuts), 100).unwrap(), whole);
        }
    }
}
