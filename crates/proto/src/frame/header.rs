//! The frame header (RFC 6455 section 5.2): 2 to 14 bytes before the payload.

use crate::{MaskKey, Opcode, ProtocolError};

/// The longest header: 2 bytes, an 8-byte length and a 4-byte masking key.
pub const HEADER_BYTES_MAX: usize = 14;

/// A frame's header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    /// True for the last fragment of a message.
    pub fin: bool,
    /// The first reserved bit; an extension may give it a meaning (RFC 7692: compressed).
    pub rsv1: bool,
    /// The kind of frame.
    pub opcode: Opcode,
    /// The masking key, when the payload is masked.
    pub mask: Option<MaskKey>,
    /// Length of the payload in bytes, below 2^63.
    pub payload_len: u64,
}

impl Header {
    /// Creates an unmasked header of an unfragmented frame.
    #[must_use]
    pub const fn new(opcode: Opcode, payload_len: u64) -> Self {
        Self { fin: true, rsv1: false, opcode, mask: None, payload_len }
    }

    /// Decodes a header at the front of `bytes`. Returns it with its length, or `None` if it is incomplete.
    ///
    /// # Errors
    /// Returns an error as soon as the header is certainly invalid: reserved bits 2 and 3, an unknown opcode, a
    /// fragmented or long control frame, a length that is not written in the fewest bytes or has its highest bit set.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, ProtocolError> {
        let [first, second, rest @ ..] = bytes else {
            // The first byte alone can be invalid.
            return bytes.first().map_or(Ok(None), |&first| check_first(first).map(|_| None));
        };
        let opcode = check_first(*first)?;
        let fin = first & 0x80 != 0;
        let short = second & 0x7f;
        if opcode.is_control() && short > 125 {
            return Err(ProtocolError::ControlFrameTooLong);
        }
        let Some((payload_len, len_bytes)) = extended_len(short, rest) else { return Ok(None) };
        check_len(payload_len, len_bytes)?;
        let masked = second & 0x80 != 0;
        let mask = match (masked, rest[len_bytes..].first_chunk::<4>()) {
            (true, Some(key)) => Some(MaskKey(*key)),
            (true, None) => return Ok(None),
            (false, _) => None,
        };
        let header = Self { fin, rsv1: first & 0x40 != 0, opcode, mask, payload_len };
        Ok(Some((header, 2 + len_bytes + if masked { 4 } else { 0 })))
    }

    /// Appends the header's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let fin = if self.fin { 0x80 } else { 0 };
        let rsv1 = if self.rsv1 { 0x40 } else { 0 };
        let masked = if self.mask.is_some() { 0x80 } else { 0 };
        encode_len(fin | rsv1 | self.opcode as u8, masked, self.payload_len, out);
        if let Some(MaskKey(key)) = self.mask {
            out.extend_from_slice(&key);
        }
    }

    /// Appends the header of a whole message that is neither compressed nor masked, like [`encode`](Self::encode).
    /// Most messages of a server are of this kind.
    #[inline]
    pub(crate) fn encode_plain(opcode: Opcode, payload_len: usize, out: &mut Vec<u8>) {
        encode_len(0x80 | opcode as u8, 0, payload_len as u64, out);
    }
}

/// Appends arrays, so each length takes one store instead of a copy of variable size.
#[inline]
fn encode_len(first: u8, masked: u8, payload_len: u64, out: &mut Vec<u8>) {
    match payload_len {
        len @ 0..=125 => out.extend_from_slice(&[first, masked | len as u8]),
        len @ 126..=0xffff => {
            let [a, b] = (len as u16).to_be_bytes();
            out.extend_from_slice(&[first, masked | 126, a, b]);
        }
        len => {
            let [a, b, c, d, e, f, g, h] = len.to_be_bytes();
            out.extend_from_slice(&[first, masked | 127, a, b, c, d, e, f, g, h]);
        }
    }
}

fn check_first(first: u8) -> Result<Opcode, ProtocolError> {
    if first & 0x30 != 0 {
        return Err(ProtocolError::ReservedBits { bits: (first & 0x70) >> 4 });
    }
    let bits = first & 0x0f;
    let opcode = Opcode::decode(bits).ok_or(ProtocolError::UnknownOpcode { opcode: bits })?;
    if opcode.is_control() && first & 0x80 == 0 {
        return Err(ProtocolError::ControlFrameFragmented { opcode });
    }
    Ok(opcode)
}

/// Returns the payload's length, and the number of extended length bytes.
fn extended_len(short: u8, rest: &[u8]) -> Option<(u64, usize)> {
    match short {
        126 => rest.first_chunk().map(|len| (u64::from(u16::from_be_bytes(*len)), 2)),
        127 => rest.first_chunk().map(|len| (u64::from_be_bytes(*len), 8)),
        len => Some((u64::from(len), 0)),
    }
}

