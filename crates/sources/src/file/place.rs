//! The place where reading stands in a file, as it is kept beside the events that were made of it. A pure rule.

use anemone_hub::Note;
use serde::{Deserialize, Serialize};

/// The bytes of a file's beginning, and before a place, that tell it from another file: more than a line
/// with a time as a rule has, and no work to read again.
pub(super) const WINDOW_BYTES: usize = 512;

/// Device and inode.
pub(super) type Id = (u64, u64);

/// The end of a line in a file, up to which all is published.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Place {
    /// Digest of the path that is followed: the place of another path says nothing.
    path: u64,
    /// Which file it is, unless it was copied.
    pub(super) id: Id,
    /// The bytes of it that were read.
    pub(super) offset: u64,
    /// The time of the last write to it as far as it was read, in nanoseconds since the Unix epoch.
    pub(super) modified: i64,
    /// Digest of what stands before the place.
    before: u64,
}

impl Place {
    /// After `offset` bytes of a file that has this head before it and this tail: all, or [`WINDOW_BYTES`], each.
    pub(super) fn new(path: &[u8], id: Id, offset: u64, modified: i64, window: Window<'_>) -> Self {
        Self { path: digest([path]), id, offset, modified, before: window.digest() }
    }

    /// Before a file that is not there at this time, so that everything in it is new.
    pub(super) fn before_all(path: &[u8], now: i64) -> Self {
        Self::new(path, (0, 0), 0, now, Window { head: &[], tail: &[] })
    }

    pub(super) fn is_before_all(&self) -> bool {
        (self.id, self.offset) == ((0, 0), 0)
    }

    /// Returns whether it is one of this path.
    pub(super) fn is_of(&self, path: &[u8]) -> bool {
        self.path == digest([path])
    }

    /// Returns whether this is what stood before it.
    pub(super) fn follows(&self, window: Window<'_>) -> bool {
        self.before == window.digest()
    }

    pub(super) fn to_note(&self) -> Option<Note> {
        serde_json::to_string(self).ok()?.parse().ok()
    }

    /// `None` when it is somebody else's, or of a later version.
    pub(super) fn from_note(note: &Note) -> Option<Self> {
        serde_json::from_str(note.as_str()).ok()
    }
}

/// The bytes before a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    pub(super) head: &'a [u8],
    pub(super) tail: &'a [u8],
}

impl Window<'_> {
    fn digest(self) -> u64 {
        digest([self.head, self.tail])
    }
}

/// FNV-1a: the same for ever. Nobody gains by making two files alike but who writes both.
fn digest<const COUNT: usize>(parts: [&[u8]; COUNT]) -> u64 {
    parts.iter().copied().flatten().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written_and_knows_its_path_and_what_precedes_it() {
        let window = Window { head: b"1\n2\n", tail: b"1\n2\n" };
        let place = Place::new(b"/var/log/a", (u64::MAX, 7), 4, i64::MIN, window);
        let read = Place::from_note(&place.to_note().unwrap()).unwrap();
        assert_eq!(read, place);
        assert!(read.is_of(b"/var/log/a") && !read.is_of(b"/var/log/b"));
        assert!(read.follows(window));
        assert!(!read.follows(Window { head: b"1\n2\n", tail: b"1\n3\n" }));
        assert_eq!(Place::from_note(&"somebody else's".parse().unwrap()), None);
    }
}
