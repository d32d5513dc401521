//! The transports. They do not depend on each other.

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

use crate::item::ServerItem;
use crate::{Error, Via};
use http_stream::Decode;

pub(crate) async fn open(via: Via, reading: Reading) -> Result<Box<dyn Link>, Error> {
    let bytes_max = reading.options.limits.event_bytes_max;
    Ok(match via {
        Via::WebSocket => Box::new(websocket::open(&reading).await?),
        Via::Mux => Box::new(multiplexed::open(&reading).await?),
        Via::Sse => {
            let decode: Decode<EventStream> = match reading.address.has_topics() {
                true => |stream, bytes| Ok(stream.decode_topics(bytes)?.map(ServerItem::Several)),
                false => |stream, bytes| Ok(stream.decode(bytes)?.map(ServerItem::One)),
            };
            let decoder = EventStream::new(bytes_max);
            Box::new(http_stream::open(&reading, "text/event-stream", decoder, decode).await?)
        }
        Via::Ndjson => {
            let decode: Decode<ItemLines> = match reading.address.has_topics() {
                true => |lines, bytes| Ok(lines.decode_topics(bytes)?.map(ServerItem::Several)),
                false => |lines, bytes| Ok(lines.decode(bytes)?.map(ServerItem::One)),
            };
            let decoder = ItemLines::new(bytes_max);
            Box::new(http_stream::open(&reading, "application/x-ndjson", decoder, decode).await?)
        }
        Via::LongPoll => Box::new(long_poll::open(reading)),
        Via::Poll => Box::new(poll::open(reading)),
        Via::Tcp => Box::new(tcp::open(&reading).await?),
    })
}
