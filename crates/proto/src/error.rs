//! Errors, split by who is at fault.

use crate::{CloseCode, Opcode};

/// A violation of the protocol, or of a limit, by the peer. The connection fails with
/// [`close_code`](Self::close_code) (RFC 6455 section 7.1.7).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// Section 5.2: no extension was negotiated that defines these bits. With permessage-deflate, RSV1 may be set on
    /// the first frame of a message only (RFC 7692 section 6.1).
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
        /// The opcode.
        opcode: Opcode,
    },
    /// Section 5.4.
    #[error("continuation frame without a message to continue")]
    ContinuationUnexpected,
    /// Section 5.4.
    #[error("{opcode:?} frame before the last message was finished")]
    MessageInterrupted {
        /// The opcode of the frame that came.
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
        /// The length of all fragments so far, with the announced one.
        len: u64,
        /// `message_bytes_max`.
        limit: u64,
    },
    /// Section 10.4. Inflating stopped at the limit, so the whole length is unknown.
    #[error("message inflates to more than {limit} bytes")]
    InflatedTooBig {
        /// `message_bytes_max`.
        limit: u64,
    },
    /// RFC 7692 section 7.2, which names no close code. The code is that of data that does not match its type.
    #[error("compressed message is not valid deflate data")]
    DeflateInvalid,
    /// Section 10.4.
    #[error("message has more than {limit} fragments")]
    TooManyFragments {
        /// `fragments_max`.
        limit: u32,
    },
    /// The message did not end in time.
    #[error("message is not whole after {millis} ms")]
    MessageTimeout {
        /// `message_timeout`.
        millis: u128,
    },
    /// No byte arrived within the idle timeout, not even an answer to our ping.
    #[error("nothing received for {millis} ms, not even a pong")]
    IdleTimeout {
        /// `idle_timeout`.
        millis: u128,
    },
}

impl ProtocolError {
    /// Returns the close code for this error.
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

/// A call that the connection's state does not allow. Nothing was sent.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MisuseError {
    /// A close frame was queued, and no other frame may follow it (section 5.5.1).
    #[error("the closing handshake has begun")]
    Closing,
    /// A whole message cannot be sent between fragments (section 5.4).
    #[error("a fragmented message is being sent")]
    MessageUnfinished,
    /// All fragments of a message must be of one kind (section 5.6).
    #[error("the fragments of a message are of one kind, text or binary")]
    KindChanged,
    /// A control frame holds at most 125 bytes (section 5.5).
    #[error("control frame payload is {len} bytes, at most 125 allowed")]
    ControlPayloadTooLong {
        /// The length that was given.
        len: usize,
    },
}
