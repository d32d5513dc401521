//! The binary format of segment headers and records. Pure: it uses no file.
//!
//! All numbers are little-endian. A segment begins with 40 bytes and a note:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `anemone` and 0xFF |
//! | 8 | 2 | format, 2 |
//! | 10 | 2 | length of the note |
//! | 12 | 4 | CRC-32 of all other bytes of the header |
//! | 16 | 8 | offset of the segment's first event, the same as in its file's name |
//! | 24 | 8 | bits of the epoch in which it was begun, for people; the topic's epoch counts |
//! | 32 | 8 | digest of the topic: FNV-1a of its directory's name |
//! | 40 | | the newest note before this segment, which outlives the records that retention removes |
//!
//! Then one record after the other, each 40 bytes, the key, the note and the data:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 2 | 0xFF 0xE5, to find records again after damage |
//! | 2 | 1 | kind, 1: an event |
//! | 3 | 1 | length of the key, 24; only the first record of a batch has one: digests of the key and of the events |
//! | 4 | 4 | length of key, note and data |
//! | 8 | 4 | CRC-32 of the topic's digest, the segment's first offset and all other bytes of the record |
//! | 12 | 4 | number of following records of the same batch |
//! | 16 | 4 | distance from the newest offset that was flushed when this was written |
//! | 20 | 8 | offset |
//! | 28 | 8 | time, in microseconds since the Unix epoch |
//! | 36 | 2 | length of the note; only the first record of a batch has one |
//! | 38 | 2 | zero |
//!
//! The checksum of a record depends on its place: bytes of another topic or segment are not valid records here. Notes
//! and data are UTF-8, which has no 0xFF. A key may have any bytes, but a key with 0xFF must be shorter than 40
//! bytes, so that no whole record fits in it and a search after damage finds none there.

use std::path::Path;

use crate::keys::Keyed;
use crate::{Batch, Epoch, Event, Note, UnixTime};

/// The format of segments that this version writes and reads.
pub(super) const FORMAT: u16 = 2;
/// The length of a segment's header without its note.
pub(super) const SEGMENT_HEADER_BYTES: u64 = SEGMENT_HEADER_LEN as u64;
/// The length of a record without its key, note and data.
pub(super) const RECORD_HEADER_BYTES: u64 = RECORD_HEADER_LEN as u64;

const SEGMENT_HEADER_LEN: usize = 40;
const RECORD_HEADER_LEN: usize = 40;
const SEGMENT_MAGIC: [u8; 8] = *b"anemone\xFF";
const MARKER: [u8; 2] = [0xFF, 0xE5];
const KIND_EVENT: u8 = 1;

/// The segment of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Origin {
    /// The digest of the topic.
    topic: u64,
    /// The offset in the segment's name.
    pub(super) base: u64,
    /// The seed of the records' checksums.
    seed: u32,
}

impl Origin {
    pub(super) fn new(directory: &Path, base: u64) -> Self {
        let name = directory.file_name().unwrap_or_default();
        let topic = fnv_1a(name.as_encoded_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&topic.to_le_bytes());
        crc.update(&base.to_le_bytes());
        Self { topic, base, seed: crc.finalize() }
    }

    pub(super) fn checksum(self, bytes: &[u8]) -> u32 {
        let mut crc = self.crc();
        crc.update(bytes);
        crc.finalize()
    }

    fn crc(self) -> crc32fast::Hasher {
        crc32fast::Hasher::new_with_initial(self.seed)
    }
}

/// The fields of a record besides its event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing<'a> {
    pub(super) key: Option<Keyed>,
    pub(super) note: Option<&'a Note>,
    /// The number of following records of its batch.
    pub(super) left: u32,
    /// The newest offset that is known to be flushed.
    pub(super) flushed: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Record<'a> {
    pub(super) offset: u64,
    pub(super) time: UnixTime,
    pub(super) left: u32,
    /// The newest offset that was flushed when it was written; 0 if that was too far back.
    pub(super) flushed: u64,
    pub(super) key: Option<&'a [u8]>,
    pub(super) note: Option<&'a str>,
    pub(super) data: &'a str,
    /// Its whole length.
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct SegmentHeader<'a> {
    pub(super) format: u16,
    /// True if it belongs to the topic and the place where it was found.
    pub(super) is_here: bool,
    pub(super) note: Option<&'a str>,
    /// Its whole length.
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// There are fewer bytes than the length of the record, which is this.
    Short(u64),
    /// There is no record, or a damaged one.
    Garbage,
}

