//! The topic that a transport reads, and the connection that it opens.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::address::Address;
use crate::options::Options;
use crate::start::Start;
use crate::wire::Wire;
use crate::{Error, Mode};

/// The topic that is to be read, and from where on.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) address: Arc<Address>,
    pub(crate) options: Arc<Options>,
    pub(crate) start: Start,
    pub(crate) mode: Mode,
}

/// A connection that is read from.
pub(crate) trait Link: Send {
    /// Waits for what comes next, and appends what it says to `wires`: nothing, when it was a sign of life
    /// alone. What was appended before an error counts.
    fn read<'a>(&'a mut self, wires: &'a mut Vec<Wire>) -> BoxFuture<'a, Result<(), Error>>;

    /// The time that it may be quiet, where it is that on purpose.
    fn is_quiet_for(&self) -> Duration {
        Duration::ZERO
    }
}

impl Reading {
    /// The parameters that every transport takes.
    pub(super) fn parameters(&self, start: &Start) -> Vec<(&'static str, String)> {
        let mut parameters = vec![start.parameter()];
        if self.mode == Mode::Latest {
            parameters.push(("mode", "latest".to_owned()));
        }
        parameters
    }

    /// Path and query of a stream.
    pub(super) fn target(&self) -> String {
        self.address.target(&self.parameters(&self.start))
    }

    /// The multiplexed socket, and the target on it.
    pub(super) fn multiplexed(&self) -> Result<(String, String), Error> {
        Ok(self.address.multiplexed(&self.parameters(&self.start))?)
    }
}
