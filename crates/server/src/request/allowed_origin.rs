//! Origins (RFC 6454), and the patterns of those that the operator allows.
//!
//! A pattern that no browser's `Origin` can match is refused, with the pattern that was probably meant: its writer
//! would otherwise look for the mistake in the page.

use std::fmt;
use std::str::FromStr;

use crate::reply::problem::excerpt;
use crate::request::host::{Host, ends_in};

/// The origins whose pages may use this server like its own: `SCHEME://HOST[:PORT]`, `SCHEME://*.NAME[:PORT]` for all hosts
/// whose names end in `.NAME`, `null`, `file://`, or `*` for any.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AllowedOrigin(Pattern);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Pattern {
    Any,
    /// One of the origins that many unrelated pages share, as browsers write it.
    Shared(&'static str),
    One(Origin),
    /// Every origin with this scheme and port, whose host ends in a dot and this host.
    Ending(Origin),
}

/// An error of a text that is not an origin, with what to write in its place.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text:?} is not an origin: {advice}")]
pub struct OriginError {
    text: String,
    advice: String,
}

/// The origins of files and sandboxed frames, and those of files in old web views and in some libraries for devices.
pub(crate) const SHARED: [&str; 2] = ["null", "file://"];

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Origin {
    /// In lower case.
    scheme: String,
    /// In lower case, without brackets.
    host: String,
    /// `None` if it is the default of the scheme.
    port: Option<u16>,
}

impl Origin {
    /// Parses what a browser sends.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        Self::new(scheme, &Host::parse(host)?)
    }

    pub(crate) fn new(scheme: &str, host: &Host<'_>) -> Option<Self> {
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let begins = scheme.bytes().next()?.is_ascii_alphabetic();
        if !begins || !scheme.bytes().all(is_scheme) {
            return None;
        }
        let (scheme, name) = (scheme.to_ascii_lowercase(), host.name());
        let default = match scheme.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        let port = host.port().filter(|port| Some(*port) != default);
        (!name.is_empty()).then_some(Self { scheme, host: name, port })
    }

    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port } = self;
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]")?, // an IPv6 address
            false => write!(f, "{scheme}://{host}")?,
        }
        port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl AllowedOrigin {
    /// Returns true if it allows an origin: what the browser sent, and the same as parsed.
    pub(crate) fn allows(&self, sent: &[u8], origin: Option<&Origin>) -> bool {
        match (&self.0, origin) {
            (Pattern::Any, _) => true,
            (Pattern::Shared(own), _) => own.as_bytes() == sent,
            (Pattern::One(own), origin) => Some(own) == origin,
            (Pattern::Ending(own), Some(origin)) => {
                (&own.scheme, own.port) == (&origin.scheme, origin.port)
                    && ends_in(&origin.host, &own.host)
            }
            (Pattern::Ending(_), None) => false,
        }
    }
}

impl FromStr for AllowedOrigin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let error = |advice| OriginError { text: excerpt(text, 80), advice };
        if text == "*" {
            return Ok(Self(Pattern::Any));
        }
        if let Some(own) = SHARED.into_iter().find(|own| text.eq_ignore_ascii_case(own)) {
            return Ok(Self(Pattern::Shared(own)));
        }
        let (scheme, rest) = split(text).map_err(error)?;
        let (host, is_ending) = match rest.strip_prefix("*.") {
            Some(host) => (host, true),
            None => (rest, false),
        };
        check_host(scheme, host).map_err(error)?;
        let origin = Origin::parse(&format!("{scheme}://{host}"));
        let origin = origin.ok_or_else(|| error(EXPECTED.to_owned()))?;
        match is_ending {
            true if is_address(&origin.host) => Err(error(WILDCARD.to_owned())),
            true => Ok(Self(Pattern::Ending(origin))),
            false => Ok(Self(Pattern::One(origin))),
        }
    }
}

const EXPECTED: &str = "expected SCHEME://HOST[:PORT], SCHEME://*.NAME, null, or * for any";
const WILDCARD: &str =
    "* stands for the first labels of a name, as in https://*.example.org, or alone for any origin";

