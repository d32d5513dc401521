//! The frame whose payload is coming in.

use crate::Header;

/// A frame whose payload has not come whole.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) header: Header,
    pub(super) received: u64,
}
