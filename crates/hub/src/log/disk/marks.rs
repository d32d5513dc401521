//! The high marks of a data directory: the newest acknowledged offset of each topic. They are stored apart from the
//! segments, so that a log without its end is recognized.
//!
//! One file for all topics. Each has 256 bytes in it, which never cross a sector:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | CRC-32 of the other 252 bytes |
//! | 4 | 1 | length of the name of the topic's directory; 0 for a free entry |
//! | 8 | 8 | bits of the topic's epoch |
//! | 16 | 8 | the newest offset that was acknowledged, or is about to be |
//! | 24 | | the name |
//!
//! A mark is written after its events, and before they are acknowledged or seen: one `pwrite` for each group commit.
//! A killed process leaves it in the page cache. With `always` it is also flushed, which is a second flush for each
//! group commit. With `interval` and `never`, a crash of the machine begins a new epoch whatever the mark says.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use super::platform::{Output, Platform};
use crate::{Epoch, Position};

const PLACE_LEN: usize = 256;
const NAME_AT: usize = 24;

#[derive(Debug)]
pub(super) struct Marks {
    output: Box<dyn Output>,
    /// The place of each topic's mark.
    places: HashMap<String, u64>,
    free: Vec<u64>,
    len: u64,
}

impl Marks {
    /// Creates a file with these marks, and flushes it.
    pub(super) fn create(
        platform: &dyn Platform,
        path: &Path,
        marks: impl Iterator<Item = (String, Position)>,
    ) -> io::Result<Self> {
        let mut output = platform.open(path)?;
        output.cut(0)?;
        let (mut bytes, mut places) = (Vec::new(), HashMap::new());
        for (name, position) in marks {
            let place = bytes.len() as u64;
            bytes.extend_from_slice(&encode(&name, position));
            places.insert(name, place);
        }
        output.write(&bytes, 0)?;
        output.flush()?;
        Ok(Self { output, places, free: Vec::new(), len: bytes.len() as u64 })
    }

    /// Reads all valid marks. Empty if the file does not exist.
    pub(super) fn read(path: &Path) -> io::Result<BTreeMap<String, Position>> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes?,
        };
        Ok(bytes.chunks_exact(PLACE_LEN).filter_map(decode).collect())
    }

    pub(super) fn set(&mut self, name: &str, position: Position) -> io::Result<()> {
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => {
                let place = self.free.pop().unwrap_or(self.len);
                self.len = self.len.max(place + PLACE_LEN as u64);
                self.places.insert(name.to_owned(), place);
                place
            }
        };
        self.output.write(&encode(name, position), place)
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        let Some(place) = self.places.remove(name) else { return Ok(()) };
        self.free.push(place);
        self.output.write(&[0; PLACE_LEN], place)
    }

    /// Flushes all marks, so that they survive a crash of the machine.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Encodes a mark. The name of a directory has at most 162 bytes: 128 for the topic's name, and 33 before it.
pub(super) fn encode(name: &str, position: Position) -> [u8; PLACE_LEN] {
    let mut bytes = [0; PLACE_LEN];
    let name_len = name.len().min(PLACE_LEN - NAME_AT);
    bytes[4] = u8::try_from(name_len).unwrap_or(0);
    bytes[8..16].copy_from_slice(&position.epoch.bits().to_le_bytes());
    bytes[16..24].copy_from_slice(&position.offset.to_le_bytes());
    bytes[NAME_AT..NAME_AT + name_len].copy_from_slice(&name.as_bytes()[..name_len]);
    let crc = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<(String, Position)> {
    let (crc, rest) = bytes.split_first_chunk::<4>()?;
    let name_len = usize::from(*rest.first()?);
    if name_len == 0 || crc32fast::hash(rest) != u32::from_le_bytes(*crc) {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let name = String::from_utf8(bytes.get(NAME_AT..NAME_AT + name_len)?.to_vec()).ok()?;
    Some((name, Position { epoch: Epoch::from_bits(number(8)?), offset: number(16)? }))
}

#[cfg(test)]
mod tests {
    use super::super::platform::System;
    use super::*;

    fn position(offset: u64) -> Position {
        Position { epoch: Epoch::from_bits(77), offset }
    }

    #[test]
    fn marks_are_found_again_and_a_damaged_one_is_none() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("marks");
        assert_eq!(Marks::read(&path).unwrap(), BTreeMap::new());
        let begun = [("wind".to_owned(), position(5))].into_iter();
        let mut marks = Marks::create(&System, &path, begun).unwrap();
        let long = "x".repeat(162);
        marks.set(&long, position(u64::MAX)).unwrap();
        marks.set("gone", position(1)).unwrap();
        marks.set("wind", position(6)).unwrap();
        marks.remove("gone").unwrap();
        let expected =
            BTreeMap::from([("wind".to_owned(), position(6)), (long.clone(), position(u64::MAX))]);
        assert_eq!(Marks::read(&path).unwrap(), expected);
        marks.set("next", position(3)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 3 * PLACE_LEN, "a place that is free is taken again");
        for at in 0..PLACE_LEN {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert!(!Marks::read(&path).unwrap().contains_key("wind"), "byte {at}");
        }
    }
}
