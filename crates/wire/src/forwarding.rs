//! The header fields of proxies.

/// Fields with which proxies report their client or themselves (RFC 7239, RFC 9110 section 7.6.3).
const FORWARDING: [&str; 12] = [
    "forwarded",
    "via",
    "cdn-loop",
    "client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-host",
    "x-proxyuser-ip",
];
/// The beginnings of more such fields.
const FORWARDING_BEGINS: [&str; 4] = ["x-forwarded", "x-original-forwarded", "x-envoy-", "cf-"];

/// Returns true for the name of a header field with which proxies report their client or themselves.
#[must_use]
pub fn is_forwarding(name: &str) -> bool {
    let begins = |begin: &&str| {
        name.get(..begin.len()).is_some_and(|first| first.eq_ignore_ascii_case(begin))
    };
    // Most names begin with none of these letters.
    matches!(
        name.as_bytes().first().map(u8::to_ascii_lowercase),
        Some(b'f' | b'v' | b'c' | b't' | b'x')
    ) && (FORWARDING.iter().any(|own| name.eq_ignore_ascii_case(own))
        || FORWARDING_BEGINS.iter().any(begins))
}
