//! Remembers if a request was sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A mark that is set once any part of a request may have reached the server. From then on, the server may have carried
/// the request out.
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

/// A mark that tells if a call may have been carried out. It outlives the future of the call.
#[derive(Clone, Debug, Default)]
pub struct CallMark(Arc<Mark>);

#[derive(Debug, Default)]
struct Mark {
    /// Set if an attempt before the current one may have been carried out.
    before: Sent,
    current: Mutex<Arc<Sent>>,
}

impl CallMark {
    /// Returns true if any attempt to make the call may have been carried out. While the call is being made, false may
    /// still become true; once the future of the call is dropped, false is final.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        let current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.before.is_set() || current.is_set()
    }

    /// Begins the next attempt. `is_doubtful` is true if an earlier one may have been carried out.
    pub(crate) fn next(&self, is_doubtful: bool) -> Arc<Sent> {
        let mut current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.before.set(is_doubtful);
        *current = Arc::default();
        Arc::clone(&current)
    }
}
