//! The name of the environment variable for a key.

pub(super) const PREFIX: &str = "ANEMONE_";

/// The separator between a table and its key; a single underscore is part of a name.
pub(super) const SEPARATOR: &str = "__";

pub(super) fn variable(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', SEPARATOR).to_uppercase())
}
