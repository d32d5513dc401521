//! A report for people, such as for a pull request.

use std::fmt::Write as _;

use super::tables::{Table, tables};
use crate::lab::report::Report;

/// Returns the report as Markdown.
pub(crate) fn markdown(report: &Report) -> String {
    let (experiment, question) = (plain(&report.experiment), plain(&report.question));
    let mut text = format!("## {experiment}\n\n**{question}**\n\n");
    if let Some(reason) = &report.invalid {
        let _ = write!(text, "**Invalid: {}.** ", plain(reason));
    }
    let _ = writeln!(text, "{}", plain(&report.full_answer()));
    for table in tables(report) {
        text += &rendered(&table);
    }
    text += "\n### Method\n\n";
    for sentence in report.method.iter().chain(&report.environment.sentences()) {
        let _ = writeln!(text, "- {}", plain(sentence));
    }
    text
}

/// Returns text that stays what it is, on its line: names in reports come from others, and must not become HTML, code, or more cells
/// of a table.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => shown.push(' '),
            '\\' | '|' | '<' | '`' => shown.extend(['\\', c]),
            c => shown.push(c),
        }
    }
    shown
}

/// Returns a table with its heading.
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
