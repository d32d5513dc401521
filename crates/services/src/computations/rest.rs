//! The time for which a computation with a pace sleeps: it takes a small share of a processor, whatever its pace. Pure.

use std::time::Duration;

use anemone_hub::run::RunWork;

/// The sleep that may be put off, so that work in small pieces is not interrupted.
const OWED_MAX: Duration = Duration::from_millis(500);

/// The sleep that a [light](RunWork::light) work owes for what it has computed.
#[derive(Debug)]
pub(super) struct Rest {
    owed: Duration,
}

impl Rest {
    /// Nothing may be put off yet, so that one short run after another takes no more than a long one.
    pub(super) fn new() -> Self {
        Self { owed: OWED_MAX }
    }

    /// Notes that it has computed for this time.
    pub(super) fn worked(&mut self, time: Duration) {
        self.owed = self.owed.saturating_add(time.saturating_mul(RunWork::LIGHT_ONE_IN - 1));
    }

    /// Notes that it has slept for this time. A long sleep allows no longer work after it.
    pub(super) fn slept(&mut self, time: Duration) {
        self.owed = self.owed.saturating_sub(time);
    }

    /// Returns the time to sleep before it computes on.
    pub(super) fn due(&self) -> Duration {
        self.owed.saturating_sub(OWED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn of_any_stretch_of_time_at_most_its_share_is_work(
            steps in prop::collection::vec((0..2_000_u64, 0..60_000_u64), 1..200),
        ) {
            let micros = Duration::from_micros;
            let (mut rest, mut spans) = (Rest::new(), Vec::new());
            for (work, idle) in steps {
                // A turn, a pause of the pace, and the sleep that is due.
                rest.worked(micros(work));
                rest.slept(micros(idle));
                let due = rest.due();
                rest.slept(due);
                spans.push((micros(work), micros(idle) + due));
            }
            let all: Duration = spans.iter().map(|(work, slept)| *work + *slept).sum();
            let worked: Duration = spans.iter().map(|(work, _)| *work).sum();
            prop_assert!(worked * RunWork::LIGHT_ONE_IN <= all, "from the beginning, nothing is put off");
            for begin in 0..spans.len() {
                let (mut worked, mut all) = (Duration::ZERO, Duration::ZERO);
                for (work, slept) in &spans[begin..] {
                    worked += *work;
                    all += *work + *slept;
                    prop_assert!(worked * RunWork::LIGHT_ONE_IN <= all + OWED_MAX);
                }
            }
        }
    }
}
