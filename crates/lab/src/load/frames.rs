//! The bytes that a connection sends, and the bytes that must come back. Both are made before the clock starts.
//!
//! Both are rings of bytes. Each connection goes round them, from a place of its own. So one comparison of memory
//! checks headers and payloads, wherever the stream was cut. The beginning of a ring is repeated after its end, so that
//! no slice wraps.

use std::ops::Range;
use std::time::{Duration, Instant};

use anemone_ws::proto::{Header, MaskKey, Opcode};

use super::Protocol;
use crate::statistics::Random;

/// The approximate size of a ring's payloads, if that means at least `MESSAGES_MIN` and at most `MESSAGES_MAX`
/// messages. It is enough for different keys and payloads, and so little that memory does not slow the generator down.
const RING_BYTES: usize = 2 << 20;
const MESSAGES_MIN: usize = 4;
const MESSAGES_MAX: usize = 256;

/// The most bytes in flight with which the server reads each message completely. It then replies in one frame, which is
/// checked with its header. If a read has cut a message, the server may echo it in fragments.
const READ_AT_ONCE_BYTES: usize = 4096;

/// The shape of the traffic on one connection: the size and the number of its messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Shape {
    pub(crate) payload_bytes: usize,
    /// The number of messages without a complete reply.
    pub(crate) in_flight: usize,
}

/// The bytes of many messages: those to send, and those to expect in return.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) sent: Ring,
    pub(crate) expected: Ring,
    /// The range in each expected message that may differ.
    pub(super) changing: Option<Range<usize>>,
    /// The payloads of the replies, if these may come in fragments.
    pub(crate) fragments: Option<Ring>,
    pub(crate) in_flight: usize,
    pub(super) messages: usize,
}

impl Frames {
    pub(crate) fn new(protocol: Protocol, shape: Shape, random: &mut Random) -> Self {
        Self::of(protocol, shape, Opcode::Binary, Random::bytes, random)
    }

    /// Creates text messages that are JSON strings. A topic stores them, and sends them unchanged.
    pub(crate) fn json(protocol: Protocol, shape: Shape, random: &mut Random) -> Self {
        Self::of(protocol, shape, Opcode::Text, json_string, random)
    }

    fn of(
        protocol: Protocol,
        shape: Shape,
        opcode: Opcode,
        payload: fn(&mut Random, usize) -> Vec<u8>,
        random: &mut Random,
    ) -> Self {
        let messages = (RING_BYTES / shape.payload_bytes).clamp(MESSAGES_MIN, MESSAGES_MAX);
        let (mut sent, mut expected, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..messages {
            let payload = payload(random, shape.payload_bytes);
            match protocol {
                Protocol::Tcp => sent.extend_from_slice(&payload),
                Protocol::WebSocket => {
                    sent.extend_from_slice(&masked(opcode, &payload, random));
                    Header::new(opcode, payload.len() as u64).encode(&mut expected);
                }
            }
            expected.extend_from_slice(&payload);
            payloads.extend_from_slice(&payload);
        }
        let may_come_in_fragments = protocol == Protocol::WebSocket
            && shape.payload_bytes * shape.in_flight >= READ_AT_ONCE_BYTES;
        Self {
            sent: Ring::new(sent, messages, shape.in_flight),
            expected: Ring::new(expected, messages, shape.in_flight),
            changing: None,
            fragments: may_come_in_fragments
                .then(|| Ring::new(payloads, messages, shape.in_flight)),
            in_flight: shape.in_flight,
            messages,
        }
    }

    /// Returns the index of the first message for the connection with this number.
    pub(crate) fn first_message(&self, connection: usize) -> usize {
        // Neighbours start far apart, so that a reply on the wrong connection is noticed.
        connection * 37 % self.messages
    }
}

/// Returns a JSON string of `len` bytes: letters in quotation marks.
pub(crate) fn json_string(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes = vec![b'"'; len];
    let last = len.saturating_sub(1);
    for byte in bytes.iter_mut().take(last).skip(1) {
        *byte = b'a' + random.below(26) as u8;
    }
    bytes
}

/// Returns the frame of a client.
pub(crate) fn masked(opcode: Opcode, payload: &[u8], random: &mut Random) -> Vec<u8> {
    let key = MaskKey((random.next() as u32).to_ne_bytes());
    masked_frame(Header::new(opcode, 0), payload, key)
}

/// Returns the frame of a client with this header. Sets its length and its key.
pub(crate) fn masked_frame(header: Header, payload: &[u8], key: MaskKey) -> Vec<u8> {
    masked_and_timed(header, payload, key).0
}

/// Returns the frame of a client, and the time of masking. The time does not include the allocation of memory.
pub(crate) fn masked_and_timed(
    header: Header,
    payload: &[u8],
    key: MaskKey,
) -> (Vec<u8>, Duration) {
    let header = Header { mask: Some(key), payload_len: payload.len() as u64, ..header };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    let header_bytes = bytes.len();
    bytes.extend_from_slice(payload);
    let begun = Instant::now();
    key.apply(&mut bytes[header_bytes..]);
    let time = begun.elapsed();
    (bytes, time)
}

/// Messages of the same length in a ring.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: Vec<u8>,
    /// The length of the ring. After it, the beginning of the ring is repeated.
    len: usize,
    message_bytes: usize,
}

