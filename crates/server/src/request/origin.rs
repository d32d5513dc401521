//! Origins (RFC 6454): the pages that may use this server.
//!
//! A browser sends the page's origin in every WebSocket handshake, and in every request whose reply a page of another
//! origin could read. In other requests, for example for an image, `Sec-Fetch-Site` reveals that the page is of
//! another site. Programs other than browsers send neither and are admitted. The same origin is always allowed;
//! loopback is no exception, since any page on the web can send requests to it.

use http::HeaderValue;

use crate::reply::problem::excerpt;
use crate::request::allowed_origin::{AllowedOrigin, Origin, SHARED};
use crate::request::fields::Fields;
use crate::request::host::Host;
use crate::{Kind, Problem};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// No origin, or the server's own.
    Same,
    /// Another origin that is allowed: replies must say so for its page to read them.
    Allowed(HeaderValue),
}

/// The host and the scheme of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) host: Option<Host<'a>>,
    /// The port that a trusted proxy was asked at. It counts if `host` has none, since some proxies remove it there.
    pub(crate) port: Option<u16>,
    /// `None` if it is unknown: a proxy may add TLS without reporting it.
    pub(crate) scheme: Option<&'a str>,
}

/// Checks the request's `Origin` and `Sec-Fetch-Site` fields.
pub(crate) fn validate(
    fields: Fields<'_>,
    target: &Target<'_>,
    allowed: &[AllowedOrigin],
) -> Result<Verdict, Problem> {
    let mut origins = fields.all("origin");
    let Some(origin) = origins.next() else { return validate_site(fields, allowed) };
    if origins.next().is_some() {
        return Err(Problem::new(Kind::OriginRefused, "the request names more than one origin"));
    }
    let parsed = str::from_utf8(origin).ok().and_then(Origin::parse);
    if parsed.as_ref().is_some_and(|origin| is_own(origin, target)) {
        return Ok(Verdict::Same);
    }
    match HeaderValue::from_bytes(origin) {
        Ok(sent) if allowed.iter().any(|entry| entry.allows(origin, parsed.as_ref())) => {
            Ok(Verdict::Allowed(sent))
        }
        _ => Err(Problem::new(Kind::OriginRefused, explain(origin, target))),
    }
}

/// Returns true for the origin of the server's own pages.
fn is_own(origin: &Origin, target: &Target<'_>) -> bool {
    let Some(host) = target.host else { return false };
    let scheme = target.scheme.unwrap_or(origin.scheme());
    [host, host.or_port(target.port)]
        .iter()
        .any(|host| Origin::new(scheme, host).as_ref() == Some(origin))
}

/// Explains why an origin is not the server's own, with advice. The origin behind a proxy contains the proxy's host,
/// while the proxy may change `Host`.
fn explain(origin: &[u8], target: &Target<'_>) -> String {
    let origin = excerpt(&String::from_utf8_lossy(origin), CHARS_TOLD);
    if SHARED.contains(&&*origin) {
        return format!(
            "pages of origin {origin} may not use this server: files, and pages in sandboxed frames, have this origin, \
             whoever made them; --allow-origin {origin}, or allow_origins, opens the server to everybody who makes one"
        );
    }
    let (asked, proxy) = match target.host {
        Some(host) => {
            (format!(", asked for as {}", excerpt(host.as_str(), CHARS_TOLD)), PROXY_ADVICE)
        }
        None => Default::default(),
    };
    format!(
        "pages of origin {origin} may not use this server{asked}: allow them with --allow-origin, or allow_origins{proxy}"
    )
}

const PROXY_ADVICE: &str = "; if they are its own pages, a proxy in front has replaced the Host: have it \
                            forward the original, with its port (nginx: proxy_set_header Host $http_host)";

/// The most characters of a client's text that are repeated.
const CHARS_TOLD: usize = 80;

/// Returns true if a browser says that a page of this origin sends the request. Browsers say so only for https and
/// localhost, and no page can forge it: the name has a certificate, or cannot be repointed.
pub(crate) fn is_of_own_page(fields: Fields<'_>) -> bool {
    fields.first("sec-fetch-site") == Some(b"same-origin")
}

