//! Poll: answers at once with the page after a position, maybe an empty one.

use anemone_hub::Start;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::Problem;
use crate::exchange::page_reply::{page_reply, page_representation};
use crate::exchange::read_request::ReadRequest;
use crate::exchange::read_transport::{ReadAnswer, ReadTransport};
use crate::read::entity_tag;
use crate::reply::body::{Body, full};
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
    let tag = entity_tag::of_page(&page);
    let mut response =
        if is_known(headers, &tag) { not_modified() } else { page_reply(read, &page, REVALIDATED) };
    // Digits, letters and punctuation are always a field's value.
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Whether the client has the page (RFC 9110 section 13.1.2). What is not an entity tag is no page of ours.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    entity_tag::list(headers, header::IF_NONE_MATCH)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

fn not_modified() -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(REVALIDATED));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_known_by_its_tag_however_that_is_listed() {
        let is_known = |fields: &[&'static str]| {
            let field =
                |value: &&'static str| (header::IF_NONE_MATCH, HeaderValue::from_static(value));
            is_known(&fields.iter().map(field).collect(), "\"1.ya-3\"")
        };
        for fields in [
            &["\"1.ya-3\""][..],
            &["W/\"1.ya-3\""],
            &["\"a\", \"1.ya-3\" ,"],
            &["\"a\"", "\"1.ya-3\""],
            &["*"],
        ] {
            assert!(is_known(fields), "{fields:?}");
        }
        for fields in
            [&[][..], &[""], &["1.ya-3"], &["\"1.ya-4\""], &["\"2.ya-3\""], &["w/\"1.ya-3\""]]
        {
            assert!(!is_known(fields), "{fields:?}");
        }
    }
}
