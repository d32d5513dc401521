//! The time for which a connection waits for the head of a request.
//!
//! One timer lasts as long as the connection. The one of the HTTP server would be set anew for each request, which
//! costs a tenth of a small reply.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The wait of a connection for its next request.
#[derive(Debug)]
pub(super) struct Idle {
    /// Its beginning. `None` while a request is in progress.
    since: Cell<Option<Instant>>,
    /// Each request in progress has a clone.
    request: Arc<()>,
}

/// A request in progress, until its last clone is dropped.
pub(super) type Ongoing = Arc<()>;

impl Idle {
    pub(super) fn new() -> Self {
        Self { since: Cell::new(Some(Instant::now())), request: Ongoing::default() }
    }

    /// Ends the wait: a request is in progress.
    pub(super) fn end(&self) -> Ongoing {
        self.since.set(None);
        Arc::clone(&self.request)
    }

    /// Begins the wait if no request is in progress any more.
    pub(super) fn begin(&self) {
        if self.since.get().is_none() && Arc::strong_count(&self.request) == 1 {
            self.since.set(Some(Instant::now()));
        }
    }

    /// Completes when the wait has taken `timeout`. Cancel safe.
    pub(super) async fn passes(&self, timeout: Duration) {
        loop {
            let since = self.since.get();
            sleep_until(since.unwrap_or_else(Instant::now) + timeout).await;
            if since.is_some() && since == self.since.get() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::advance;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn the_wait_begins_with_the_connection() {
        let begun = Instant::now();
        Idle::new().passes(TIMEOUT).await;
        assert_eq!(begun.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_progress_ends_the_wait_and_its_end_begins_another() {
        let (begun, idle) = (Instant::now(), Idle::new());
        let mut passes = Box::pin(idle.passes(TIMEOUT));
        assert!(passes.as_mut().now_or_never().is_none());
        let ongoing = idle.end();
        advance(Duration::from_secs(75)).await;
        idle.begin();
        assert!(passes.as_mut().now_or_never().is_none());
        advance(Duration::from_secs(10)).await;
        drop(ongoing);
        idle.begin();
        passes.await;
        assert_eq!(begun.elapsed().as_secs(), 85 + 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_request_ends_the_wait_too() {
        let (begun, idle) = (Instant::now(), Idle::new());
        let mut passes = Box::pin(idle.passes(TIMEOUT));
        assert!(passes.as_mut().now_or_never().is_none());
        advance(Duration::from_secs(20)).await;
        drop(idle.end());
        idle.begin();
        passes.await;
        assert_eq!(begun.elapsed().as_secs(), 20 + 30);
    }
}
