//! Environment variables for keys: `ANEMONE_LIMITS__WAIT_MAX` for `limits.wait_max`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::document::Node;
use super::fault::Faults;
use super::place::Place;
use super::variable::{PREFIX, SEPARATOR};

/// The variable with the path of the configuration file.
pub(super) const FILE: &str = "ANEMONE_CONFIG";

/// The variables of this program.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// The file named by `ANEMONE_CONFIG`.
    pub(super) file: Option<PathBuf>,
    /// Names and values, sorted by name.
    settings: Vec<(String, OsString)>,
}

impl Variables {
    /// Takes this program's variables from an environment. Empty ones count as unset, since many tools cannot unset
    /// variables.
    pub(super) fn of(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut found = Self::default();
        for (name, value) in environment {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            match name {
                _ if value.is_empty() => {}
                FILE => found.file = Some(value.into()),
                _ => found.settings.push((name.to_owned(), value)),
            }
        }
        found.settings.sort();
        found
    }

    /// Overrides the values of the file.
    pub(super) fn apply(&self, node: &mut Node, faults: &Faults) {
        for (name, value) in &self.settings {
            let place = Place::Variable(name.clone());
            let Some(value) = value.to_str() else {
                faults.add(&place, "its value is not UTF-8");
                continue;
            };
            if *name != name.to_uppercase() {
                let upper = name.to_uppercase();
                faults.add(&place, format!("write its name in upper case, {upper}"));
                continue;
            }
            let path = name[PREFIX.len()..].to_lowercase();
            let path: Vec<_> = path.split(SEPARATOR).map(str::to_owned).collect();
            node.set(&path, name, value);
        }
    }
}
