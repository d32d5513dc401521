//! The interface of a transport: a description of the topic to read, and an open connection.

use std::sync::Arc;
use std::time::Duration;

use anemone_wire::Item;
use anemone_wire::multiplexed::{Fields, Id, Message, Reply, Request};
use futures_util::future::BoxFuture;

use crate::address::Address;
use crate::item::ServerItem;
use crate::options::Options;
use crate::start::Start;
use crate::{EndReason, Error, Mode};

/// The topic to read, and the place to begin.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) address: Arc<Address>,
    pub(crate) options: Arc<Options>,
    pub(crate) start: Start,
    pub(crate) mode: Mode,
}

/// An open connection of a transport.
pub(crate) trait Link: Send {
    /// Waits for data and appends the items in them to `items`. A mere sign of life appends none. After an error, the
    /// items appended before it are still valid.
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns the longest time for which the connection may be silent on purpose.
    fn quiet_max(&self) -> Duration {
        Duration::ZERO
    }
}

impl Reading {
    /// Returns the parameters that every transport takes.
    pub(super) fn parameters(&self, start: &Start) -> Vec<(&'static str, String)> {
        let mut parameters: Vec<_> = start.parameter().into_iter().collect();
        if self.mode == Mode::Latest {
            parameters.push(("mode", self.mode.as_str().to_owned()));
        }
        parameters
    }

    /// Returns the path and query of a stream.
    pub(super) fn target(&self) -> String {
        self.address.target(&self.parameters(&self.start))
    }

    /// Returns the URL of the multiplexed socket, and the message that begins its only reader.
    pub(super) fn multiplexed(&self) -> Result<(String, Vec<u8>), Error> {
        let (socket, target) = self.address.multiplexed(&self.parameters(&self.start))?;
        let fields = Fields::default();
        let request = Request { method: "GET", target: &target, fields, payload: b"" };
        Ok((socket, Message::Request { id: Id::from(1), request }.to_bytes()))
    }
}

/// Returns the item in a message to the connection's only reader. A final status is an error, except the status after
/// all events of a run.
pub(super) fn multiplexed_item(message: &[u8]) -> Result<Option<ServerItem>, Error> {
    let (_, reply) = Reply::parse(message)?;
    if reply.status == 200 && reply.payload.is_empty() {
        return Ok(Some(Item::End(EndReason::Ended).into()));
    }
    if reply.is_final() {
        return Err(Error::of_reply(&reply));
    }
    Ok(reply.item()?.map(ServerItem::from))
}
