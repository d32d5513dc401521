//! The bounds of a service's work for one request.

use std::time::Duration;

use anemone_ws::Memory;

use crate::Limits;
use crate::stop::Stop;

/// The bounds of a service's work for a request.
#[derive(Clone, Debug)]
pub(crate) struct ServiceContext {
    /// The time in which the reply must begin, unless the mount has a time of its own.
    pub(super) service_timeout: Duration,
    /// The longest pause in the body of the request.
    pub(super) body_timeout: Duration,
    /// The time to answer a client that has ended its side.
    pub(super) write_timeout: Duration,
    /// True for the work of a run, whose reply may begin at any time.
    pub(super) is_run: bool,
    pub(super) memory: Memory,
    /// Reports the end of the client. `None` if the work is dropped then.
    pub(super) stop: Option<Stop>,
}

impl ServiceContext {
    /// Creates the bounds of work that is dropped when its client goes.
    pub(crate) fn new(limits: &Limits, memory: &Memory) -> Self {
        Self {
            service_timeout: limits.service_timeout,
            body_timeout: limits.body_timeout,
            write_timeout: limits.write_timeout,
            is_run: false,
            memory: memory.clone(),
            stop: None,
        }
    }

    /// Returns the bounds of the work of a run: no client waits for it, and the run has a time of its own.
    pub(super) fn of_run(&self) -> Self {
        Self { stop: None, is_run: true, ..self.clone() }
    }

    /// Ends the work when this reports that the client is gone.
    pub(crate) fn until(self, stop: Stop) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Waits until the client is gone. Cancel safe.
    pub(super) async fn gone(&mut self) {
        match &mut self.stop {
            Some(stop) => stop.gone(self.write_timeout).await,
            None => std::future::pending().await,
        }
    }
}
