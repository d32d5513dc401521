//! A transport of the tests alone: an endless reply of values between commas, for spreadsheets.

use std::fmt::Write as _;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};

use anemone_wire::Item;

use crate::Problem;
use crate::exchange::read_transport::{ReadAnswer, ReadTransport};
use crate::read::pages::ItemEncoding;
use crate::request::query::Representation;
use crate::transport_name::{TransportName, TransportWords};

pub(crate) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&TransportWords { name: "toy", why: "a test" }),
    representation: Representation::named("text/csv"),
    answer: ReadAnswer::Stream(ItemEncoding::Text(line)),
    many: |_, _, _| Box::pin(ready(Err(Problem::nothing_at("/toy")))),
};

static EVENTS_ENCODED: AtomicUsize = AtomicUsize::new(0);

/// The number of events that were encoded, for whomever.
pub(super) fn events_encoded() -> usize {
    EVENTS_ENCODED.load(Ordering::Relaxed)
}

fn line(item: &Item<'_>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match item {
        Item::Begin(position) => writeln!(out, "begin,{position}"),
        Item::Event { position, data, .. } => {
            EVENTS_ENCODED.fetch_add(1, Ordering::Relaxed);
            writeln!(out, "event,{position},{data}")
        }
        _ => Ok(()),
    };
}
