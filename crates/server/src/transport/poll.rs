//! Poll: answers at once with the page after a position, maybe an empty one.

use std::future::ready;

use http::{HeaderMap, Response};

use crate::Problem;
use crate::exchange::many_request::{ManyReading, ManyRequest};
use crate::exchange::page_reply::{page_representation, poll};
use crate::exchange::read_request::ReadRequest;
use crate::exchange::read_transport::{LaterAnswer, ReadAnswer, ReadTransport};
use crate::reply::body::Body;
use crate::request::methods::Wanted;
use crate::stop::Stop;
use crate::transport_name::{TransportName, TransportWords};

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&TransportWords {
        name: "poll",
        why: "a request for a topic without Prefer: wait, and for no stream",
    }),
    representation: page_representation(None),
    answer: ReadAnswer::Now(answer),
    many,
};

/// The head of a poll, without making the page.
pub(super) static HEAD: ReadTransport = ReadTransport {
    name: TRANSPORT.name,
    representation: page_representation(None),
    answer: ReadAnswer::Now(answer_head),
    many: many_head,
};

/// Without `after`, returns the newest event of each topic. Several topics have no tag.
fn many<'a>(read: &'a ManyRequest, _: &'a HeaderMap, _: Stop) -> LaterAnswer<'a> {
    Box::pin(ready(page_of_many(read, Wanted::All)))
}

fn many_head<'a>(read: &'a ManyRequest, _: &'a HeaderMap, _: Stop) -> LaterAnswer<'a> {
    Box::pin(ready(page_of_many(read, Wanted::Head)))
}

fn page_of_many(read: &ManyRequest, wanted: Wanted) -> Result<Response<Body>, Problem> {
    read.page_reply(&mut read.open(ManyReading::Page(TRANSPORT.name))?, wanted)
}

/// Without `after`, returns the newest event, which a bare `curl` most likely wants.
fn answer(read: &ReadRequest, headers: &HeaderMap, _: Stop) -> Result<Response<Body>, Problem> {
    poll(read, headers, Wanted::All, TRANSPORT.name)
}

fn answer_head(
    read: &ReadRequest,
    headers: &HeaderMap,
    _: Stop,
) -> Result<Response<Body>, Problem> {
    poll(read, headers, Wanted::Head, TRANSPORT.name)
}
