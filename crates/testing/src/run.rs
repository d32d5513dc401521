//! Runs a future with a time limit.

use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::PATIENCE;

/// Waits for a future that must complete.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("nothing happened in time")
}

/// Runs a test on the current thread, with a deadline.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(within(test))
}
