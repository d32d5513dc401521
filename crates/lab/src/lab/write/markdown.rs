//! Writes a report as Markdown, for example for a pull request.

use std::fmt::Write as _;

use super::tables::{Table, tables};
use crate::lab::report::{Report, estimates};

pub(crate) fn markdown(report: &Report) -> String {
    page(report, &tables(report, &estimates(&report.series, || {})))
}

/// Returns a report with these tables as Markdown.
pub(crate) fn page(report: &Report, tables: &[Table]) -> String {
    let (experiment, question) = (plain(&report.experiment), plain(&report.question));
    let mut text = format!("## {experiment}\n\n**{question}**\n\n");
    if let Some(reason) = &report.invalid {
        let _ = write!(text, "**Invalid: {}.** ", plain(reason));
    }
    let _ = writeln!(text, "{}", plain(&report.full_answer()));
    text.extend(tables.iter().map(rendered));
    text += "\n### Method\n\n";
    for sentence in report.method.iter().chain(&report.environment.sentences()) {
        let _ = writeln!(text, "- {}", plain(sentence));
    }
    text
}

/// Escapes a text, so that it has no markup and stays on its line. Names in reports come from others. They must not
/// become links, images, HTML, code or further cells of a table. A character stays as it is if it cannot be markup at
/// its place, since people also read the Markdown itself.
pub(super) fn plain(text: &str) -> String {
    let text = text.trim();
    let marker = marker(text);
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let after = rest.peek().map(|(_, c)| *c);
        if marker == Some(at) || is_markup(before, c, after) {
            shown.push('\\');
        }
        shown.push(if matches!(c, '\n' | '\r') { ' ' } else { c });
        before = Some(c);
    }
    shown
}

/// Returns the index of the character at the beginning of a text that would make it a heading, a list, a quotation or a
/// check box. Returns `None` if there is none.
fn marker(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut next = text[digits..].chars();
    let (c, is_apart) = (next.next()?, next.next().is_none_or(char::is_whitespace));
    let is_marker = match c {
        '.' | ')' => digits > 0 && is_apart,
        '+' => digits == 0 && is_apart,
        '#' | '-' | '>' | '[' => digits == 0,
        _ => false,
    };
    is_marker.then_some(digits)
}

/// Returns true if `c` can begin or end markup within a line, between these two characters (CommonMark, section 6;
/// tables and `~` are GitHub's). A bracket can do so only if an address or its name follows.
fn is_markup(before: Option<char>, c: char, after: Option<char>) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match c {
        '\\' | '|' | '<' | '`' | '*' | '~' | '&' => true,
        '_' => !(is_word(before) && is_word(after)),
        ']' => matches!(after, Some('(' | '[' | ':')),
        _ => false,
    }
}

pub(super) fn rendered(table: &Table) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| plain(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let sides =
        (0..table.head.len()).map(|column| if table.is_figures(column) { "--:" } else { "---" });
    let sides: Vec<_> = sides.collect();
    let title = plain(&table.title);
    let mut text = format!("\n### {title}\n\n{}|{}|\n", row(&table.head), sides.join("|"));
    text.extend(table.rows.iter().map(|cells| row(cells)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::tests::{report, series};

    #[test]
    fn names_of_others_are_no_markup() {
        assert_eq!(plain("a|b\n\r## <b>`x\\"), "a\\|b  ## \\<b>\\`x\\\\");
        let mut report = report();
        report.environment.processor = "a\n<img src=x>".to_owned();
        report.series = vec![series("TCP|1|\n<script>", &[1.0])];
        let text = markdown(&report);
        assert!(text.contains(r"| 20 B | TCP\|1\| \<script> |"), "{text}");
        assert!(text.contains(r"; a \<img src=x>, cores"), "{text}");
        let shown = [
            "![p](http://a.example/p.png) [log in][x] [x]: **b** ~c~ &lt; _d_ e__f",
            " # a",
            "1. a",
            "- a",
            "+",
            "> a",
            "[ ] a",
        ];
        let escaped = [
            r"![p\](http://a.example/p.png) [log in\][x] [x\]: \*\*b\*\* \~c\~ \&lt; \_d\_ e\_\_f",
            r"\# a",
            r"1\. a",
            r"\- a",
            r"\+",
            r"\> a",
            r"\[ ] a",
        ];
        assert_eq!(shown.map(plain), escaped);
        for text in
            ["1.00 [0.981, 1.02] ms", "+3 %", "O_T of small messages (A2)", "−0.020", "a - b #1"]
        {
            assert_eq!(plain(text), text, "people read it as it is");
        }
    }

    #[test]
    fn figures_stand_at_the_right() {
        let table = Table {
            title: "Time".to_owned(),
            head: ["", "p50", "faults"].map(str::to_owned).to_vec(),
            rows: vec![["a|b", "1", ""].map(str::to_owned).to_vec()],
        };
        assert_eq!(
            rendered(&table),
            "\n### Time\n\n|  | p50 | faults |\n|---|--:|---|\n| a\\|b | 1 |  |\n"
        );
    }
}
