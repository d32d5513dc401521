//! A line that a long computation writes about its progress ("Runs" in `docs/PROTOCOL.md`).

use serde::Deserialize;

/// Progress in one of the two forms of a line: `progress 0.42 some words`, where the number may also be `42%` or `21/50`, with
/// blanks before the sign and around the slash, or `{"progress":0.42,"text":"some words"}`. The decimal point may be a comma.
///
/// ```
/// use anemone_wire::ProgressLine;
///
/// let line = ProgressLine::parse("progress 21/50 reading").unwrap();
/// assert_eq!((line.fraction, line.text.as_deref()), (0.42, Some("reading")));
/// assert_eq!(ProgressLine::parse("42 files"), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressLine {
    /// The part that is done, 0 to 1.
    pub fraction: f64,
    /// Words about it, of any length.
    pub text: Option<String>,
}

/// A sum of parts may be this much above 1.
const ROUNDING: f64 = 1e-9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgressObject {
    progress: f64,
    text: Option<String>,
}

impl ProgressLine {
    /// Parses a line without its end. Returns `None` if it is not progress: another line, an object with further
    /// members, a number that is not finite, or one above 1: that may be a percentage or a count. A number below 0 counts
    /// as 0, and more than 100% or all of a count as 1. Blanks around the line do not count.
    ///
    /// A line that can be read in two ways is no progress: `1,250` has a decimal comma in one country and is above a thousand in
    /// another, and `1 of 7` has no sign of a count.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (number, text) = match line.trim_start_matches(BLANKS).strip_prefix("progress") {
            Some(rest) => words(rest)?,
            None => object(line)?,
        };
        // Adding 0 turns -0 into 0.
        number.is_finite().then(|| Self { fraction: number.clamp(0.0, 1.0) + 0.0, text })
    }

    /// Returns true for a line that is no progress, but was probably meant to be: `progress 50`, `progress: 0.8`, or
    /// `{"progress":90}`.
    #[must_use]
    pub fn is_almost(line: &str) -> bool {
        let line = line.trim();
        let name = "progress";
        let rest = match line.strip_prefix('{') {
            Some(members) => members.trim_start().strip_prefix("\"progress\""),
            None => line
                .get(..name.len())
                .filter(|start| start.eq_ignore_ascii_case(name))
                .map(|_| &line[name.len()..]),
        };
        let number = rest.map(|rest| rest.trim_start_matches([' ', '\t', ':', '=', '"']));
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
            && Self::parse(line).is_none()
    }
}

/// Returns a number without a unit, unless it is above 1.
fn bare(number: f64) -> Option<f64> {
    (number <= 1.0 + ROUNDING).then_some(number)
}

/// Blanks, also those that some languages write before a percent sign.
const BLANKS: [char; 4] = [' ', '\t', '\u{a0}', '\u{202f}'];

/// Parses a number with its unit, and the words after it. Blanks separate them.
fn words(rest: &str) -> Option<(f64, Option<String>)> {
    let rest = rest.strip_prefix(BLANKS)?.trim_matches(BLANKS);
    let (number, after) =
        rest.split_at(rest.find(|c| c == '%' || c == '/' || is_blank(c)).unwrap_or(rest.len()));
    let number = decimal(number)?;
    let unit = after.trim_start_matches(BLANKS);
    let (fraction, text) = if let Some(text) = unit.strip_prefix('%') {
        (number / 100.0, text)
    } else if let Some(whole) = unit.strip_prefix('/').filter(|whole| is_count(after, whole)) {
        let whole = whole.trim_start_matches(BLANKS);
        let (whole, text) = whole.split_at(whole.find(is_blank).unwrap_or(whole.len()));
        let whole = decimal(whole).filter(|whole| whole.is_finite() && *whole > 0.0)?;
        (number / whole, text)
    } else {
        let number = bare(number).filter(|_| !is_of_number(unit))?;
        (number, after)
    };
    let is_whole_word = text.is_empty() || text.starts_with(BLANKS);
    let text = text.trim_start_matches(BLANKS);
    is_whole_word.then(|| (fraction, (!text.is_empty()).then(|| text.to_owned())))
}

