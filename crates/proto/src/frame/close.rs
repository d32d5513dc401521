//! The payload of a close frame (RFC 6455 sections 5.5.1 and 7.4).

use super::close_code::CloseCode;
use crate::ProtocolError;

/// The reason in a close frame: UTF-8, at most 123 bytes (sections 5.5 and 5.5.1).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CloseReason(String);

impl CloseReason {
    /// The longest reason: a control frame holds 125 bytes and the code takes 2.
    pub const BYTES_MAX: usize = 123;

    /// Creates a reason; a longer text is cut at a character boundary.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        Self(text[..text.floor_char_boundary(Self::BYTES_MAX)].to_owned())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The payload of a close frame that is not empty.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CloseFrame {
    /// The close code.
    pub code: CloseCode,
    /// The reason in words; often empty.
    pub reason: CloseReason,
}

impl CloseFrame {
    /// Creates a payload; a reason over 123 bytes is cut.
    #[must_use]
    pub fn new(code: CloseCode, reason: &str) -> Self {
        Self { code, reason: CloseReason::cut(reason) }
    }

    /// Decodes the payload of a close frame; `None` if it is empty, which is allowed.
    pub(crate) fn decode(payload: &[u8]) -> Result<Option<Self>, ProtocolError> {
        let Some((code, reason)) = payload.split_first_chunk::<2>() else {
            return if payload.is_empty() {
                Ok(None)
            } else {
                Err(ProtocolError::CloseFrameTooShort)
            };
        };
        let number = u16::from_be_bytes(*code);
        let code =
            CloseCode::new(number).ok_or(ProtocolError::CloseCodeInvalid { code: number })?;
        let reason = std::str::from_utf8(reason).map_err(|_| ProtocolError::CloseReasonNotUtf8)?;
        Ok(Some(Self { code, reason: CloseReason(reason.to_owned()) }))
    }

    /// Returns the payload's bytes, at most 125.
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.code.get().to_be_bytes(), self.reason.0.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_at_a_character() {
        let reason = CloseReason::cut(&"é".repeat(100));
        assert_eq!(reason.as_str().len(), 122);
        assert_eq!(CloseReason::cut(&"x".repeat(123)).as_str().len(), 123);
    }

    #[test]
    fn payloads_survive_and_bad_ones_are_told_apart() {
        let frame = CloseFrame::new(CloseCode::GOING_AWAY, "bye");
        assert_eq!(CloseFrame::decode(&frame.encode()), Ok(Some(frame)));
        assert_eq!(CloseFrame::decode(&[]), Ok(None));
        assert_eq!(CloseFrame::decode(&[3]), Err(ProtocolError::CloseFrameTooShort));
        let reserved = ProtocolError::CloseCodeInvalid { code: 1005 };
        assert_eq!(CloseFrame::decode(&[0x03, 0xed]), Err(reserved));
        let not_utf8 = CloseFrame::decode(&[0x03, 0xe8, 0xff]);
        assert_eq!(not_utf8, Err(ProtocolError::CloseReasonNotUtf8));
    }
}
