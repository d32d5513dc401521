//! A limit on the lines that are logged in an interval. Pure: `now` is the time since the limit was created.

use std::time::Duration;

#[derive(Debug)]
pub(super) struct Allowance {
    lines_max: u32,
    interval: Duration,
    /// The time at which the current interval began.
    since: Duration,
    used: u32,
    /// The number of lines that were not logged in this interval.
    refused: u64,
}

impl Allowance {
    pub(super) fn new(lines_max: u32, interval: Duration) -> Self {
        Self { lines_max, interval, since: Duration::ZERO, used: 0, refused: 0 }
    }

    /// Returns true if a line may be logged now. Before logging it, call [`Allowance::take_refused`].
    pub(super) fn take(&mut self, now: Duration) -> bool {
        if now >= self.since + self.interval {
            self.since = now;
            self.used = 0;
        }
        let allowed = self.used < self.lines_max;
        if allowed {
            self.used += 1;
        } else {
            self.refused += 1;
        }
        allowed
    }

    /// Returns the time at which to report the refused lines; `None` if no line was refused.
    pub(super) fn due(&self) -> Option<Duration> {
        (self.refused > 0).then_some(self.since + self.interval)
    }

    /// Returns the number of refused lines if it is time to report them, and resets it.
    pub(super) fn take_refused(&mut self, now: Duration) -> Option<u64> {
        (now >= self.due()?).then(|| std::mem::take(&mut self.refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_the_limit_is_counted_until_the_interval_is_over() {
        let secs = Duration::from_secs;
        let mut allowance = Allowance::new(2, secs(10));
        let taken = [1, 1, 2, 3].map(|at| allowance.take(secs(at)));
        assert_eq!(taken, [true, true, false, false]);
        assert_eq!(allowance.take_refused(secs(9)), None);
        assert_eq!(allowance.due(), Some(secs(10)));
        assert_eq!(allowance.take_refused(secs(10)), Some(2));
        assert_eq!((allowance.due(), allowance.take_refused(secs(30))), (None, None));
        assert!(allowance.take(secs(10)));
    }

    #[test]
    fn an_interval_begins_with_its_first_line() {
        let secs = Duration::from_secs;
        let mut allowance = Allowance::new(1, secs(10));
        assert_eq!([25, 34, 35].map(|at| allowance.take(secs(at))), [true, false, true]);
    }
}
