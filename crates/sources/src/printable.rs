//! The beginning of text from others, safe for a terminal.

use anemone_wire::printable;

/// Escapes the first `chars_max` characters of a text. Adds an ellipsis if the text is longer.
pub(crate) fn printable_start(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => printable(&text[..end]).into_owned() + "…",
        None => printable(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_is_shown_on_one_line_and_cut() {
        assert_eq!(printable_start("a\x1b[31m\r\nü", 80), "a\\u001b[31m\\r\\nü");
        assert_eq!(printable_start("üüü", 2), "üü…");
        assert_eq!(printable_start("üü", 2), "üü");
    }
}
