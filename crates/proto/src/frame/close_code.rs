//! The codes that a close frame may carry (RFC 6455 section 7.4).

use std::fmt;

/// A close code that may appear in a close frame.
///
/// These are 1000-1003, 1007-1014 and 3000-4999 (sections 7.4.1 and 7.4.2, and the IANA registry). 1005, 1006 and
/// 1015 stand for a close without a code and never appear on the wire, so they are not values of this type.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CloseCode(u16);

impl CloseCode {
    /// 1000: the purpose of the connection is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// 1001: the endpoint goes away, for example a stopping server or a page that is left.
    pub const GOING_AWAY: Self = Self(1001);
    /// 1002: the peer violated the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// 1003: a kind of data that the endpoint cannot accept.
    pub const UNSUPPORTED_DATA: Self = Self(1003);
    /// 1007: data that does not match its type, for example text that is not UTF-8.
    pub const INVALID_PAYLOAD: Self = Self(1007);
    /// 1008: a message that violates the endpoint's policy.
    pub const POLICY_VIOLATION: Self = Self(1008);
    /// 1009: a message too big to process.
    pub const MESSAGE_TOO_BIG: Self = Self(1009);
    /// 1010: an extension that the client needs is missing from the server's handshake.
    pub const MANDATORY_EXTENSION: Self = Self(1010);
    /// 1011: an unexpected condition in the endpoint.
    pub const INTERNAL_ERROR: Self = Self(1011);
    /// 1012: the server restarts.
    pub const SERVICE_RESTART: Self = Self(1012);
    /// 1013: the server is overloaded; try again later.
    pub const TRY_AGAIN_LATER: Self = Self(1013);

    /// Returns the close code of this number; `None` if it may not appear in a close frame.
    #[must_use]
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(code)),
            _ => None,
        }
    }

    /// Returns the number.
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
}
