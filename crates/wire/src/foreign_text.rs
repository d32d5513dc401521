//! Text as other programs write it: with a byte order mark, in UTF-16, and with `NaN` in its JSON.
//!
//! The rule for every text that comes in, from a file, a program, a device or a peer: a byte order mark at its beginning
//! is no part of it. A text in another encoding, or JSON with numbers that JSON does not have, is never guessed at: the
//! fault is told with its remedy. Bytes that are not declared to be text are nobody's to change.

use serde::de::IgnoredAny;

/// The byte order mark, which stands before many texts of Windows programs; in UTF-8 it has 3 bytes.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

const MARK: &[u8] = b"\xef\xbb\xbf";

/// The numbers that programs write and JSON does not have, a longer word before its beginning.
const NOT_NUMBERS: [&str; 7] = ["-Infinity", "Infinity", "-inf", "inf", "NaN", "-nan", "nan"];

/// Returns the text after its byte order mark; all of it if it has none.
#[must_use]
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// The reason why a text cannot be read as what it is meant to be, with the remedy.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TextFault {
    /// The text is UTF-16.
    #[error("it is UTF-16, not UTF-8: convert it, for example with iconv -f UTF-16 -t UTF-8")]
    Utf16,
    /// It would be JSON but for this word in place of a number.
    #[error(
        "{0} is not JSON: write null in its place (Python's json.dumps writes it unless allow_nan=False)"
    )]
    NotANumber(&'static str),
}

impl TextFault {
    /// Finds the fault of a text that is not valid UTF-8 or JSON; `None` if it has none of these.
    #[must_use]
    pub fn find(text: &[u8]) -> Option<Self> {
        if is_utf_16(text) {
            return Some(Self::Utf16);
        }
        not_a_number(text).map(Self::NotANumber)
    }
}

/// Returns true if the text begins with the byte order mark of UTF-16, or if every other byte is a NUL, as in UTF-16 of
/// ASCII. A line that was cut out of UTF-16 at the byte of LF may have one more NUL at its beginning.
fn is_utf_16(text: &[u8]) -> bool {
    let has_mark = text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff");
    let nuls_from = |first: usize| {
        let (mut high, mut low) =
            (text.iter().skip(first).step_by(2), text.iter().skip(1 - first).step_by(2));
        high.all(|byte| *byte == 0) && low.all(|byte| *byte != 0)
    };
    text.len() > 2 && (has_mark || (text.contains(&0) && (nuls_from(0) || nuls_from(1))))
}

/// Returns the word for a number that JSON does not have, if the text is JSON with a number in its place.
fn not_a_number(text: &[u8]) -> Option<&'static str> {
    let text = without_mark(text).trim_ascii();
    let is_word = || NOT_NUMBERS.iter().any(|word| word.as_bytes() == text);
    // Most texts are no JSON at all, and are not worth a copy.
    if !text.starts_with(b"{") && !text.starts_with(b"[") && !is_word() {
        return None;
    }
    let mut json = text.to_vec();
    let (mut at, mut in_string, mut found) = (0, false, None);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'-' | b'I' | b'i' | b'N' | b'n' if !in_string => {
                let word =
                    NOT_NUMBERS.into_iter().find(|word| json[at..].starts_with(word.as_bytes()));
                if let Some(word) = word {
                    json[at..at + word.len()].fill(b' ');
                    json[at] = b'0';
                    at += word.len() - 1;
                    found = found.or(Some(word));
                }
            }
            _ => {}
        }
        at += 1;
    }
    let found = found?;
    serde_json::from_slice::<IgnoredAny>(&json).is_ok().then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn a_mark_at_the_beginning_is_no_part_of_a_text_and_one_elsewhere_is() {
        for (text, rest) in [
            ("\u{feff}{}", "{}"),
            ("\u{feff}", ""),
            ("\u{feff}\u{feff}a", "\u{feff}a"),
            ("a\u{feff}", "a\u{feff}"),
            ("", ""),
        ] {
            assert_eq!(without_mark(text.as_bytes()), rest.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn utf_16_is_found_with_its_mark_and_without_also_in_lines_cut_out_of_it() {
        let text = "{\"a\":1}\r\n{\"a\":2}\r\n";
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(
                TextFault::find(&utf_16(&format!("\u{feff}{text}"), bytes)),
                Some(TextFault::Utf16)
            );
            let cut = utf_16(text, bytes);
            for line in cut.split(|byte| *byte == b'\n').filter(|line| line.len() > 2) {
                assert_eq!(TextFault::find(line), Some(TextFault::Utf16), "{line:?}");
            }
        }
        assert_eq!(
            TextFault::find(&utf_16("\u{feff}\u{3b1}\u{3b2}", u16::to_le_bytes)),
            Some(TextFault::Utf16)
        );
        for text in ["a\0b\0\0", "\0", "a\0", "\0\0\0\0", "grün", "", "ab"] {
            assert_eq!(TextFault::find(text.as_bytes()), None, "{text:?}");
        }
        // The mark alone may be anything.
        assert_eq!(TextFault::find(b"\xff\xfe"), None);
    }

    #[test]
    fn a_word_in_place_of_a_number_is_found_where_a_number_may_stand() {
        for (text, word) in [
            ("{\"t\": NaN}", "NaN"),
            ("\u{feff}[1,-Infinity , NaN]", "-Infinity"),
            ("{\"a\":{\"b\":[Infinity]}}", "Infinity"),
            ("{\"NaN\": nan}", "nan"),
            ("{\"a\\\"\": -inf}", "-inf"),
            ("NaN", "NaN"),
        ] {
            assert_eq!(
                TextFault::find(text.as_bytes()),
                Some(TextFault::NotANumber(word)),
                "{text}"
            );
        }
        for text in [
            "{\"t\":\"NaN\"}",
            "{\"t\": NaN",
            "Name: NaN",
            "{NaN: 1}",
            "null",
            "[1,2]",
            "[NaNa]",
            "-",
            "information",
        ] {
            assert_eq!(TextFault::find(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn each_fault_comes_with_its_remedy() {
        assert!(TextFault::Utf16.to_string().contains("iconv -f UTF-16"));
        assert!(TextFault::NotANumber("NaN").to_string().contains("allow_nan=False"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(text: Vec<u8>) {
            let _ = TextFault::find(&text);
        }

        #[test]
        fn valid_json_has_no_fault(text in "[ -~\u{a0}-\u{ff}]{0,20}") {
            let json = serde_json::to_string(&[&text]).unwrap();
            prop_assert_eq!(TextFault::find(json.as_bytes()), None);
        }
    }
}
