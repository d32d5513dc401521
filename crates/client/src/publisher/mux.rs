//! An event as a request of `anemone.v1`, on a WebSocket that is kept.

use std::borrow::Cow;

use anemone_ws::{ClientStream, Incoming, WebSocket};

use super::{Content, Published, encoded_key};
use crate::Error;
use crate::address::Address;
use crate::error::Refused;
use crate::item::quoted;
use crate::options::Options;
use crate::web_socket;
use crate::wire::mux::{self, Reply};

#[derive(Default)]
pub(super) struct Carrier {
    socket: Option<WebSocket<ClientStream>>,
    /// How many requests were made on it: the next one's id.
    count: u64,
}

impl Carrier {
    pub(super) async fn send(
        &mut self,
        address: &Address,
        options: &Options,
        content: Content,
        body: &[u8],
        key: &str,
    ) -> Result<Published, Error> {
        let text = std::str::from_utf8(body).map_err(|_| Error::NotText);
        let payload: Cow<'_, str> = match content {
            Content::Json => text?.into(),
            Content::Text => quoted(text?).into(),
            Content::Binary | Content::Lines => return Err(Error::HttpOnly),
        };
        let (socket, target) = address.multiplexed(&[("key", encoded_key(key))])?;
        let socket = match &mut self.socket {
            Some(socket) => socket,
            none => {
                let url = address.web_socket(&socket);
                none.insert(web_socket::open(url, mux::SUBPROTOCOL, options).await?)
            }
        };
        self.count += 1;
        let id = self.count.to_string();
        let request = mux::request("POST", &id, &target, payload.as_bytes());
        socket.send(Incoming::Text(String::from_utf8_lossy(&request).into_owned())).await?;
        loop {
            let message = web_socket::receive(socket).await?;
            let reply = Reply::parse(message.as_bytes())?;
            if !reply.is_final() || reply.id != id && reply.id != mux::NO_ID {
                continue;
            }
            return match reply.status {
                200..300 if reply.id == id => Published::parse(reply.payload.as_bytes()),
                status => {
                    let refused = Refused::multiplexed(status, reply.payload.as_bytes());
                    Err(Error::Refused(Box::new(refused)))
                }
            };
        }
    }
}
