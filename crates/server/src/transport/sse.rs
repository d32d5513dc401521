//! Server-sent events (HTML, section 9.2): an endless reply, one block of lines for each event.
//!
//! `time` is no field of an event stream, and so is passed over by whoever does not know it (HTML, section 9.2.6).
//! `id` is the position, so an `EventSource` that reconnects says where it was with `Last-Event-ID`. The
//! stream opens with an `id` and no data, which dispatches nothing and yet gives a quiet reader a
//! position to resume from.

use std::fmt::Write as _;

use anemone_wire::Item;

use crate::exchange::read_transport::{ReadAnswer, ReadTransport};
use crate::read::fan::ItemEncoding;
use crate::request::query::Representation;
use crate::transport_name::TransportName;

/// The time that an `EventSource` waits before it reconnects, in milliseconds.
const RETRY_MS: u32 = 1000;

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&"sse"),
    representation: Representation::named("text/event-stream"),
    answer: ReadAnswer::Stream(ItemEncoding { append: block }),
};

/// An item as a block of lines. Data is one line of JSON, so it needs one `data:` line.
fn block(item: &Item<'_>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match item {
        Item::Begin(position) => write!(out, "retry: {RETRY_MS}\nid: {position}\n\n"),
        Item::Gap(_) => notice(out, "gap", item),
        Item::Skipped { .. } => notice(out, "skipped", item),
        Item::Event { position, time, data } => {
            let _ = writeln!(out, "id: {position}");
            if let Some(time) = time {
                let _ = writeln!(out, "time: {time}");
            }
            write!(out, "data: {data}\n\n")
        }
        Item::Quiet(_) => write!(out, ":\n\n"),
        Item::End(_) => notice(out, "end", item),
    };
}

fn notice(out: &mut String, name: &str, item: &Item<'_>) -> std::fmt::Result {
    writeln!(out, "event: {name}")?;
    if let Some(position) = item.position() {
        writeln!(out, "id: {position}")?;
    }
    out.push_str("data: ");
    item.write(out);
    write!(out, "\n\n")
}
