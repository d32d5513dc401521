//! `anemone.v1` on a WebSocket, with one reader.

use anemone_wire::multiplexed::SUBPROTOCOL;
use anemone_ws::{ClientStream, Incoming, WebSocket};
use futures_util::future::BoxFuture;

use super::link::{self, Link, Reading};
use crate::Error;
use crate::item::ServerItem;
use crate::web_socket;

struct MuxSocket(WebSocket<ClientStream>);

pub(super) async fn open(reading: &Reading) -> Result<impl Link + use<>, Error> {
    let (socket, request) = reading.multiplexed()?;
    let bytes_max = reading.options.limits.event_bytes_max;
    let url = reading.address.web_socket(&socket);
    let mut socket = web_socket::open(url, SUBPROTOCOL, bytes_max, &reading.options).await?;
    let request = Incoming::from(String::from_utf8_lossy(&request).into_owned());
    socket.send(request).await?;
    Ok(MuxSocket(socket))
}

impl Link for MuxSocket {
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let message = web_socket::receive(&mut self.0).await?;
            items.extend(link::multiplexed_item(message.as_bytes())?);
            Ok(())
        })
    }
}
