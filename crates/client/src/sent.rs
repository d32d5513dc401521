//! A note on whether a request has left.

use std::sync::atomic::{AtomicBool, Ordering};

/// True once any part of a request may have reached the server, which may then have carried it out.
#[derive(Debug, Default)]
pub(crate) struct Sent(AtomicBool);

impl Sent {
    pub(crate) fn set(&self, is_sent: bool) {
        self.0.store(is_sent, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
