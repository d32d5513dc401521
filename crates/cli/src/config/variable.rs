//! The name of the variable that stands for a key.

pub(super) const PREFIX: &str = "ANEMONE_";

/// Between a table and its key: a single one is part of a name.
pub(super) const SEPARATOR: &str = "__";

/// The variable for a key.
pub(super) fn variable(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', SEPARATOR).to_uppercase())
}
