//! Checks replies that may come in fragments. A server may echo the beginning of a large message before it has the rest
//! (RFC 6455 section 5.4).

use anemone_ws::proto::{HEADER_BYTES_MAX, Header, Opcode};
use anyhow::{Context, ensure};

use super::frames::Ring;

/// Checks the replies of one connection. Checks headers by their fields, and payloads by a ring.
#[derive(Debug)]
pub(super) struct Fragments {
    /// The place in the ring of payloads of the next byte.
    at: usize,
    /// The number of bytes of the current message that are still to come; below, that of the current frame.
    message_rest: usize,
    frame_rest: usize,
    is_first: bool,
    /// The beginning of a header that has not come completely.
    cut: Vec<u8>,
}

impl Fragments {
    /// Creates a checker. It expects complete messages from this place of the ring on.
    pub(super) fn new(at: usize, payloads: &Ring) -> Self {
        let message_rest = payloads.message_bytes();
        Self {
            at,
            message_rest,
            frame_rest: 0,
            is_first: true,
            cut: Vec::with_capacity(HEADER_BYTES_MAX),
        }
    }

    /// Checks the next bytes. Returns the number of messages that they complete.
    pub(super) fn check(&mut self, mut bytes: &[u8], payloads: &Ring) -> anyhow::Result<usize> {
        let mut messages = 0;
        while !bytes.is_empty() {
            if self.frame_rest > 0 {
                let len = self.frame_rest.min(bytes.len());
                ensure!(
                    &bytes[..len] == payloads.slice(self.at, len),
                    "wrong reply: its payload differs"
                );
                self.at = payloads.advance(self.at, len);
                self.frame_rest -= len;
                self.message_rest -= len;
                bytes = &bytes[len..];
                if self.message_rest == 0 {
                    messages += 1;
                    self.message_rest = payloads.message_bytes();
                    self.is_first = true;
                }
            } else {
                self.cut.push(bytes[0]);
                bytes = &bytes[1..];
                if let Some((header, _)) = Header::decode(&self.cut).context("wrong reply")? {
                    self.begin(&header)?;
                }
            }
        }
        Ok(messages)
    }

    fn begin(&mut self, header: &Header) -> anyhow::Result<()> {
        let len = usize::try_from(header.payload_len)?;
        let opcode = if self.is_first { Opcode::Binary } else { Opcode::Continuation };
        let fin = len == self.message_rest;
        let expected = Header { fin, ..Header::new(opcode, header.payload_len) };
        ensure!(*header == expected, "wrong reply: {header:?}, not {expected:?}");
        ensure!((1..=self.message_rest).contains(&len), "wrong reply: a fragment of {len} bytes");
        self.frame_rest = len;
        self.is_first = false;
        self.cut.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(fin: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Header { fin, ..Header::new(opcode, payload.len() as u64) }.encode(&mut bytes);
        [&bytes[..], payload].concat()
    }

    fn check(bytes: &[u8]) -> anyhow::Result<usize> {
        let ring = Ring::new(b"abcdefABCDEF".to_vec(), 2, 2);
        let mut fragments = Fragments::new(0, &ring);
        bytes.iter().try_fold(0, |messages, byte| Ok(messages + fragments.check(&[*byte], &ring)?))
    }

    #[test]
    fn whole_and_fragmented_replies_are_messages() {
        let bytes = [
            frame(false, Opcode::Binary, b"abc"),
            frame(true, Opcode::Continuation, b"def"),
            frame(true, Opcode::Binary, b"ABCDEF"),
        ];
        assert_eq!(check(&bytes.concat()).unwrap(), 2);
    }

    #[test]
    fn wrong_payloads_headers_and_ends_are_errors() {
        for bytes in [
            frame(true, Opcode::Binary, b"abcdeX"),
            frame(true, Opcode::Text, b"abcdef"),
            frame(true, Opcode::Binary, b"abc"),
            frame(false, Opcode::Binary, b"abcdef"),
            [frame(false, Opcode::Binary, b"abc"), frame(true, Opcode::Binary, b"def")].concat(),
            frame(true, Opcode::Binary, b"abcdefA"),
        ] {
            assert!(check(&bytes).is_err(), "{bytes:?}");
        }
    }
}
