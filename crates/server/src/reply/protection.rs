//! The protective fields of every reply, on any transport and with any status. They tell browsers that the reply has
//! the declared type, that pages of other origins may not use it, and that no page may show it in a frame.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The fields, unless the reply has stricter values. The last two have the same effect, in new and in old browsers.
pub(crate) const FIELDS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (RESOURCE_POLICY, "same-origin"),
    (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in FIELDS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// The same fields, as lines of HTTP/1.1.
const LINES: [&str; 4] = [
    "x-content-type-options: nosniff\r\n",
    "cross-origin-resource-policy: same-origin\r\n",
    "content-security-policy: frame-ancestors 'none'\r\n",
    "x-frame-options: DENY\r\n",
];

/// Writes the fields that [`protect`] would add.
pub(crate) fn write_missing(headers: &HeaderMap, bytes: &mut Vec<u8>) {
    static NAMES: [HeaderName; 4] = [
        header::X_CONTENT_TYPE_OPTIONS,
        RESOURCE_POLICY,
        header::CONTENT_SECURITY_POLICY,
        header::X_FRAME_OPTIONS,
    ];
    for (name, line) in NAMES.iter().zip(LINES) {
        // Cheaper than a search by hash, since replies of services have few fields.
        if headers.keys().all(|other| other != name) {
            bytes.extend_from_slice(line.as_bytes());
        }
    }
}

/// Lets pages of other origins use the reply. Must be called before [`protect`].
pub(crate) fn share(headers: &mut HeaderMap) {
    headers.entry(RESOURCE_POLICY).or_insert(HeaderValue::from_static("cross-origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_the_fields_that_are_added() {
        let own = [None, Some(0), Some(1), Some(2), Some(3)];
        for own in own {
            let mut headers = HeaderMap::new();
            if let Some(own) = own {
                headers.insert(FIELDS[own].0.clone(), HeaderValue::from_static("stricter"));
            }
            let mut written = Vec::new();
            write_missing(&headers, &mut written);
            protect(&mut headers);
            let added = headers.iter().filter(|(_, value)| *value != "stricter");
            let expected: String = added
                .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()))
                .collect();
            assert_eq!(String::from_utf8(written).unwrap(), expected, "{own:?}");
        }
    }
}
