//! Entity tags (RFC 9110 section 8.8.3): `"FIRST.NEXT"` for a page, and `"POSITION"`.

use anemone_hub::Position;
use http::{HeaderMap, HeaderName, header};

/// Returns the position in a tag. The first kept event does not matter for appending. Weak tags (section 8.8.3.2) and
/// foreign tags have no position.
pub(crate) fn position(tag: &str) -> Option<Position> {
    let text = tag.strip_prefix('"')?.strip_suffix('"')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((first, next)) => next.parse().ok().filter(|_| is_number(first)),
        None => text.parse().ok(),
    }
}

/// Returns true if the text is a tag of any origin, weak or strong.
pub(crate) fn is_one(text: &str) -> bool {
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    let inner = opaque.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
    inner.is_some_and(|inner| inner.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'))
}

/// Returns the tags in the fields of this name. A backslash in a tag is not an escape, so this is not a list of
/// quoted strings.
pub(crate) fn list(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let fields = headers.get_all(name).into_iter().filter_map(|field| field.to_str().ok());
    fields.flat_map(|field| {
        let mut is_quoted = false;
        let tags = field.split(move |character| {
            is_quoted ^= character == '"';
            character == ',' && !is_quoted
        });
        tags.map(str::trim)
    })
}

/// Returns true if the client already has the representation with this tag, according to `If-None-Match` (RFC 9110
/// section 13.1.2).
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    list(headers, header::IF_NONE_MATCH)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_tag_is_quoted_and_has_no_space() {
        for text in ["\"\"", "\"a\"", "W/\"a\"", "\"1.ya-3\"", "\"a,\\\""] {
            assert!(is_one(text), "{text}");
        }
        for text in ["", "a", "\"", "\"a", "a\"", "w/\"a\"", "\"a b\"", "\"a\"b\"", "W/a"] {
            assert!(!is_one(text), "{text}");
        }
    }

    #[test]
    fn a_comma_in_a_tag_parts_nothing_and_a_backslash_is_no_escape() {
        let value = HeaderValue::from_static(r#""a,\" , W/"b", "1.ya-3","#);
        let headers = HeaderMap::from_iter([(header::IF_MATCH, value)]);
        let tags: Vec<_> = list(&headers, header::IF_MATCH).collect();
        assert_eq!(tags, [r#""a,\""#, r#"W/"b""#, r#""1.ya-3""#, ""]);
        let positions: Vec<_> = tags.into_iter().filter_map(position).collect();
        assert_eq!(positions, ["ya-3".parse().unwrap()]);
    }

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
