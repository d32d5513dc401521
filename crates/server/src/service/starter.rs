//! The parts of a server that its mounts need to start runs.

use std::sync::Arc;

use anemone_hub::run::Runs;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::request::body::BodyBounds;
use crate::{Kind, Limits, Problem};

/// Starts runs, within the limits of a server.
#[derive(Clone, Debug)]
pub(crate) struct RunStarter {
    pub(super) runs: Runs,
    /// The limits on the body of a request, which is held while the run waits and works.
    pub(super) body: BodyBounds,
    /// Held while an input is read beside the network threads.
    reading: Arc<Semaphore>,
}

/// The thread that reads an input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReadingThread {
    /// The network thread, at once.
    Network,
    /// Another thread, since it may take longer than other clients should wait.
    Other,
}

impl RunStarter {
    pub(crate) fn new(runs: &Runs, limits: &Limits) -> Self {
        let body = BodyBounds::new(limits, limits.batch_bytes_max);
        Self { runs: runs.clone(), body, reading: Arc::new(Semaphore::new(1)) }
    }

    /// Waits for the turn of an input. One that is read at once has no need of it. Cancel safe.
    pub(super) async fn turn(&self, thread: ReadingThread) -> Result<ReadingTurn, Problem> {
        if thread == ReadingThread::Network {
            return Ok(ReadingTurn(None));
        }
        let place = Arc::clone(&self.reading).acquire_owned().await.map_err(|_| stopping())?;
        Ok(ReadingTurn(Some(place)))
    }
}

/// The turn of an input to be read: `None` for one that is read at once.
#[derive(Debug)]
pub(super) struct ReadingTurn(Option<OwnedSemaphorePermit>);

impl ReadingTurn {
    /// Reads an input: at once, or one after the other beside the network threads.
    pub(super) async fn read<T: Send + 'static>(
        self,
        read: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let Some(place) = self.0 else { return read() };
        let read = move || {
            let _place = place;
            read()
        };
        spawn_blocking(read).await.unwrap_or_else(|_| Err(stopping()))
    }
}

fn stopping() -> Problem {
    Problem::new(Kind::Stopping, "the server is stopping")
}
