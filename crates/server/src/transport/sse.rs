//! Server-sent events (HTML, section 9.2): an endless reply with one block of lines for each event.

use crate::exchange::read_transport::{ReadAnswer, ReadTransport};
use crate::read::fan::ItemEncoding;
use crate::request::query::Representation;
use crate::transport_name::TransportName;

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&"sse"),
    representation: Representation::named("text/event-stream"),
    answer: ReadAnswer::Stream(ItemEncoding { append: |item, out| item.write_block(out) }),
};
