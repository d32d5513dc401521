//! The small files beside the segments, and what they say about the past: `state.json` of the data
//! directory, and each topic's `topic.json`. Owns their form and the rule when an epoch goes on.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Fsync;
use super::scan::Tail;
use crate::error::Action;
use crate::{Epoch, KeyWindow, Note, OpenError, Position, Retention, StorageError, TopicOptions};

/// The format of these files that this version writes and reads.
pub(super) const FORMAT: u32 = 2;

/// `state.json`: written when a data directory is opened, and when it is closed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct State {
    format: u32,
    /// Which start of the machine it was opened in.
    boot: Option<String>,
    /// Whether nothing was acknowledged before it was flushed.
    flushed_always: bool,
    /// Once all is flushed and closed: the head of each topic, by its directory.
    closed: Option<BTreeMap<String, u64>>,
}

impl State {
    /// Of a data directory that is in use.
    pub(super) fn open(boot: Option<String>, fsync: Fsync) -> Self {
        let flushed_always = fsync == Fsync::Always;
        Self { format: FORMAT, boot, flushed_always, closed: None }
    }

    /// Of the same, closed.
    pub(super) fn closed(self, heads: BTreeMap<String, u64>) -> Self {
        Self { closed: Some(heads), ..self }
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        // Strings and numbers always have a JSON form.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }
}

/// How a data directory was left.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Past {
    /// Closed, with these heads.
    Closed(BTreeMap<String, u64>),
    /// The process ended without closing it; the machine went on, and with it all that was written.
    Killed,
    /// The machine was started again since. What was not flushed may be gone.
    Crashed {
        /// Nothing was acknowledged before it was flushed.
        flushed_always: bool,
    },
    /// Nobody knows: a state is missing, or cannot be read.
    Unknown,
}

impl Past {
    /// What `state.json` says to a machine that was started as `boot`.
    pub(super) fn read(path: &Path, boot: Option<&str>) -> Result<Self, OpenError> {
        let Some(state) = read_json::<State>(path)? else {
            return Ok(Self::Unknown);
        };
        let same_boot = boot.is_some() && state.boot.as_deref() == boot;
        Ok(match state.closed {
            Some(heads) => Self::Closed(heads),
            None if same_boot => Self::Killed,
            None => Self::Crashed { flushed_always: state.flushed_always },
        })
    }

    /// Whether a topic that is found so goes on in its epoch: nothing is gone that a reader can have
    /// seen. If not, offsets could be given again that a reader has, and so a new epoch begins.
    pub(super) fn keeps_epoch(&self, directory: &str, head: u64, tail: Tail) -> bool {
        match self {
            Self::Closed(heads) => tail == Tail::Whole && heads.get(directory) == Some(&head),
            // What a killed process has written is there to the byte, if not damaged since; what it
            // was writing, nobody has seen.
            Self::Killed => tail != Tail::Garbage,
            Self::Crashed { flushed_always } => *flushed_always,
            Self::Unknown => false,
        }
    }
}

/// `topic.json`: what is known of a topic beside its events.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Meta {
    format: u32,
    /// Its directory.
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

/// A note without a batch. It counts as long as no batch after it has one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct OwnNote {
    pub(super) note: Note,
    /// The newest note of a batch when it was set.
    pub(super) replaces: Option<Note>,
}

impl OwnNote {
    /// The one that counts, beside the newest of a batch.
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

    /// Reads that of the topic in the directory `topic`; `None` when it is not there, damaged or another's.
    pub(super) fn read(path: &Path, topic: &str) -> Result<Option<Self>, OpenError> {
        Ok(read_json(path)?.filter(|meta: &Self| meta.topic == topic))
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    pub(super) fn epoch(&self) -> Option<Epoch> {
        let position: Position = format!("{}-0", self.epoch).parse().ok()?;
        Some(position.epoch)
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

/// Reads one of these files; `None` when it is not there, or damaged.
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
        let closed = Past::Closed(BTreeMap::from([("wind".to_owned(), 7)]));
        let (always, later) =
            (Past::Crashed { flushed_always: true }, Past::Crashed { flushed_always: false });
        for (past, directory, head, tail, expected) in [
            (&closed, "wind", 7, Whole, true),
            (&closed, "wind", 6, Whole, false),
            (&closed, "wind", 8, Whole, false),
            (&closed, "wind", 7, Torn, false),
            (&closed, "other", 7, Whole, false),
            (&Past::Killed, "wind", 3, Whole, true),
            (&Past::Killed, "wind", 3, Torn, true),
            (&Past::Killed, "wind", 3, Garbage, false),
            (&always, "wind", 3, Garbage, true),
            (&always, "wind", 3, Torn, true),
            (&later, "wind", 3, Whole, false),
            (&Past::Unknown, "wind", 3, Whole, false),
        ] {
            let keeps = past.keeps_epoch(directory, head, tail);
            assert_eq!(keeps, expected, "{past:?} {directory} {head} {tail:?}");
        }
    }

    #[test]
    fn options_survive_to_the_microsecond_and_at_their_ends() {
        for age_max in [Duration::ZERO, Duration::from_micros(3_600_000_001), Duration::MAX] {
            let retention = Retention { events_max: u64::MAX, bytes_max: 0, age_max };
            let keys = KeyWindow { keys_max: usize::MAX, age_max };
            let options = TopicOptions { retention, keys, ..TopicOptions::default() };
            let meta = Meta::new("wind", Epoch::from_bits(77), options);
            let read: Meta = serde_json::from_slice(&meta.to_json()).unwrap();
            assert_eq!((read.epoch(), read.options()), (Some(Epoch::from_bits(77)), options));
        }
    }
}
