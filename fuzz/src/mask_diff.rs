//! Masking against [`oracle::mask`](crate::oracle::mask): at every alignment, in pieces, and as
//! connections do it on the way out and in.
//!
//! Input: key (4 bytes), offset into the payload (8), alignment (1), cuts, payload.

use std::sync::Arc;

use anemone_proto::{Connection, Header, MaskKey, Message, MessageKind, Time};
use arbitrary::{Result, Unstructured};

use crate::link::transmit;
use crate::oracle;
use crate::payload::{Cuts, Payload, pieces};
use crate::seen::{Collector, Seen, receive};

/// Runs one input; panics on a fault.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::read(&mut Unstructured::new(data)) else { return };
    input.in_place();
    input.in_pieces();
    input.over_connections();
}

struct Input {
    key: [u8; 4],
    offset: u64,
    alignment: usize,
    bytes: Vec<u8>,
    cuts: Vec<usize>,
}

impl Input {
    fn read(u: &mut Unstructured<'_>) -> Result<Self> {
        let (key, offset, alignment): (_, _, u8) = (u.arbitrary()?, u.arbitrary()?, u.arbitrary()?);
        let (cuts, Payload { bytes, .. }): (Cuts, _) = (u.arbitrary()?, u.arbitrary()?);
        let cuts = cuts.of(bytes.len());
        Ok(Self { key, offset, alignment: usize::from(alignment % 64), bytes, cuts })
    }

    fn masked(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        oracle::mask(self.key, &mut bytes);
        bytes
    }

    /// Checks that masking in place does not change the bytes around.
    fn in_place(&self) {
        let key = MaskKey(self.key);
        let (before, after) = (vec![0xa5; self.alignment], [0x5a; 16]);
        let mut buffer = [&before[..], &self.bytes, &after].concat();
        let range = self.alignment..self.alignment + self.bytes.len();
        key.apply(&mut buffer[range.clone()]);
        assert_eq!(buffer, [&before[..], &self.masked(), &after].concat());
        key.apply(&mut buffer[range]);
        assert_eq!(buffer, [&before[..], &self.bytes, &after].concat(), "twice is not nothing");
    }

    fn in_pieces(&self) {
        let key = MaskKey(self.key);
        let mut rotated = self.bytes.clone();
        key.rotated(self.offset).apply(&mut rotated);
        let mut expected = self.bytes.clone();
        oracle::mask_from(self.key, self.offset, &mut expected);
        assert_eq!(rotated, expected, "from offset {}", self.offset);

        let mut masked = Vec::new();
        for piece in pieces(&self.bytes, &self.cuts) {
            let offset = masked.len() as u64;
            masked.extend_from_slice(piece);
            key.rotated(offset).apply(&mut masked[offset as usize..]);
        }
        assert_eq!(masked, self.masked(), "cut at {:?}", self.cuts);
    }

    fn over_connections(&self) {
        let (config, key) = (Arc::default(), MaskKey(self.key));
        let mut client = Connection::client(Arc::clone(&config), Time::ZERO, Box::new(move || key));
        let sent = client.sender().send(Message::Binary(&self.bytes));
        assert_eq!(sent, Ok(()));
        let bytes = transmit(&mut client);
        let Ok(Some((header, len))) = Header::decode(&bytes) else { panic!("no header is sent") };
        assert_eq!((header.mask, header.payload_len), (Some(key), self.bytes.len() as u64));
        assert_eq!(&bytes[len..], self.masked());

        for takes_pieces in [false, true] {
            let mut server = Connection::server(Arc::clone(&config), Time::ZERO);
            if takes_pieces {
                server.take_pieces();
            }
            let mut collector = Collector::default();
            let (head, payload) = bytes.split_at(len);
            let mut seen = Vec::new();
            for piece in std::iter::once(head).chain(pieces(payload, &self.cuts)) {
                seen.extend(receive(
                    &mut server,
                    &mut collector,
                    Time::ZERO,
                    // At the same alignment as above.
                    &mut [&vec![0; self.alignment], piece].concat()[self.alignment..],
                ));
            }
            assert_eq!(seen, [Seen::Message(MessageKind::Binary, self.bytes.clone())]);
        }
    }
}
