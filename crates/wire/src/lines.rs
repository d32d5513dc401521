//! Lines out of a stream of bytes.

use crate::TooLong;

/// Takes lines out of a stream: LF ends one, a CR before it goes with it.
#[derive(Debug)]
pub struct Lines {
    line_bytes_max: usize,
    /// The bytes that came of a line; none where lines come whole.
    partial: Vec<u8>,
    /// It was handed out.
    is_taken: bool,
}

impl Lines {
    /// Takes lines of up to `line_bytes_max` bytes.
    #[must_use]
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, partial: Vec::new(), is_taken: false }
    }

    /// Takes the next line that is whole from `input`, without its end; `None` once all input is taken. A line that is
    /// whole in `input` is not copied. After an error it is not to be called again.
    ///
    /// # Errors
    /// When a line is longer than allowed.
    pub fn decode<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'a [u8]>, TooLong> {
        if self.is_taken {
            // The next one that is cut may be long in coming.
            (self.partial, self.is_taken) = (Vec::new(), false);
        }
        let end = input.iter().position(|byte| *byte == b'\n');
        let (head, rest) = input.split_at(end.unwrap_or(input.len()));
        let (len, limit) = (self.partial.len() + head.len(), self.line_bytes_max);
        if len > limit {
            return Err(TooLong { len, limit });
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

    fn lines(pieces: &[&[u8]], line_bytes_max: usize) -> Result<Vec<Vec<u8>>, TooLong> {
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
