//! The transports, one file each; none uses another.

mod link;
mod long_poll;
mod multiplexed;
mod ndjson;
mod pages;
mod poll;
mod sse;
mod tcp;
mod websocket;

pub(crate) use link::{Link, Reading};

use crate::{Error, Via};

/// Opens a connection.
pub(crate) async fn open(via: Via, reading: Reading) -> Result<Box<dyn Link>, Error> {
    Ok(match via {
        Via::WebSocket => Box::new(websocket::open(&reading).await?),
        Via::Mux => Box::new(multiplexed::open(&reading).await?),
        Via::Sse => Box::new(sse::open(&reading).await?),
        Via::Ndjson => Box::new(ndjson::open(&reading).await?),
        Via::LongPoll => Box::new(long_poll::open(reading)),
        Via::Poll => Box::new(poll::open(reading)),
        Via::Tcp => Box::new(tcp::open(&reading).await?),
    })
}
