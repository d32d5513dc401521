//! Frames (RFC 6455 section 5.2): opcode, header, close payload.

mod close;
mod close_code;
mod header;
mod opcode;

pub use close::{CloseFrame, CloseReason};
pub use close_code::CloseCode;
pub use header::{HEADER_BYTES_MAX, Header};
pub(crate) use opcode::Control;
pub use opcode::Opcode;
