//! Errors, split by who is at fault.

use crate::{CloseCode, Opcode};

/// The peer violated the protocol, or a limit set for it. The connection fails with
/// [`close_code`](Self::close_code) (RFC 6455 section 7.1.7).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// Section 5.2: no extension was negotiated that defines them. With permessage-deflate RSV1
    /// may be set on the first frame of a message, and only there (RFC 7692 section 6.1).
    #[error("reserved bits {bits:#05b} are set and no extension defines them")]
    ReservedBits {
        /// RSV1, RSV2, RSV3 from the highest bit.
        bits: u8,
    },
    /// Section 5.2.
    #[error("opcode {opcode:#x} is reserved")]
    UnknownOpcode {
        /// The four bits.
        opcode: u8,
    },
    /// Section 5.1.
    #[error("frame from a client is not masked")]
    MaskMissing,
    /// Section 5.1.
    #[error("frame from a server is masked")]
    MaskUnexpected,
    /// Section 5.2.
    #[error("payload length {len} is not written in the fewest bytes")]
    LengthNotMinimal {
        /// The length.
        len: u64,
    },
    /// Section 5.2.
    #[error("payload length {len} has its highest bit set")]
    LengthTooLarge {
        /// The length.
        len: u64,
    },
    /// Section 5.5.
    #[error("control frame payload is longer than 125 bytes")]
    ControlFrameTooLong,
    /// Section 5.4.
    #[error("control frame {opcode:?} is fragmented")]
    ControlFrameFragmented {
        /// Which.
        opcode: Opcode,
    },
    /// Section 5.4.
    #[error("continuation frame without a message to continue")]
    ContinuationUnexpected,
    /// Section 5.4.
    #[error("{opcode:?} frame before the last message was finished")]
    MessageInterrupted {
        /// The frame that came.
        opcode: Opcode,
    },
    /// Section 8.1.
    #[error("text message is not UTF-8")]
    TextNotUtf8,
    /// Section 5.5.1.
    #[error("close frame payload is 1 byte, a close code needs 2")]
    CloseFrameTooShort,
    /// Section 7.4.
    #[error("close code {code} must not appear on the wire")]
    CloseCodeInvalid {
        /// The number.
        code: u16,
    },
    /// Section 5.5.1.
    #[error("close reason is not UTF-8")]
    CloseReasonNotUtf8,
    /// Section 10.4.
    #[error("frame payload is {len} bytes, limit is {limit}")]
    FrameTooBig {
        /// The length that the header announces.
        len: u64,
        /// `frame_bytes_max`.
        limit: u64,
    },
    /// Section 10.4.
    #[error("message needs {len} bytes, limit is {limit}")]
    MessageTooBig {
        /// All fragments so far, the announced one included.
        len: u64,
        /// `message_bytes_max`.
        limit: u64,
    },
    /// Section 10.4. Inflating stopped there, so how long the message is nobody knows.
    #[error("message inflates to more than {limit} bytes")]
    InflatedTooBig {
        /// `message_bytes_max`.
        limit: u64,
    },
    /// RFC 7692 section 7.2. It names no close code; this is data that does not fit its type.
    #[error("compressed message is not valid deflate data")]
    DeflateInvalid,
    /// Section 10.4.
    #[error("message has more than {limit} fragments")]
    TooManyFragments {
        /// `fragments_max`.
        limit: u32,
    },
    /// The message began, and did not end in time.
    #[error("message is not whole after {millis} ms")]
    MessageTimeout {
        /// `message_timeout`.
        millis: u128,
    },
    /// No byte arrived for the whole idle time-out, an answer to our ping included.
    #[error("nothing received for {millis} ms, not even a pong")]
    IdleTimeout {
        /// `idle_timeout`.
        millis: u128,
    },
}

impl ProtocolError {
    /// The code that the connection fails with.
    #[must_use]
    pub const fn close_code(&self) -> CloseCode {
        match self {
            Self::ReservedBits { .. }
            | Self::UnknownOpcode { .. }
            | Self::MaskMissing
            | Self::MaskUnexpected
            | Self::LengthNotMinimal { .. }
            | Self::LengthTooLarge { .. }
            | Self::ControlFrameTooLong
            | Self::ControlFrameFragmented { .. }
            | Self::ContinuationUnexpected
            | Self::MessageInterrupted { .. }
            | Self::CloseFrameTooShort
            | Self::CloseCodeInvalid { .. } => CloseCode::PROTOCOL_ERROR,
            Self::TextNotUtf8 | Self::CloseReasonNotUtf8 | Self::DeflateInvalid => {
                CloseCode::INVALID_PAYLOAD
            }
            Self::FrameTooBig { .. } | Self::MessageTooBig { .. } | Self::InflatedTooBig { .. } => {
                CloseCode::MESSAGE_TOO_BIG
            }
            Self::TooManyFragments { .. } | Self::MessageTimeout { .. } => {
                CloseCode::POLICY_VIOLATION
            }
            Self::IdleTimeout { .. } => CloseCode::INTERNAL_ERROR,
        }
    }
}

/// The caller asked for what the connection's state does not allow. Nothing was sent.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MisuseError {
    /// After a close frame no other frame may follow (section 5.5.1).
    #[error("the closing handshake has begun")]
    Closing,
    /// A whole message cannot stand between fragments (section 5.4).
    #[error("a fragmented message is being sent")]
    MessageUnfinished,
    /// The fragments of a message are of one kind (section 5.6).
    #[error("the fragments of a message are of one kind, text or binary")]
    KindChanged,
    /// A control frame holds at most 125 bytes (section 5.5).
    #[error("control frame payload is {len} bytes, at most 125 allowed")]
    ControlPayloadTooLong {
        /// The length that was given.
        len: usize,
    },
}