fn is_blank(c: char) -> bool {
    BLANKS.contains(&c)
}

/// Returns true if a slash is that of a count, and not of a path among the words: without a blank before it, with one behind it, or
/// before a digit.
fn is_count(after: &str, whole: &str) -> bool {
    after.starts_with('/')
        || whole.starts_with(|c| is_blank(c) || c.is_ascii_digit())
        || whole.is_empty()
}

/// Returns true for `of 7` and the like.
fn is_of_number(words: &str) -> bool {
    words.strip_prefix("of").and_then(|rest| rest.strip_prefix(BLANKS)).is_some_and(|rest| {
        rest.trim_start_matches(BLANKS).starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Parses a number with a decimal point or comma. A comma before three digits may separate thousands, unless there is only a zero
/// before it.
fn decimal(number: &str) -> Option<f64> {
    let Some((whole, part)) = number.split_once(',') else { return number.parse().ok() };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_clear = part.len() != 3 || whole == "0";
    (is_number(whole) && is_number(part) && is_clear)
        .then(|| format!("{whole}.{part}").parse().ok())
        .flatten()
}

fn object(line: &str) -> Option<(f64, Option<String>)> {
    // Most lines are partial results, and need no second parser.
    if !line.trim_start().starts_with('{') || !line.contains("progress") {
        return None;
    }
    let ProgressObject { progress, text } = serde_json::from_str(line).ok()?;
    Some((bare(progress)?, text.filter(|text| !text.is_empty())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn assert_progress(line: &str, fraction: f64, text: Option<&str>) {
        let text = text.map(str::to_owned);
        assert_eq!(ProgressLine::parse(line), Some(ProgressLine { fraction, text }), "{line}");
    }

    #[test]
    fn both_forms_are_progress() {
        assert_progress("progress 0.42 some words", 0.42, Some("some words"));
        assert_progress("progress 0.42", 0.42, None);
        assert_progress("progress\t1  two  blanks ", 1.0, Some("two  blanks"));
        assert_progress("progress 4.2e-1 ", 0.42, None);
        assert_progress("progress 50% some words", 0.5, Some("some words"));
        assert_progress("progress 12.5%", 0.125, None);
        assert_progress("progress 3/10 of them", 0.3, Some("of them"));
        assert_progress("progress 10/10", 1.0, None);
        assert_progress(r#"{"progress":0.42,"text":"some words"}"#, 0.42, Some("some words"));
        assert_progress(r#" { "text" : null, "progress" : 1 } "#, 1.0, None);
        assert_progress(r#"{"progress":0,"text":""}"#, 0.0, None);
    }

    #[test]
    fn blanks_and_a_decimal_comma_are_as_people_write_them() {
        assert_progress("progress 10.5 %", 0.105, None);
        assert_progress("progress 10,5\u{a0}% fertig", 0.105, Some("fertig"));
        assert_progress("progress 2 / 4", 0.5, None);
        assert_progress("progress 2 /4 of them", 0.5, Some("of them"));
        assert_progress("progress 2/ 4", 0.5, None);
        assert_progress(" progress 50%", 0.5, None);
        assert_progress("\tprogress 0.5 ", 0.5, None);
        assert_progress("progress 0,5", 0.5, None);
        assert_progress("progress 0,125 of it", 0.125, Some("of it"));
        assert_progress("progress 1,5 / 3", 0.5, None);
        assert_progress("progress 0.5 /tmp/file", 0.5, Some("/tmp/file"));
        assert_progress("progress 0.5 offset 7", 0.5, Some("offset 7"));
    }

    #[test]
    fn a_number_beyond_the_ends_is_the_end() {
        for (number, fraction) in [("-1", 0.0), ("-0", 0.0), ("1.0000000000000002", 1.0)] {
            for line in [format!("progress {number}"), format!("{{\"progress\":{number}}}")] {
                let found = ProgressLine::parse(&line).unwrap().fraction;
                assert_eq!(found.to_bits(), f64::to_bits(fraction), "{line}");
            }
        }
        assert_progress("progress 101%", 1.0, None);
        assert_progress("progress 11/10", 1.0, None);
        assert_progress("progress -1/10", 0.0, None);
    }

    #[test]
    fn every_other_line_is_not_progress() {
        for line in [
            "",
            "progress",
            "progress ",
            "progress x",
            "progress 10",
            "progress 1.01",
            "progress %",
            "progress 42%%",
            "progress 42 %%",
            "progress 42 %done",
            "progress nan%",
            "progress 1/0",
            "progress 0/0",
            "progress 1/-2",
            "progress 1/2/3",
            "progress /2",
            "progress 1/",
            "progress 1/inf",
            "progress 1 / many",
            "progress 1 /",
            "progress 1 / 2/3",
            "progress 1 of 7",
            "progress 1  of  7 dwarfs",
            "progress 1,250",
            "progress 999 / 1,000",
            "progress 0,5,5",
            "progress ,5",
            "progress 0,5e1",
            "5 of 7 dwarfs",
            "10%",
            "2 / 4",
            "at 10% of it",
            "in progress 10%",
            "progress: 10 %",
            "{\"progress\":10}",
            "{\"progress\":\"50%\"}",
            "progress NaN",
            "progress inf",
            "progress -infinity at last",
            "progress 1e999",
            "progress:0.4",
            "progressive 0.4",
            "Progress 0.4",
            "0.4",
            "{}",
            "{\"progress\":null}",
            "{\"progress\":\"0.4\"}",
            "{\"progress\":1e999}",
            "{\"progress\":0.4,\"text\":1}",
            "{\"progress\":0.4,\"n\":1}",
            "{\"progress\":0.4,\"progress\":0.5}",
            "{\"progress\":0.4} x",
            "[{\"progress\":0.4}]",
            "{\"text\":\"progress\"}",
        ] {
            assert_eq!(ProgressLine::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_that_was_probably_meant_to_be_progress_is_told_from_others() {
        for line in [
            "progress 50",
            "progress: 0.8",
            "Progress: 80%",
            "progress=0.8",
            "progress 1 of 7",
            "progress 999 / 1,000",
            "{\"progress\":90}",
            "{ \"progress\" : \"50%\"}",
            "{\"progress\":0.5,\"n\":1}",
        ] {
            assert!(ProgressLine::is_almost(line), "{line}");
        }
        for line in [
            "",
            "progress 0.5",
            "{\"progress\":0.5}",
            "progress",
            "progress is 5",
            "progré",
            "{\"a\":1}",
            "7",
        ] {
            assert!(!ProgressLine::is_almost(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_left(line in "(progress[ \t]|\\{\"progress\":)?[-+0-9.eEinfNa ]{0,8}.{0,9}") {
            if let Some(progress) = ProgressLine::parse(&line) {
                prop_assert!((0.0..=1.0).contains(&progress.fraction));
            }
        }

        #[test]
        fn what_is_written_is_read(fraction in 0.0..=1.0, text in "[A-Z][ -~]{0,20}[!-~]") {
            let text_json = serde_json::to_string(&text).unwrap();
            for line in [
                format!("progress {fraction} {text}"),
                format!("{{\"progress\":{fraction},\"text\":{text_json}}}"),
            ] {
                let found = ProgressLine::parse(&line).unwrap();
                // serde_json may be off by the last bit.
                prop_assert!(f64::abs(found.fraction - fraction) <= f64::EPSILON);
                prop_assert_eq!(found.text.as_ref(), Some(&text));
            }
        }
    }
}
