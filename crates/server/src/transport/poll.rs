//! Poll: answers at once with the page after a position, maybe an empty one.

use std::future::ready;

use anemone_hub::Start;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::Problem;
use crate::exchange::many_request::{ManyReading, ManyRequest};
use crate::exchange::page_reply::{page_reply, page_representation};
use crate::exchange::read_request::ReadRequest;
use crate::exchange::read_transport::{LaterAnswer, ReadAnswer, ReadTransport};
use crate::read::reader::Page;
use crate::reply::body::{Body, empty};
use crate::reply::entity_tag;
use crate::stop::Stop;
use crate::transport_name::TransportName;

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&"poll"),
    representation: page_representation(None),
    answer: ReadAnswer::Now(answer),
    many,
};

/// Without `after`, returns the newest event of each topic. Several topics have no tag.
fn many<'a>(read: &'a ManyRequest, _: &'a HeaderMap, _: Stop) -> LaterAnswer<'a> {
    let page = || read.page_reply(&mut read.open(ManyReading::Page(TRANSPORT.name))?);
    Box::pin(ready(page()))
}

/// Caches may keep a page, and must revalidate it each time. With its tag, a browser then saves the body without any
/// script. With `no-store`, no cache would have a tag.
const REVALIDATED: &str = "no-cache";

/// Without `after`, returns the newest event, which a bare `curl` most likely wants.
fn answer(read: &ReadRequest, headers: &HeaderMap, _: Stop) -> Result<Response<Body>, Problem> {
    let page = read.open(TRANSPORT.name, Start::Newest)?.read_page()?;
    if read.depends_on_time() {
        return Ok(page_reply(read, &page, "no-store"));
    }
    let tag = tag_of(&page);
    let mut response = if entity_tag::is_known(headers, &tag) {
        not_modified()
    } else {
        page_reply(read, &page, REVALIDATED)
    };
    // Digits, letters and punctuation are always valid in a field.
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Returns the entity tag of a page. It contains what its URL does not: the first kept event and the end of the page.
/// Within an epoch, events never change. The end of a run can come later than its last event.
fn tag_of(page: &Page) -> String {
    let end = if page.is_last { ".end" } else { "" };
    format!("\"{}.{}{end}\"", page.first, page.next)
}

fn not_modified() -> Response<Body> {
    let mut response = empty(StatusCode::NOT_MODIFIED);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(REVALIDATED));
    response
}
