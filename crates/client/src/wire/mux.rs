//! The one reader, or the requests, that this crate has on a connection of `anemone.v1`.

use anemone_wire::Item;
use anemone_wire::multiplexed::{Id, Message, Reply, Request};

use super::Wire;
use crate::Error;
use crate::error::Refused;

/// The meaning of a message to the one reader; its final status is an error.
pub(crate) fn reading(message: &[u8]) -> Result<Option<Wire>, Error> {
    let (_, reply) = Reply::parse(message)?;
    if reply.is_final() {
        let refused = Refused::multiplexed(reply.status, reply.payload.as_bytes());
        return Err(Error::Refused(Box::new(refused)));
    }
    Ok(reply.item()?.map(Item::into_owned))
}

/// The request for what the one reader reads.
pub(crate) fn read(target: &str) -> Vec<u8> {
    request("GET", Id::from(1), target, b"")
}

pub(crate) fn request(method: &str, id: Id, target: &str, payload: &[u8]) -> Vec<u8> {
    Message::Request { id, request: Request { method, target, payload } }.to_bytes()
}
