//! The forms of a gap, events that a reader misses.

use std::fmt::Write as _;

use anemone_hub::{Gap, GapReason};
use anemone_wire::After;

/// The word for why events are missing.
const fn reason(gap: &Gap) -> &'static str {
    match gap.reason {
        GapReason::Retention => "retention",
        GapReason::Damaged => "damaged",
        GapReason::Epoch => "epoch",
    }
}

/// `REASON, missed N, resume P`: for where no object can stand. Fits a close frame.
pub(crate) fn in_words(gap: &Gap) -> String {
    let missed = gap.missed.map_or_else(|| "unknown".to_owned(), |missed| missed.to_string());
    format!("{}, missed {missed}, resume {}", reason(gap), gap.resume)
}

/// `{"reason":…,"after":P,"missed":N|null,"resume":P}`.
pub(crate) fn to_json(out: &mut String, gap: &Gap) {
    with_resume(out, gap, &gap.resume.to_string());
}

/// That of a reader which was ended. Its `resume` says so: who asks for that begins there.
pub(crate) fn of_an_end(out: &mut String, gap: &Gap) {
    with_resume(out, gap, &After::Anew(gap.resume).to_string());
}

fn with_resume(out: &mut String, gap: &Gap, resume: &str) {
    let (reason, after) = (reason(gap), gap.after);
    let missed = gap.missed.map_or_else(|| "null".to_owned(), |missed| missed.to_string());
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        r#"{{"reason":"{reason}","after":"{after}","missed":{missed},"resume":"{resume}"}}"#
    );
}

#[cfg(test)]
mod tests {
    use anemone_hub::{Epoch, Position};

    use super::*;

    #[test]
    fn the_words_fit_a_close_frame() {
        let position = |offset| Position { epoch: Epoch::from_bits(9), offset };
        let reason = GapReason::Retention;
        let gap = Gap { reason, after: position(1), missed: Some(2), resume: position(3) };
        assert_eq!(in_words(&gap), "retention, missed 2, resume 9-3");
        let last = Position { epoch: Epoch::from_bits(u64::MAX), offset: u64::MAX };
        let gap = |missed| in_words(&Gap { reason, after: last, missed, resume: last });
        assert!(gap(None).contains("missed unknown"));
        assert_eq!(gap(Some(u64::MAX)).len(), 78); // a close frame's reason has room for 123
    }
}
