//! `Sec-WebSocket-Key` and `Sec-WebSocket-Accept` (RFC 6455 sections 4.1 and 4.2.2).

use sha1_smol::Sha1;

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The 16 random bytes of a client's handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Nonce(pub [u8; 16]);

impl Nonce {
    /// Returns the value of `Sec-WebSocket-Key`, 24 characters.
    #[must_use]
    pub fn key(self) -> String {
        base64(&self.0)
    }
}

/// Returns the value of `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`, 28 characters.
#[must_use]
pub fn accept_key(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(GUID);
    base64(&hash.digest().bytes())
}

/// Returns true if `key` is the base64 encoding of 16 bytes (section 4.2.1, item 5).
pub(super) fn is_key(key: &[u8]) -> bool {
    // 16 bytes are 21 full characters, one with its low four bits clear, and the padding.
    let Some((digits, b"==")) = key.split_last_chunk::<2>() else { return false };
    digits.len() == 22
        && digits.iter().all(|digit| digit.is_ascii_alphanumeric() || matches!(digit, b'+' | b'/'))
        && digits.last().is_some_and(|last| b"AQgw".contains(last))
}

/// Encodes bytes as padded base64 (RFC 4648 section 4).
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|i| u32::from(group.get(i).copied().unwrap_or(0)));
        let bits = a << 16 | b << 8 | c;
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) as usize & 0x3f;
            text.push(if digit <= group.len() { ALPHABET[index] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_section_1_3_is_reproduced() {
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(Nonce(*b"the sample nonce").key(), "dGhlIHNhbXBsZSBub25jZQ==");
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text); // section 10
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn only_sixteen_bytes_make_a_key() {
        assert!(is_key(Nonce([0xff; 16]).key().as_bytes()));
        for key in [
            "",
            "==",
            "dGhlIHNhbXBsZSBub25jZQ",
            "dGhlIHNhbXBsZSBub25jZR==",
            "dGhlIHNhbXBsZSBub25j!Q==",
            "Zm9v",
            "dGhlIHNhbXBsZSBub25jZTEyMzQ=",
        ] {
            assert!(!is_key(key.as_bytes()), "{key}");
        }
    }
}
