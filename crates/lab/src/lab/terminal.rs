//! Writes to people at a terminal. All foreign text is made [`printable`].

use std::io::{self, IsTerminal, Write as _};

/// Writes a line to standard error. Makes foreign text in it printable. Ignores errors.
pub(crate) fn tell(words: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(words));
}

/// Writes text of several lines to standard output. Escapes control characters in it if the output is a terminal. A
/// pipe or a file gets the text unchanged.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(shown(text, output.is_terminal()).as_bytes())
}

fn shown(text: &str, is_terminal: bool) -> String {
    match is_terminal {
        true => text.lines().flat_map(|line| [printable(line), "\n".to_owned()]).collect(),
        false => text.to_owned(),
    }
}

/// Escapes the characters that would control a terminal.
pub(crate) fn printable(text: &str) -> String {
    anemone_wire::printable(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(
            printable("no \u{1b}]52;c;\u{7}\r\n\u{9b}\u{202e}\"é\""),
            "no \\u001b]52;c;\\u0007\\r\\n\\u009b\\u202e\"é\""
        );
    }

    #[test]
    fn lines_stay_lines_and_a_pipe_gets_all() {
        let text = "a\n\u{1b}[31mb\n";
        assert_eq!(shown(text, true), "a\n\\u001b[31mb\n");
        assert_eq!(shown(text, false), text);
    }
}
