//! permessage-deflate over connections: what is compressed inflates to the same, here and with
//! [`oracle::Inflate`](crate::oracle::Inflate); what is not valid is an error, the same one however it is cut;
//! and no more memory than the limit is ever taken.
//!
//! Input: flags (1 byte). Bit 0 clear: a message after the other as a peer might send it, compressed or
//! not. Set: messages between two ends that negotiated.

use std::sync::Arc;

use anemone_proto::{
    Config, Connection, DeflateConfig, ExchangeCodecs, Header, Message, MessageKind, Opcode,
    ProtocolError, Time,
};
use arbitrary::{Result, Unstructured};

use crate::link::{KEY, masked, transmit};
use crate::memory;
use crate::negotiated::{deflate_config, exchange, forget, negotiate, reset_codecs};
use crate::oracle::{self, InflateError};
use crate::payload::{Cuts, Payload, long, pieces};
use crate::seen::{Collector, Seen, receive};

/// Runs one input; panics on a fault.
pub fn run(data: &[u8]) {
    reset_codecs();
    let mut u = Unstructured::new(data);
    // An error is an input that ends early, and so ends the run.
    let _ = match u.arbitrary::<u8>() {
        Ok(flags) if flags & 1 == 0 => from_a_peer(flags, &mut u),
        Ok(flags) => between_two_ends(flags, &mut u),
        Err(error) => Err(error),
    };
}

/// Messages in one run.
const MESSAGES_MAX: usize = 8;
/// Bytes in one run, as far as they go into a message. The oracle is slow.
const BYTES_MAX: usize = 64 << 10;

/// Flags: bit 1 the peer takes its context over, bit 2 the limit is a multiple of 4. Input: the limit (2
/// bytes), then messages: flags (1 byte: bit 0 in fragments, bit 1 followed by how often the payload
/// is repeated), cuts, payload.
fn from_a_peer(flags: u8, u: &mut Unstructured<'_>) -> Result<()> {
    let takes_over = flags & 2 != 0;
    let limit = usize::from(u.arbitrary::<u16>()?) << if flags & 4 == 0 { 0 } else { 2 };
    let mut servers = [server(takes_over, limit), server(takes_over, limit)];
    let mut stream = oracle::Inflate::new(15);
    let mut bytes = 0;
    for _ in 0..MESSAGES_MAX {
        if u.is_empty() || bytes > BYTES_MAX {
            break;
        }
        let flags: u8 = u.arbitrary()?;
        let times = if flags & 2 == 0 { 1 } else { usize::from(u.arbitrary::<u8>()?) };
        let cuts: Cuts = u.arbitrary()?;
        let payload = long(u)?.repeat(times);
        let cuts = cuts.of(payload.len());
        bytes += payload.len();

        if !takes_over {
            stream.restart();
        }
        let expected = stream.message(&payload, limit);
        let whole = masked(true, true, Opcode::Binary, &payload);
        let cut = if flags & 1 == 0 {
            let head = whole.len() - payload.len();
            let (head, rest) = whole.split_at(head);
            let mut wire = vec![head.to_vec()];
            wire.extend(pieces(rest, &cuts).map(<[u8]>::to_vec));
            wire
        } else {
            fragments(&payload, &cuts)
        };
        for (server, wire) in servers.iter_mut().zip([vec![whole], cut]) {
            check(server, wire, &expected, limit);
        }
        if expected.is_err() {
            break;
        }
    }
    Ok(())
}

fn server(takes_over: bool, limit: usize) -> Connection {
    let deflate = DeflateConfig { peer_context_takeover: takes_over, ..DeflateConfig::default() };
    let client = DeflateConfig { own_context_takeover: takes_over, ..DeflateConfig::default() };
    let (_, negotiated) = negotiate(&client, &deflate);
    let config = Config { message_bytes_max: limit as u64, ..Config::default() };
    // With codecs of its own, so that all memory is counted.
    Connection::server(Arc::new(config), Time::ZERO).with_deflate(&negotiated, forget)
}

fn fragments(payload: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let number = cuts.len();
    let frames = pieces(payload, cuts).enumerate().map(|(at, piece)| {
        let opcode = if at == 0 { Opcode::Binary } else { Opcode::Continuation };
        masked(at + 1 == number, at == 0, opcode, piece)
    });
    frames.collect()
}

fn check(
    server: &mut Connection,
    wire: Vec<Vec<u8>>,
    expected: &std::result::Result<Vec<u8>, InflateError>,
    limit: usize,
) {
    let mut collector = Collector::default();
    let mut last = None;
    for mut bytes in wire {
        let (seen, peak) =
            memory::peak_of(|| receive(server, &mut collector, Time::ZERO, &mut bytes));
        // The message, the copy of it in `seen`, and an inflater; no more while it fails.
        let bound = 2 * limit + INFLATER_BYTES_MAX;
        assert!(peak <= bound, "{peak} bytes with a limit of {limit}");
        last = seen.into_iter().next().or(last);
    }
    let expected = match expected {
        Ok(bytes) => Seen::Message(MessageKind::Binary, bytes.clone()),
        Err(InflateError::Invalid) => Seen::Failed(ProtocolError::DeflateInvalid),
        Err(InflateError::TooLong) => {
            Seen::Failed(ProtocolError::InflatedTooBig { limit: limit as u64 })
        }
    };
    assert_eq!(last, Some(expected));
}