pub(super) fn segment_header_bytes(note: Option<&Note>) -> u64 {
    SEGMENT_HEADER_BYTES + note.map_or(0, |note| note.as_str().len() as u64)
}

pub(super) fn record_bytes(key: Option<Keyed>, note: Option<&Note>, data_bytes: usize) -> u64 {
    let key_bytes = key.map_or(0, |_| Keyed::BYTES);
    let note_bytes = note.map_or(0, |note| note.as_str().len());
    RECORD_HEADER_BYTES + (key_bytes + note_bytes + data_bytes) as u64
}

pub(super) fn encode_segment_header(
    origin: Origin,
    epoch: Epoch,
    note: Option<&Note>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let note = note.map_or("", Note::as_str);
    out.extend_from_slice(&SEGMENT_MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&note_length(note).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&origin.base.to_le_bytes());
    out.extend_from_slice(&epoch.bits().to_le_bytes());
    out.extend_from_slice(&origin.topic.to_le_bytes());
    out.extend_from_slice(note.as_bytes());
    let crc = crc_around(crc32fast::Hasher::new(), &out[start..], 12);
    out[start + 12..start + 16].copy_from_slice(&crc.to_le_bytes());
}

pub(super) fn decode_segment_header(
    bytes: &[u8],
    origin: Origin,
) -> Result<SegmentHeader<'_>, Fault> {
    const FORMAT_1_BYTES: usize = 32;
    let Some((header, rest)) = bytes.split_first_chunk::<SEGMENT_HEADER_LEN>() else {
        return Err(Fault::Short(SEGMENT_HEADER_BYTES));
    };
    let format = u16_at(header, 8);
    if !header.starts_with(&SEGMENT_MAGIC) {
        return Err(Fault::Garbage);
    }
    let crc = |bytes| crc_around(crc32fast::Hasher::new(), bytes, 12);
    if format == 1 && u32_at(header, 12) == crc(&header[..FORMAT_1_BYTES]) {
        let bytes = FORMAT_1_BYTES as u64;
        return Ok(SegmentHeader { format, is_here: false, note: None, bytes });
    }
    let note_len = usize::from(u16_at(header, 10));
    if note_len > Note::BYTES_MAX {
        return Err(Fault::Garbage);
    }
    let Some(note) = rest.get(..note_len) else {
        return Err(Fault::Short(SEGMENT_HEADER_BYTES + note_len as u64));
    };
    let whole = &bytes[..SEGMENT_HEADER_LEN + note_len];
    if u32_at(header, 12) != crc(whole) {
        return Err(Fault::Garbage);
    }
    let note = std::str::from_utf8(note).map_err(|_| Fault::Garbage)?;
    Ok(SegmentHeader {
        format,
        is_here: u64_at(header, 16) == origin.base && u64_at(header, 32) == origin.topic,
        note: (!note.is_empty()).then_some(note),
        bytes: whole.len() as u64,
    })
}

