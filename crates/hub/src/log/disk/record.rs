//! Segment headers and records as bytes. Pure: no file is seen here.
//!
//! All numbers are little-endian. A segment begins with 32 bytes:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `anemone` and 0xFF |
//! | 8 | 2 | format, 1 |
//! | 10 | 2 | zero |
//! | 12 | 4 | CRC-32 of all other bytes of the header |
//! | 16 | 8 | offset of the segment's first event, the same as in its file's name |
//! | 24 | 8 | bits of the epoch it was begun in; for people, the topic's epoch counts |
//!
//! Then one record after the other, each 36 bytes, the key and the data:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 2 | 0xFF 0xE5; 0xFF is in no key and no data, so records can be found again after damage |
//! | 2 | 1 | kind, 1: an event |
//! | 3 | 1 | length of the key; only the first record of a batch has one |
//! | 4 | 4 | length of key and data |
//! | 8 | 4 | CRC-32 of all other bytes of the record |
//! | 12 | 4 | how many records of the same batch follow |
//! | 16 | 4 | how far this offset is beyond the newest that was flushed when it was written |
//! | 20 | 8 | offset |
//! | 28 | 8 | time, in microseconds since the Unix epoch |

use crate::{Batch, Epoch, Event, IdempotencyKey, UnixTime};

/// The format of segments that this version writes, and the newest it reads.
pub(super) const FORMAT: u16 = 1;
/// Length of a segment's header.
pub(super) const SEGMENT_HEADER_BYTES: u64 = 32;
/// Length of a record without its key and data.
pub(super) const RECORD_HEADER_BYTES: u64 = RECORD_HEADER_LEN as u64;

const RECORD_HEADER_LEN: usize = 36;
const SEGMENT_MAGIC: [u8; 8] = *b"anemone\xFF";
const MARKER: [u8; 2] = [0xFF, 0xE5];
const KIND_EVENT: u8 = 1;

/// How an event is written that is not itself part of the event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing<'a> {
    pub(super) key: Option<&'a IdempotencyKey>,
    /// How many records of its batch follow.
    pub(super) left: u32,
    /// The newest offset that is known to be flushed.
    pub(super) flushed: u64,
}

/// A record as it was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Record<'a> {
    pub(super) offset: u64,
    pub(super) time: UnixTime,
    pub(super) left: u32,
    /// The newest offset that was flushed when it was written; 0 when that was too far back to say.
    pub(super) flushed: u64,
    pub(super) key: Option<&'a str>,
    pub(super) data: &'a str,
    /// Its whole length.
    pub(super) bytes: u64,
}

/// Why there is no record here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// It begins like one and has this length, and there are fewer bytes.
    Short(u64),
    /// It is none, or a damaged one.
    Garbage,
}

/// Length of a record.
pub(super) fn record_bytes(key: Option<&IdempotencyKey>, data_bytes: usize) -> u64 {
    RECORD_HEADER_BYTES + key.map_or(0, |key| key.as_str().len() as u64) + data_bytes as u64
}

/// Appends the header of a segment.
pub(super) fn encode_segment_header(base: u64, epoch: Epoch, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&SEGMENT_MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&[0; 6]);
    out.extend_from_slice(&base.to_le_bytes());
    out.extend_from_slice(&epoch.bits().to_le_bytes());
    let crc = crc_around(&out[start..], 12);
    out[start + 12..start + 16].copy_from_slice(&crc.to_le_bytes());
}

/// The format of a segment that begins so; `None` when that is no whole header.
pub(super) fn decode_segment_header(bytes: &[u8]) -> Option<u16> {
    let (header, _) = bytes.split_first_chunk::<{ SEGMENT_HEADER_BYTES as usize }>()?;
    let whole = header.starts_with(&SEGMENT_MAGIC) && u32_at(header, 12) == crc_around(header, 12);
    whole.then(|| u16::from_le_bytes([header[8], header[9]]))
}

/// Appends the record of an event.
pub(super) fn encode(event: &Event, framing: Framing<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let key = framing.key.map_or("", IdempotencyKey::as_str);
    let data = event.data.bytes();
    out.reserve(RECORD_HEADER_LEN + key.len() + data.len());
    out.extend_from_slice(&MARKER);
    // A key has at most 255 bytes, and a batch at most 2^30.
    out.extend_from_slice(&[KIND_EVENT, u8::try_from(key.len()).unwrap_or(u8::MAX)]);
    out.extend_from_slice(&saturated(key.len() as u64 + data.len() as u64).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&framing.left.to_le_bytes());
    out.extend_from_slice(&saturated(event.offset.saturating_sub(framing.flushed)).to_le_bytes());
    out.extend_from_slice(&event.offset.to_le_bytes());
    out.extend_from_slice(&event.time.as_micros().to_le_bytes());
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(data);
    let crc = crc_around(&out[start..], 8);
    out[start + 8..start + 12].copy_from_slice(&crc.to_le_bytes());
}