/// The size of an inflater, and the smallest block of output.
const INFLATER_BYTES_MAX: usize = 64 << 10;

/// Flags: bit 1 codecs are not kept. Input: the configurations of both ends, then messages: flags (1
/// byte: bit 0 from the server, bit 1 in fragments), cuts, payload.
fn between_two_ends(flags: u8, u: &mut Unstructured<'_>) -> Result<()> {
    let lend: ExchangeCodecs = if flags & 2 == 0 { exchange } else { forget };
    let (client_config, server_config) = (deflate_config(u)?, deflate_config(u)?);
    let (for_client, for_server) = negotiate(&client_config, &server_config);
    let config: Arc<Config> = Arc::default();
    let client = Connection::client(Arc::clone(&config), Time::ZERO, Box::new(|| KEY));
    let server = Connection::server(config, Time::ZERO);
    let mut ends = [client.with_deflate(&for_client, lend), server.with_deflate(&for_server, lend)];

    let agreed = for_client.to_string();
    let window = |name: &str, config: &DeflateConfig| {
        let told = agreed.split("; ").find_map(|parameter| parameter.strip_prefix(name));
        let told = told.map_or(15, |bits| bits.parse().unwrap_or(0));
        told.min(config.own_window_bits.get())
    };
    let mut directions = [
        Direction {
            takes_over: for_client.own_context_takeover(),
            stream: oracle::Inflate::new(window("client_max_window_bits=", &client_config)),
        },
        Direction {
            takes_over: for_server.own_context_takeover(),
            stream: oracle::Inflate::new(window("server_max_window_bits=", &server_config)),
        },
    ];
    let mut bytes = 0;
    for _ in 0..MESSAGES_MAX {
        if u.is_empty() || bytes > BYTES_MAX {
            break;
        }
        let (flags, cuts, payload): (u8, Cuts, Payload) =
            (u.arbitrary()?, u.arbitrary()?, u.arbitrary()?);
        let cuts = cuts.of(payload.bytes.len());
        bytes += payload.bytes.len();
        let [client, server] = &mut ends;
        let (from, to) = if flags & 1 == 0 { (client, server) } else { (server, client) };
        let direction = &mut directions[usize::from(flags & 1)];
        direction.carry(from, to, &payload, &cuts, flags & 2 != 0);
    }
    Ok(())
}

/// One direction of a connection.
struct Direction {
    takes_over: bool,
    stream: oracle::Inflate,
}

impl Direction {
    fn carry(
        &mut self,
        from: &mut Connection,
        to: &mut Connection,
        payload: &Payload,
        cuts: &[usize],
        is_fragmented: bool,
    ) {
        let bytes = &payload.bytes;
        let kind = if payload.is_text { MessageKind::Text } else { MessageKind::Binary };
        if is_fragmented {
            let mut at = 0;
            for (i, &cut) in cuts.iter().enumerate() {
                let fin = i + 1 == cuts.len();
                let sent = from.sender().send_fragment(kind, &bytes[at..cut], fin);
                assert_eq!(sent, Ok(()));
                at = cut;
            }
        } else {
            let message = match str::from_utf8(bytes) {
                Ok(text) if payload.is_text => Message::Text(text),
                _ => Message::Binary(bytes),
            };
            assert_eq!(from.sender().send(message), Ok(()));
        }
        let mut wire = transmit(from);
        let (on_wire, is_compressed) = joined(&wire);
        if is_compressed {
            if !self.takes_over {
                self.stream.restart();
            }
            let inflated = self.stream.message(&on_wire, bytes.len());
            assert!(inflated.as_ref() == Ok(bytes), "other inflaters read {inflated:x?}");
            let is_smaller = on_wire.len() < bytes.len();
            assert!(is_smaller || self.takes_over || is_fragmented, "compressed for nothing");
        } else {
            assert_eq!(&on_wire, bytes);
        }
        // Each flush costs 5 bytes, twice where it falls on the end of the output.
        let most = bytes.len() + bytes.len() / 8 + 16 * cuts.len();
        assert!(on_wire.len() <= most, "{} bytes become {}", bytes.len(), on_wire.len());

        let mut collector = Collector::default();
        let cut = wire.len() / 2;
        let (first, second) = wire.split_at_mut(cut);
        let mut seen = receive(to, &mut collector, Time::ZERO, first);
        seen.extend(receive(to, &mut collector, Time::ZERO, second));
        assert_eq!(seen, [Seen::Message(kind, bytes.clone())]);
        assert!(!to.is_amid_message());
    }
}

/// Returns the payloads of all frames, unmasked, and true if the first frame is marked as compressed.
fn joined(mut wire: &[u8]) -> (Vec<u8>, bool) {
    let mut payload = Vec::new();
    let mut is_compressed = None;
    while !wire.is_empty() {
        let Ok(Some((header, len))) = Header::decode(wire) else { panic!("no header is sent") };
        let (frame, rest) = wire[len..].split_at(header.payload_len as usize);
        let mut frame = frame.to_vec();
        oracle::mask(header.mask.map_or([0; 4], |key| key.0), &mut frame);
        payload.extend(frame);
        // RFC 7692 section 6.1
        assert!(is_compressed.is_none() || !header.rsv1, "rsv1 on a later fragment");
        is_compressed.get_or_insert(header.rsv1);
        wire = rest;
    }
    (payload, is_compressed.unwrap_or(false))
}
