//! The run as its work sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::failure::{RunFailure, Stopped};
use super::key::RunKey;
use super::moment::Moment;
use super::run::{Keeper, Run};
use super::state::Ending;
use crate::{Data, PublishError};

/// The run as its work sees it: tells progress and partial results, and asks whether to go on.
///
/// Each method that returns [`Stopped`] does so as soon as the run has been cancelled or took too long. The work then
/// returns; `?` does that, since [`RunFailure`] takes [`Stopped`]. Work that computes for long without telling
/// anything calls [`check`](Self::check) at least every 100 ms.
pub struct RunContext {
    run: Arc<Run>,
    keeper: Arc<dyn Keeper>,
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.run.fmt(f)
    }
}

impl RunContext {
    pub(crate) fn new(run: Arc<Run>, keeper: Arc<dyn Keeper>) -> Self {
        Self { run, keeper }
    }

    /// Returns the key of the run.
    #[must_use]
    pub fn key(&self) -> RunKey {
        self.run.key()
    }

    /// Tells the progress, from 0 to 1, and a few words: at most 200 characters. At most 10 reports a second become
    /// events: one that comes too early is held back, and becomes none if another report or a partial result comes before
    /// its time. The last one always does, unless a partial result comes after it. The state has each of them.
    ///
    /// # Errors
    /// [`Stopped`] when the run has ended.
    pub fn progress(&self, value: f64, text: Option<&str>) -> Result<(), Stopped> {
        let is_withheld = self.run.report(Moment::now(), value, text)?;
        if is_withheld {
            self.keeper.tell_later();
        } else {
            self.keeper.count(&self.run);
        }
        Ok(())
    }

    /// Publishes a partial result. It costs little more than publishing to a topic. A partial result that is larger
    /// than all that a run may keep ends the run: it has failed.
    ///
    /// # Errors
    /// [`Stopped`] when the run has ended.
    pub fn partial(&self, value: &Data) -> Result<(), Stopped> {
        self.partials(std::slice::from_ref(value))
    }

    /// Publishes partial results together, in this order: this costs much less than one after the other, since watchers are
    /// woken once.
    ///
    /// # Errors
    /// As [`partial`](Self::partial).
    pub fn partials(&self, values: &[Data]) -> Result<(), Stopped> {
        match self.run.partials(values) {
            Ok(true) => self.keeper.count(&self.run),
            Ok(false) | Err(PublishError::Empty) => {}
            Err(PublishError::TooBig { .. }) if values.len() > 1 => {
                // Together they are more than a run keeps; one after the other, the older ones give way.
                return values.iter().try_for_each(|value| self.partial(value));
            }
            Err(PublishError::TooBig { bytes, bytes_max }) => {
                let detail = format!(
                    "a partial result needs {bytes} bytes, and a run keeps at most {bytes_max}"
                );
                self.keeper.end(&self.run, Ending::failed(&RunFailure::new(detail)));
                return Err(Stopped::Ended);
            }
            Err(_) => return Err(self.run.reason()),
        }
        Ok(())
    }

    /// Asks whether to go on.
    ///
    /// # Errors
    /// [`Stopped`] when the run has ended.
    pub fn check(&self) -> Result<(), Stopped> {
        self.run.stopped().map_or(Ok(()), Err)
    }

    /// Waits until the run has ended: for asynchronous work, which drops what it does then.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn stopped(&self) -> Stopped {
        self.run.wait_stopped().await
    }

    /// Blocks the thread for this time, or until the run has ended.
    ///
    /// # Errors
    /// [`Stopped`] when the run has ended.
    pub fn sleep(&self, time: Duration) -> Result<(), Stopped> {
        self.run.sleep(time).map_or(Ok(()), Err)
    }

    /// Says how many bytes of memory the work holds from now on, in place of what it has said before. They count in
    /// [`RunLimits::total_bytes_max`](super::RunLimits::total_bytes_max) until the work returns, also after a cancel. Runs that have ended
    /// make room for them, and then events, as for any run that grows.
    pub fn hold(&self, bytes: u64) {
        self.run.hold(bytes);
        self.keeper.count(&self.run);
    }

    /// Keeps the standard error of a program with the run: the last 16 KiB.
    pub fn keep_stderr(&self, bytes: &[u8]) {
        self.run.keep_stderr(bytes);
        self.keeper.count(&self.run);
    }
}
