//! Computes the difference between two clocks from probes. The probe with the least delay gives the most exact
//! difference.

/// A question for the time of the other clock. Each time is in milliseconds of the clock that gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) asked: f64,
    pub(crate) theirs: f64,
    pub(crate) answered: f64,
}

/// The time of the other clock minus that of this one, in milliseconds. It is exact to `bound`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Offset {
    pub(crate) offset: f64,
    pub(crate) bound: f64,
}

/// The number of probes in a block.
pub(crate) const PROBES: usize = 32;

impl Offset {
    /// Returns the offset from the probe with the least delay; `None` if there are no probes.
    pub(crate) fn of(probes: &[Probe]) -> Option<Self> {
        let delay = |probe: &Probe| probe.answered - probe.asked;
        let best = probes.iter().min_by(|one, other| delay(one).total_cmp(&delay(other)))?;
        // It was their time at some moment between the question and the answer.
        let middle = f64::midpoint(best.asked, best.answered);
        Some(Self { offset: best.theirs - middle, bound: delay(best) / 2.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_with_the_least_delay_counts_and_bounds_the_error() {
        let probe = |asked, theirs, answered| Probe { asked, theirs, answered };
        // Their clock is 100 ahead; the way there is slower than the way back.
        let probes = [probe(0.0, 109.0, 10.0), probe(20.0, 121.5, 22.0), probe(30.0, 130.5, 35.0)];
        let found = Offset::of(&probes).unwrap();
        assert_eq!(found, Offset { offset: 100.5, bound: 1.0 });
        assert!((found.offset - 100.0).abs() <= found.bound);
        assert_eq!(Offset::of(&[]), None);
    }
}
