//! Queries of find, as Feathers spells them ("Resources" in `docs/PROTOCOL.md`). Pure.

mod filter;
mod key;
mod page;
mod parse;

pub use self::filter::Filter;
pub use self::page::Query;
pub(crate) use self::page::STEP_RECORDS;

/// An error of a query.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// There is no such parameter or operator (400).
    #[error("{0} is not a parameter: the parameters are {PARAMETERS}")]
    UnknownParameter(String),
    /// A percent-escape is not valid (400).
    #[error("two hexadecimal digits must follow each % in a query, and encode UTF-8, not {0:?}")]
    BadEscape(String),
    /// A parameter is given twice (400).
    #[error("{0} is given twice")]
    Twice(String),
    /// A value cannot be parsed (400).
    #[error("{parameter} must be {expected}, not {value:?}")]
    BadValue {
        /// The name of the parameter.
        parameter: String,
        /// The values that are allowed.
        expected: String,
        /// Its value.
        value: String,
    },
    /// The query is larger than a limit (400).
    #[error("a query has at most {most} {what}")]
    TooMany {
        /// The limited thing.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// A filter or an order uses something that is not a field, or a field whose values cannot be compared (422).
    #[error("{0} is not a field to filter or sort by")]
    UnknownField(String),
}

const PARAMETERS: &str = "FIELD, FIELD[$ne], [$lt], [$lte], [$gt], [$gte], [$in][], [$nin][], $or[N][…], $sort[FIELD], \
                          $limit, $skip and $select[]";

#[cfg(test)]
mod tests;
