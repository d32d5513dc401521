//! The place of a run in the queue, as it was told last. Pure.

/// The number of places in the queue that are right whenever somebody asks. Those further behind may be out of date.
pub(crate) const NEAR_PLACES: usize = 100;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct QueuePlace {
    /// The number of runs that start before it.
    pub(crate) before: usize,
    /// The number of runs that had begun at that moment.
    pub(crate) begun: u64,
}

impl QueuePlace {
    /// Returns the number of runs that start before it once `begun` have begun. Whoever is among the next
    /// [`NEAR_PLACES`] has been told since.
    pub(crate) fn before(self, begun: u64) -> usize {
        if begun == self.begun {
            return self.before;
        }
        let since = usize::try_from(begun - self.begun).unwrap_or(usize::MAX);
        self.before.saturating_sub(since).max(NEAR_PLACES.min(self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_moves_on_with_the_runs_that_begin_and_stays_behind_the_near_ones() {
        let place = QueuePlace { before: 150, begun: 7 };
        for (begun, before) in [(7, 150), (8, 149), (57, 100), (58, 100), (900, 100)] {
            assert_eq!(place.before(begun), before, "{begun}");
        }
        assert_eq!(QueuePlace { before: 3, begun: 7 }.before(8), 3);
    }
}
