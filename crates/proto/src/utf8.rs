//! A UTF-8 check of text that arrives in pieces cut anywhere (RFC 6455 section 8.1).

/// An error of text that is not UTF-8, whatever follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Utf8Error;

/// Checks a text in pieces. It keeps at most the 3 bytes of an incomplete character.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utf8Checker {
    cut: [u8; 3],
    cut_len: u8,
}

impl Utf8Checker {
    /// Checks the next piece. The error comes with the first byte that makes the text invalid.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> Result<(), Utf8Error> {
        while self.cut_len > 0 {
            let Some((&byte, rest)) = piece.split_first() else { return Ok(()) };
            piece = rest;
            self.complete(byte)?;
        }
        match std::str::from_utf8(piece) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_some() => Err(Utf8Error),
            Err(error) => {
                let cut = &piece[error.valid_up_to()..];
                self.cut[..cut.len()].copy_from_slice(cut);
                self.cut_len = cut.len() as u8;
                Ok(())
            }
        }
    }

    /// Ends the text.
    pub(crate) fn finish(&mut self) -> Result<(), Utf8Error> {
        if std::mem::take(&mut self.cut_len) > 0 { Err(Utf8Error) } else { Ok(()) }
    }

    fn complete(&mut self, byte: u8) -> Result<(), Utf8Error> {
        let len = usize::from(self.cut_len);
        let [a, b, c] = self.cut;
        let character = [[a, byte, 0, 0], [a, b, byte, 0], [a, b, c, byte]][len - 1];
        match std::str::from_utf8(&character[..=len]) {
            Ok(_) => self.cut_len = 0,
            Err(error) if error.error_len().is_some() => return Err(Utf8Error),
            Err(_) => {
                self.cut[len] = byte;
                self.cut_len += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pieces: &[&[u8]]) -> Result<(), Utf8Error> {
        let mut checker = Utf8Checker::default();
        pieces.iter().try_for_each(|piece| checker.push(piece))?;
        checker.finish()
    }

    #[test]
    fn an_invalid_byte_is_found_at_once_and_not_at_the_end() {
        let mut checker = Utf8Checker::default();
        // 0xf4 0x90 begins a character above U+10FFFF.
        assert_eq!(checker.push(&[0xf4]), Ok(()));
        assert_eq!(checker.push(&[0x90]), Err(Utf8Error));
    }

    #[test]
    fn surrogates_and_cut_ends_are_invalid() {
        assert_eq!(check(&[&[0xed, 0xa0, 0x80]]), Err(Utf8Error));
        assert_eq!(check(&[&[0xe2, 0x82]]), Err(Utf8Error));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_verdict_of_the_whole(bytes in prop_oneof![
            any::<Vec<u8>>(),
            any::<String>().prop_map(String::into_bytes),
            prop::collection::vec(prop_oneof![Just(0xf0_u8), Just(0x9f), Just(0x98), Just(0x80), Just(b'a')], 0..12),
        ]) {
            let expected = std::str::from_utf8(&bytes).is_ok();
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(check(&single).is_ok(), expected);
            for cut in 0..=bytes.len() {
                let (a, b) = bytes.split_at(cut);
                prop_assert_eq!(check(&[a, b]).is_ok(), expected);
            }
        }
    }
}
