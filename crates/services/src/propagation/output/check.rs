//! The question of an output whether to go on, once for some thousands of points.

use anemone_hub::run::Stopped;

/// The points between two questions: less than a millisecond's work.
const POINTS: usize = 4_096;

/// Asks before the points whose turn it is.
pub(super) fn check_at(
    point: usize,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    if point.is_multiple_of(POINTS) { check() } else { Ok(()) }
}
