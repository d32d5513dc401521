//! The fields by which every reply tells browsers, whatever its transport and status, that it is what its type says, that
//! pages of other origins may not have it, and that none may show it in a frame.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::origin::Verdict;

/// Each unless the reply has a stricter word of its own. The last two say the same, to new browsers and to old ones.
pub(crate) const FIELDS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("content-security-policy", "frame-ancestors 'none'"),
    ("x-frame-options", "DENY"),
];

/// Adds them.
pub(crate) fn protect(headers: &mut HeaderMap, verdict: &Verdict) {
    if matches!(verdict, Verdict::Allowed(_)) {
        let policy = HeaderName::from_static("cross-origin-resource-policy");
        headers.entry(policy).or_insert(HeaderValue::from_static("cross-origin"));
    }
    for (name, value) in FIELDS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
