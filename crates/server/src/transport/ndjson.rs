//! NDJSON: an endless reply with one JSON object per line, for `curl -N` and pipes. A heartbeat repeats the position.

use std::future::ready;

use anemone_wire::{Token, TopicItem};
use http::HeaderMap;

use crate::exchange::many_request::ManyRequest;
use crate::exchange::read_transport::{LaterAnswer, ReadAnswer, ReadTransport};
use crate::read::pages::ItemEncoding;
use crate::request::query::Representation;
use crate::stop::Stop;
use crate::stream::many::{self, ManyEncoding};
use crate::transport_name::{TransportName, TransportWords};

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&TransportWords {
        name: "ndjson",
        why: "Accept: application/x-ndjson",
    }),
    representation: Representation::named("application/x-ndjson"),
    answer: ReadAnswer::Stream(ItemEncoding::Text(|item, out| item.write_line(out))),
    many,
};

fn many<'a>(read: &'a ManyRequest, _: &'a HeaderMap, stop: Stop) -> LaterAnswer<'a> {
    let append = |item: &TopicItem<'_>, token: &Token, _: bool, out: &mut String| {
        item.write_line(token, out);
    };
    let encoding = ManyEncoding { append, has_tokens: false };
    let media_type = TRANSPORT.representation.media_type;
    Box::pin(ready(many::answer(read, TRANSPORT.name, media_type, stop, encoding)))
}
