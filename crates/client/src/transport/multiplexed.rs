//! `anemone.v1` on a WebSocket, with one reader on it.

use anemone_wire::multiplexed::SUBPROTOCOL;
use anemone_ws::{ClientStream, Incoming, WebSocket};
use futures_util::future::BoxFuture;

use super::link::{Link, Reading};
use crate::Error;
use crate::web_socket;
use crate::wire::{Wire, mux};

struct MuxSocket(WebSocket<ClientStream>);

pub(super) async fn open(reading: &Reading) -> Result<impl Link + use<>, Error> {
    let (socket, target) = reading.multiplexed()?;
    let url = reading.address.web_socket(&socket);
    let mut socket = web_socket::open(url, SUBPROTOCOL, &reading.options).await?;
    let request = mux::read(&target);
    let request = Incoming::from(String::from_utf8_lossy(&request).into_owned());
    socket.send(request).await?;
    Ok(MuxSocket(socket))
}

impl Link for MuxSocket {
    fn read<'a>(&'a mut self, wires: &'a mut Vec<Wire>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let message = web_socket::receive(&mut self.0).await?;
            wires.extend(mux::reading(message.as_bytes())?);
            Ok(())
        })
    }
}
