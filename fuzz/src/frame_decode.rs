//! Raw bytes as frames: the header's decoder, and connections that receive them, whole and in pieces,
//! against [`oracle::receive`](crate::oracle::receive).
//!
//! Input: flags (1 byte: bit 0 server, bit 1 small limits), cuts, and everything
//! else is what comes.

use std::sync::Arc;

use anemone_proto::{
    Config, Connection, HEADER_BYTES_MAX, Header, MaskKey, MessageKind, Opcode, Time,
};
use arbitrary::{Result, Unstructured};

use crate::link::transmit;
use crate::oracle::{self, Expected};
use crate::payload::{Cuts, pieces};
use crate::seen::{Collector, Seen, receive};

/// Runs one input; panics on a fault.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::read(&mut Unstructured::new(data)) else { return };
    headers(&input.bytes);
    connections(&input);
}

struct Input {
    is_server: bool,
    limits: oracle::Limits,
    cuts: Vec<usize>,
    bytes: Vec<u8>,
}

impl Input {
    fn read(u: &mut Unstructured<'_>) -> Result<Self> {
        let (flags, cuts): (u8, Cuts) = (u.arbitrary()?, u.arbitrary()?);
        let bytes = u.bytes(u.len())?.to_vec();
        let limits = if flags & 2 == 0 {
            oracle::Limits { frame_bytes: 16 << 20, message_bytes: 16 << 20, fragments: 131_072 }
        } else {
            oracle::Limits { frame_bytes: 10, message_bytes: 15, fragments: 3 }
        };
        Ok(Self { is_server: flags & 1 != 0, limits, cuts: cuts.of(bytes.len()), bytes })
    }
}

/// Checks that a decoded header encodes to the same bytes, and is decided at the right byte.
fn headers(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(HEADER_BYTES_MAX + 1)];
    let whole = Header::decode(bytes);
    let mut decided = None;
    for len in 0..=bytes.len() {
        let decoded = Header::decode(&bytes[..len]);
        if decided.is_none() && decoded != Ok(None) {
            decided = Some((decoded.clone(), len));
        }
        let expected = decided.as_ref().map_or(Ok(None), |(decoded, _)| decoded.clone());
        assert_eq!(decoded, expected, "from {len} bytes");
    }
    let Ok(Some((header, len))) = whole else { return };
    assert_eq!(decided, Some((whole, len)), "a header needs all of its bytes and no more");
    let mut again = Vec::new();
    header.encode(&mut again);
    assert_eq!(again, bytes[..len]);
    assert!(header.payload_len < 1 << 63);
    assert!(!header.opcode.is_control() || header.fin && header.payload_len <= 125);
}

fn connections(input: &Input) {
    let expected = oracle::receive(input.is_server, input.limits, &input.bytes);
    let all = [input.bytes.len()];
    let (whole, whole_output) = received(input, &all, false);
    let as_expected: Vec<Expected> = whole.iter().map(expected_of).collect();
    assert_eq!(as_expected, expected);
    check_output(input, &whole, &whole_output);

    let single: Vec<usize> = (1..=input.bytes.len()).collect();
    for cuts in [&input.cuts, &single] {
        for takes_pieces in [false, true] {
            let (seen, output) = received(input, cuts, takes_pieces);
            assert_eq!(seen, whole, "cut at {cuts:?}, takes pieces: {takes_pieces}");
            assert_eq!(output.len(), whole_output.len());
            assert!(!input.is_server || output == whole_output);
        }
    }
}

/// Returns the items that a new connection receives in these bytes, and its output.
fn received(input: &Input, cuts: &[usize], takes_pieces: bool) -> (Vec<Seen>, Vec<u8>) {
    let config = Arc::new(Config {
        frame_bytes_max: input.limits.frame_bytes,
        message_bytes_max: input.limits.message_bytes,
        fragments_max: input.limits.fragments,
        ..Config::default()
    });
    let mut connection = if input.is_server {
        Connection::server(config, Time::ZERO)
    } else {
        Connection::client(config, Time::ZERO, Box::new(|| MaskKey([0; 4])))
    };
    if takes_pieces {
        connection.take_pieces();
    }
    let mut collector = Collector::default();
    let mut seen = Vec::new();
    for piece in pieces(&input.bytes, cuts) {
        seen.extend(receive(&mut connection, &mut collector, Time::ZERO, &mut piece.to_vec()));
    }
    assert!(!collector.is_amid_message() || connection.is_amid_message() || connection.is_closed());
    (seen, transmit(&mut connection))
}

fn expected_of(seen: &Seen) -> Expected {
    match seen.clone() {
        Seen::Message(kind, bytes) => {
            Expected::Message { is_text: kind == MessageKind::Text, bytes }
        }
        Seen::Ping(payload) => Expected::Ping(payload),
        Seen::Pong(payload) => Expected::Pong(payload),
        Seen::Close(frame) => {
            Expected::Close(frame.map(|frame| (frame.code.get(), frame.reason.as_str().to_owned())))
        }
        Seen::Failed(error) => Expected::Failed(error.close_code().get()),
    }
}

/// A pong for each ping, in order, and a close frame at the end, if there was one: nothing else
/// (RFC 6455 sections 5.5.1, 5.5.3 and 7.1.7). The keys are all zero, so both ends can be read.
fn check_output(input: &Input, seen: &[Seen], mut output: &[u8]) {
    for seen in seen {
        let (opcode, payload, is_prefix) = match seen {
            Seen::Ping(payload) => (Opcode::Pong, payload.clone(), false),
            Seen::Close(None) => (Opcode::Close, Vec::new(), false),
            Seen::Close(Some(frame)) => {
                (Opcode::Close, frame.code.get().to_be_bytes().to_vec(), false)
            }
            // The reason in words is free.
            Seen::Failed(error) => {
                (Opcode::Close, error.close_code().get().to_be_bytes().to_vec(), true)
            }
            Seen::Message(..) | Seen::Pong(_) => continue,
        };
        let Ok(Some((header, len))) = Header::decode(output) else {
            panic!("no answer to {seen:?}");
        };
        assert_eq!((header.opcode, header.mask.is_some()), (opcode, !input.is_server));
        let (sent, rest) = output[len..].split_at(header.payload_len as usize);
        assert!(sent == payload || is_prefix && sent.starts_with(&payload), "{seen:?}: {sent:?}");
        assert!(str::from_utf8(sent.get(2..).unwrap_or_default()).is_ok() || !is_prefix);
        output = rest;
    }
    assert!(output.is_empty(), "output that nothing asked for: {output:x?}");
}
