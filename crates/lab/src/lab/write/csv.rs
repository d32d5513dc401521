//! Writes a report as CSV (RFC 4180). Each value of each round has a line.

use std::fmt::Write as _;

use crate::lab::report::Report;

/// Returns the values of all rounds as CSV. The field of a round without a value is empty.
pub(super) fn csv(report: &Report) -> String {
    let mut text = "experiment,case,contender,quantity,unit,round,value\r\n".to_owned();
    for series in &report.series {
        let fields =
            [&report.experiment, &series.case, &series.contender, &series.quantity, &series.unit];
        let fields: Vec<_> = fields.into_iter().map(|field| quoted(field)).collect();
        for (round, value) in series.rounds.iter().enumerate() {
            let value = value.map_or_else(String::new, |value| value.to_string());
            let _ = write!(text, "{},{},{value}\r\n", fields.join(","), round + 1);
        }
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_comma_or_a_quote_is_quoted() {
        assert_eq!(
            ["a", "22,479 states", "a\"b"].map(quoted),
            ["a", "\"22,479 states\"", "\"a\"\"b\""]
        );
    }
}
