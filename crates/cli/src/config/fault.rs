//! The errors in a configuration, reported together.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use super::place::Place;
use super::variable::variable;

/// One error.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    place: Place,
    message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// An invalid configuration: each error on its own line.
#[derive(Debug, thiserror::Error)]
pub(crate) struct ConfigError {
    faults: Vec<Fault>,
    /// True if a flag is wrong, alone or in combination.
    is_wrong_use: bool,
}

impl ConfigError {
    /// Creates an error about this machine, on which something named is missing.
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { faults: vec![Fault { place, message: message.into() }], is_wrong_use: false }
    }

    /// Creates an error about a value that is never valid; on the command line that is wrong use.
    pub(crate) fn never(place: Place, message: impl Into<String>) -> Self {
        let is_wrong_use = matches!(place, Place::Flag(_));
        Self { is_wrong_use, ..Self::new(place, message) }
    }

    /// Returns true if the command line is wrong.
    pub(crate) fn is_wrong_use(&self) -> bool {
        self.is_wrong_use
    }

    pub(crate) fn count(&self) -> usize {
        self.faults.len()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Unknown {
    place: Place,
    /// The prefix of its table, such as `limits.`; empty for the root.
    prefix: String,
    key: String,
    /// The keys of the table.
    known: Vec<&'static str>,
}

/// The errors found while reading, and the known keys.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: RefCell<Vec<Fault>>,
    unknown: RefCell<Vec<Unknown>>,
    known: RefCell<BTreeSet<String>>,
}

impl Faults {
    pub(crate) fn add(&self, place: &Place, message: impl Into<String>) {
        let fault = Fault { place: place.clone(), message: message.into() };
        self.found.borrow_mut().push(fault);
    }

    /// Records a known key.
    pub(super) fn know(&self, path: String) {
        self.known.borrow_mut().insert(path);
    }

    pub(super) fn add_unknown(
        &self,
        place: &Place,
        prefix: &str,
        key: &str,
        known: &[&'static str],
    ) {
        let (place, known) = (place.clone(), known.to_vec());
        let unknown = Unknown { place, prefix: prefix.to_owned(), key: key.to_owned(), known };
        self.unknown.borrow_mut().push(unknown);
    }

    /// Returns all requested keys, such as `limits.wait_max`.
    #[cfg(test)]
    pub(super) fn known(&self) -> BTreeSet<String> {
        self.known.borrow().clone()
    }

    /// # Errors
    /// All errors, in the order of the file.
    pub(crate) fn into_result(self) -> Result<(), ConfigError> {
        let known = self.known.into_inner();
        let mut faults = self.found.into_inner();
        // Only now the keys of all tables are known.
        faults.extend(self.unknown.into_inner().into_iter().map(|unknown| unknown.fault(&known)));
        faults.sort_by_key(|fault| fault.place.order());
        let is_wrong_use = faults.iter().any(|fault| matches!(fault.place, Place::Flag(_)));
        if faults.is_empty() { Ok(()) } else { Err(ConfigError { faults, is_wrong_use }) }
    }
}

impl Unknown {
    fn fault(self, everywhere: &BTreeSet<String>) -> Fault {
        let Self { place, prefix, key, known } = self;
        let near = closest(&key, known.iter().copied()).map(|near| format!("{prefix}{near}"));
        let same = || everywhere.iter().find(|path| path.rsplit('.').next() == Some(&*key));
        let hint = near.as_ref().or_else(same).map(|path| match &place {
            Place::Variable(_) => variable(path),
            _ => format!("`{path}`"),
        });
        let hint = hint.map(|hint| format!("; did you mean {hint}?")).unwrap_or_default();
        let message = match &place {
            Place::Variable(_) => format!("there is no setting `{prefix}{key}`{hint}"),
            _ => format!("unknown key `{prefix}{key}`{hint}"),
        };
        Fault { place, message }
    }
}

pub(crate) fn closest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let distance = |other: &str| strsim::damerau_levenshtein(&word, &other.replace('-', "_"));
    words
        .map(|other| (distance(other), other))
        .filter(|(distance, other)| *distance <= (other.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_taken_for_one_that_differs_little() {
        let words = ["listen", "limits", "tcp", "tcp_echo", "on-failure"];
        for (word, expected) in [
            ("lisen", Some("listen")),
            ("Listen", Some("listen")),
            ("tcpecho", Some("tcp_echo")),
            ("tcp-echo", Some("tcp_echo")),
            ("tpc", Some("tcp")),
            ("on_failure", Some("on-failure")),
            ("udp", None),
            ("", None),
            ("port", None),
        ] {
            assert_eq!(closest(word, words.into_iter()), expected, "{word}");
        }
    }
}
