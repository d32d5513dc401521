//! The opening handshake (RFC 6455 section 4), both roles, as bytes in and bytes out.

mod error;
mod fields;
mod key;
mod request;
mod response;

pub use error::{HandshakeError, ResponseError};
pub(crate) use fields::is_tchar;
pub use fields::{Fields, is_token};
pub use key::{Nonce, accept_key, base64};
pub use request::{
    Answered, HandshakeResponse, Offer, ServerHandshake, asks_for_web_socket, respond, respond_with,
};
pub use response::{ClientHandshake, Established};

/// The longest handshake in bytes, in either direction, with its empty line.
pub const HANDSHAKE_BYTES_MAX: usize = 16 << 10;
/// The most header fields in a handshake.
pub const FIELDS_MAX: usize = 100;

#[cfg(test)]
mod tests;
