//! Publishes each event with a request of `anemone.v1`. The WebSocket stays open for the next event.

use std::borrow::Cow;

use anemone_wire::Published;
use anemone_wire::multiplexed::{Fields, Id, Message, Reply, Request, SUBPROTOCOL};
use anemone_ws::{ClientStream, Incoming, WebSocket};

use super::Content;
use crate::Error;
use crate::address::Address;
use crate::options::Options;
use crate::text::{encoded, quoted};
use crate::web_socket;

#[derive(Default)]
pub(super) struct MuxCarrier {
    socket: Option<WebSocket<ClientStream>>,
    /// The number of requests on this WebSocket so far, and the id of the next one.
    count: u32,
}

impl MuxCarrier {
    pub(super) async fn send(
        &mut self,
        address: &Address,
        options: &Options,
        content: Content,
        body: &[u8],
        key: &str,
    ) -> Result<Published, Error> {
        // A request with one event of JSON needs no type.
        let (payload, kind): (Cow<'_, [u8]>, _) = match content {
            Content::Json => (body.into(), None),
            Content::Text => (quoted(text(body)?).into_bytes().into(), None),
            Content::Binary => (body.into(), Some("binary")),
            Content::Lines => (body.into(), Some("ndjson")),
        };
        let key = encoded(key);
        let parameters = [("key", key)].into_iter().chain(kind.map(|kind| ("type", kind.into())));
        let (socket, target) = address.multiplexed(&parameters.collect::<Vec<_>>())?;
        let socket = match &mut self.socket {
            Some(socket) => socket,
            none => {
                let url = address.web_socket(&socket);
                none.insert(
                    web_socket::open(url, SUBPROTOCOL, options.limits.event_bytes_max, options)
                        .await?,
                )
            }
        };
        self.count = self.count.wrapping_add(1);
        let id = Id::from(self.count);
        let fields = Fields::default();
        let request = Request { method: "POST", target: &target, fields, payload: &payload };
        let request = Message::Request { id, request }.to_bytes();
        let request = String::from_utf8(request)
            .map_or_else(|error| Incoming::from(error.into_bytes()), Incoming::from);
        socket.send(request).await?;
        loop {
            let message = web_socket::receive(socket).await?;
            let (of, reply) = Reply::parse(message.as_bytes())?;
            // Without an id it is about the connection.
            if !reply.is_final() || of.is_some_and(|of| of != id) {
                continue;
            }
            return match reply.status {
                200..300 if of.is_some() => Ok(Published::parse(reply.payload)?),
                _ => Err(Error::of_reply(&reply)),
            };
        }
    }
}

fn text(body: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(body).map_err(|_| Error::NotText)
}
