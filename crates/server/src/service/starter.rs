//! The parts of a server that its mounts need to start runs.

use anemone_hub::run::{Runs, StartError};
use anemone_hub::{Turn, TurnLimits, Turns, Waiter};
use tokio::task::spawn_blocking;

use crate::request::body::BodyBounds;
use crate::{Kind, Limits, Problem};

/// Starts runs, within the limits of a server.
#[derive(Clone, Debug)]
pub(crate) struct RunStarter {
    pub(super) runs: Runs,
    /// The limits on the body of a request, which is held while the run waits and works.
    pub(super) body: BodyBounds,
    /// The turns of inputs that are read beside the network threads, one at a time.
    reading: Turns,
}

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
        let waiting_per_client_max = limits.of_runs().queued_per_owner_max;
        let reading = Turns::new(TurnLimits { places: 1, waiting_per_client_max });
        Self { runs: runs.clone(), body, reading }
    }

    /// Waits for the turn of an input: clients take turns, and no more inputs of one wait than its runs may. One that is
    /// read at once has no need of it. Cancel safe.
    pub(super) async fn turn(
        &self,
        thread: ReadingThread,
        waiter: Waiter,
    ) -> Result<ReadingTurn, Problem> {
        if thread == ReadingThread::Network {
            return Ok(ReadingTurn(None));
        }
        let turn = self.reading.take(waiter).await;
        Ok(ReadingTurn(Some(turn.map_err(|_| StartError::OwnerQueueFull)?)))
    }
}

/// The turn of an input to be read: `None` for one that is read at once.
#[derive(Debug)]
pub(super) struct ReadingTurn(Option<Turn>);

impl ReadingTurn {
    /// Reads an input: at once, or one after the other beside the network threads.
    pub(super) async fn read<T: Send + 'static>(
        self,
        read: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let Some(turn) = self.0 else { return read() };
        let read = move || {
            let _turn = turn;
            read()
        };
        spawn_blocking(read).await.unwrap_or_else(|_| Err(stopping()))
    }
}

fn stopping() -> Problem {
    Problem::new(Kind::Stopping, "the server is stopping")
}
