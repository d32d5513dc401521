//! Frames (RFC 6455 section 5.2): opcode, header, close payload.

mod close;
mod header;
mod opcode;

pub use close::{CloseCode, CloseFrame, CloseReason};
pub use header::{HEADER_BYTES_MAX, Header};
pub use opcode::Opcode;