pub(super) fn encode(event: &Event, framing: Framing<'_>, origin: Origin, out: &mut Vec<u8>) {
    let start = out.len();
    let key = framing.key.map(Keyed::to_bytes);
    let key = key.as_ref().map_or(&[][..], |key| key);
    let note = framing.note.map_or("", Note::as_str);
    let data = event.data.bytes();
    let payload_bytes = key.len() + note.len() + data.len();
    out.reserve(RECORD_HEADER_LEN + payload_bytes);
    out.extend_from_slice(&MARKER);
    // A key has 24 bytes, and a batch at most 2^30.
    out.extend_from_slice(&[KIND_EVENT, u8::try_from(key.len()).unwrap_or(u8::MAX)]);
    out.extend_from_slice(&saturated(payload_bytes as u64).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&framing.left.to_le_bytes());
    out.extend_from_slice(&saturated(event.offset.saturating_sub(framing.flushed)).to_le_bytes());
    out.extend_from_slice(&event.offset.to_le_bytes());
    out.extend_from_slice(&event.time.as_micros().to_le_bytes());
    out.extend_from_slice(&note_length(note).to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(key);
    out.extend_from_slice(note.as_bytes());
    out.extend_from_slice(data);
    let crc = crc_around(origin.crc(), &out[start..], 8);
    out[start + 8..start + 12].copy_from_slice(&crc.to_le_bytes());
}

/// Decodes the record at the beginning of `bytes`, in the segment `origin`.
pub(super) fn decode(bytes: &[u8], origin: Origin) -> Result<Record<'_>, Fault> {
    let Some((header, rest)) = bytes.split_first_chunk::<RECORD_HEADER_LEN>() else {
        let begins = MARKER.iter().zip(bytes).all(|(expected, byte)| expected == byte);
        return Err(if begins { Fault::Short(RECORD_HEADER_BYTES) } else { Fault::Garbage });
    };
    let (key_len, note_len) = (usize::from(header[3]), usize::from(u16_at(header, 36)));
    let payload_len = u32_at(header, 4);
    let plausible = header.starts_with(&MARKER)
        && header[2] == KIND_EVENT
        && u64::from(payload_len) <= Batch::BYTES_MAX
        && note_len <= Note::BYTES_MAX
        && (key_len + note_len) as u64 <= u64::from(payload_len);
    if !plausible {
        return Err(Fault::Garbage);
    }
    let whole = RECORD_HEADER_BYTES + u64::from(payload_len);
    let Some(payload) = rest.get(..payload_len as usize) else {
        return Err(Fault::Short(whole));
    };
    let mut crc = origin.crc();
    crc.update(&header[..8]);
    crc.update(&header[12..]);
    crc.update(payload);
    if crc.finalize() != u32_at(header, 8) {
        return Err(Fault::Garbage);
    }
    let (key, text) = payload.split_at(key_len);
    let text = std::str::from_utf8(text).map_err(|_| Fault::Garbage)?;
    let (note, data) = text.split_at_checked(note_len).ok_or(Fault::Garbage)?;
    let (offset, unflushed) = (u64_at(header, 20), u32_at(header, 16));
    Ok(Record {
        offset,
        time: UnixTime::from_micros(u64_at(header, 28)),
        left: u32_at(header, 12),
        flushed: if unflushed == u32::MAX { 0 } else { offset.saturating_sub(unflushed.into()) },
        key: (!key.is_empty()).then_some(key),
        note: (!note.is_empty()).then_some(note),
        data,
        bytes: whole,
    })
}

/// Returns the place at or after `from` where the next record may begin.
pub(super) fn find_marker(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(MARKER.len()).position(|window| window == MARKER).map(|at| from + at)
}

/// Computes a CRC-32 over all bytes except the four at `at`, which hold it, after the bytes in `crc`.
fn crc_around(mut crc: crc32fast::Hasher, bytes: &[u8], at: usize) -> u32 {
    crc.update(&bytes[..at]);
    crc.update(&bytes[at + 4..]);
    crc.finalize()
}

