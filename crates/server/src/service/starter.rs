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
    /// Held while a long input is read.
    reading: Arc<Semaphore>,
}

/// A longer input is read on a thread of its own, since that may take longer than other clients should wait.
const READ_AT_ONCE_BYTES_MAX: usize = 4 << 10;

impl RunStarter {
    pub(crate) fn new(runs: &Runs, limits: &Limits) -> Self {
        let body = BodyBounds::new(limits, limits.batch_bytes_max);
        Self { runs: runs.clone(), body, reading: Arc::new(Semaphore::new(1)) }
    }

    /// Waits for the turn of an input of so many bytes. A short one has no need of it. Cancel safe.
    pub(super) async fn turn(&self, input_bytes: usize) -> Result<ReadingTurn, Problem> {
        if input_bytes <= READ_AT_ONCE_BYTES_MAX {
            return Ok(ReadingTurn(None));
        }
        let place = Arc::clone(&self.reading).acquire_owned().await.map_err(|_| stopping())?;
        Ok(ReadingTurn(Some(place)))
    }
}

/// The turn of an input to be read: `None` for a short one.
#[derive(Debug)]
pub(super) struct ReadingTurn(Option<OwnedSemaphorePermit>);

impl ReadingTurn {
    /// Reads an input: a short one at once, and long ones one after the other beside the network threads.
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
