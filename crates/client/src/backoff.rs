//! The delays before trying again. Pure: the random number is an argument.

use std::time::Duration;

/// The delays before a connection is tried again, and the number of attempts.
///
/// ```
/// use anemone_client::{Error, Retry, Subscribe};
///
/// # fn main() -> Result<(), Error> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let once = Retry { failures_max: Some(0), ..Retry::default() };
/// let mut subscription = Subscribe::new("unix:/no/such/socket:/topics/wind").retry(once).start()?;
/// let error = subscription.next().await.unwrap_err();
/// assert!(matches!(error, Error::Connect(_)), "{error:?}");
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retry {
    /// The first delay. Default 250 ms.
    pub delay_min: Duration,
    /// The longest delay, unless a server asks for more. Default 30 s.
    pub delay_max: Duration,
    /// The most failures in a row. The next failure is returned as an error. Default: unlimited.
    pub failures_max: Option<u32>,
}

impl Retry {
    /// The longest `Retry-After` that is respected; a longer one counts as this time.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
}

impl Default for Retry {
    fn default() -> Self {
        let delay_min = Duration::from_millis(250);
        Self { delay_min, delay_max: Duration::from_secs(30), failures_max: None }
    }
}

/// The delays of one client. The longest delay doubles with each failure.
#[derive(Debug)]
pub(crate) struct Backoff {
    retry: Retry,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(retry: Retry) -> Self {
        Self { retry, failures: 0 }
    }

    /// Counts a failure. Returns the delay before the next attempt, or `None` to give up. `chance` is from 0 to 1 and
    /// determines half of the delay: clients that lost their server together then do not return together. `asked` is
    /// the delay that the server asked for; the delay is never less.
    pub(crate) fn next_delay(&mut self, chance: f64, asked: Option<Duration>) -> Option<Duration> {
        let longest = self.longest()?;
        let delay = longest.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        Some(delay.max(asked_for(asked)))
    }

    /// Counts a failed call. `chance` determines the whole delay, and the delay that the server asked for is added.
    /// Many clients may have called at once and got the same answer, so they spread more than in
    /// [`next_delay`](Self::next_delay).
    pub(crate) fn next_call_delay(
        &mut self,
        chance: f64,
        asked: Option<Duration>,
    ) -> Option<Duration> {
        let delay = self.longest()?.mul_f64(chance.clamp(0.0, 1.0));
        Some(delay.saturating_add(asked_for(asked)))
    }

    /// Counts a failure. Returns the longest delay before the next attempt, or `None` to give up.
    fn longest(&mut self) -> Option<Duration> {
        if self.retry.failures_max.is_some_and(|most| self.failures >= most) {
            return None;
        }
        let doubled = 2_u32.saturating_pow(self.failures.min(31));
        self.failures += 1;
        Some(self.retry.delay_min.saturating_mul(doubled).min(self.retry.delay_max))
    }

    /// Returns the sum of the longest delays of all attempts; `None` if their number is unlimited.
    pub(crate) fn longest_total(&self) -> Option<Duration> {
        let failures_max = self.retry.failures_max?;
        let mut all = Self::new(self.retry);
        // Later delays are all the longest one.
        let doubling = failures_max.min(64);
        let sum: Duration = (0..doubling).filter_map(|_| all.longest()).sum();
        Some(sum.saturating_add(self.retry.delay_max.saturating_mul(failures_max - doubling)))
    }

    /// Resets the delays after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

fn asked_for(asked: Option<Duration>) -> Duration {
    asked.unwrap_or_default().min(Retry::RETRY_AFTER_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delays(backoff: &mut Backoff, count: usize, chance: f64) -> Vec<u128> {
        (0..count).filter_map(|_| Some(backoff.next_delay(chance, None)?.as_millis())).collect()
    }

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_progress() {
        let mut backoff = Backoff::new(Retry::default());
        let longest = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
        assert_eq!(delays(&mut backoff, 9, 1.0), longest);
        backoff.reset();
        assert_eq!(delays(&mut backoff, 3, 0.0), [125, 250, 500]);
    }

    #[test]
    fn what_the_server_asks_for_is_waited_at_least_but_not_for_ever() {
        let mut backoff = Backoff::new(Retry::default());
        let seconds = Duration::from_secs;
        assert_eq!(backoff.next_delay(1.0, Some(seconds(7))), Some(seconds(7)));
        assert_eq!(backoff.next_delay(1.0, Some(Duration::ZERO)), Some(Duration::from_millis(500)));
        assert_eq!(backoff.next_delay(1.0, Some(seconds(1 << 40))), Some(Retry::RETRY_AFTER_MAX));
    }

    #[test]
    fn calls_come_back_at_any_moment_after_the_time_that_was_asked_for() {
        let mut backoff = Backoff::new(Retry::default());
        let (seconds, millis) = (Duration::from_secs, Duration::from_millis);
        assert_eq!(backoff.next_call_delay(0.0, None), Some(Duration::ZERO));
        assert_eq!(backoff.next_call_delay(1.0, None), Some(millis(500)));
        assert_eq!(backoff.next_call_delay(0.5, Some(seconds(2))), Some(millis(2500)));
        assert_eq!(backoff.next_call_delay(0.0, Some(seconds(2))), Some(seconds(2)));
    }

    #[test]
    fn it_gives_up_after_as_many_failures_as_it_may() {
        let retry = Retry { failures_max: Some(2), ..Retry::default() };
        assert_eq!(delays(&mut Backoff::new(retry), 5, 1.0).len(), 2);
    }

    #[test]
    fn the_time_until_it_gives_up_is_known() {
        let total = |failures_max| {
            let backoff = Backoff::new(Retry { failures_max, ..Retry::default() });
            backoff.longest_total().map(|total| total.as_millis())
        };
        assert_eq!((total(None), total(Some(0))), (None, Some(0)));
        assert_eq!(total(Some(8)), Some(61_750));
        assert_eq!(total(Some(u32::MAX)).map(|total| total > 1 << 40), Some(true));
    }

    proptest! {
        #[test]
        fn any_wait_is_within_its_bounds(failures in 0_usize..200, chance in -1.0..2.0) {
            let mut backoff = Backoff::new(Retry::default());
            for _ in 0..failures {
                backoff.next_delay(chance, None);
            }
            let delay = backoff.next_delay(chance, None).unwrap();
            prop_assert!((Duration::from_millis(125)..=Duration::from_secs(30)).contains(&delay));
        }
    }
}
