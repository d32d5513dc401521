//! The payload of a close frame (RFC 6455 sections 5.5.1 and 7.4).

use std::fmt;

use crate::ProtocolError;

/// Why a connection is closed: a code that may stand in a close frame.
///
/// 1000-1003, 1007-1014 and 3000-4999 (sections 7.4.1 and 7.4.2, and the IANA registry). 1005,
/// 1006 and 1015 describe a close without a code and never appear on the wire, so they are not
/// values of this type.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CloseCode(u16);

impl CloseCode {
    /// 1000: the purpose of the connection is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// 1001: the endpoint goes away: the server stops, the page is left.
    pub const GOING_AWAY: Self = Self(1001);
    /// 1002: the peer violated the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// 1003: a kind of data that the endpoint cannot accept.
    pub const UNSUPPORTED_DATA: Self = Self(1003);
    /// 1007: data that does not fit its type, as text that is not UTF-8.
    pub const INVALID_PAYLOAD: Self = Self(1007);
    /// 1008: a message against the endpoint's policy.
    pub const POLICY_VIOLATION: Self = Self(1008);
    /// 1009: a message too big to process.
    pub const MESSAGE_TOO_BIG: Self = Self(1009);
    /// 1010: the client misses an extension in the server's handshake.
    pub const MANDATORY_EXTENSION: Self = Self(1010);
    /// 1011: an unexpected condition in the endpoint.
    pub const INTERNAL_ERROR: Self = Self(1011);
    /// 1012: the server restarts.
    pub const SERVICE_RESTART: Self = Self(1012);
    /// 1013: the server is overloaded; try again later.
    pub const TRY_AGAIN_LATER: Self = Self(1013);

    /// The code of this number; `None` when it may not stand in a close frame.
    #[must_use]
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(code)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Text of a close frame: UTF-8, at most 123 bytes (sections 5.5 and 5.5.1).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CloseReason(String);

impl CloseReason {
    /// The longest reason: a control frame holds 125 bytes and the code takes 2.
    pub const BYTES_MAX: usize = 123;

    /// The text, cut at a character when it is too long.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        Self(text[..text.floor_char_boundary(Self::BYTES_MAX)].to_owned())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The payload of a close frame that has one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CloseFrame {
    /// Why.
    pub code: CloseCode,
    /// Why, in words; often empty.
    pub reason: CloseReason,
}

impl CloseFrame {
    /// A payload; a reason over 123 bytes is cut.
    #[must_use]
    pub fn new(code: CloseCode, reason: &str) -> Self {
        Self { code, reason: CloseReason::cut(reason) }
    }

    /// Reads a close frame's payload; `None` when it is empty, which is allowed.
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

    /// The payload's bytes, at most 125.
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.code.0.to_be_bytes(), self.reason.0.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_of_section_7_4_may_stand_in_a_frame() {
        for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535] {
            assert_eq!(CloseCode::new(code), None, "{code}");
        }
        for code in [1000, 1003, 1007, 1014, 3000, 3999, 4000, 4999] {
            assert_eq!(CloseCode::new(code).map(CloseCode::get), Some(code));
        }
    }

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
