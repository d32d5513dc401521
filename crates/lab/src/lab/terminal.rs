//! What people read while it is measured, at a terminal.

use std::io::Write as _;

/// Writes a line for people, if they still listen.
pub(crate) fn tell(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Escapes what a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    let escaped = |c: char| c.is_control().then(|| c.escape_default().to_string());
    text.chars().map(|c| escaped(c).unwrap_or_else(|| c.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(
            printable("no \u{1b}]52;c;\u{7}\r\n\u{9b}\"é\""),
            "no \\u{1b}]52;c;\\u{7}\\r\\n\\u{9b}\"é\""
        );
    }
}
