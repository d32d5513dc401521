//! The work of a sort: counted where its amount is known before, and otherwise estimated by a rule with a name.

use super::action::{Algorithm, Criterion};
use super::sorting::{merge_writes, radix_writes};

/// The work of a sort, before it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SortWork {
    pub(super) unit: Unit,
    /// The amount, in units.
    pub(super) total: u64,
    /// The rule that gives the total.
    pub(super) rule: &'static str,
    /// True if the total is certain; otherwise it is an estimate.
    pub(super) is_exact: bool,
}

/// The steps that count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    Comparisons,
    Writes,
}

impl Unit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Comparisons => "comparisons",
            Self::Writes => "writes",
        }
    }
}

impl SortWork {
    /// Returns the work of sorting a list of this length. Estimates hold for a list in random order.
    pub(super) fn new(algorithm: Algorithm, criterion: Criterion, len: usize) -> Self {
        let n = len as f64;
        let n_log_n = n * n.max(1.0).log2();
        let pairs = len as u64 * (len as u64).saturating_sub(1) / 2;
        match algorithm {
            Algorithm::Selection => Self::counted(Unit::Comparisons, pairs, "n(n-1)/2"),
            Algorithm::Merge => Self::counted(Unit::Writes, merge_writes(len), "n for each pass"),
            Algorithm::Radix => {
                let writes = radix_writes(len, criterion.key_max(len));
                Self::counted(Unit::Writes, writes, "n for each digit")
            }
            Algorithm::Insertion => Self::estimate(n * n / 4.0, "n*n/4"),
            Algorithm::Bubble => Self::estimate(pairs as f64, "at most n(n-1)/2"),
            Algorithm::Cocktail => Self::estimate(n * n / 3.0, "n*n/3"),
            Algorithm::Heap => Self::estimate(2.0 * n_log_n, "2 n log2(n)"),
            Algorithm::Quick => Self::estimate(1.39 * n_log_n, "1.39 n log2(n)"),
            Algorithm::Tim => {
                // Insertion sorts the short runs, of 48 elements on average.
                let run = n.min(48.0);
                let rule = "n r/4 + n log2(n/r), r = 48";
                Self::estimate(n * run / 4.0 + n * (n / run).log2(), rule)
            }
            Algorithm::Comb => Self::estimate(2.5 * n_log_n, "2.5 n log2(n)"),
            Algorithm::Shell => Self::estimate(1.7 * n.powf(1.3), "1.7 n^1.3"),
        }
    }

    fn counted(unit: Unit, total: u64, rule: &'static str) -> Self {
        Self { unit, total, rule, is_exact: true }
    }

    fn estimate(total: f64, rule: &'static str) -> Self {
        let total = (total.ceil() as u64).max(1);
        Self { unit: Unit::Comparisons, total, rule, is_exact: false }
    }

    /// Returns how much of the total is done, after these steps: less than all of it, since the sort still runs.
    pub(super) fn done(&self, comparisons: u64, writes: u64) -> f64 {
        let done = match self.unit {
            Unit::Comparisons => comparisons,
            Unit::Writes => writes,
        };
        done.min(self.total) as f64
    }
}
