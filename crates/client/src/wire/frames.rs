//! Messages on a stream: each after its length, 4 bytes, big-endian.

use super::Malformed;

/// The bytes of the length.
const LENGTH_BYTES: usize = 4;

/// Takes messages out of a stream.
#[derive(Debug)]
pub(crate) struct Frames {
    partial: Vec<u8>,
    bytes_max: usize,
}

impl Frames {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { partial: Vec::new(), bytes_max }
    }

    /// Hands each message that is whole to `message`. After an error it is not to be called again.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        mut message: impl FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.partial.extend_from_slice(bytes);
        let mut rest = &self.partial[..];
        while let Some((length, after)) = rest.split_first_chunk::<LENGTH_BYTES>() {
            let len = u32::from_be_bytes(*length) as usize;
            if len > self.bytes_max {
                return Err(Malformed::TooLong { limit: self.bytes_max });
            }
            let Some((whole, after)) = after.split_at_checked(len) else { break };
            message(whole)?;
            rest = after;
        }
        let taken = self.partial.len() - rest.len();
        self.partial.drain(..taken);
        Ok(())
    }
}

/// A message with its length before it.
pub(crate) fn frame(message: &[u8]) -> Vec<u8> {
    // A longer one than 4 GiB is refused at the other end, whatever its length says.
    let len = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&len.to_be_bytes(), message].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{cuts, pieces};
    use super::*;

    fn messages(pieces: &[&[u8]], bytes_max: usize) -> Result<Vec<Vec<u8>>, Malformed> {
        let (mut parser, mut messages) = (Frames::new(bytes_max), Vec::new());
        for piece in pieces {
            parser.receive(piece, |message| {
                messages.push(message.to_vec());
                Ok(())
            })?;
        }
        Ok(messages)
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_comes() {
        assert!(messages(&[&[0, 0, 0, 5]], 4).is_err());
        assert!(messages(&[&[0, 0, 0, 4]], 4).is_ok());
        assert!(messages(&[b"HTTP/1.1 400"], 1 << 20).is_err());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_messages(
            sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            cuts in cuts(),
        ) {
            let bytes: Vec<u8> = sent.iter().flat_map(|message| frame(message)).collect();
            prop_assert_eq!(messages(&pieces(&bytes, &cuts), 40).unwrap(), sent);
        }
    }
}
