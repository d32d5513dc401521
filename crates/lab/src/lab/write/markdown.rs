//! A report for people, such as for a pull request.

use std::fmt::Write as _;

use super::tables::{Table, tables};
use crate::lab::report::Report;

/// Returns the report as Markdown.
pub(crate) fn markdown(report: &Report) -> String {
    let mut text = format!("## {}\n\n**{}**\n\n", report.experiment, report.question);
    if let Some(reason) = &report.invalid {
        let _ = write!(text, "**Invalid: {reason}.** ");
    }
    let _ = writeln!(text, "{}", report.answer);
    for table in tables(report) {
        text += &rendered(&table);
    }
    text += "\n### Method\n\n";
    for sentence in report.method.iter().chain(&report.environment.sentences()) {
        let _ = writeln!(text, "- {sentence}");
    }
    text
}

/// Returns a table with its heading.
pub(super) fn rendered(table: &Table) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let sides =
        (0..table.head.len()).map(|column| if table.is_figures(column) { "--:" } else { "---" });
    let sides: Vec<_> = sides.collect();
    let mut text = format!("\n### {}\n\n{}|{}|\n", table.title, row(&table.head), sides.join("|"));
    text.extend(table.rows.iter().map(|cells| row(cells)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
