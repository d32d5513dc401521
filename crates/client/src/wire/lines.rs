//! Lines out of a stream of bytes.

use super::Malformed;

/// Takes lines out of a stream: LF ends one, a CR before it goes with it.
#[derive(Debug)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    bytes_max: usize,
}

impl Lines {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { partial: Vec::new(), bytes_max }
    }

    /// Hands each line that is whole to `line`, without its end. After an error it is not to be called again.
    pub(crate) fn receive(
        &mut self,
        mut bytes: &[u8],
        mut line: impl FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (head, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            self.check(head.len())?;
            if self.partial.is_empty() {
                line(without_cr(head))?;
            } else {
                self.partial.extend_from_slice(head);
                // The next one that is cut may be long in coming.
                line(without_cr(&std::mem::take(&mut self.partial)))?;
            }
        }
        self.check(bytes.len())?;
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self, more: usize) -> Result<(), Malformed> {
        let limit = self.bytes_max;
        if self.partial.len() + more > limit { Err(Malformed::TooLong { limit }) } else { Ok(()) }
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{cuts, pieces};
    use super::*;

    fn lines(pieces: &[&[u8]], bytes_max: usize) -> Result<Vec<Vec<u8>>, Malformed> {
        let (mut parser, mut lines) = (Lines::new(bytes_max), Vec::new());
        for piece in pieces {
            parser.receive(piece, |line| {
                lines.push(line.to_vec());
                Ok(())
            })?;
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
