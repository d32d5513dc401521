//! Splits a stream of bytes into lines of bounded length.
//!
//! Owns the rule for the beginning and the end of a line; `parse` reads its content. A line ends at CR or LF. STX and
//! `$` occur only at the beginning of a message, so each of them begins a new line. A message is thus found even if the
//! message before lacks its end.

use super::message::STX;

/// The bytes that begin a message: STX in the Gill formats, `$` in NMEA.
const STARTERS: [u8; 2] = [STX, b'$'];

/// A line without its end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct RawLine {
    pub(crate) bytes: Vec<u8>,
    /// True if the line was longer than the limit. Its rest was dropped.
    pub(crate) is_overlong: bool,
    /// True for the first line of the stream. Its beginning may be missing.
    pub(crate) is_first: bool,
}

/// Assembles lines byte by byte. Holds at most `line_bytes_max` bytes.
#[derive(Debug)]
pub(crate) struct Assembler {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// True while the rest of an overlong line is skipped.
    is_skipping: bool,
    is_first: bool,
}

impl Assembler {
    pub(crate) fn new(line_bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            bytes_max: line_bytes_max.max(1),
            is_skipping: false,
            is_first: true,
        }
    }

    /// Adds a byte. Returns a line if the byte completes one. Skips empty lines.
    pub(crate) fn push(&mut self, byte: u8) -> Option<RawLine> {
        if byte == b'\r' || byte == b'\n' {
            let line = self.take(false);
            self.is_skipping = false;
            self.is_first = false;
            return line;
        }
        if STARTERS.contains(&byte) {
            let line = self.take(false);
            self.is_skipping = false;
            self.is_first = false;
            self.bytes.push(byte);
            return line;
        }
        if self.is_skipping {
            return None;
        }
        if self.bytes.len() == self.bytes_max {
            // Returned at once, since an overlong line may never end.
            self.is_skipping = true;
            return self.take(true);
        }
        self.bytes.push(byte);
        None
    }

    fn take(&mut self, is_overlong: bool) -> Option<RawLine> {
        if self.bytes.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        Some(RawLine { bytes, is_overlong, is_first: std::mem::take(&mut self.is_first) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(bytes_max: usize, bytes: &[u8]) -> Vec<RawLine> {
        let mut assembler = Assembler::new(bytes_max);
        bytes.iter().filter_map(|byte| assembler.push(*byte)).collect()
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        let lines = lines(32, bytes);
        lines.iter().map(|line| line.bytes.escape_ascii().to_string()).collect()
    }

    #[test]
    fn any_line_end_ends_a_line_once() {
        assert_eq!(texts(b"a\r\nb\nc\r\r\n\nd\rrest"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_start_within_a_line_begins_another() {
        assert_eq!(texts(b"\x02Q,22\x02Q,229\x0316\r"), ["\\x02Q,22", "\\x02Q,229\\x0316"]);
        assert_eq!(texts(b"029,R$WIMWV*00\n"), ["029,R", "$WIMWV*00"]);
    }

    #[test]
    fn only_the_first_line_may_lack_its_beginning() {
        let firsts = |bytes| lines(32, bytes).iter().map(|line| line.is_first).collect::<Vec<_>>();
        assert_eq!(firsts(b"half\nwhole\n"), [true, false]);
        assert_eq!(firsts(b"\r\nwhole\n"), [false]);
        assert_eq!(firsts(b"\x02whole\n"), [false]);
    }

    #[test]
    fn an_overlong_line_is_given_once_and_the_next_one_is_whole() {
        let lines = lines(4, b"abcdefghijklmnop\x02ok\n12345\n1234\n");
        let seen: Vec<_> = lines.iter().map(|line| (&line.bytes[..], line.is_overlong)).collect();
        let expected: [(&[u8], bool); 4] =
            [(b"abcd", true), (b"\x02ok", false), (b"1234", true), (b"1234", false)];
        assert_eq!(seen, expected);
    }

    proptest! {
        #[test]
        fn no_line_is_longer_than_the_limit_or_has_a_line_end(
            bytes: Vec<u8>, bytes_max in 1_usize..40,
        ) {
            for line in lines(bytes_max, &bytes) {
                prop_assert!((1..=bytes_max).contains(&line.bytes.len()));
                prop_assert!(!line.bytes.contains(&b'\n') && !line.bytes.contains(&b'\r'));
            }
        }

        #[test]
        fn without_overlong_lines_nothing_but_line_ends_is_lost(bytes: Vec<u8>) {
            let mut ended = bytes.clone();
            ended.push(b'\n');
            let kept: Vec<u8> = lines(bytes.len() + 1, &ended).into_iter()
                .flat_map(|line| line.bytes).collect();
            let expected: Vec<u8> =
                bytes.into_iter().filter(|byte| !b"\r\n".contains(byte)).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
