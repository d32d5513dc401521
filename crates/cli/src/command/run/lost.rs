//! The events of a run that were lost before this command read them.

use anemone_client::Gap;

/// Events of a run are missing in the output, although the run is done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, thiserror::Error)]
#[error(
    "{} lost: the server keeps only the newest events of a run, by default 100000 of them and 16 MiB (run_events_max and \
     run_bytes_max)",
    self.count()
)]
pub(crate) struct ResultsLost {
    /// The number of events that are known to be missing.
    events: u64,
    /// True if others may be missing, too.
    is_more: bool,
}

impl ResultsLost {
    pub(super) fn add(&mut self, gap: &Gap) {
        self.events = self.events.saturating_add(gap.missed.unwrap_or(0));
        self.is_more |= gap.missed.is_none();
    }

    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }

    fn count(self) -> String {
        match (self.events, self.is_more) {
            (0, _) => "an unknown number of events, perhaps with results, were".to_owned(),
            (events, true) => format!("{events} events or more, perhaps with results, were"),
            (1, false) => "1 event, perhaps a result, was".to_owned(),
            (events, false) => format!("{events} events, perhaps with results, were"),
        }
    }
}
