//! Opcodes (RFC 6455 sections 5.2 and 11.8).

/// The kind of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation = 0x0,
    /// The first or only fragment of a text message.
    Text = 0x1,
    /// The first or only fragment of a binary message.
    Binary = 0x2,
    /// Begins or answers the closing handshake.
    Close = 0x8,
    /// Asks for a pong.
    Ping = 0x9,
    /// Answers a ping, or shows unasked that the peer is alive.
    Pong = 0xa,
}

/// The kind of a control frame (section 5.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Control {
    Close,
    Ping,
    Pong,
}

impl Opcode {
    /// Returns true for close, ping and pong, which are never fragmented and have at most 125 bytes (section 5.5).
    #[must_use]
    pub const fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }

    /// Returns the kind of control frame; `None` for a data frame.
    pub(crate) const fn control(self) -> Option<Control> {
        match self {
            Self::Close => Some(Control::Close),
            Self::Ping => Some(Control::Ping),
            Self::Pong => Some(Control::Pong),
            Self::Continuation | Self::Text | Self::Binary => None,
        }
    }

    /// Returns the opcode of these four bits; `None` for a reserved one.
    pub(crate) const fn decode(bits: u8) -> Option<Self> {
        match bits {
            0x0 => Some(Self::Continuation),
            0x1 => Some(Self::Text),
            0x2 => Some(Self::Binary),
            0x8 => Some(Self::Close),
            0x9 => Some(Self::Ping),
            0xa => Some(Self::Pong),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opcodes_that_begin_a_control_frame_are_those_with_the_highest_bit() {
        // section 5.2
        for opcode in (0..16).filter_map(Opcode::decode) {
            assert_eq!(opcode.control().is_some(), opcode.is_control(), "{opcode:?}");
        }
    }
}
