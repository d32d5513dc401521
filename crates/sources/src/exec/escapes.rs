//! Removes the escape sequences for terminals (ECMA-48) from the output of a program. Programs write them around their
//! progress.
//!
//! A reader of lines has no use for a sequence that moves the cursor, erases, or sets a mode or a title, so it is left
//! out. A sequence that moves the cursor so that the line is written anew becomes a CR. Colours stay, since they belong
//! to the text ([`without_colours`]). The result does not depend on the pieces in which the output comes.

use std::borrow::Cow;

const ESC: u8 = 0x1b;

/// The most bytes of a colour that are kept. All attributes of text together need fewer.
const COLOUR_BYTES_MAX: usize = 64;

/// Removes escape sequences from a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct Escapes {
    place: SequencePlace,
    /// The parameters of the current sequence. They matter if it is a colour or a move.
    sequence: Vec<u8>,
    /// The current piece without its sequences.
    plain: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum SequencePlace {
    #[default]
    Outside,
    /// After ESC.
    Begun,
    /// In a control sequence: ESC [.
    Control,
    /// In a string, such as a title: up to BEL or ESC \.
    Text,
    /// After ESC in a string.
    TextEnd,
}

impl Escapes {
    /// Returns a piece without escape sequences, except colours.
    pub(super) fn remove<'a>(&'a mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.place == SequencePlace::Outside && !bytes.contains(&ESC) {
            return bytes;
        }
        self.plain.clear();
        for byte in bytes {
            self.take(*byte);
        }
        &self.plain
    }

    fn take(&mut self, byte: u8) {
        // A sequence never goes on in the next line, so one without an end hides no more than its line.
        if matches!(byte, b'\n' | b'\r') {
            self.place = SequencePlace::Outside;
            return self.plain.push(byte);
        }
        self.place = match (self.place, byte) {
            (SequencePlace::Outside | SequencePlace::Begun | SequencePlace::Control, ESC) => {
                self.sequence.clear();
                SequencePlace::Begun
            }
            (SequencePlace::Outside, _) => {
                self.plain.push(byte);
                SequencePlace::Outside
            }
            (SequencePlace::Begun, b'[') => SequencePlace::Control,
            (SequencePlace::Begun, b']' | b'P' | b'X' | b'^' | b'_') => SequencePlace::Text,
            // Intermediate bytes, such as those that choose a character set.
            (SequencePlace::Begun, 0x20..=0x2f) => SequencePlace::Begun,
            (SequencePlace::Begun, _) => {
                // ESC 8 goes back to where the cursor was, and ESC M to the line above.
                self.plain.extend(matches!(byte, b'8' | b'M').then_some(b'\r'));
                SequencePlace::Outside
            }
            (SequencePlace::Control, 0x40..=0x7e) => {
                self.end_control(byte);
                SequencePlace::Outside
            }
            (SequencePlace::Control, _) => {
                if self.sequence.len() < COLOUR_BYTES_MAX {
                    self.sequence.push(byte);
                }
                SequencePlace::Control
            }
            (SequencePlace::Text, 0x07) => SequencePlace::Outside,
            (SequencePlace::Text, ESC) => SequencePlace::TextEnd,
            (SequencePlace::Text, _) => SequencePlace::Text,
            (SequencePlace::TextEnd, b'\\') => SequencePlace::Outside,
            (SequencePlace::TextEnd, _) => SequencePlace::Text,
        };
    }

    /// Ends a control sequence with the final byte `last`. Its parameters are in `sequence`.
    fn end_control(&mut self, last: u8) {
        let is_at_begin = matches!(&self.sequence[..], b"" | b"0" | b"1");
        match last {
            b'm' => {
                self.plain.extend([ESC, b'[']);
                self.plain.append(&mut self.sequence);
                self.plain.push(b'm');
            }
            // To another line, to the left, or to a place that was stored: the text is written over.
            b'A' | b'B' | b'D' | b'E' | b'F' | b'H' | b'd' | b'f' | b'u' => self.plain.push(b'\r'),
            b'G' | b'`' if is_at_begin => self.plain.push(b'\r'),
            // To the right, which leaves room.
            b'C' | b'G' | b'`' => self.plain.push(b' '),
            _ => {}
        }
    }
}

pub(super) fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return line.into();
    }
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        // Only whole colours are left in a line.
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_pieces(text: &[u8], bytes: usize) -> Vec<u8> {
        let mut escapes = Escapes::default();
        text.chunks(bytes.max(1)).flat_map(|piece| escapes.remove(piece).to_vec()).collect()
    }

    #[test]
    fn sequences_are_left_out_however_they_come() {
        for (written, read) in [
            ("plain\r\n", "plain\r\n"),
            ("\rprogress 10%\x1b[K\r", "\rprogress 10%\r"),
            ("\x1b[?25l1\x1b[?25h\n2", "1\n2"),
            ("\x1b[2K\x1b[1Gprogress 1/2\x1b[0K", "\rprogress 1/2"),
            ("\x1b[1A\x1b[2Kprogress 1/2\n", "\rprogress 1/2\n"),
            ("a\x1b[20Gb\x1b[3Cc", "a b c"),
            ("\x1b]0;a title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
            ("\x1b(Bx\x1b=y\x1b7z\x1b8w", "xyz\rw"),
            ("\x1bPq#0;2\x1b\\x", "x"),
            ("a\x1b[31mred\x1b[0m", "a\x1b[31mred\x1b[0m"),
            // Without an end.
            ("\x1b]0;title\nnext", "\nnext"),
            ("a\x1b[12\nb\x1b", "a\nb"),
            ("\x1b\x1b[31\x1b[Kx", "x"),
        ] {
            for bytes in 1..=written.len() {
                let found = in_pieces(written.as_bytes(), bytes);
                assert_eq!(String::from_utf8(found).unwrap(), read, "{written:?} by {bytes}");
            }
        }
    }

    #[test]
    fn a_line_has_no_colours_without_them() {
        assert_eq!(without_colours("\x1b[1;32mprogress 50%\x1b[0m"), "progress 50%");
        assert_eq!(without_colours("\x1b[mé\x1b[m"), "é");
        assert!(matches!(without_colours("plain"), Cow::Borrowed("plain")));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_and_text_without_esc_stays(
            bytes in proptest::collection::vec(prop_oneof![Just(ESC), Just(b'['), any::<u8>()], 0..60),
            piece in 1..9_usize,
        ) {
            let whole = in_pieces(&bytes, bytes.len());
            prop_assert_eq!(&in_pieces(&bytes, piece), &whole);
            if !bytes.contains(&ESC) {
                prop_assert_eq!(&whole, &bytes);
            }
        }
    }
}
