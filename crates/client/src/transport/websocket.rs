//! A WebSocket of the topic's own, with the subprotocol `anemone.events`.

use std::time::Duration;

use anemone_wire::Item;
use anemone_ws::{ClientStream, WebSocket};
use futures_util::future::BoxFuture;

use super::link::{Link, Reading};
use crate::web_socket;
use crate::wire::Wire;
use crate::{Error, Malformed};

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
            let text = str::from_utf8(message.as_bytes()).map_err(Malformed::from)?;
            wires.extend(Item::parse(text)?.map(Item::into_owned));
            Ok(())
        })
    }

    /// Its pings and pongs are not seen here: they have a time-out of their own.
    fn is_quiet_for(&self) -> Duration {
        Duration::MAX
    }
}
