//! The parameters of queries, and the problem of an invalid one.

use std::borrow::Cow;

use crate::reply::problem::excerpt;
use crate::{Kind, Problem};

/// Returns the problem of an invalid parameter or field.
pub(crate) fn bad(name: &str, detail: &str) -> Problem {
    Problem::new(Kind::BadParameter, format!("{name} {detail}"))
}

/// Passes each parameter of a query to `take`, which returns whether it knows it. `known` lists the known ones.
pub(crate) fn take_each(
    query: Option<&str>,
    known: &str,
    take: impl FnMut(&str, &str) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    take_pairs(form_urlencoded::parse(query.unwrap_or_default().as_bytes()), known, take)
}

/// Passes each of these parameters to `take`, as [`take_each`] does.
pub(super) fn take_pairs<'a>(
    pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    known: &str,
    mut take: impl FnMut(&str, &str) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    let mut seen = Vec::new();
    for (name, value) in pairs {
        if seen.contains(&name) {
            return Err(bad(&name, "is given twice"));
        }
        if !take(&name, &value)? {
            return Err(bad(&excerpt(&name, 40), &format!("is not a parameter: {known}")));
        }
        seen.push(name);
    }
    Ok(())
}

pub(super) fn parse_limit(value: &str, max: usize) -> Result<usize, Problem> {
    match value.parse() {
        Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
        _ => {
            let value = excerpt(value, 40);
            Err(bad("limit", &format!("is {value:?}: must be a whole number from 1 to {max}")))
        }
    }
}