/// The record that begins here.
pub(super) fn decode(bytes: &[u8]) -> Result<Record<'_>, Fault> {
    let Some((header, rest)) = bytes.split_first_chunk::<RECORD_HEADER_LEN>() else {
        let begins = MARKER.iter().zip(bytes).all(|(expected, byte)| expected == byte);
        return Err(if begins { Fault::Short(RECORD_HEADER_BYTES) } else { Fault::Garbage });
    };
    let (key_len, payload_len) = (usize::from(header[3]), u32_at(header, 4));
    let plausible = header.starts_with(&MARKER)
        && header[2] == KIND_EVENT
        && u64::from(payload_len) <= Batch::BYTES_MAX
        && key_len as u64 <= u64::from(payload_len);
    if !plausible {
        return Err(Fault::Garbage);
    }
    let whole = RECORD_HEADER_BYTES + u64::from(payload_len);
    let Some(payload) = rest.get(..payload_len as usize) else {
        return Err(Fault::Short(whole));
    };
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[..8]);
    crc.update(&header[12..]);
    crc.update(payload);
    if crc.finalize() != u32_at(header, 8) {
        return Err(Fault::Garbage);
    }
    let text = std::str::from_utf8(payload).map_err(|_| Fault::Garbage)?;
    let (key, data) = text.split_at_checked(key_len).ok_or(Fault::Garbage)?;
    let (offset, unflushed) = (u64_at(header, 20), u32_at(header, 16));
    Ok(Record {
        offset,
        time: UnixTime::from_micros(u64_at(header, 28)),
        left: u32_at(header, 12),
        flushed: if unflushed == u32::MAX { 0 } else { offset.saturating_sub(unflushed.into()) },
        key: (!key.is_empty()).then_some(key),
        data,
        bytes: whole,
    })
}

/// Where the next record may begin at or after `from`.
pub(super) fn find_marker(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(MARKER.len()).position(|window| window == MARKER).map(|at| from + at)
}

/// CRC-32 of all but the four bytes at `at`, where it stands itself.
fn crc_around(bytes: &[u8], at: usize) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..at]);
    crc.update(&bytes[at + 4..]);
    crc.finalize()
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

    fn event(offset: u64, micros: u64, text: &str) -> Event {
        let time = UnixTime::from_micros(micros);
        Event { offset, time, data: Data::json(&text).unwrap() }
    }

    fn encoded(event: &Event, key: Option<&IdempotencyKey>, left: u32, flushed: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(event, Framing { key, left, flushed }, &mut bytes);
        bytes
    }

    #[test]
    fn a_segment_header_is_32_bytes_and_any_change_is_seen() {
        let mut bytes = Vec::new();
        encode_segment_header(42, Epoch::from_bits(7), &mut bytes);
        assert_eq!(bytes.len() as u64, SEGMENT_HEADER_BYTES);
        assert_eq!(decode_segment_header(&bytes), Some(FORMAT));
        assert_eq!(decode_segment_header(&bytes[..31]), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(decode_segment_header(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn the_bytes_of_a_record_are_as_documented() {
        let event = event(0x0102, 0x0304, "x");
        let key = "k".parse().unwrap();
        let bytes = encoded(&event, Some(&key), 5, 0x0100);
        let crc = crc_around(&bytes, 8).to_le_bytes();
        let mut expected = vec![0xFF, 0xE5, 1, 1, 4, 0, 0, 0];
        expected.extend_from_slice(&crc);
        expected.extend_from_slice(&[5, 0, 0, 0, 2, 0, 0, 0]);
        expected.extend_from_slice(&[2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(b"k\"x\"");
        assert_eq!(bytes, expected);
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(
            offset in 1_u64.., micros: u64, text in ".{0,40}", key in "[ -~]{0,9}",
            left: u32, flushed: u64,
        ) {
            let event = event(offset, micros, &text);
            let key: Option<IdempotencyKey> = key.parse().ok();
            let bytes = encoded(&event, key.as_ref(), left, flushed);
            prop_assert_eq!(record_bytes(key.as_ref(), event.data.bytes().len()), bytes.len() as u64);
            let record = decode(&bytes).unwrap();
            prop_assert_eq!(record.offset, offset);
            prop_assert_eq!(record.time, event.time);
            prop_assert_eq!(record.left, left);
            prop_assert!(record.flushed <= flushed.min(offset), "flushed is never overstated");
            prop_assert_eq!(record.key, key.as_ref().map(IdempotencyKey::as_str));
            prop_assert_eq!(record.data, event.data.as_str());
            prop_assert_eq!(record.bytes, bytes.len() as u64);
        }

        #[test]
        fn every_cut_is_short_and_every_flipped_bit_is_seen(text in "[a-z]{0,20}", bit in 0_usize..8) {
            let bytes = encoded(&event(9, 9, &text), None, 0, 0);
            for len in 0..bytes.len() {
                prop_assert!(matches!(decode(&bytes[..len]), Err(Fault::Short(_))), "{}", len);
                let mut damaged = bytes.clone();
                damaged[len] ^= 1 << bit;
                prop_assert!(decode(&damaged).is_err(), "byte {}", len);
            }
        }

        #[test]
        fn no_bytes_make_decode_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
            let mut marked = vec![0xFF, 0xE5, 1];
            marked.extend_from_slice(&bytes);
            let _ = decode(&marked);
        }
    }
}
