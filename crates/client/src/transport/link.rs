//! The topic that a transport reads, and the connection that it opens.

use std::sync::Arc;
use std::time::Duration;

use anemone_wire::Item;
use anemone_wire::multiplexed::{Id, Message, Reply, Request};
use futures_util::future::BoxFuture;

use crate::address::Address;
use crate::error::Refused;
use crate::item::ServerItem;
use crate::options::Options;
use crate::start::Start;
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
    /// Waits for what comes next, and appends what it says to `items`: nothing, when it was a sign of life
    /// alone. What was appended before an error counts.
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>>;

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
            parameters.push(("mode", self.mode.as_str().to_owned()));
        }
        parameters
    }

    /// Path and query of a stream.
    pub(super) fn target(&self) -> String {
        self.address.target(&self.parameters(&self.start))
    }

    /// The multiplexed socket, and the message that asks on it: this is its one reader.
    pub(super) fn multiplexed(&self) -> Result<(String, Vec<u8>), Error> {
        let (socket, target) = self.address.multiplexed(&self.parameters(&self.start))?;
        let request = Request { method: "GET", target: &target, payload: b"" };
        Ok((socket, Message::Request { id: Id::from(1), request }.to_bytes()))
    }
}

/// The item in a message to the one reader of a connection; its final status is an error.
pub(super) fn multiplexed_item(message: &[u8]) -> Result<Option<ServerItem>, Error> {
    let (_, reply) = Reply::parse(message)?;
    if reply.is_final() {
        return Err(Refused::multiplexed(&reply));
    }
    Ok(reply.item()?.map(Item::into_owned))
}
