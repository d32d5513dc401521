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

/// Adds the fields.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in FIELDS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Lets pages of other origins use the reply. Must be called before [`protect`].
pub(crate) fn share(headers: &mut HeaderMap) {
    headers.entry(RESOURCE_POLICY).or_insert(HeaderValue::from_static("cross-origin"));
}
