//! Essential tasks of a thread: if one panics, the thread ends as if it had panicked itself.

use std::sync::Arc;
use std::thread;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};

/// The essential tasks of a thread. Clones are handles to the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Essentials(Arc<Notify>);

impl Essentials {
    pub(crate) fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> AbortHandle {
        let watched = PanicGuard(Arc::clone(&self.0));
        let task = async move {
            let _watched = watched;
            task.await
        };
        spawn_local(task).abort_handle()
    }

    /// Waits until one of them has panicked.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn failed(&self) {
        self.0.notified().await;
    }
}

/// Reports a panic of the task or thread that holds it.
pub(crate) struct PanicGuard(pub(crate) Arc<Notify>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::task::{LocalSet, yield_now};

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_told_of_and_one_that_ends_is_not() {
        let test = async {
            let essentials = Essentials::default();
            essentials.spawn(async {});
            essentials.spawn(std::future::pending::<()>()).abort();
            for _ in 0..3 {
                yield_now().await;
            }
            assert_eq!(essentials.failed().now_or_never(), None);
            essentials.spawn(async { std::panic::resume_unwind(Box::new("on purpose")) });
            essentials.failed().await;
        };
        LocalSet::new().run_until(test).await;
    }
}
