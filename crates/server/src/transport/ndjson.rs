//! NDJSON: an endless reply with one JSON object per line, for `curl -N` and pipes. A heartbeat repeats the position.

use crate::exchange::read_transport::{ReadAnswer, ReadTransport};
use crate::read::fan::ItemEncoding;
use crate::request::query::Representation;
use crate::transport_name::TransportName;

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&"ndjson"),
    representation: Representation::named("application/x-ndjson"),
    answer: ReadAnswer::Stream(ItemEncoding { append: |item, out| item.write_line(out) }),
};
