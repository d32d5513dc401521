//! Digests of keys and of their events: truncated SHA-256.
//!
//! They use no secret, since they are stored on disk and must mean the same after a restart. Finding two keys with
//! one digest takes 2^64 attempts, and finding one for another publisher's digest 2^128; the first harms only those
//! who search.

use bytes::Bytes;
use sha2::{Digest, Sha256};

pub(crate) fn of_key(text: &str) -> [u8; 16] {
    first(Sha256::digest(text).into())
}

/// Returns the digest of the data of a batch's events. Times do not count, since a retry has other times.
pub(crate) fn of_data<'a>(events: impl Iterator<Item = &'a Bytes>) -> u64 {
    let mut digest = Sha256::new();
    for data in events {
        digest.update((data.len() as u64).to_le_bytes());
        digest.update(data);
    }
    u64::from_le_bytes(first(digest.finalize().into()))
}

fn first<const N: usize>(digest: [u8; 32]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&digest[..N]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_of_a_key_is_that_of_its_text() {
        // FIPS 180-4, the example "abc".
        let digest = [
            0xBA, 0x78, 0x16, 0xBF, 0x8F, 0x01, 0xCF, 0xEA, 0x41, 0x41, 0x40, 0xDE, 0x5D, 0xAE,
            0x22, 0x23,
        ];
        assert_eq!(of_key("abc"), digest);
    }
}