/// A digest that tells names apart. It is not secret and need not resist attacks: somebody who can replace files can
/// also compute it.
fn fnv_1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn note_length(note: &str) -> u16 {
    u16::try_from(note.len()).unwrap_or(u16::MAX)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Data;

    fn origin() -> Origin {
        Origin::new(Path::new("data/topics/wind"), 7)
    }

    fn event(offset: u64, micros: u64, text: &str) -> Event {
        let time = UnixTime::from_micros(micros);
        Event { offset, time, data: Data::json(&text).unwrap() }
    }

    fn encoded(event: &Event, framing: Framing<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(event, framing, origin(), &mut bytes);
        bytes
    }

    const PLAIN: Framing<'_> = Framing { key: None, note: None, left: 0, flushed: 0 };

    #[test]
    fn a_segment_header_is_40_bytes_and_its_note_and_any_change_is_seen() {
        for note in [None, Some("inode 5, at 77".parse().unwrap())] {
            let mut bytes = Vec::new();
            encode_segment_header(origin(), Epoch::from_bits(7), note.as_ref(), &mut bytes);
            let len = bytes.len();
            assert_eq!(len as u64, segment_header_bytes(note.as_ref()));
            let header = decode_segment_header(&bytes, origin()).unwrap();
            assert_eq!((header.format, header.is_here, header.bytes), (FORMAT, true, len as u64));
            assert_eq!(header.note, note.as_ref().map(Note::as_str));
            for cut in 0..len {
                let cut = decode_segment_header(&bytes[..cut], origin());
                assert!(matches!(cut, Err(Fault::Short(_))), "{cut:?}");
            }
            for at in 0..len {
                let mut damaged = bytes.clone();
                damaged[at] ^= 4;
                assert!(decode_segment_header(&damaged, origin()).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn a_header_and_a_record_of_another_topic_or_place_are_found_out() {
        let mut header = Vec::new();
        encode_segment_header(origin(), Epoch::from_bits(7), None, &mut header);
        let record = encoded(&event(7, 0, "x"), PLAIN);
        for (directory, base) in [("data/topics/rain", 7), ("data/topics/wind", 8)] {
            let other = Origin::new(Path::new(directory), base);
            assert!(!decode_segment_header(&header, other).unwrap().is_here);
            assert_eq!(decode(&record, other), Err(Fault::Garbage));
        }
        let moved = Origin::new(Path::new("elsewhere/topics/wind"), 7);
        assert!(decode_segment_header(&header, moved).unwrap().is_here);
        assert!(decode(&record, moved).is_ok(), "a data directory can be moved");
    }

    #[test]
    fn the_header_of_format_1_is_recognized() {
        let mut bytes = b"anemone\xFF\x01\0\0\0\0\0\0\0".to_vec();
        bytes.extend_from_slice(&[7; 16]);
        let crc = crc_around(crc32fast::Hasher::new(), &bytes, 12);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&[0xFF; 50]);
        assert_eq!(decode_segment_header(&bytes, origin()).unwrap().format, 1);
    }

    #[test]
    fn the_bytes_of_a_record_are_as_documented() {
        let event = event(0x0102, 0x0304, "x");
        let note = "no".parse().unwrap();
        let key = Keyed::from_bytes(b"0123456789abcdef01234567").unwrap();
        let framing = Framing { key: Some(key), note: Some(&note), left: 5, flushed: 0x0100 };
        let bytes = encoded(&event, framing);
        let mut all = fnv_1a(b"wind").to_le_bytes().to_vec();
        all.extend_from_slice(&[7, 0, 0, 0, 0, 0, 0, 0]);
        all.extend_from_slice(&bytes[..8]);
        all.extend_from_slice(&bytes[12..]);
        let mut expected = vec![0xFF, 0xE5, 1, 24, 29, 0, 0, 0];
        expected.extend_from_slice(&crc32fast::hash(&all).to_le_bytes());
        expected.extend_from_slice(&[5, 0, 0, 0, 2, 0, 0, 0]);
        expected.extend_from_slice(&[2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(&[2, 0, 0, 0]);
        expected.extend_from_slice(b"0123456789abcdef01234567no\"x\"");
        assert_eq!(bytes, expected);
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(
            offset in 1_u64.., micros: u64, text in ".{0,40}", key: Option<[u8; 24]>,
            note in ".{0,20}", left: u32, flushed: u64,
        ) {
            let event = event(offset, micros, &text);
            let note: Option<Note> = note.parse().ok();
            let key = key.map(|bytes| Keyed::from_bytes(&bytes).unwrap());
            let framing = Framing { key, note: note.as_ref(), left, flushed };
            let bytes = encoded(&event, framing);
            let expected = record_bytes(key, note.as_ref(), event.data.bytes().len());
            prop_assert_eq!(expected, bytes.len() as u64);
            let record = decode(&bytes, origin()).unwrap();
            prop_assert_eq!(record.offset, offset);
            prop_assert_eq!(record.time, event.time);
            prop_assert_eq!(record.left, left);
            prop_assert!(record.flushed <= flushed.min(offset), "flushed is never overstated");
            prop_assert_eq!(record.key.and_then(Keyed::from_bytes), key);
            prop_assert_eq!(record.note, note.as_ref().map(Note::as_str));
            prop_assert_eq!(record.data, event.data.as_str());
            prop_assert_eq!(record.bytes, bytes.len() as u64);
        }

        #[test]
        fn every_cut_is_short_and_every_flipped_bit_is_seen(text in "[a-z]{0,20}", bit in 0_usize..8) {
            let bytes = encoded(&event(9, 9, &text), PLAIN);
            for len in 0..bytes.len() {
                let cut = decode(&bytes[..len], origin());
                prop_assert!(matches!(cut, Err(Fault::Short(_))), "{}", len);
                let mut damaged = bytes.clone();
                damaged[len] ^= 1 << bit;
                prop_assert!(decode(&damaged, origin()).is_err(), "byte {}", len);
            }
        }

        #[test]
        fn no_bytes_make_decode_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes, origin());
            let _ = decode_segment_header(&bytes, origin());
            let mut marked = vec![0xFF, 0xE5, 1];
            marked.extend_from_slice(&bytes);
            let _ = decode(&marked, origin());
            let header = [&SEGMENT_MAGIC[..], &bytes].concat();
            let _ = decode_segment_header(&header, origin());
        }
    }
}
