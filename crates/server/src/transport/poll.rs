//! Poll: answers at once with the page after a position, maybe an empty one.

use anemone_hub::Start;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::Problem;
use crate::exchange::page_reply::{page_reply, page_representation};
use crate::exchange::read_request::ReadRequest;
use crate::exchange::read_transport::{ReadAnswer, ReadTransport};
use crate::read::reader::Page;
use crate::reply::body::{Body, full};
use crate::reply::entity_tag;
use crate::stop::Stop;
use crate::transport_name::TransportName;

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&"poll"),
    representation: page_representation(None),
    answer: ReadAnswer::Now(answer),
};

/// A cache may keep a page and has to ask each time whether it is still the one: then its tag saves a browser the
/// body without a line of script. With `no-store` no cache would ever have a tag to ask with.
const REVALIDATED: &str = "no-cache";

/// Without `after`, the newest event: what a bare `curl` is after.
fn answer(read: &ReadRequest, headers: &HeaderMap, _: Stop) -> Result<Response<Body>, Problem> {
    let page = read.open(TRANSPORT.name, Start::Newest)?.read()?;
    if read.is_of_a_moment() {
        return Ok(page_reply(read, &page, "no-store"));
    }
    let tag = tag_of(&page);
    let mut response = if entity_tag::is_known(headers, &tag) {
        not_modified()
    } else {
        page_reply(read, &page, REVALIDATED)
    };
    // Digits, letters and punctuation are always a field's value.
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// The entity tag of a page: what its URL does not say of it, what is kept and where the page ends. In an epoch an event never
/// changes.
fn tag_of(page: &Page) -> String {
    format!("\"{}.{}\"", page.first, page.next)
}

fn not_modified() -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(REVALIDATED));
    response
}
