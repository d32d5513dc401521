//! Replies with a page, at once or after a wait.

use anemone_hub::Start;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::Problem;
use crate::exchange::read_request::ReadRequest;
use crate::memory::counted;
use crate::read::reader::Page;
use crate::reply::body::{Body, empty, full, omitted, reply};
use crate::reply::entity_tag;
use crate::request::methods::Wanted;
use crate::request::query::{Need, Representation};
use crate::transport_name::TransportName;

pub(crate) const fn page_representation(needs: Option<Need>) -> Representation {
    Representation { media_type: "application/json", ranges: &["application/*", "*/*"], needs }
}

pub(crate) fn page_reply(
    read: &ReadRequest,
    page: &Page,
    wanted: Wanted,
    caching: &'static str,
) -> Response<Body> {
    let body = match wanted {
        Wanted::All => full(counted(&read.site.memory, page.to_json())),
        Wanted::Head => omitted(),
    };
    let mut response = reply("application/json", caching, body);
    // A query alone: a proxy may have the path begin with something of its own. A position needs no escaping, so this is
    // always a field's value.
    if let Ok(link) = HeaderValue::try_from(format!("<?after={}>; rel=\"next\"", page.next)) {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

/// Caches may keep a page, and must revalidate it each time. With its tag, a browser then saves the body without any
/// script. With `no-store`, no cache would have a tag.
const REVALIDATED: &str = "no-cache";

/// Answers at once with the page after a position; without one, with the newest event.
pub(crate) fn poll(
    read: &ReadRequest,
    headers: &HeaderMap,
    wanted: Wanted,
    transport: TransportName,
) -> Result<Response<Body>, Problem> {
    let page = read.open(transport, Start::Newest)?.read_page()?;
    if read.depends_on_time() {
        return Ok(page_reply(read, &page, wanted, "no-store"));
    }
    let tag = tag_of(&page);
    let mut response = if entity_tag::is_known(headers, &tag) {
        not_modified()
    } else {
        page_reply(read, &page, wanted, REVALIDATED)
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
