//! Problems from a server, in words.

use std::fmt;

use anemone_wire::problem::Details;

use crate::text::shown;

/// The problem of a run that has failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunProblem(Details<'static>);

impl RunProblem {
    pub(crate) fn parse(json: &str) -> Option<Self> {
        Details::parse(json.as_bytes()).map(Self)
    }

    /// Returns the problem's name, such as `run-failed` or `run-timeout`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the reason, as the words after "the run has failed".
    pub(crate) fn reason(&self) -> String {
        match (self.name(), self.detail()) {
            ("run-failed", "") => String::new(),
            ("run-failed", detail) => format!(": {}", shown(detail)),
            _ => format!(": {self}"),
        }
    }

    /// Returns a sentence about this failure; may be empty.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

impl fmt::Display for RunProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(&self.0))
    }
}

/// Returns the text of a problem. It names the place in the input, if the problem is about one.
pub(crate) fn words(details: &Details<'_>) -> String {
    let words = title_and_detail(details);
    match details.pointer.as_deref().filter(|pointer| !pointer.is_empty()) {
        Some(pointer) => format!("{words} (at {})", shown(pointer)),
        None => words,
    }
}

fn title_and_detail(Details { name, title, detail, .. }: &Details<'_>) -> String {
    let begin = shown(if title.is_empty() { name } else { title });
    // A detail that begins with the title replaces it.
    let start = detail.get(..title.len()).filter(|start| !start.is_empty());
    if start.is_some_and(|start| start.eq_ignore_ascii_case(title)) {
        begin + &shown(&detail[title.len()..])
    } else if detail.is_empty() {
        begin
    } else {
        format!("{begin}: {}", shown(detail))
    }
}
