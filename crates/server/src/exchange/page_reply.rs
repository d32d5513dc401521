//! Replies with a page, at once or after a wait.

use http::{HeaderValue, Response, header};

use crate::exchange::read_request::ReadRequest;
use crate::memory::counted;
use crate::read::reader::Page;
use crate::reply::body::{Body, full, reply};
use crate::request::query::{Need, Representation};

/// Returns the representation of a page.
pub(crate) const fn page_representation(needs: Option<Need>) -> Representation {
    Representation { media_type: "application/json", ranges: &["application/*", "*/*"], needs }
}

/// Makes the reply with a page and the link to the next one.
pub(crate) fn page_reply(read: &ReadRequest, page: &Page, caching: &'static str) -> Response<Body> {
    let body = full(counted(&read.site.memory, page.to_json()));
    let mut response = reply("application/json", caching, body);
    // A query alone: a proxy may have the path begin with something of its own. A position needs no escaping, so this is
    // always a field's value.
    if let Ok(link) = HeaderValue::try_from(format!("<?after={}>; rel=\"next\"", page.next)) {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}
