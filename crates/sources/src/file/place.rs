//! The place in a file up to which its lines are published. It is stored together with their events. Pure.

use anemone_hub::Note;
use serde::{Deserialize, Serialize};

/// The number of bytes at a file's beginning, and before a place, that identify the file. They are more than most lines
/// with a time, and cheap to read again.
pub(super) const WINDOW_BYTES: usize = 512;

/// The device and the inode of a file.
pub(super) type Id = (u64, u64);

/// The end of a line in a file. Everything before it is published.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Place {
    /// The digest of the path. A place of another path is ignored.
    path: u64,
    /// The id of the file. A copy of the file has another id.
    pub(super) id: Id,
    /// The number of bytes read.
    pub(super) offset: u64,
    /// The time of the last write, as it was at the last read, in nanoseconds since the Unix epoch.
    pub(super) modified: i64,
    /// The digest of the bytes at the beginning of the file and before the place.
    before: u64,
}

impl Place {
    /// Creates the place after `offset` bytes of a file. The window has all bytes before it, or [`WINDOW_BYTES`] at the
    /// beginning and as many before the place.
    pub(super) fn new(path: &[u8], id: Id, offset: u64, modified: i64, window: Window<'_>) -> Self {
        Self { path: digest([path]), id, offset, modified, before: window.digest() }
    }

    /// Creates a place for a file that does not exist at time `now`. All its contents will be new.
    pub(super) fn before_all(path: &[u8], now: i64) -> Self {
        Self::new(path, (0, 0), 0, now, Window { head: &[], tail: &[] })
    }

    pub(super) fn is_before_all(&self) -> bool {
        (self.id, self.offset) == ((0, 0), 0)
    }

    pub(super) fn is_of(&self, path: &[u8]) -> bool {
        self.path == digest([path])
    }

    /// Returns true if these are the bytes before the place.
    pub(super) fn follows(&self, window: Window<'_>) -> bool {
        self.before == window.digest()
    }

    pub(super) fn to_note(&self) -> Option<Note> {
        serde_json::to_string(self).ok()?.parse().ok()
    }

    /// Parses a note; `None` for a note of another program or of a later version.
    pub(super) fn from_note(note: &Note) -> Option<Self> {
        serde_json::from_str(note.as_str()).ok()
    }
}

/// The bytes that identify a file up to a place: those at its beginning, and those before the place.
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

/// Returns the digest FNV-1a, which must never change. Only somebody who writes both files could make their digests
/// equal, and would gain nothing.
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
