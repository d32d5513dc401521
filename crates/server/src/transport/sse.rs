//! Server-sent events (HTML, section 9.2): an endless reply with one block of lines for each event.

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
    name: TransportName::new(&TransportWords { name: "sse", why: "Accept: text/event-stream" }),
    representation: Representation::named("text/event-stream"),
    answer: ReadAnswer::Stream(ItemEncoding::Text(|item, out| item.write_block(out))),
    many,
};

fn many<'a>(read: &'a ManyRequest, _: &'a HeaderMap, stop: Stop) -> LaterAnswer<'a> {
    let append = |item: &TopicItem<'_>, token: &Token, has_token: bool, out: &mut String| {
        item.write_block(token, has_token, out);
    };
    let encoding = ManyEncoding { append, has_tokens: true };
    let media_type = TRANSPORT.representation.media_type;
    Box::pin(ready(many::answer(read, TRANSPORT.name, media_type, stop, encoding)))
}
