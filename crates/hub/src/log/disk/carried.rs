//! Keys that outlive their events on disk: the file `keys` besides a topic's segments.
//!
//! Before a segment is removed, its keys that are still in their window are appended here and flushed, so that they
//! are always in one of the two. When most of the file is about expired keys, it is rewritten. It has one record of
//! 52 bytes for each key, numbers little-endian:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 24 | digests of the key and of the events that came with it |
//! | 24 | 8 | offset of the first of these events |
//! | 32 | 8 | offset of the last |
//! | 40 | 8 | time of the first, in microseconds since the Unix epoch |
//! | 48 | 4 | CRC-32 of the topic's digest and all other bytes of the record |

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::options::Fsync;
use super::platform::{Platform, replace};
use super::record::Origin;
use crate::error::Action;
use crate::keys::{Keyed, Place, Seen};
use crate::{StorageError, UnixTime};

const FILE: &str = "keys";
const RECORD_LEN: usize = 52;
const RECORD_BYTES: u64 = RECORD_LEN as u64;
const CRC_AT: usize = 48;

/// The most records for each key that counts, and the number that is always allowed.
const RECORDS_PER_KEY: u64 = 2;
const RECORDS_MIN: u64 = 64;

/// The file on disk.
#[derive(Debug)]
pub(super) struct Carried {
    path: PathBuf,
    /// The length of its valid part.
    len: u64,
    /// All batches up to this offset whose keys were remembered at the time are in the file.
    pub(super) up_to: u64,
}

impl Carried {
    /// Returns the file of a topic that has none yet.
    pub(super) fn nothing(directory: &Path) -> Self {
        Self { path: directory.join(FILE), len: 0, up_to: 0 }
    }

    /// Reads the file of the topic in this directory. Returns it with its keys in the order of offsets.
    pub(super) fn read(directory: &Path) -> Result<(Self, Vec<Seen>), StorageError> {
        let nothing = Self::nothing(directory);
        let bytes = match fs::read(&nothing.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(StorageError::new(Action::Read, &nothing.path, error)),
        };
        let (records, _torn) = bytes.as_chunks();
        let origin = Origin::new(directory, 0);
        let keys: Vec<_> = records.iter().filter_map(|record| decode(record, origin)).collect();
        if keys.len() < records.len() {
            let damaged = records.len() - keys.len();
            tracing::error!("{}: {damaged} keys are damaged", nothing.path.display());
        }
        let up_to = keys.iter().map(|seen| seen.place().last).max().unwrap_or(0);
        Ok((Self { len: records.len() as u64 * RECORD_BYTES, up_to, ..nothing }, keys))
    }

    /// Returns true if it is time to rewrite the file with the `keys` that count.
    pub(super) fn is_stale(&self, keys: u64) -> bool {
        self.len / RECORD_BYTES > (keys * RECORDS_PER_KEY).max(RECORDS_MIN)
    }

    /// Appends the keys of batches up to `up_to`. If that fails, the file is as before.
    pub(super) fn append(
        &mut self,
        platform: &dyn Platform,
        fsync: Fsync,
        keys: &[Seen],
        up_to: u64,
    ) -> Result<(), StorageError> {
        if !keys.is_empty() {
            let bytes = self.encode(keys);
            self.write(platform, fsync, &bytes)
                .map_err(|error| StorageError::new(Action::Write, &self.path, error))?;
            self.len += bytes.len() as u64;
        }
        self.up_to = up_to;
        Ok(())
    }

    fn write(&self, platform: &dyn Platform, fsync: Fsync, bytes: &[u8]) -> io::Result<()> {
        let mut file = platform.open(&self.path)?;
        // An earlier attempt may have left some bytes.
        file.cut(self.len)?;
        file.write(bytes, self.len)?;
        if fsync == Fsync::Never {
            return Ok(());
        }
        file.flush()?;
        match self.path.parent().filter(|_| self.len == 0) {
            Some(directory) => platform.flush_directory(directory),
            None => Ok(()),
        }
    }

    /// Rewrites the file with the keys of batches up to `up_to`.
    pub(super) fn rewrite(
        &mut self,
        platform: &dyn Platform,
        keys: &[Seen],
        up_to: u64,
    ) -> Result<(), StorageError> {
        let bytes = self.encode(keys);
        replace(platform, &self.path, &bytes)
            .map_err(|error| StorageError::new(Action::Write, &self.path, error))?;
        self.len = bytes.len() as u64;
        self.up_to = up_to;
        Ok(())
    }

    fn encode(&self, keys: &[Seen]) -> Vec<u8> {
        let origin = Origin::new(self.path.parent().unwrap_or(&self.path), 0);
        keys.iter().flat_map(|seen| encode(seen, origin)).collect()
    }
}

fn encode(seen: &Seen, origin: Origin) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    let Place { first, last } = seen.place();
    record[..24].copy_from_slice(&seen.keyed.to_bytes());
    record[24..32].copy_from_slice(&first.to_le_bytes());
    record[32..40].copy_from_slice(&last.to_le_bytes());
    record[40..48].copy_from_slice(&seen.time.as_micros().to_le_bytes());
    let crc = origin.checksum(&record[..CRC_AT]);
    record[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    record
}

fn decode(record: &[u8; RECORD_LEN], origin: Origin) -> Option<Seen> {
    let (fields, crc) = record.split_at(CRC_AT);
    if crc != origin.checksum(fields).to_le_bytes() {
        return None;
    }
    let (keyed, numbers) = fields.split_at(Keyed::BYTES);
    let (numbers, _) = numbers.as_chunks();
    let [first, last, time] = numbers else { return None };
    let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    let time = UnixTime::from_micros(u64::from_le_bytes(*time));
    let place = (first <= last).then_some(Place { first, last })?;
    Some(Seen::new(Keyed::from_bytes(keyed)?, time, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written_and_any_change_is_seen() {
        let origin = Origin::new(Path::new("wind"), 0);
        let keyed = Keyed { key: "a".parse().unwrap(), content: 7 };
        let place = Place { first: 1 << 40, last: (1 << 40) + 9 };
        let seen = Seen::new(keyed, UnixTime::from_micros(3), place);
        let record = encode(&seen, origin);
        assert_eq!(decode(&record, origin), Some(seen));
        assert_eq!(decode(&record, Origin::new(Path::new("rain"), 0)), None);
        for at in 0..RECORD_LEN {
            let mut damaged = record;
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged, origin), None, "byte {at}");
        }
        assert_eq!(decode(&[0; RECORD_LEN], origin), None, "a block that was never written");
    }
}
