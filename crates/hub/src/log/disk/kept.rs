//! The contents of a topic on disk as readers see them, with retention applied. Pure: it uses no file.

use super::segments::{GoneSegment, Segments, Stretch};
use crate::allowances::Need;
use crate::keys::Keys;
use crate::log::ring::Ring;
use crate::log::shared_bytes::Allowance;
use crate::{Note, Retention, UnixTime};

/// The contents of a topic, as readers see them.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) segments: Segments,
    /// The newest events that are in memory.
    pub(super) newest: Ring,
    pub(super) retention: Retention,
    /// The bytes that it may hold, if it shares them with other topics.
    pub(super) allowance: Allowance,
    /// The bytes that were written and are about to be shown, for which there is room.
    coming: u64,
    /// The bytes of the keys, as of [`Kept::count_keys`].
    keys_bytes: u64,
    /// The newest note.
    pub(super) note: Option<Note>,
    /// Files that can be removed.
    pub(super) gone: Vec<GoneSegment>,
}

impl Kept {
    pub(super) fn new(
        segments: Segments,
        retention: Retention,
        allowance: Allowance,
        keys: &Keys,
        note: Option<Note>,
    ) -> Self {
        let (newest, keys_bytes) = (Ring::default(), keys.bytes());
        let (coming, gone) = (0, Vec::new());
        Self { segments, newest, retention, allowance, coming, keys_bytes, note, gone }
    }

    pub(super) fn count_keys(&mut self, keys: &Keys) {
        self.keys_bytes = keys.bytes();
    }

    /// Returns the bytes that count in retention.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.bytes() + self.keys_bytes
    }

    /// Asks for room for `bytes` more, if the topic shares its bytes, which are then [shown](Self::shown). Returns the
    /// most that it may hold now, if that is less than it would hold with them.
    pub(super) fn make_room(&mut self, bytes: u64, batch_bytes: u64) -> Option<u64> {
        self.coming = bytes;
        let whole = self.bytes() + bytes;
        let bytes_max = self.allowance.grow(self.retention, Need { least: batch_bytes, whole });
        (self.retention.shares_bytes() && bytes_max < whole).then_some(bytes_max)
    }

    /// Records that the bytes for which there was room are among the contents.
    pub(super) fn shown(&mut self) {
        self.coming = 0;
    }

    /// Sets the retention, and asks for room for the contents.
    pub(super) fn set_retention(&mut self, retention: Retention) {
        self.retention = retention;
        self.allowance.grow(retention, Need { least: 0, whole: self.bytes() });
    }

    /// Drops events beyond the retention, without touching their files. Returns what must be read to continue.
    pub(super) fn expire(&mut self, now: UnixTime) -> Option<Stretch> {
        let limit = self.allowance.limit(self.retention);
        let bytes_max = limit.bytes_max.saturating_sub(self.keys_bytes);
        let retention = Retention { bytes_max, ..limit };
        let (gone, unknown) = self.segments.expire(retention, now);
        self.gone.extend(gone);
        let first = self.segments.first();
        while self.newest.oldest().is_some_and(|event| event.offset < first) {
            self.newest.pop_oldest();
        }
        // A reader may come between the write and the moment when it is shown.
        self.allowance.settle(self.retention, self.bytes() + self.coming);
        unknown
    }

    pub(super) fn is_in_memory(&self, after: u64) -> bool {
        self.newest.oldest().is_some_and(|oldest| oldest.offset <= after.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::KeyWindow;
    use crate::log::SharedBytes;
    use crate::log::shared_bytes::Evict;

    #[derive(Debug)]
    struct Nobody;

    impl Evict for Nobody {
        fn evict(&self) {}
    }

    #[test]
    fn room_for_what_is_written_stays_until_it_is_shown() {
        let shared = SharedBytes::new(1 << 20);
        let nobody: Weak<dyn Evict> = Weak::<Nobody>::new();
        let (segments, keys) = (Segments::new(Vec::new(), 0), Keys::new(KeyWindow::default()));
        let allowance = shared.join(0, nobody);
        let mut kept = Kept::new(segments, Retention::default(), allowance, &keys, None);
        assert_eq!(kept.make_room(100_000, 100), None);
        // A reader comes before it is shown, and one after it.
        let now = UnixTime::default();
        assert_eq!(kept.expire(now), None);
        for number in 0..1000 {
            kept.segments.append(1, now, 32 + number * 100, 100);
        }
        kept.shown();
        assert_eq!((kept.expire(now), kept.segments.first()), (None, 1));
    }
}
