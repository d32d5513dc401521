//! A WebSocket of the topic's own, with the subprotocol `anemone.events`.

use std::time::Duration;

use anemone_ws::{ClientStream, WebSocket};
use futures_util::future::BoxFuture;

use super::link::{Link, Reading};
use crate::Error;
use crate::web_socket;
use crate::wire::{Wire, item};

const SUBPROTOCOL: &str = "anemone.events";

struct EventsSocket(WebSocket<ClientStream>);

pub(super) async fn open(reading: &Reading) -> Result<impl Link + use<>, Error> {
    let url = reading.address.web_socket(&reading.target());
    Ok(EventsSocket(web_socket::open(url, SUBPROTOCOL, &reading.options).await?))
}

impl Link for EventsSocket {
    fn read<'a>(&'a mut self, wires: &'a mut Vec<Wire>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let message = web_socket::receive(&mut self.0).await?;
            wires.extend(item::parse_bytes(message.as_bytes())?);
            Ok(())
        })
    }

    /// Its pings and pongs are not seen here: they have a time-out of their own.
    fn is_quiet_for(&self) -> Duration {
        Duration::MAX
    }
}
