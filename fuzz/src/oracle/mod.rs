//! Independent implementations of the specifications, as simple as possible and without optimization, to compare
//! with.

mod frames;
mod inflate;

pub use frames::{Expected, Limits, receive};
pub use inflate::{Inflate, InflateError};

/// RFC 6455 section 5.3: "octet i of the transformed data is the XOR of octet i of the original data
/// with octet at index i modulo 4 of the masking key".
pub fn mask(key: [u8; 4], bytes: &mut [u8]) {
    mask_from(key, 0, bytes);
}

/// As [`mask`] for the part of a payload that begins at `offset`.
pub fn mask_from(key: [u8; 4], offset: u64, bytes: &mut [u8]) {
    for (byte, i) in bytes.iter_mut().zip(0_u64..) {
        *byte ^= key[((offset % 4 + i % 4) % 4) as usize];
    }
}
