//! The fields by which every reply tells browsers, whatever its transport and status, that it is what its type says, that
//! pages of other origins may not have it, and that none may show it in a frame.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Each unless the reply has a stricter word of its own. The last two say the same, to new browsers and to old ones.
pub(crate) const FIELDS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("content-security-policy", "frame-ancestors 'none'"),
    ("x-frame-options", "DENY"),
];

/// Adds them.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in FIELDS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// Lets pages of other origins have the reply. To be called before [`protect`].
pub(crate) fn share(headers: &mut HeaderMap) {
    let policy = HeaderName::from_static("cross-origin-resource-policy");
    headers.entry(policy).or_insert(HeaderValue::from_static("cross-origin"));
}
