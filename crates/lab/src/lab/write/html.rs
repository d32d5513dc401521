//! Writes a report as a single HTML file, which can be opened from disk and printed.

use std::fmt::Write as _;

use serde_json::json;

use super::plot::{Plot, plot};
use super::tables::{Table, tables};
use crate::lab::pace::Pace;
use crate::lab::report::{Report, estimates};
use crate::statistics::{Estimate, in_parallel};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

pub(super) fn html(report: &Report) -> anyhow::Result<String> {
    let estimates = estimates(&report.series, || {});
    Ok(page(&format!("{} · Anemone lab", report.experiment), &section(report, &estimates, 0)?))
}

/// Returns several reports as one HTML file. It begins with a table of links to them.
pub(crate) fn all(reports: &[Report]) -> anyhow::Result<String> {
    let mut text = String::from(
        "<h1>Reports of the lab</h1>\n<div class=\"wide\" tabindex=\"0\"><table class=\"contents\">\n<thead><tr><th>experiment</th>\
         <th>when</th><th>where</th><th>answer</th></tr></thead>\n<tbody>\n",
    );
    for (at, report) in reports.iter().enumerate() {
        let place = &report.environment;
        let answer = report.invalid.as_ref().map_or_else(
            || escaped(&report.full_answer()),
            |reason| format!("<strong class=\"bad\">Invalid:</strong> {}", escaped(reason)),
        );
        let _ = writeln!(
            text,
            "<tr><td><a href=\"#report-{at}\">{}</a></td><td>{}</td><td>{}</td><td>{answer}</td></tr>",
            escaped(&report.experiment),
            escaped(&place.when()),
            escaped(&format!("{}, {}, link: {}", place.program, place.target, place.link)),
        );
    }
    text += "</tbody>\n</table></div>\n";
    let series = || reports.iter().flat_map(|report| &report.series);
    let pace = Pace::working("estimating series", series().count());
    let mut estimates = estimates(series(), || pace.step()).into_iter();
    pace.end();
    let parts = reports.iter().enumerate().map(|(at, report)| {
        (at, report, estimates.by_ref().take(report.series.len()).collect::<Vec<_>>())
    });
    let parts: Vec<_> = parts.collect();
    let pace = Pace::working("writing reports", parts.len());
    let sections = in_parallel(&parts, |(at, report, estimates)| {
        let section = section(report, estimates, *at);
        pace.step();
        section
    });
    pace.end();
    for section in sections {
        text += &section?;
    }
    Ok(page("Anemone lab", &text))
}

fn page(title: &str, sections: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<style>\n{STYLE}</style>\n<main>\n{sections}</main>\n\
         <script>\n{SCRIPT}</script>\n</html>\n",
        escaped(title)
    )
}

/// Returns the section of a report. `estimates` has one entry for each of its series. `at` is the number of the section
/// on the page.
fn section(report: &Report, estimates: &[Option<Estimate>], at: usize) -> anyhow::Result<String> {
    let mut text = format!(
        "<section id=\"report-{at}\">\n<p class=\"name\">{}</p>\n<h1>{}</h1>\n",
        escaped(&report.experiment),
        escaped(&report.question)
    );
    if let Some(reason) = &report.invalid {
        let _ =
            writeln!(text, "<p class=\"invalid\" role=\"alert\">Invalid: {}</p>", escaped(reason));
    }
    let _ = writeln!(text, "<p class=\"answer\">{}</p>", escaped(&report.full_answer()));
    if let Some(plot) = plot(report, estimates)? {
        text += &drawn(&plot, report);
    }
    for table in tables(report, estimates) {
        text += &rendered(&table);
    }
    text += "<h2>Method</h2>\n<ul>\n";
    for sentence in report.method.iter().chain(&report.environment.sentences()) {
        let _ = writeln!(text, "<li>{}</li>", escaped(sentence));
    }
    text += "</ul>\n</section>\n";
    Ok(text)
}

fn drawn(plot: &Plot, report: &Report) -> String {
    let mut text = String::from("<figure>\n<p class=\"legend\">");
    for (at, layer) in plot.layers.iter().enumerate() {
        let _ = write!(
            text,
            "<label><input type=\"checkbox\" checked data-layer=\"{at}\"><i style=\"background:{}\"></i>{}</label> ",
            layer.colour,
            escaped(&layer.contender)
        );
    }
    let _ = write!(
        text,
        "</p>\n<div class=\"wide\" tabindex=\"0\">\n<div class=\"plot\" role=\"img\" aria-label=\"{}: {}\">\n{}",
        escaped(&report.quantity),
        escaped(&report.full_answer()),
        plot.axes
    );
    for (at, layer) in plot.layers.iter().enumerate() {
        let points: Vec<_> =
            layer.points.iter().map(|(x, y, words)| json!([x, y, words])).collect();
        let points = escaped(&json!(points).to_string());
        let _ =
            writeln!(text, "<div data-of=\"{at}\" data-points=\"{points}\">{}</div>", layer.svg);
    }
    let theory = if report.models.is_empty() { "" } else { " Dashes: theory." };
    let _ = writeln!(
        text,
        "<p class=\"tip\" hidden></p>\n</div>\n</div>\n<figcaption>Medians of the rounds with their intervals of 95 %.{theory}</figcaption>\n\
         </figure>"
    );
    text
}

fn rendered(table: &Table) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells = cells.iter().enumerate().map(|(column, cell)| {
            let class = if table.is_figures(column) { " class=\"figure\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escaped(cell))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let body: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
    format!(
        "<h2>{}</h2>\n<div class=\"wide\" tabindex=\"0\"><table>\n<thead>{}</thead>\n<tbody>\n{body}</tbody>\n</table></div>\n",
        escaped(&table.title),
        row(&table.head, "th")
    )
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::tests::{report, series};

    #[test]
    fn several_reports_are_one_page() {
        let reports = [report(), Report { question: "How many?".to_owned(), ..report() }];
        let html = all(&reports).unwrap();
        for part in ["href=\"#report-1\"", "id=\"report-1\"", "How many?", "How long?"] {
            assert_eq!(html.matches(part).count(), 1, "{part} in {html}");
        }
        assert_eq!(html.matches("<script>").count(), 1);
    }

    #[test]
    fn words_of_a_server_are_no_html() {
        let mut report = report();
        report.invalid = Some("<script>alert(1)</script> & \"more\"".to_owned());
        report.series = vec![series("<b>", &[1.0, 2.0])];
        let html = html(&report).unwrap();
        assert!(
            html.contains("Invalid: &lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot;")
        );
        assert!(!html.contains("<b>") && html.contains("data-points="), "{html}");
        assert!(html.len() < 1 << 20);
    }
}
