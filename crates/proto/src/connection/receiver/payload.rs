//! A frame whose payload is arriving.

use crate::Header;

/// A frame with an incomplete payload.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) header: Header,
    pub(super) received: u64,
}
