//! Makes foreign text safe for a terminal: whoever shows the words of a peer, a program or a file does it by this rule.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes the characters that control a terminal or change the direction of text: control characters (C0 except
/// tabs, DEL, C1), line and paragraph separators, and the controls of bidirectional text (Unicode Standard Annex 9,
/// section 2). They are escaped as in JSON, so JSON stays the same JSON, except for line breaks, which only stand
/// between its tokens and never within one line.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            c if is_obeyed(c) => {
                // Writing to a string cannot fail. All of these characters have four digits.
                let _ = write!(shown, "\\u{:04x}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown.into()
}

fn is_obeyed(c: char) -> bool {
    c.is_control() && c != '\t'
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_and_what_turns_text_round_is_escaped_and_nothing_else() {
        let ranges = [
            ('\0', '\u{8}'),
            ('\n', '\u{1f}'),
            ('\u{7f}', '\u{9f}'),
            ('\u{61c}', '\u{61c}'),
            ('\u{200e}', '\u{200f}'),
            ('\u{2028}', '\u{202e}'),
            ('\u{2066}', '\u{2069}'),
        ];
        for c in '\0'..='\u{ffff}' {
            let is_in = ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
            assert_eq!(printable(&c.to_string()) != c.to_string(), is_in, "{c:?}");
        }
        for same in ["", "Grüße\tنص 😀 \u{200d}", r#"{"a": "\u202e"}"#] {
            assert!(matches!(printable(same), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\"a\": \"\u{202e}\u{85}\u{2028}\u{7f}\",\t\"b\": 1}";
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert!(printable(json).is_ascii());
        assert_eq!(parse(&printable(json)), parse(json));
    }
}
