//! Payload masking (RFC 6455 section 5.3).
//!
//! Owns the XOR loop. The caller provides the key, and `Role` decides whether to mask.

/// The 32-bit masking key of one frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MaskKey(pub [u8; 4]);

impl MaskKey {
    /// Returns the key for a piece that begins `payload_offset` bytes into the payload.
    #[must_use]
    pub const fn rotated(self, payload_offset: u64) -> Self {
        let [a, b, c, d] = self.0;
        match payload_offset % 4 {
            0 => self,
            1 => Self([b, c, d, a]),
            2 => Self([c, d, a, b]),
            _ => Self([d, a, b, c]),
        }
    }

    /// Masks or unmasks `bytes`, whose first byte matches the first byte of the key.
    pub fn apply(self, bytes: &mut [u8]) {
        let [a, b, c, d] = self.0;
        let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        // The compiler turns a loop over arrays of eight into vector instructions, but not a loop over `key[i & 3]`.
        let (words, tail) = bytes.as_chunks_mut::<8>();
        for word in words {
            *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
        }
        let narrow = u32::from_ne_bytes(self.0);
        let (words, tail) = tail.as_chunks_mut::<4>();
        for word in words {
            *word = (u32::from_ne_bytes(*word) ^ narrow).to_ne_bytes();
        }
        for (byte, key) in tail.iter_mut().zip(self.0) {
            *byte ^= key;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The algorithm as section 5.3 writes it down.
    fn scalar(key: MaskKey, bytes: &mut [u8]) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte ^= key.0[i % 4];
        }
    }

    #[test]
    fn every_length_and_alignment_equals_the_specification() {
        let key = MaskKey([0x37, 0xfa, 0x21, 0x3d]);
        for start in 0..16 {
            for len in 0..300 {
                let mut ours: Vec<u8> = (0..start + len).map(|i| i as u8).collect();
                let mut oracle = ours.clone();
                key.apply(&mut ours[start..]);
                scalar(key, &mut oracle[start..]);
                assert_eq!(ours, oracle, "start {start}, length {len}");
            }
        }
    }

    proptest! {
        #[test]
        fn twice_is_nothing_and_pieces_equal_the_whole(key: [u8; 4], bytes: Vec<u8>, cut: prop::sample::Index) {
            let key = MaskKey(key);
            let cut = if bytes.is_empty() { 0 } else { cut.index(bytes.len()) };
            let mut whole = bytes.clone();
            key.apply(&mut whole);
            let mut pieces = bytes.clone();
            key.apply(&mut pieces[..cut]);
            key.rotated(cut as u64).apply(&mut pieces[cut..]);
            prop_assert_eq!(&pieces, &whole);
            key.apply(&mut whole);
            prop_assert_eq!(whole, bytes);
        }
    }
}
