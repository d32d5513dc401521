//! The progress of a topic, which wakes its waiting readers.

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct TopicProgress {
    pub(crate) head: u64,
    pub(crate) deleted: bool,
    pub(crate) ended: bool,
}

/// Wakes readers that wait for events up to `head`.
pub(super) fn advance(progress: &watch::Sender<TopicProgress>, head: u64) {
    // Two publishers can arrive here in the other order, so the head only moves forward.
    progress.send_if_modified(|progress| {
        let moved = progress.head < head;
        progress.head = head.max(progress.head);
        moved
    });
}

/// Wakes all waiting readers: the log has ended at `head`.
pub(super) fn finish(progress: &watch::Sender<TopicProgress>, head: u64) {
    progress.send_modify(|progress| {
        progress.head = head.max(progress.head);
        progress.ended = true;
    });
}
