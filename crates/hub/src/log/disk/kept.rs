//! The contents of a topic on disk, as its readers see them, and retention applied to them. Pure: no file is seen here.

use super::segments::{Gone, Segments, Stretch};
use crate::keys::Keys;
use crate::log::ring::Ring;
use crate::{Note, Retention, UnixTime};

/// The contents of a topic, as its readers see them.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) segments: Segments,
    /// The newest events, if they are in memory.
    pub(super) newest: Ring,
    pub(super) retention: Retention,
    /// The bytes that keys count for, as of [`Kept::count_keys`].
    keys_bytes: u64,
    /// The newest note.
    pub(super) note: Option<Note>,
    /// Files that can go.
    pub(super) gone: Vec<Gone>,
}

impl Kept {
    pub(super) fn new(
        segments: Segments,
        retention: Retention,
        keys: &Keys,
        note: Option<Note>,
    ) -> Self {
        let (newest, keys_bytes) = (Ring::default(), keys.bytes());
        Self { segments, newest, retention, keys_bytes, note, gone: Vec::new() }
    }

    /// Takes in which keys there are now.
    pub(super) fn count_keys(&mut self, keys: &Keys) {
        self.keys_bytes = keys.bytes();
    }

    /// The bytes that count in retention.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.bytes() + self.keys_bytes
    }

    /// Drops what retention no longer keeps; its files are not touched here. Returns what has to be read to go on.
    pub(super) fn expire(&mut self, now: UnixTime) -> Option<Stretch> {
        let bytes_max = self.retention.bytes_max.saturating_sub(self.keys_bytes);
        let retention = Retention { bytes_max, ..self.retention };
        let (gone, unknown) = self.segments.expire(retention, now);
        self.gone.extend(gone);
        let first = self.segments.first();
        while self.newest.oldest().is_some_and(|event| event.offset < first) {
            self.newest.pop_oldest();
        }
        unknown
    }

    /// Returns whether the event after this offset, and all behind it, are in memory.
    pub(super) fn is_in_memory(&self, after: u64) -> bool {
        self.newest.oldest().is_some_and(|oldest| oldest.offset <= after.saturating_add(1))
    }
}