impl Ring {
    /// Creates a ring. Its slices may be as long as `slice_messages` messages.
    pub(super) fn new(mut bytes: Vec<u8>, messages: usize, slice_messages: usize) -> Self {
        let len = bytes.len();
        let message_bytes = len / messages;
        let needed = len + slice_messages * message_bytes;
        while bytes.len() < needed {
            bytes.extend_from_within(..len.min(needed - bytes.len()));
        }
        Self { bytes, len, message_bytes }
    }

    pub(crate) fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Returns `len` bytes from the place `at` on. The place comes from [`Self::advance`] or [`Self::place`].
    pub(crate) fn slice(&self, at: usize, len: usize) -> &[u8] {
        &self.bytes[at..at + len]
    }

    /// Returns the place that is `bytes` bytes after the beginning of the ring.
    pub(super) fn place(&self, bytes: u64) -> usize {
        (bytes % self.len as u64) as usize
    }

    /// Returns the place that is `by` bytes after `at`.
    pub(crate) fn advance(&self, at: usize, by: usize) -> usize {
        let next = at + by;
        if next < self.len { next } else { next % self.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(protocol: Protocol, payload_bytes: usize, in_flight: usize) -> Frames {
        Frames::new(protocol, Shape { payload_bytes, in_flight }, &mut Random::new(1))
    }

    #[test]
    fn what_is_sent_unmasks_to_what_is_expected() {
        for payload_bytes in [1, 125, 126, 65_535, 65_536] {
            let frames = frames(Protocol::WebSocket, payload_bytes, 2);
            let mut keys = Vec::new();
            for message in 0..4 {
                let at = message * frames.sent.message_bytes();
                let mut sent = frames.sent.slice(at, frames.sent.message_bytes()).to_vec();
                let (header, len) = Header::decode(&sent).unwrap().unwrap();
                let key = header.mask.unwrap();
                key.apply(&mut sent[len..]);
                let mut reply = Vec::new();
                Header { mask: None, ..header }.encode(&mut reply);
                reply.extend_from_slice(&sent[len..]);

                let at = message * frames.expected.message_bytes();
                assert_eq!(frames.expected.slice(at, reply.len()), reply);
                assert_eq!(frames.expected.message_bytes(), reply.len());
                keys.push(key.0);
            }
            keys.dedup();
            assert_eq!(keys.len(), 4, "each frame has a key of its own");
        }
    }

    #[test]
    fn replies_may_come_in_fragments_once_more_is_in_flight_than_is_read_at_once() {
        let may = |protocol, payload_bytes, in_flight| {
            frames(protocol, payload_bytes, in_flight).fragments.is_some()
        };
        assert!(!may(Protocol::WebSocket, 1024, 1) && !may(Protocol::WebSocket, 125, 16));
        assert!(may(Protocol::WebSocket, 1024, 16) && may(Protocol::WebSocket, 4096, 1));
        assert!(!may(Protocol::Tcp, 1024, 16));
    }

    #[test]
    fn text_is_a_json_string_of_the_length_that_was_asked_for() {
        let shape = Shape { payload_bytes: 100, in_flight: 1 };
        let frames = Frames::json(Protocol::WebSocket, shape, &mut Random::new(1));
        let message = frames.expected.slice(0, frames.expected.message_bytes());
        assert_eq!(message[..3], [0x81, 100, b'"']);
        assert!(message[3..101].iter().all(u8::is_ascii_lowercase));
        assert_eq!(message[101..], *b"\"");
        assert_eq!(json_string(&mut Random::new(1), 2), b"\"\"");
    }

    #[test]
    fn tcp_expects_what_it_sends() {
        let frames = frames(Protocol::Tcp, 1000, 3);
        assert_eq!(frames.sent.bytes, frames.expected.bytes);
        assert_eq!(frames.sent.message_bytes(), 1000);
    }

    #[test]
    fn a_slice_that_passes_the_end_goes_on_from_the_beginning() {
        let ring = Ring::new(b"aabbcc".to_vec(), 3, 4);
        assert_eq!(ring.slice(5, 8), b"caabbcca");
        assert_eq!(ring.advance(5, 8), 1);
        assert_eq!(ring.advance(0, 6), 0);
        assert_eq!([5, 6, 13].map(|bytes| ring.place(bytes)), [5, 0, 1]);
    }
}