/// Splits a pattern into its scheme and the rest, or returns what to write.
fn split(text: &str) -> Result<(&str, &str), String> {
    let (scheme, rest) = match text.split_once("://") {
        Some(("*", _)) => return Err(WILDCARD.to_owned()),
        Some(split) => split,
        None if is_opaque(text) => return Err(OPAQUE.to_owned()),
        None if text.is_empty() || text.contains(char::is_whitespace) => {
            return Err(EXPECTED.to_owned());
        }
        None => {
            let host = excerpt(text.trim_start_matches('/'), 80);
            return Err(format!("it has no scheme, write http://{host} or https://{host}"));
        }
    };
    let secure = match scheme.to_ascii_lowercase().as_str() {
        "file" => return Err(OPAQUE.to_owned()),
        "ws" => "http",
        "wss" => "https",
        _ => return Ok((scheme, rest)),
    };
    Err(format!(
        "the pages that open WebSockets have the scheme {secure}, write {secure}://{}",
        excerpt(rest, 80)
    ))
}

const OPAQUE: &str = "pages from files and in sandboxed frames have the origin null (file:// in old web views), write null, \
                      which allows all of them";

/// Returns true for URLs whose pages have the origin `null`.
fn is_opaque(text: &str) -> bool {
    let scheme = text.split(':').next().unwrap_or_default();
    ["about", "blob", "data", "file"].iter().any(|own| scheme.eq_ignore_ascii_case(own))
        && scheme.len() < text.len()
}

/// Checks the host of a pattern, and that nothing follows it; else returns what to write.
fn check_host(scheme: &str, host: &str) -> Result<(), String> {
    if let Some(end) = host.find(['/', '?', '#', '\\']) {
        let origin = excerpt(&host[..end], 80);
        return Err(format!("an origin has no path, write {scheme}://{origin}"));
    }
    if let Some((_, host)) = host.rsplit_once('@') {
        return Err(format!("an origin has no user name, write {scheme}://{}", excerpt(host, 80)));
    }
    if host.contains('*') {
        return Err(WILDCARD.to_owned());
    }
    if !host.is_ascii() {
        return Err("browsers send the name of the host in ASCII, write that (xn--…)".to_owned());
    }
    let Some(parsed) = Host::parse(host) else { return Err(EXPECTED.to_owned()) };
    // WHATWG URL: a host whose last label is a number is an address of IPv4.
    let name = parsed.name();
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last
            .strip_prefix("0x")
            .is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match is_address(&name) {
        true => Ok(()),
        false if name.is_empty() || !name.bytes().all(is_of_name) => Err(EXPECTED.to_owned()),
        false if is_number => {
            Err("browsers send an address as four numbers, write it as 127.0.0.1".to_owned())
        }
        false => Ok(()),
    }
}

fn is_address(host: &str) -> bool {
    host.parse::<std::net::IpAddr>().is_ok()
}