fn check_len(len: u64, len_bytes: usize) -> Result<(), ProtocolError> {
    match len_bytes {
        2 if len < 126 => Err(ProtocolError::LengthNotMinimal { len }),
        8 if len <= 0xffff => Err(ProtocolError::LengthNotMinimal { len }),
        8 if len >> 63 != 0 => Err(ProtocolError::LengthTooLarge { len }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_header() -> impl Strategy<Value = Header> {
        let data =
            prop_oneof![Just(Opcode::Continuation), Just(Opcode::Text), Just(Opcode::Binary)];
        let control = prop_oneof![Just(Opcode::Close), Just(Opcode::Ping), Just(Opcode::Pong)];
        let len = prop_oneof![0..300_u64, 65_500..65_600_u64, 0..1_u64 << 63];
        let mask = || any::<Option<[u8; 4]>>().prop_map(|key| key.map(MaskKey));
        prop_oneof![
            (any::<(bool, bool)>(), data, mask(), len).prop_map(
                |((fin, rsv1), opcode, mask, payload_len)| Header {
                    fin,
                    rsv1,
                    opcode,
                    mask,
                    payload_len
                }
            ),
            (control, mask(), 0..126_u64)
                .prop_map(|(opcode, mask, len)| Header { mask, ..Header::new(opcode, len) }),
        ]
    }

    proptest! {
        #[test]
        fn decode_undoes_encode_and_waits_for_the_last_byte(header in any_header()) {
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            for len in 0..bytes.len() {
                prop_assert_eq!(Header::decode(&bytes[..len]), Ok(None));
            }
            bytes.push(0xff);
            prop_assert_eq!(Header::decode(&bytes), Ok(Some((header, bytes.len() - 1))));
        }

        #[test]
        fn what_decodes_encodes_to_the_same_bytes(bytes: [u8; HEADER_BYTES_MAX]) {
            if let Ok(Some((header, len))) = Header::decode(&bytes) {
                let mut again = Vec::new();
                header.encode(&mut again);
                prop_assert_eq!(&again[..], &bytes[..len]);
            }
        }
    }

    #[test]
    fn the_examples_of_section_5_7_decode() {
        let masked = Header {
            mask: Some(MaskKey([0x37, 0xfa, 0x21, 0x3d])),
            ..Header::new(Opcode::Text, 5)
        };
        let cases: [(&[u8], Header); 6] = [
            (&[0x81, 0x05], Header::new(Opcode::Text, 5)),
            (&[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d], masked),
            (&[0x01, 0x03], Header { fin: false, ..Header::new(Opcode::Text, 3) }),
            (&[0x80, 0x02], Header::new(Opcode::Continuation, 2)),
            (&[0x82, 0x7e, 0x01, 0x00], Header::new(Opcode::Binary, 256)),
            (&[0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0], Header::new(Opcode::Binary, 65_536)),
        ];
        for (bytes, header) in cases {
            assert_eq!(Header::decode(bytes), Ok(Some((header, bytes.len()))));
        }
    }

    #[test]
    fn lengths_must_take_the_fewest_bytes() {
        // RFC 6455 section 5.2
        let decode = |bytes: &[u8]| Header::decode(bytes).unwrap_err();
        assert_eq!(decode(&[0x82, 126, 0, 125]), ProtocolError::LengthNotMinimal { len: 125 });
        let long = decode(&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        assert_eq!(long, ProtocolError::LengthNotMinimal { len: 0xffff });
        let high = decode(&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(high, ProtocolError::LengthTooLarge { len: 1 << 63 });
    }

    #[test]
    fn a_wrong_first_byte_is_found_before_the_second() {
        assert_eq!(Header::decode(&[0x90]), Err(ProtocolError::ReservedBits { bits: 1 }));
        assert_eq!(Header::decode(&[0xa2]), Err(ProtocolError::ReservedBits { bits: 2 }));
        assert_eq!(Header::decode(&[0x83]), Err(ProtocolError::UnknownOpcode { opcode: 3 }));
        let fragmented = ProtocolError::ControlFrameFragmented { opcode: Opcode::Ping };
        assert_eq!(Header::decode(&[0x09]), Err(fragmented));
    }

    #[test]
    fn a_control_frame_of_126_bytes_is_refused() {
        // RFC 6455 section 5.5
        let error = Header::decode(&[0x89, 126, 0, 126]).unwrap_err();
        assert_eq!(error, ProtocolError::ControlFrameTooLong);
    }
}
