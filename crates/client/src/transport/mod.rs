//! The transports; none uses another.

mod http_stream;
mod link;
mod long_poll;
mod multiplexed;
mod pages;
mod poll;
mod tcp;
mod websocket;

pub(crate) use link::{Link, Reading};

use anemone_wire::{EventStream, ItemLines};

use crate::{Error, Via};

/// Opens a connection.
pub(crate) async fn open(via: Via, reading: Reading) -> Result<Box<dyn Link>, Error> {
    let bytes_max = reading.options.limits.event_bytes_max;
    Ok(match via {
        Via::WebSocket => Box::new(websocket::open(&reading).await?),
        Via::Mux => Box::new(multiplexed::open(&reading).await?),
        Via::Sse => {
            let (decoder, decode) = (EventStream::new(bytes_max), EventStream::decode);
            Box::new(http_stream::open(&reading, "text/event-stream", decoder, decode).await?)
        }
        Via::Ndjson => {
            let (decoder, decode) = (ItemLines::new(bytes_max), ItemLines::decode);
            Box::new(http_stream::open(&reading, "application/x-ndjson", decoder, decode).await?)
        }
        Via::LongPoll => Box::new(long_poll::open(reading)),
        Via::Poll => Box::new(poll::open(reading)),
        Via::Tcp => Box::new(tcp::open(&reading).await?),
    })
}
