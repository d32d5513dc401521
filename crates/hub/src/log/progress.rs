//! The progress of a topic, which wakes those who wait for it.

use tokio::sync::watch;

/// The progress of a topic, for those who wait.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Progress {
    pub(crate) head: u64,
    pub(crate) deleted: bool,
}

/// Wakes those who wait for events up to `head`.
pub(super) fn advance(progress: &watch::Sender<Progress>, head: u64) {
    // Two publishers can come here in the other order, so the head only ever moves forward.
    progress.send_if_modified(|progress| {
        let moved = progress.head < head;
        progress.head = head.max(progress.head);
        moved
    });
}
