//! The parameters of queries, and the problem of an invalid one.

use crate::{Kind, Problem};

/// Returns the problem of an invalid parameter or field.
pub(super) fn bad(name: &str, detail: &str) -> Problem {
    Problem::new(Kind::BadParameter, format!("{name} {detail}"))
}

/// Parses the limit of a list or page.
pub(super) fn parse_limit(value: &str, max: usize) -> Result<usize, Problem> {
    match value.parse() {
        Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
        _ => {
            let value: String = value.chars().take(40).collect();
            Err(bad("limit", &format!("is {value:?}: must be a whole number from 1 to {max}")))
        }
    }
}
