//! The parameters of queries, and the problem of one that is wrong.

use crate::{Kind, Problem};

/// A parameter or field that does not say what it must.
pub(super) fn bad(name: &str, detail: &str) -> Problem {
    Problem::new(Kind::BadParameter, format!("{name} {detail}"))
}

/// A number of things to list, or to have in a page.
pub(super) fn parse_limit(value: &str, max: usize) -> Result<usize, Problem> {
    match value.parse() {
        Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
        _ => {
            let value: String = value.chars().take(40).collect();
            Err(bad("limit", &format!("is {value:?}: must be a whole number from 1 to {max}")))
        }
    }
}
