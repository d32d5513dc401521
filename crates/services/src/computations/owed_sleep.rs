//! The time for which a computation with a pace sleeps: it takes a small share of a processor, whatever its pace. Pure.

use std::time::Duration;

use anemone_hub::run::RunWork;

/// The longest sleep that a work may put off, so that it computes in pieces of some length.
const OWED_MAX: Duration = Duration::from_millis(500);

/// The sleep that a [light](RunWork::light) work owes for the time for which it has computed.
#[derive(Debug)]
pub(super) struct OwedSleep {
    owed: Duration,
}

impl OwedSleep {
    /// Begins with as much as may be put off: a run sleeps at once for what it computes. Otherwise, many short runs would take
    /// more of a processor than one long run.
    pub(super) fn new() -> Self {
        Self { owed: OWED_MAX }
    }

    pub(super) fn worked(&mut self, time: Duration) {
        self.owed = self.owed.saturating_add(time.saturating_mul(RunWork::LIGHT_ONE_IN - 1));
    }

    /// Notes that it has slept for this time. Sleep that it does not owe is not kept for later.
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
            let (mut sleep, mut spans) = (OwedSleep::new(), Vec::new());
            for (work, idle) in steps {
                // A turn, a wait for the pace, and the sleep that is due.
                sleep.worked(micros(work));
                sleep.slept(micros(idle));
                let due = sleep.due();
                sleep.slept(due);
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
