//! The small files besides the segments: `state.json` of the data directory, and each topic's `topic.json`. Owns
//! their format and the rule for continuing an epoch.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::marks::Marks;
use super::options::Fsync;
use super::platform::{Identity, Platform};
use super::scan::Tail;
use crate::error::Action;
use crate::{Epoch, KeyWindow, Note, OpenError, Position, Retention, StorageError, TopicOptions};

/// The format that this version writes and reads.
pub(super) const FORMAT: u32 = 2;

pub(super) const STATE_FILE: &str = "state.json";

/// `state.json`, written when a data directory is opened and when it is closed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct State {
    format: u32,
    /// The start of the machine in which the directory was opened.
    boot: Option<String>,
    /// True if no event was acknowledged before it was flushed.
    flushed_always: bool,
    /// The number of times that the directory was opened; the names of the next two files end with it.
    session: u64,
    /// A file that is created when the directory is opened, and never changed.
    witness: Identity,
    /// The file of high marks, which changes.
    marks: Identity,
    /// The epoch of future topics, which waiting readers already have. None once a topic was deleted, since a topic
    /// of its name begins another epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coming: Option<String>,
    /// After closing: the newest position of each topic, by its directory.
    closed: Option<BTreeMap<String, String>>,
}

pub(super) fn witness_path(directory: &Path, session: u64) -> PathBuf {
    directory.join(format!("{WITNESS}{session}"))
}

pub(super) fn marks_path(directory: &Path, session: u64) -> PathBuf {
    directory.join(format!("{MARKS}{session}"))
}

pub(super) fn session_of(name: &str) -> Option<u64> {
    name.strip_prefix(WITNESS).or_else(|| name.strip_prefix(MARKS))?.parse().ok()
}

const WITNESS: &str = "witness.";
const MARKS: &str = "marks.";

impl State {
    /// Creates the state of an open data directory, once the files of this session exist.
    pub(super) fn open(
        platform: &dyn Platform,
        directory: &Path,
        session: u64,
        fsync: Fsync,
        coming: Option<Epoch>,
    ) -> io::Result<Self> {
        Ok(Self {
            format: FORMAT,
            boot: platform.boot(),
            flushed_always: fsync == Fsync::Always,
            session,
            witness: platform.identity(&witness_path(directory, session))?,
            marks: platform.identity(&marks_path(directory, session))?,
            coming: coming.map(|epoch| epoch.to_string()),
            closed: None,
        })
    }

    pub(super) fn into_closed(self, heads: &BTreeMap<String, Position>) -> Self {
        let text = |(name, head): (&String, &Position)| (name.clone(), head.to_string());
        Self { closed: Some(heads.iter().map(text).collect()), ..self }
    }

    /// Returns the state after a topic was deleted; `None` if it has no coming epoch already.
    pub(super) fn without_coming(&self) -> Option<Self> {
        self.coming.as_ref().map(|_| Self { coming: None, ..self.clone() })
    }

    pub(super) fn to_json(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec_pretty(self)?)
    }
}

/// The way in which the last session ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Past {
    /// The directory was closed, with these newest positions.
    Closed(BTreeMap<String, Position>),
    /// The process ended without closing it. The machine continued, so everything written is there.
    Killed,
    /// The machine was restarted since. Events that were not flushed may be lost.
    Crashed {
        /// True if no event was acknowledged before it was flushed.
        flushed_always: bool,
    },
    /// The state is missing or cannot be read.
    Unknown,
}

/// The history of a data directory, as far as it is known when it is opened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct History {
    pub(super) past: Past,
    /// The number of times that it was opened before.
    pub(super) session: u64,
    /// True for a copy, or a directory restored from one: its readers may be ahead of it.
    pub(super) is_copy: bool,
    /// True for a copy that is treated as the original.
    pub(super) is_adopted: bool,
    /// The newest acknowledged position of each topic, by its directory.
    pub(super) marks: BTreeMap<String, Position>,
    /// The epoch of future topics, if all [listed](Self::listed) topics are there and no other one can have had that
    /// epoch.
    pub(super) coming: Option<Epoch>,
}

