//! The delay before the next attempt. Pure: the random number is an argument.

use std::time::Duration;

/// The delays before attempts. They double from `min` to `max`.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min }
    }

    /// Returns the delay before the next attempt. `chance` from 0 to 1 shortens it by up to a quarter, so that many
    /// sources do not all come back at once.
    pub(crate) fn next(&mut self, chance: f64) -> Duration {
        let step = self.next.min(self.max);
        self.next = (step * 2).min(self.max);
        step.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 4.0)
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_over_after_a_reset() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(250), ms(5000));
        let waits: Vec<_> = (0..7).map(|_| backoff.next(0.0)).collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 5000, 5000].map(ms));
        backoff.reset();
        assert_eq!(backoff.next(0.0), ms(250));
    }

    #[test]
    fn chance_takes_off_at_most_a_quarter() {
        let mut backoff = Backoff::new(Duration::from_secs(4), Duration::from_secs(4));
        assert_eq!(backoff.next(1.0), Duration::from_secs(3));
        assert_eq!(backoff.next(0.5), Duration::from_millis(3500));
    }
}