/// Refuses a request that changes something, if a browser sends it for a page of another site without naming that
/// page. A form could do that, as a navigation; no allowed page does.
pub(crate) fn refuse_unnamed(fields: Fields<'_>) -> Result<(), Problem> {
    if fields.has("origin") || !is_of_another_origin(fields) {
        return Ok(());
    }
    let detail = "a page of another origin that is not named may not publish to this server";
    Err(Problem::new(Kind::OriginRefused, detail))
}

/// Checks a request without an origin: a browser may still say that a page of another site sends it. Followed links
/// are admitted.
fn validate_site(fields: Fields<'_>, allowed: &[AllowedOrigin]) -> Result<Verdict, Problem> {
    let is_navigation = || fields.first("sec-fetch-mode") == Some(b"navigate");
    // The page is unknown, so it may be an allowed one, if there are any.
    if !is_of_another_origin(fields) || !allowed.is_empty() || is_navigation() {
        return Ok(Verdict::Same);
    }
    let detail = "pages of other origins may not use this server: allow their origin with --allow-origin, or allow_origins";
    Err(Problem::new(Kind::OriginRefused, detail))
}

/// Returns true if a browser says that a page of another origin sends this.
pub(crate) fn is_of_another_origin(fields: Fields<'_>) -> bool {
    matches!(fields.first("sec-fetch-site"), Some(b"cross-site" | b"same-site"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;

    fn target(host: &str) -> Target<'_> {
        Target { host: Host::parse(host), scheme: None, port: None }
    }

    fn validate_with(origin: Option<&str>, host: &str, allowed: &[&str]) -> Option<Verdict> {
        let mut headers = HeaderMap::new();
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let allowed: Vec<AllowedOrigin> =
            allowed.iter().map(|text| text.parse().unwrap()).collect();
        validate((&headers).into(), &target(host), &allowed).ok()
    }

    #[test]
    fn no_origin_and_the_same_origin_are_let_in() {
        assert_eq!(validate_with(None, "a.example", &[]), Some(Verdict::Same));
        for (origin, host) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("https://a.example", "a.example"),
            ("https://A.example:443", "a.example"),
            ("http://a.example", "a.example:80"),
            ("http://[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(
                validate_with(Some(origin), host, &[]),
                Some(Verdict::Same),
                "{origin} {host}"
            );
        }
    }

    #[test]
    fn a_refusal_names_the_host_it_was_compared_with_and_what_allows_the_origin() {
        let mut fields = HeaderMap::new();
        fields.insert(header::ORIGIN, "http://evil.example".parse().unwrap());
        let detail = |fields: &HeaderMap, target| {
            validate(fields.into(), &target, &[]).unwrap_err().detail().to_owned()
        };
        assert_eq!(
            detail(&fields, target("127.0.0.1:8080")),
            "pages of origin http://evil.example may not use this server, asked for as 127.0.0.1:8080: allow them with \
             --allow-origin, or allow_origins; if they are its own pages, a proxy in front has replaced the \
             Host: have it forward the original, with its port (nginx: proxy_set_header Host $http_host)"
        );
        assert_eq!(
            detail(&fields, Target { host: None, scheme: None, port: None }),
            "pages of origin http://evil.example may not use this server: allow them with --allow-origin, or allow_origins"
        );
        let mut fields = HeaderMap::new();
        fields.insert("sec-fetch-site", "cross-site".parse().unwrap());
        assert_eq!(
            detail(&fields, target("127.0.0.1:8080")),
            "pages of other origins may not use this server: allow their origin with --allow-origin, or allow_origins"
        );
    }

    #[test]
    fn the_refusal_of_an_origin_that_many_share_says_what_allowing_it_means() {
        for origin in ["null", "file://"] {
            let fields = HeaderMap::from_iter([(header::ORIGIN, origin.parse().unwrap())]);
            let refused = validate((&fields).into(), &target("a.example"), &[]).unwrap_err();
            let advice =
                format!("--allow-origin {origin}, or allow_origins, opens the server to everybody");
            assert!(refused.detail().contains(&advice), "{}", refused.detail());
            let allowed = [origin.parse().unwrap()];
            assert!(validate((&fields).into(), &target("a.example"), &allowed).is_ok(), "{origin}");
        }
    }

    #[test]
    fn the_port_of_a_proxy_counts_where_the_host_has_none() {
        for (host, port, origin, is_own) in [
            ("site.example", Some(8443), "https://site.example:8443", true),
            ("site.example", Some(443), "https://site.example", true),
            ("site.example", Some(8443), "https://site.example:8444", false),
            ("site.example", Some(8443), "https://other.example:8443", false),
            ("site.example", None, "https://site.example:8443", false),
            ("site.example:8443", Some(443), "https://site.example:8443", true),
            ("site.example:8443", Some(443), "https://site.example", false),
            // A proxy behind the one with TLS may tell its own port.
            ("site.example", Some(80), "https://site.example", true),
        ] {
            let fields = HeaderMap::from_iter([(header::ORIGIN, origin.parse().unwrap())]);
            let target = Target { scheme: Some("https"), port, ..target(host) };
            let verdict = validate((&fields).into(), &target, &[]);
            assert_eq!(verdict.is_ok(), is_own, "{host} {port:?} {origin}");
        }
    }

    #[test]
    fn another_origin_is_refused_loopback_included() {
        for origin in [
            "http://evil.example",
            "http://localhost:8080",
            "http://127.0.0.1:9999",
            "null",
            "x",
            "http://127.0.0.1:8080@evil.example",
            "http://127.0.0.1:8080.evil.example",
        ] {
            assert_eq!(validate_with(Some(origin), "127.0.0.1:8080", &[]), None, "{origin}");
        }
    }

    #[test]
    fn a_browser_that_names_no_origin_still_tells_whose_page_it_is() {
        let validate = |site: &str, mode: &str| {
            let fields = [("sec-fetch-site", site), ("sec-fetch-mode", mode)];
            let headers =
                fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let headers = HeaderMap::from_iter(headers);
            validate((&headers).into(), &target("a.example"), &[]).is_ok()
        };
        assert!(
            validate("same-origin", "cors")
                && validate("none", "navigate")
                && validate("cross-site", "navigate")
        );
        assert!(!validate("cross-site", "no-cors") && !validate("same-site", "no-cors"));
    }

    #[test]
    fn a_scheme_that_is_known_counts() {
        let headers =
            HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static("http://a.example"))]);
        for (scheme, is_same) in [(None, true), (Some("http"), true), (Some("https"), false)] {
            let target = Target { scheme, ..target("a.example") };
            assert_eq!(validate((&headers).into(), &target, &[]).is_ok(), is_same, "{scheme:?}");
        }
    }

    #[test]
    fn what_changes_something_must_name_its_page() {
        let refuse = |fields: &[(&'static str, &str)]| {
            let fields =
                fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            refuse_unnamed((&fields.collect::<HeaderMap>()).into()).is_err()
        };
        let form = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert!(refuse(&form) && refuse(&[("sec-fetch-site", "same-site")]));
        assert!(!refuse(&[form[0], ("origin", "https://app.example")]), "judged by its name");
        assert!(!refuse(&[]) && !refuse(&[("sec-fetch-site", "same-origin")]));
    }

    #[test]
    fn two_origins_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(header::ORIGIN, HeaderValue::from_static("http://a.example"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://evil.example"));
        assert!(
            validate((&headers).into(), &target("a.example"), &["*".parse().unwrap()]).is_err()
        );
    }

    #[test]
    fn an_allowed_origin_is_let_in_by_its_exact_name() {
        let allowed = ["https://app.example", "http://b.example:3000"];
        let verdict = validate_with(Some("https://app.example"), "api.example", &allowed);
        assert_eq!(
            verdict,
            Some(Verdict::Allowed(HeaderValue::from_static("https://app.example")))
        );
        for origin in ["http://app.example", "https://app.example:444", "http://b.example"] {
            assert_eq!(validate_with(Some(origin), "api.example", &allowed), None, "{origin}");
        }
        assert!(validate_with(Some("null"), "api.example", &["*"]).is_some());
    }
}
