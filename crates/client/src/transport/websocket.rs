//! A WebSocket for one topic, with the subprotocol `anemone.events`.

use std::time::Duration;

use anemone_wire::Item;
use anemone_ws::{ClientStream, WebSocket};
use futures_util::future::BoxFuture;

use super::link::{Link, Reading};
use crate::Error;
use crate::item::ServerItem;
use crate::web_socket;

struct EventsSocket(WebSocket<ClientStream>);

pub(super) async fn open(reading: &Reading) -> Result<impl Link + use<>, Error> {
    let bytes_max = reading.options.limits.event_bytes_max;
    let url = reading.address.web_socket(&reading.target());
    Ok(EventsSocket(web_socket::open(url, Item::SUBPROTOCOL, bytes_max, &reading.options).await?))
}

impl Link for EventsSocket {
    fn read<'a>(&'a mut self, items: &'a mut Vec<ServerItem>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let message = web_socket::receive(&mut self.0).await?;
            items.extend(Item::parse(message.as_bytes())?.map(ServerItem::from));
            Ok(())
        })
    }

    /// Returns no limit, since pings and pongs are not visible here. They have their own timeout.
    fn quiet_max(&self) -> Duration {
        Duration::MAX
    }
}