impl History {
    /// Reads the history from the files of a directory, on a machine that was started as `boot`. With `adopt`, a copy
    /// is treated as the original.
    pub(super) fn read(
        platform: &dyn Platform,
        directory: &Path,
        adopt: bool,
    ) -> Result<Self, OpenError> {
        let Some(state) = read_json::<State>(&directory.join(STATE_FILE))? else {
            let marks = BTreeMap::new();
            return Ok(Self {
                past: Past::Unknown,
                session: 0,
                is_copy: false,
                is_adopted: false,
                marks,
                coming: None,
            });
        };
        let State { boot, flushed_always, session, witness, marks, coming, closed, .. } = state;
        let is_same_boot = boot.is_some() && boot == platform.boot();
        let past = match closed {
            Some(heads) => {
                let parsed = |(name, text): (String, String)| Some((name, text.parse().ok()?));
                Past::Closed(heads.into_iter().filter_map(parsed).collect())
            }
            None if is_same_boot => Past::Killed,
            None => Past::Crashed { flushed_always },
        };
        let found = platform.identity(&witness_path(directory, session));
        let is_own = found.is_ok_and(|found| witness.is_untouched(&found, is_same_boot));
        let (is_copy, is_adopted) = (!is_own && !adopt, !is_own && adopt);
        let path = marks_path(directory, session);
        let are_own = adopt
            || platform.identity(&path).is_ok_and(|found| marks.is_same_file(&found, is_same_boot));
        let marks = match are_own {
            true => {
                Marks::read(&path).map_err(|error| StorageError::new(Action::Read, &path, error))?
            }
            false => BTreeMap::new(),
        };
        let is_known = match past {
            Past::Closed(_) => true,
            Past::Killed => are_own,
            Past::Crashed { .. } | Past::Unknown => false,
        };
        let coming = coming.filter(|_| is_known && is_own).and_then(|text| epoch(&text));
        Ok(Self { past, session, is_copy, is_adopted, marks, coming })
    }

    /// Returns the directories of the topics that existed.
    pub(super) fn listed(&self) -> impl Iterator<Item = &String> {
        match &self.past {
            Past::Closed(heads) => heads.keys(),
            Past::Killed | Past::Crashed { .. } | Past::Unknown => self.marks.keys(),
        }
    }

    /// Returns the offset that a topic of this epoch must have reached; a lower one means that its end was lost.
    /// `None` if that is unknown, and the end may be lost.
    pub(super) fn expected(&self, directory: &str, epoch: Epoch) -> Option<u64> {
        let positions = match &self.past {
            Past::Closed(heads) => heads,
            Past::Killed | Past::Crashed { flushed_always: true } => &self.marks,
            Past::Crashed { flushed_always: false } | Past::Unknown => return None,
        };
        positions.get(directory).filter(|mark| mark.epoch == epoch).map(|mark| mark.offset)
    }

    /// Returns true if a topic in this state keeps its epoch, because no event that a reader may have seen is lost.
    /// Otherwise offsets that readers know could be given again, so a new epoch begins.
    pub(super) fn keeps_epoch(&self, directory: &str, found: Position, tail: Tail) -> bool {
        let Some(expected) = self.expected(directory, found.epoch) else { return false };
        !self.is_copy
            && match &self.past {
                Past::Closed(_) => tail == Tail::Whole && found.offset == expected,
                // Everything that a killed process wrote is there, unless it was damaged since. Nobody has seen the
                // record that it was writing.
                Past::Killed => tail != Tail::Garbage && found.offset >= expected,
                Past::Crashed { .. } => found.offset >= expected,
                Past::Unknown => false,
            }
    }
}

/// `topic.json`: the facts about a topic besides its events.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Meta {
    format: u32,
    /// The name of its directory.
    topic: String,
    epoch: String,
    events_max: u64,
    bytes_max: u64,
    age_max_seconds: f64,
    keys_max: usize,
    keys_age_max_seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note_replaces: Option<String>,
}

/// A note without a batch. It counts until a later batch has a note.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct OwnNote {
    pub(super) note: Note,
    /// The newest note of a batch at the time when it was set.
    pub(super) replaces: Option<Note>,
}

impl OwnNote {
    /// Returns the note that counts, given the newest note of a batch.
    pub(super) fn or(own: Option<&Self>, of_batch: Option<&Note>) -> Option<Note> {
        match own {
            Some(own) if own.replaces.as_ref() == of_batch => Some(own.note.clone()),
            _ => of_batch.cloned(),
        }
    }
}

impl Meta {
    pub(super) fn new(topic: &str, epoch: Epoch, options: TopicOptions) -> Self {
        let TopicOptions { retention, keys, .. } = options;
        Self {
            format: FORMAT,
            topic: topic.to_owned(),
            epoch: epoch.to_string(),
            events_max: retention.events_max,
            bytes_max: retention.bytes_max,
            age_max_seconds: retention.age_max.as_secs_f64(),
            keys_max: keys.keys_max,
            keys_age_max_seconds: keys.age_max.as_secs_f64(),
            note: None,
            note_replaces: None,
        }
    }

    pub(super) fn with_note(self, own: Option<&OwnNote>) -> Self {
        let text = |note: &Note| note.as_str().to_owned();
        let note_replaces = own.and_then(|own| own.replaces.as_ref()).map(text);
        Self { note: own.map(|own| text(&own.note)), note_replaces, ..self }
    }

