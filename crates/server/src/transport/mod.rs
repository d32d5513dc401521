//! One file for each way to read a topic or publish to it, and for what is no topic. None imports another.

pub(crate) mod broadcast;
pub(crate) mod echo;
pub(crate) mod forever_frame;
pub(crate) mod long_poll;
pub(crate) mod multiplexed;
pub(crate) mod ndjson;
pub(crate) mod poll;
pub(crate) mod post;
pub(crate) mod sse;
pub(crate) mod websocket;

use http::{HeaderValue, Response, header};

use crate::exchange::read_request::ReadRequest;
use crate::memory::counted;
use crate::read::encode;
use crate::read::reader::Page;
use crate::reply::body::{Body, full};

/// A page as the reply to a poll or long poll.
fn page_response(read: &ReadRequest, page: &Page, caching: &'static str) -> Response<Body> {
    let mut response = Response::new(full(counted(&read.memory, encode::page(page))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    // A query alone: a proxy may have the path begin with something of its own. A position needs no escaping, so this is
    // always a field's value.
    if let Ok(link) = HeaderValue::try_from(format!("<?after={}>; rel=\"next\"", page.next)) {
        headers.insert(header::LINK, link);
    }
    response
}
