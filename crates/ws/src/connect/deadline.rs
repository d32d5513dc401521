//! The time by which connecting must be done.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::error::{ConnectError, Step};

/// The time by which connecting must be done.
pub(super) struct Deadline {
    /// `None` when it is too far away to matter.
    pub(super) at: Option<Instant>,
    limit: Duration,
}

impl Deadline {
    pub(super) fn after(limit: Duration) -> Self {
        Self { at: Instant::now().checked_add(limit), limit }
    }

    pub(super) async fn within<T>(
        &self,
        step: Step,
        work: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        let Some(at) = self.at else { return work.await };
        let timed_out = ConnectError::TimedOut { step, limit: self.limit };
        timeout_at(at, work).await.unwrap_or(Err(timed_out))
    }
}