    pub(super) fn own_note(&self) -> Option<OwnNote> {
        let replaces = self.note_replaces.as_ref().and_then(|note| note.parse().ok());
        Some(OwnNote { note: self.note.as_ref()?.parse().ok()?, replaces })
    }

    /// Reads the file of the topic in the directory `topic`; `None` if it is missing, damaged or another topic's.
    pub(super) fn read(path: &Path, topic: &str) -> Result<Option<Self>, OpenError> {
        Ok(read_json(path)?.filter(|meta: &Self| meta.topic == topic))
    }

    pub(super) fn to_json(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec_pretty(self)?)
    }

    pub(super) fn epoch(&self) -> Option<Epoch> {
        epoch(&self.epoch)
    }

    pub(super) fn options(&self) -> TopicOptions {
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let retention = Retention {
            events_max: self.events_max,
            bytes_max: self.bytes_max,
            age_max: seconds(self.age_max_seconds),
        };
        let age_max = seconds(self.keys_age_max_seconds);
        let keys = KeyWindow { keys_max: self.keys_max, age_max };
        TopicOptions { retention, keys, ..TopicOptions::default() }
    }
}

fn epoch(text: &str) -> Option<Epoch> {
    let position: Position = format!("{text}-0").parse().ok()?;
    Some(position.epoch)
}

/// Reads one of these files; `None` if it is missing or damaged.
fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<T>, OpenError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::new(Action::Read, path, error).into()),
    };
    match serde_json::from_slice(&bytes) {
        Ok(Format { format }) if format != FORMAT => {
            Err(OpenError::Format { path: path.to_owned(), format, known: FORMAT })
        }
        _ => Ok(serde_json::from_slice(&bytes).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_goes_on_only_when_no_reader_can_have_seen_what_is_gone() {
        use Tail::{Garbage, Torn, Whole};
        let at = |offset| Position { epoch: Epoch::from_bits(1), offset };
        let positions = || BTreeMap::from([("wind".to_owned(), at(7))]);
        let history = |past, is_copy| History {
            past,
            session: 1,
            is_copy,
            is_adopted: false,
            marks: positions(),
            coming: None,
        };
        let closed = history(Past::Closed(positions()), false);
        let killed = history(Past::Killed, false);
        let always = history(Past::Crashed { flushed_always: true }, false);
        let later = history(Past::Crashed { flushed_always: false }, false);
        let unknown = history(Past::Unknown, false);
        let copies = [&closed, &killed, &always].map(|it| History { is_copy: true, ..it.clone() });
        let unmarked =
            [&killed, &always].map(|it| History { marks: BTreeMap::new(), ..it.clone() });
        for (history, directory, head, tail, expected) in [
            (&closed, "wind", 7, Whole, true),
            (&closed, "wind", 6, Whole, false),
            (&closed, "wind", 8, Whole, false),
            (&closed, "wind", 7, Torn, false),
            (&closed, "other", 7, Whole, false),
            (&killed, "wind", 7, Whole, true),
            (&killed, "wind", 8, Torn, true),
            (&killed, "wind", 7, Garbage, false),
            (&killed, "wind", 6, Whole, false),
            (&killed, "other", 7, Whole, false),
            (&always, "wind", 7, Garbage, true),
            (&always, "wind", 9, Torn, true),
            (&always, "wind", 6, Whole, false),
            (&later, "wind", 7, Whole, false),
            (&unknown, "wind", 7, Whole, false),
            (&copies[0], "wind", 7, Whole, false),
            (&copies[1], "wind", 7, Whole, false),
            (&copies[2], "wind", 7, Whole, false),
            (&unmarked[0], "wind", 7, Whole, false),
            (&unmarked[1], "wind", 7, Whole, false),
        ] {
            let keeps = history.keeps_epoch(directory, at(head), tail);
            assert_eq!(keeps, expected, "{history:?} {directory} {head} {tail:?}");
            let other = Position { epoch: Epoch::from_bits(2), offset: head };
            assert!(!history.keeps_epoch(directory, other, tail));
        }
    }

    #[test]
    fn options_survive_to_the_microsecond_and_at_their_ends() {
        for age_max in [Duration::ZERO, Duration::from_micros(3_600_000_001), Duration::MAX] {
            let retention = Retention { events_max: u64::MAX, bytes_max: 0, age_max };
            let keys = KeyWindow { keys_max: usize::MAX, age_max };
            let options = TopicOptions { retention, keys, ..TopicOptions::default() };
            let meta = Meta::new("wind", Epoch::from_bits(77), options);
            let read: Meta = serde_json::from_slice(&meta.to_json().unwrap()).unwrap();
            assert_eq!((read.epoch(), read.options()), (Some(Epoch::from_bits(77)), options));
        }
    }
}
