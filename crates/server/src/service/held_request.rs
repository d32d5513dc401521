//! The request that the work of a run holds while it waits: its copy, and the memory of that.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use hyper::upgrade::OnUpgrade;

use crate::reply::body::Body;

/// A value in the extensions of a request, as far as its size is known: its entry and its box.
const EXTENSION_BYTES: usize = 128;

/// The bytes that an allocation takes besides its own, with the counter of those who share it.
const ALLOCATION_BYTES: usize = 48;

/// An entry of a map of fields besides the name and the value: its hash, its link, its place in the index, and the
/// allocation of a name that is not a standard one.
const ENTRY_BYTES: usize = 72;

/// Returns a copy of a request, without its body. What arrived shares the buffer in which its connection received it, and
/// would keep all of that in memory.
pub(super) fn copy_head(request: Request<Body>) -> (Request<()>, Body) {
    let (mut head, body) = request.into_parts();
    head.headers = copy_fields(&head.headers);
    let uri = Bytes::from(head.uri.to_string());
    head.uri = Uri::from_maybe_shared(uri).unwrap_or(head.uri);
    // A run takes over no connection.
    head.extensions.remove::<OnUpgrade>();
    (Request::from_parts(head, ()), body)
}

/// Copies the values of all fields into one allocation.
fn copy_fields(headers: &HeaderMap) -> HeaderMap {
    let mut bytes = BytesMut::with_capacity(values_bytes(headers));
    headers.values().for_each(|value| bytes.extend_from_slice(value.as_bytes()));
    let mut bytes = bytes.freeze();
    let mut copy = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        // Bytes that were a value are one.
        let copied = HeaderValue::from_maybe_shared(bytes.split_to(value.len()));
        let mut copied = copied.unwrap_or_else(|_| value.clone());
        copied.set_sensitive(value.is_sensitive());
        copy.append(name, copied);
    }
    copy
}

/// Returns the memory of a copied request with its body, besides the value itself.
pub(super) fn held_bytes(request: &Request<Bytes>) -> u64 {
    let headers = request.headers();
    let entry = size_of::<HeaderName>() + size_of::<HeaderValue>() + ENTRY_BYTES;
    let names: usize = headers.keys().map(|name| name.as_str().len()).sum();
    let fields = headers.capacity() * entry + names + values_bytes(headers);
    // The authority is part of it only over HTTP/2.
    let uri = request.uri();
    let uri = uri.path().len()
        + uri.query().map_or(0, str::len)
        + uri.authority().map_or(0, |authority| authority.as_str().len());
    let parts = [fields, uri, request.body().len()];
    let extensions = request.extensions().len() * EXTENSION_BYTES;
    (parts.iter().sum::<usize>() + parts.len() * ALLOCATION_BYTES + extensions) as u64
}

fn values_bytes(headers: &HeaderMap) -> usize {
    headers.values().map(HeaderValue::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_equal_and_shares_no_bytes_with_the_request() {
        let received = Bytes::from_static(b"one two");
        let values = [received.slice(..3), received.slice(4..)];
        let [one, two] = values.map(|value| HeaderValue::from_maybe_shared(value).unwrap());
        let mut request = Request::post("http://host:80/a/b?c=%20").body(Body::default()).unwrap();
        request.headers_mut().append("x-a", one);
        request.headers_mut().append("x-a", two);
        request.headers_mut().insert("x-b", HeaderValue::from_static(""));
        request.headers_mut().get_mut("x-b").unwrap().set_sensitive(true);
        request.extensions_mut().insert(7_u8);
        let (uri, headers) = (request.uri().clone(), request.headers().clone());
        let (copy, _) = copy_head(request);
        assert_eq!((copy.uri(), copy.headers()), (&uri, &headers));
        assert!(copy.headers()["x-b"].is_sensitive() && !copy.headers()["x-a"].is_sensitive());
        assert_eq!(copy.extensions().get(), Some(&7_u8));
        let at = copy.headers()["x-a"].as_bytes().as_ptr();
        assert!(!received.as_ptr_range().contains(&at));
    }

    #[test]
    fn each_part_of_a_request_counts() {
        let request = || Request::post("/a").body(Bytes::new()).unwrap();
        let alone = held_bytes(&request());
        let body = request().map(|_| Bytes::from(vec![0; 1_000]));
        assert_eq!(held_bytes(&body) - alone, 1_000);
        let uri = Request::post(format!("/a?{}", "b".repeat(1_000))).body(Bytes::new()).unwrap();
        assert_eq!(held_bytes(&uri) - alone, 1_000);
        let mut fields = request();
        fields.headers_mut().insert("x-a", HeaderValue::try_from("c".repeat(1_000)).unwrap());
        assert!((1_000..2_000).contains(&(held_bytes(&fields) - alone)));
    }
}