impl fmt::Display for AllowedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Pattern::Any => f.write_str("*"),
            Pattern::Shared(own) => f.write_str(own),
            Pattern::One(origin) => origin.fmt(f),
            Pattern::Ending(origin) => {
                let Origin { scheme, host, port } = origin;
                write!(f, "{scheme}://*.{host}")?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_written_as_browsers_write_origins() {
        for (text, normal) in [
            ("*", "*"),
            ("null", "null"),
            ("NULL", "null"),
            ("file://", "file://"),
            ("https://app.example", "https://app.example"),
            ("HTTPS://App.Example:443", "https://app.example"),
            ("http://app.example:80", "http://app.example"),
            ("http://app.example:443", "http://app.example:443"),
            ("https://app.example:", "https://app.example"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[0:0:0:0:0:0:0:1]:3000", "http://[::1]:3000"),
            ("https://*.Example.org", "https://*.example.org"),
            ("https://*.example.org:443", "https://*.example.org"),
            ("https://*.example.org:8443", "https://*.example.org:8443"),
            ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh"),
            ("capacitor://localhost", "capacitor://localhost"),
        ] {
            assert_eq!(text.parse::<AllowedOrigin>().unwrap().to_string(), normal, "{text}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_match_is_refused_with_the_one_that_can() {
        for (text, advice) in [
            ("", "expected SCHEME://HOST[:PORT]"),
            ("a b", "expected SCHEME://"),
            ("app.example", "write http://app.example or https://app.example"),
            ("//app.example", "write http://app.example or https://app.example"),
            ("localhost:3000", "write http://localhost:3000 or https://localhost:3000"),
            ("*.example.org", "write http://*.example.org or https://*.example.org"),
            ("https://app.example/", "no path, write https://app.example"),
            ("https://app.example/x", "no path, write https://app.example"),
            ("https://*.app.example/x", "no path, write https://app.example"),
            ("https://app.example?x", "no path, write https://app.example"),
            ("https://app.example#x", "no path, write https://app.example"),
            ("https://u@app.example", "no user name, write https://app.example"),
            ("https://u:p@app.example", "no user name, write https://app.example"),
            ("wss://app.example", "have the scheme https, write https://app.example"),
            ("WS://app.example:81", "have the scheme http, write http://app.example:81"),
            ("https://*", "* stands for the first labels of a name"),
            ("https://*:8443", "* stands for the first labels of a name"),
            ("*://app.example", "* stands for the first labels of a name"),
            ("https://app.*", "* stands for the first labels of a name"),
            ("https://app*.example", "* stands for the first labels of a name"),
            ("https://*app.example", "* stands for the first labels of a name"),
            ("https://*.*.example", "* stands for the first labels of a name"),
            ("https://*.127.0.0.1", "* stands for the first labels of a name"),
            ("https://app.example:*", "* stands for the first labels of a name"),
            ("file:///page.html", "write null"),
            ("about:blank", "write null"),
            ("data:text/html,x", "write null"),
            ("https://bücher.example", "in ASCII, write that (xn--…)"),
            ("http://127.1:8080", "as four numbers"),
            ("http://2130706433", "as four numbers"),
            ("http://0x7f.0.0.1.0x1", "as four numbers"),
            ("https://", "expected SCHEME://"),
            ("https://*.", "expected SCHEME://"),
            ("https://:443", "expected SCHEME://"),
            ("https://app.example:x", "expected SCHEME://"),
            ("https://app.example:65536", "expected SCHEME://"),
            ("1http://app.example", "expected SCHEME://"),
            ("://app.example", "expected SCHEME://"),
        ] {
            let error = text.parse::<AllowedOrigin>().unwrap_err().to_string();
            let begin = format!("{text:?} is not an origin: ");
            assert!(error.starts_with(&begin) && error.contains(advice), "{text}: {error}");
        }
        let long = "x".repeat(5000).parse::<AllowedOrigin>().unwrap_err().to_string();
        assert!(long.len() < 400, "{long}");
    }

    #[test]
    fn names_with_an_ending_are_allowed_as_hosts_are() {
        for (pattern, origin, is_allowed) in [
            ("https://*.example.org", "https://a.example.org", true),
            ("https://*.example.org", "https://a.b.Example.org", true),
            ("https://*.example.org", "https://a.example.org:443", true),
            ("https://*.example.org", "https://example.org", false),
            ("https://*.example.org", "https://evilexample.org", false),
            ("https://*.example.org", "https://a.example.org.evil", false),
            ("https://*.example.org", "https://a.example.org:8443", false),
            ("https://*.example.org", "http://a.example.org", false),
            ("https://*.example.org:8443", "https://a.example.org:8443", true),
            ("https://*.example.org:8443", "https://a.example.org", false),
            ("null", "null", true),
            ("null", "file://", false),
            ("file://", "file://", true),
            ("file://", "null", false),
            ("*", "null", true),
            ("https://app.example", "null", false),
        ] {
            let pattern: AllowedOrigin = pattern.parse().unwrap();
            let parsed = Origin::parse(origin);
            let found = pattern.allows(origin.as_bytes(), parsed.as_ref());
            assert_eq!(found, is_allowed, "{pattern} {origin}");
        }
    }
}
