//! Messages on a TCP stream, each after its length: 4 bytes, big-endian ("Multiplexed: `anemone.v1`" in `docs/PROTOCOL.md`).
//!
//! A length over the limit is an error, and the stream cannot be read any further. The first bytes of HTTP and TLS are
//! lengths of more than 16 MiB. So with a limit of up to [`MESSAGE_BYTES_MAX`], no page can make its browser send
//! messages here.

/// An error: a message is longer than allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the length before a message is {len}, at most {limit} is allowed")]
pub struct TooLong {
    /// The length, in bytes.
    pub len: usize,
    /// The limit, in bytes.
    pub limit: usize,
}

const LENGTH_BYTES: usize = 4;

/// The highest limit that refuses HTTP and TLS at their first bytes.
pub const MESSAGE_BYTES_MAX: usize = (16 << 20) - 1;

/// Reads messages from a stream, which may come in pieces of any size.
#[derive(Debug)]
pub struct Decoder {
    message_bytes_max: usize,
    /// The bytes of an incomplete message, with its length; empty while messages come whole.
    partial: Vec<u8>,
    /// True once `partial` is complete and was returned.
    is_taken: bool,
}

impl Decoder {
    /// Creates a decoder of messages of up to `message_bytes_max` bytes.
    #[must_use]
    pub fn new(message_bytes_max: usize) -> Self {
        Self { message_bytes_max, partial: Vec::new(), is_taken: false }
    }

    /// Takes the next message from `input`; `None` when the input is used up. A message that is whole in `input` is not
    /// copied.
    ///
    /// # Errors
    /// When the length of a message is over the limit; its bytes are not awaited. The decoder is useless then.
    pub fn decode<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'a [u8]>, TooLong> {
        if self.is_taken {
            // The next one may be long in coming.
            (self.partial, self.is_taken) = (Vec::new(), false);
        }
        if self.partial.is_empty()
            && let Some((length, rest)) = input.split_first_chunk::<LENGTH_BYTES>()
        {
            let len = self.length(*length)?;
            if let Some((message, rest)) = rest.split_at_checked(len) {
                *input = rest;
                return Ok(Some(message));
            }
        }
        self.collect(input, LENGTH_BYTES);
        let Some((length, _)) = self.partial.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let len = self.length(*length)?;
        self.collect(input, LENGTH_BYTES + len);
        let message = &self.partial[LENGTH_BYTES..];
        self.is_taken = message.len() == len;
        Ok(self.is_taken.then_some(message))
    }

    /// Returns true if a message has begun and is incomplete.
    #[must_use]
    pub fn is_amid_message(&self) -> bool {
        !self.partial.is_empty() && !self.is_taken
    }

    /// The bytes that the decoder holds: an incomplete message, or the one it returned last.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    fn length(&self, length: [u8; LENGTH_BYTES]) -> Result<usize, TooLong> {
        let (len, limit) = (u32::from_be_bytes(length) as usize, self.message_bytes_max);
        if len > limit { Err(TooLong { len, limit }) } else { Ok(len) }
    }

    /// Takes input until there are `len` bytes. It allocates memory only for bytes that have come.
    fn collect(&mut self, input: &mut &[u8], len: usize) {
        let missing = len.saturating_sub(self.partial.len());
        let (taken, rest) = input.split_at(missing.min(input.len()));
        self.partial.extend_from_slice(taken);
        *input = rest;
    }
}

/// The bytes that precede a message of `len` bytes.
#[must_use]
pub fn length(len: usize) -> [u8; LENGTH_BYTES] {
    // Nobody takes a message of 4 GiB, whatever its length says.
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{cuts, pieces};

    fn encode(messages: &[Vec<u8>]) -> Vec<u8> {
        messages.iter().flat_map(|message| [&length(message.len())[..], message].concat()).collect()
    }

    fn decode(pieces: &[&[u8]], limit: usize) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut decoder = Decoder::new(limit);
        let mut messages = Vec::new();
        for mut piece in pieces.iter().copied() {
            while let Some(message) = decoder.decode(&mut piece)? {
                messages.push(message.to_vec());
            }
            assert!(piece.is_empty(), "input was left");
        }
        Ok(messages)
    }

    #[test]
    fn a_stream_cut_in_two_at_every_place_gives_the_same_messages() {
        let messages = [b"GET 7 /clock".to_vec(), Vec::new(), vec![0; 300], b"CANCEL 7".to_vec()];
        let bytes = encode(&messages);
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(decode(&[first, second], 300).unwrap(), messages, "cut at {cut}");
        }
    }

    #[test]
    fn one_byte_over_the_limit_is_refused_before_it_comes() {
        let error = decode(&[&length(301)], 300).unwrap_err();
        assert_eq!(error, TooLong { len: 301, limit: 300 });
        assert_eq!(decode(&[&length(300)], 300), Ok(vec![]));
    }

    #[test]
    fn what_speaks_http_or_tls_is_refused_at_once() {
        for bytes in ["GET / HTTP/1.1\r\n", "POST /topics/x", "PRI * HTTP/2.0", "\x16\x03\x01\x02"]
        {
            assert!(decode(&[bytes.as_bytes()], MESSAGE_BYTES_MAX).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_message_that_was_only_announced_takes_no_memory() {
        let mut decoder = Decoder::new(1 << 20);
        let announced = length(1 << 20);
        assert_eq!(decoder.decode(&mut &announced[..]), Ok(None));
        assert!(decoder.partial.capacity() < 64);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_messages(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            cuts in cuts(),
        ) {
            let bytes = encode(&messages);
            prop_assert_eq!(decode(&pieces(&bytes, &cuts), 40).unwrap(), messages);
        }
    }
}
