//! Waits for futures, which end.

use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::PATIENCE;

/// Waits for something that must come.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("nothing happened for 30 s")
}

/// Runs a test on this thread alone.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(within(test))
}
