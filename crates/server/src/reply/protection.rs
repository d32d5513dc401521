//! The protective fields of every reply, on any transport and with any status. They tell browsers that the reply has
//! the declared type, that pages of other origins may not use it, and that no page may show it in a frame.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The fields, unless the reply has stricter values. The last two have the same effect, in new and in old browsers.
pub(crate) const FIELDS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("content-security-policy", "frame-ancestors 'none'"),
    ("x-frame-options", "DENY"),
];

/// Adds the fields.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in FIELDS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Lets pages of other origins use the reply. Must be called before [`protect`].
pub(crate) fn share(headers: &mut HeaderMap) {
    let policy = HeaderName::from_static("cross-origin-resource-policy");
    headers.entry(policy).or_insert(HeaderValue::from_static("cross-origin"));
}
