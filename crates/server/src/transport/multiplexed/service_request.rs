//! A multiplexed request as a service gets it.

use anemone_wire::multiplexed::Request;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Uri};

use crate::reply::body::{Body, full};
use crate::{Kind, Problem};

/// Returns the request for a service. `path` is the normalized path of its target.
pub(super) fn service_request(
    path: &str,
    request: &Request<'_>,
) -> Result<http::Request<Body>, Problem> {
    let Request { method, fields, payload, .. } = *request;
    let mut converted = http::Request::new(full(Bytes::copy_from_slice(payload)));
    *converted.method_mut() = Method::from_bytes(method.as_bytes()).map_err(invalid)?;
    *converted.uri_mut() = uri(path, request)?;
    let headers = converted.headers_mut();
    for (name, value) in fields.iter() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(invalid)?;
        headers.append(name, HeaderValue::from_bytes(&value).map_err(invalid)?);
    }
    if !payload.is_empty() {
        let json = HeaderValue::from_static("application/json");
        headers.entry(header::CONTENT_TYPE).or_insert(json);
    }
    Ok(converted)
}

fn uri(path: &str, request: &Request<'_>) -> Result<Uri, Problem> {
    let target = match request.path_and_query() {
        (as_asked, _) if as_asked == path => request.target.to_owned(),
        (_, Some(query)) => format!("{path}?{query}"),
        (_, None) => path.to_owned(),
    };
    Uri::from_maybe_shared(Bytes::from(target)).map_err(invalid)
}

fn invalid(error: impl std::fmt::Display) -> Problem {
    Problem::new(Kind::BadMessage, format!("the target or a field is not one of HTTP: {error}"))
}

#[cfg(test)]
mod tests {
    use anemone_wire::multiplexed::{FieldList, Fields};
    use http_body::Body as _;

    use super::*;

    fn request<'a>(target: &'a str, fields: Fields<'a>, payload: &'a [u8]) -> Request<'a> {
        Request { method: "PATCH", target, fields, payload }
    }

    #[test]
    fn a_request_has_its_method_target_fields_and_payload() {
        let mut fields = FieldList::default();
        fields.push("if-match", b"\"3\"").unwrap();
        let asked = request("/messages/%31?a=%31", fields.as_fields(), b"{}");
        let converted = service_request("/messages/1", &asked).unwrap();
        assert_eq!(converted.method(), Method::PATCH);
        assert_eq!(converted.uri(), "/messages/1?a=%31");
        assert_eq!(converted.headers()["if-match"], "\"3\"");
        assert_eq!(converted.headers()["content-type"], "application/json");
        assert_eq!(converted.body().size_hint().exact(), Some(2));
    }

    #[test]
    fn the_type_of_a_payload_may_be_given_and_nothing_has_none() {
        let mut fields = FieldList::default();
        fields.push("content-type", b"text/plain; charset=utf-8").unwrap();
        let converted = service_request("/a", &request("/a", fields.as_fields(), b"x")).unwrap();
        assert_eq!(converted.headers()["content-type"], "text/plain; charset=utf-8");
        let converted = service_request("/a", &request("/a?b", Fields::default(), b"")).unwrap();
        assert!(converted.headers().is_empty() && converted.body().is_end_stream());
        assert_eq!(converted.uri(), "/a?b");
    }

    #[test]
    fn what_is_no_target_of_http_is_refused() {
        let refused = service_request("/a", &request("/a?\\{\"^", Fields::default(), b""));
        let unclear = service_request("/<>", &request("/<>", Fields::default(), b""));
        for problem in
            [refused.map(|_| ()), unclear.map(|_| ())].into_iter().filter_map(Result::err)
        {
            assert_eq!(problem.kind(), Kind::BadMessage);
        }
    }
}
