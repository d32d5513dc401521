//! The media type of a service's reply.

use http::{HeaderMap, header};

/// The media type of a stream.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// The kinds of media types that the server distinguishes in replies of services.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MediaType {
    /// `application/json`, or any that ends in `+json`.
    Json,
    Ndjson,
    /// Any other, or none.
    Other,
}

impl MediaType {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        headers.get(header::CONTENT_TYPE).map_or(Self::Other, |value| Self::parse(value.as_bytes()))
    }

    fn parse(value: &[u8]) -> Self {
        // As most services spell it.
        if value == b"application/json" {
            return Self::Json;
        }
        let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
        let name = value[..end].trim_ascii();
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let ending = name.last_chunk::<5>();
        if is("application/json") || ending.is_some_and(|end| end.eq_ignore_ascii_case(b"+json")) {
            Self::Json
        } else if is(NDJSON) {
            Self::Ndjson
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_has_any_case_and_maybe_parameters() {
        for (value, media_type) in [
            ("application/json", MediaType::Json),
            ("Application/JSON ; charset=utf-8", MediaType::Json),
            ("application/problem+json", MediaType::Json),
            ("application/a+JSON;a=b;c", MediaType::Json),
            ("application/x-ndjson", MediaType::Ndjson),
            (" application/X-NDJSON;a=\u{e9}", MediaType::Ndjson),
            ("", MediaType::Other),
            (";", MediaType::Other),
            ("json", MediaType::Other),
            ("application/json5", MediaType::Other),
            ("text/html; a=application/json", MediaType::Other),
        ] {
            assert_eq!(MediaType::parse(value.as_bytes()), media_type, "{value}");
        }
        assert_eq!(MediaType::of(&HeaderMap::new()), MediaType::Other);
    }
}
