//! Tracks each file that comes under a name, until it is opened. It uses the system's notices about the names in a
//! directory, since a file may be renamed, replaced or deleted a moment after it came. Pure.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};

/// The most files that are tracked. Any others count as gone.
const COUNT_MAX: usize = 4096;

/// A notice about a name in the directory. The two notices of a renaming have the same number.
#[derive(Clone, Copy, Debug)]
pub(super) enum DirectoryNotice<'a> {
    Created(&'a OsStr),
    Deleted(&'a OsStr),
    MovedFrom(&'a OsStr, u32),
    MovedTo(&'a OsStr, u32),
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum ArrivalPlace {
    /// The file has this name in the directory.
    Name(OsString),
    /// The file is being renamed, and the second notice of the renaming has not come. If it never comes, the file has
    /// left the directory.
    Moving { number: u32, is_old: bool },
}

/// The files that came under a name and are not opened yet, the oldest first.
#[derive(Debug)]
pub(super) struct Arrivals {
    name: OsString,
    files: VecDeque<ArrivalPlace>,
    /// The number of files that were gone before they could be opened.
    gone: u64,
    /// The number of changes to these files so far.
    version: u64,
}

/// The next file to open: its name, and the version of the names when it had that name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Candidate {
    pub(super) name: OsString,
    version: u64,
}

impl Arrivals {
    pub(super) fn new(name: OsString) -> Self {
        Self { name, files: VecDeque::new(), gone: 0, version: 0 }
    }

    /// Handles a notice. Returns false if the notice is about other names only.
    pub(super) fn note(&mut self, notice: DirectoryNotice<'_>) -> bool {
        let before = self.version;
        match notice {
            DirectoryNotice::Created(name) => {
                self.on_left(name);
                self.come(name);
            }
            DirectoryNotice::Deleted(name) => self.on_left(name),
            DirectoryNotice::MovedFrom(name, number) => {
                if let Some(place) = self.at(name) {
                    *place = ArrivalPlace::Moving { number, is_old: false };
                    self.version += 1;
                }
            }
            DirectoryNotice::MovedTo(name, number) => {
                self.on_left(name);
                let is_it = |place: &&mut ArrivalPlace| matches!(place, ArrivalPlace::Moving { number: other, .. } if *other == number);
                match self.files.iter_mut().find(is_it) {
                    Some(place) => {
                        *place = ArrivalPlace::Name(name.to_owned());
                        self.version += 1;
                    }
                    None => self.come(name),
                }
            }
        }
        let (DirectoryNotice::Created(name)
        | DirectoryNotice::Deleted(name)
        | DirectoryNotice::MovedFrom(name, _)
        | DirectoryNotice::MovedTo(name, _)) = notice;
        self.version != before || name == self.name
    }

    /// Handles the loss of notices: counts one file as gone, since it may have come meanwhile.
    pub(super) fn on_overflow(&mut self) {
        self.gone += 1;
        self.version += 1;
    }

    /// Returns true if a file waits to be opened, or was gone before it could be opened.
    pub(super) fn has_news(&self) -> bool {
        self.gone > 0 || !self.files.is_empty()
    }

    /// Returns the oldest file. After opening it, handle all notices up to then, and call [`Arrivals::on_opened`].
    pub(super) fn next(&mut self) -> Option<Candidate> {
        loop {
            let is_old = match self.files.front_mut()? {
                ArrivalPlace::Name(name) => {
                    return Some(Candidate { name: name.clone(), version: self.version });
                }
                ArrivalPlace::Moving { is_old, .. } => std::mem::replace(is_old, true),
            };
            // The system may be about to tell the other end of the renaming.
            if !is_old {
                return None;
            }
            self.files.pop_front();
            self.gone += 1;
        }
    }

    /// Handles the opening of a file. `is_there` is false if there was no file of that name. Returns false if names
    /// have changed since [`Arrivals::next`], since the opened file may be another one.
    pub(super) fn on_opened(&mut self, candidate: &Candidate, is_there: bool) -> bool {
        if candidate.version != self.version {
            return false;
        }
        self.files.pop_front();
        self.gone += u64::from(!is_there);
        true
    }

    /// Returns the number of files since the last call that were gone before they could be opened.
    pub(super) fn take_gone(&mut self) -> u64 {
        std::mem::take(&mut self.gone)
    }

    fn at(&mut self, name: &OsStr) -> Option<&mut ArrivalPlace> {
        self.files
            .iter_mut()
            .find(|place| matches!(place, ArrivalPlace::Name(other) if other == name))
    }

    fn come(&mut self, name: &OsStr) {
        if name != self.name {
            return;
        }
        self.version += 1;
        if self.files.len() < COUNT_MAX {
            self.files.push_back(ArrivalPlace::Name(name.to_owned()));
        } else {
            self.gone += 1;
        }
    }

    /// Removes the file with this name, since it was deleted or replaced.
    fn on_left(&mut self, name: &OsStr) {
        let found = self
            .files
            .iter()
            .position(|place| matches!(place, ArrivalPlace::Name(at) if at == name));
        if let Some(at) = found {
            self.files.remove(at);
            self.gone += 1;
            self.version += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the arrivals after these notices. `+name` creates a file, `-name` deletes one, and `from>to` renames
    /// one, with `-` for another directory.
    fn after(notices: &[&str]) -> Arrivals {
        let mut arrivals = Arrivals::new("log".into());
        note(&mut arrivals, notices);
        arrivals
    }

    fn note(arrivals: &mut Arrivals, notices: &[&str]) {
        for (number, notice) in (0_u32..).zip(notices) {
            if let Some((from, to)) = notice.split_once('>') {
                if from != "-" {
                    arrivals.note(DirectoryNotice::MovedFrom(from.as_ref(), number));
                }
                if to != "-" {
                    arrivals.note(DirectoryNotice::MovedTo(to.as_ref(), number));
                }
            } else if let Some(name) = notice.strip_prefix('+') {
                arrivals.note(DirectoryNotice::Created(name.as_ref()));
            } else {
                arrivals.note(DirectoryNotice::Deleted(notice[1..].as_ref()));
            }
        }
    }

    /// Opens all files. Returns their names, and the number of files that were gone.
    fn opened(mut arrivals: Arrivals) -> (Vec<String>, u64) {
        let mut names = Vec::new();
        for _ in 0..2 {
            while let Some(candidate) = arrivals.next() {
                names.push(candidate.name.to_str().unwrap().to_owned());
                assert!(arrivals.on_opened(&candidate, true));
            }
        }
        (names, arrivals.take_gone())
    }

    #[test]
    fn a_file_is_found_under_the_name_that_it_has_by_now() {
        for (notices, names, gone) in [
            (&["+log"][..], &["log"][..], 0),
            (&["->log"], &["log"], 0),
            (&["tmp>log"], &["log"], 0),
            (&["+log", "log>log.1"], &["log.1"], 0),
            (&["+log", "log>a", "a>b", "+log"], &["b", "log"], 0),
            (&["+log", "log>log.1", "+log", "log.1>log.2", "log>log.1"], &["log.2", "log.1"], 0),
            (&["+log", "log>x", "x>log"], &["log"], 0),
            (&["+log", "-log"], &[], 1),
            (&["+log", "-log", "+log"], &["log"], 1),
            (&["+log", "tmp>log"], &["log"], 1),
            (&["+log", "log>log.1", "+log", "log>log.1"], &["log.1"], 1),
            (&["+log", "log>log.1", "-log.1"], &[], 1),
            (&["+log", "log>-"], &[], 1),
            (&["+other", "-other", "log.1>log.2", "-log", "log>log.1"], &[], 0),
        ] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(opened(after(notices)), (names, gone), "{notices:?}");
        }
    }

    #[test]
    fn a_file_that_was_opened_while_names_changed_is_opened_again() {
        let mut arrivals = after(&["+log"]);
        let candidate = arrivals.next().unwrap();
        note(&mut arrivals, &["tmp>log"]);
        assert!(!arrivals.on_opened(&candidate, true));
        assert_eq!(opened(arrivals), (vec!["log".to_owned()], 1));
        let mut arrivals = after(&["+log"]);
        let candidate = arrivals.next().unwrap();
        assert!(arrivals.on_opened(&candidate, false));
        assert_eq!(opened(arrivals), (vec![], 1));
    }

    #[test]
    fn more_files_than_are_followed_and_lost_notices_count_as_gone() {
        let notices = ["+log", "log>log.1", "log.1>a"];
        let mut arrivals = Arrivals::new("log".into());
        for number in 0..COUNT_MAX + 2 {
            let name = format!("log.{number}");
            note(&mut arrivals, &["+log", &format!("log>{name}")]);
        }
        assert_eq!(opened(arrivals).1, 2);
        let mut arrivals = after(&notices);
        assert!(arrivals.has_news() && !after(&["+other"]).has_news());
        arrivals.on_overflow();
        assert_eq!(opened(arrivals), (vec!["a".to_owned()], 1));
    }
}
