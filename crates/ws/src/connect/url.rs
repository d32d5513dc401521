//! URLs of WebSockets and proxies (RFC 6455 section 3, RFC 3986), and of Unix sockets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use anemone_proto::handshake::base64;

type Schemes = [(&'static str, Security, u16)];

pub(super) const WEB_SOCKET: [(&str, Security, u16); 2] =
    [("ws", Security::Plain, 80), ("wss", Security::Tls, 443)];
pub(super) const PROXY: [(&str, Security, u16); 1] = [("http", Security::Plain, 80)];

/// A parsed URL. None of its parts can add a line to a header.
#[derive(Clone, Eq, PartialEq)]
pub(super) struct Url {
    /// The path of the Unix socket to connect to; the host is then only the name in the request.
    pub(super) socket: Option<PathBuf>,
    pub(super) security: Security,
    pub(super) host: Host,
    pub(super) port: u16,
    is_default_port: bool,
    /// The path and query, percent-encoded, at least `/`.
    pub(super) target: String,
    /// The user name and password, as the value of an `Authorization` field (RFC 7617).
    pub(super) credentials: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Security {
    Plain,
    Tls,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Host {
    Address(IpAddr),
    Name(String),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// An error in a URL. It does not contain the URL, which may hold a password.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The scheme is missing or not supported.
    #[error("scheme must be {expected}")]
    Scheme {
        /// The supported schemes.
        expected: String,
    },
    /// The URL has a control character or a space.
    #[error("character {character:?} at byte {at} is not allowed")]
    Character {
        /// The character.
        character: char,
        /// Its offset in bytes.
        at: usize,
    },
    /// The URL has a fragment, which section 3 forbids; `#` must be written as `%23`.
    #[error("a fragment is not allowed, write # as %23")]
    Fragment,
    /// The host is missing, or neither an ASCII name nor an address.
    #[error("host is not an ASCII name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
    /// The port is not valid.
    #[error("port is not a number from 1 to 65535")]
    Port,
    /// The user name or password is not percent-encoded UTF-8, or has a control character, or the user name has a
    /// colon.
    #[error("user name or password is not well encoded")]
    Credentials,
    /// The path of a Unix socket is missing, or has a zero byte.
    #[error("unix: must be followed by the path of a socket, such as unix:/run/server.sock")]
    Socket,
    /// A proxy's URL has a path or a query.
    #[error("a proxy's URL has no path and no query")]
    ProxyPath,
}

/// Splits the URL of a Unix socket: `unix:SOCKET`, or `unix:SOCKET:/TARGET` for a path and query on the server behind it.
///
/// Returns the path of the socket, which is taken as it is written, and the target, which is empty or begins with a slash.
/// `None` for any other URL. The path of the socket ends at the first `:/`, or at the end; a colon at the end is no part of it.
///
/// ```
/// use anemone_ws::split_unix_url;
///
/// assert_eq!(split_unix_url("unix:/run/a.sock"), Some(("/run/a.sock", "")));
/// assert_eq!(split_unix_url("unix:/run/a.sock:/topics/b?c"), Some(("/run/a.sock", "/topics/b?c")));
/// assert_eq!(split_unix_url("ws://localhost/"), None);
/// ```
#[must_use]
pub fn split_unix_url(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("unix:")?;
    Some(match rest.find(":/") {
        Some(colon) => (&rest[..colon], &rest[colon + 1..]),
        None => (rest.strip_suffix(':').unwrap_or(rest), ""),
    })
}

impl Url {
    /// Parses the URL of a server: that of a WebSocket or of a Unix socket.
    pub(super) fn of_server(text: &str) -> Result<Self, UrlError> {
        let Some((socket, target)) = split_unix_url(text) else {
            return Self::parse(text, &WEB_SOCKET);
        };
        if socket.is_empty() || socket.contains('\0') {
            return Err(UrlError::Socket);
        }
        // Such a server takes no request for another host than its own machine.
        let url = Self::parse(&format!("ws://localhost{target}"), &WEB_SOCKET)?;
        Ok(Self { socket: Some(socket.into()), ..url })
    }

    pub(super) fn parse(text: &str, schemes: &Schemes) -> Result<Self, UrlError> {
        if let Some((at, character)) =
            text.char_indices().find(|(_, char)| char.is_control() || char.is_whitespace())
        {
            return Err(UrlError::Character { character, at });
        }
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let known = schemes.iter().find(|(name, ..)| name.eq_ignore_ascii_case(scheme));
        let Some(&(_, security, default_port)) = known else {
            let names: Vec<&str> = schemes.iter().map(|(name, ..)| *name).collect();
            return Err(UrlError::Scheme { expected: names.join(" or ") });
        };
        if rest.contains('#') {
            return Err(UrlError::Fragment);
        }
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if schemes == PROXY && !matches!(target, "" | "/") {
            return Err(UrlError::ProxyPath);
        }
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = split_port(place)?;
        let port = match port {
            "" => default_port,
            digits => parse_port(digits)?,
        };
        Ok(Self {
            socket: None,
            security,
            host: parse_host(host)?,
            port,
            is_default_port: port == default_port,
            target: encode_target(target),
            credentials: user.map(basic).transpose()?,
        })
    }

    /// Returns the value of the `Host` field, without a default port.
    pub(super) fn authority(&self) -> String {
        match self.is_default_port {
            true => self.host.to_string(),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Splits an authority into the host, with its brackets, and the text after its colon.
fn split_port(place: &str) -> Result<(&str, &str), UrlError> {
    let host_len = match place.starts_with('[') {
        true => place.find(']').ok_or(UrlError::Host)? + 1,
        false => place.find(':').unwrap_or(place.len()),
    };
    match place.split_at(host_len) {
        (host, "") => Ok((host, "")),
        (host, rest) => Ok((host, rest.strip_prefix(':').ok_or(UrlError::Host)?)),
    }
}

fn parse_port(digits: &str) -> Result<u16, UrlError> {
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(port @ 1..) if are_digits => Ok(port),
        _ => Err(UrlError::Port),
    }
}

fn parse_host(host: &str) -> Result<Host, UrlError> {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address: Ipv6Addr = address.parse().map_err(|_| UrlError::Host)?;
        return Ok(Host::Address(address.into()));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match !host.is_empty() && host.len() <= 255 && host.bytes().all(is_name_byte) {
        true => Ok(Host::Name(host.to_ascii_lowercase())),
        false => Err(UrlError::Host),
    }
}

/// Percent-encodes the invalid characters of a path and query (RFC 3986 sections 3.3 and 3.4). A percent sign is
/// taken as part of an encoded character.
fn encode_target(target: &str) -> String {
    let mut encoded = String::with_capacity(target.len() + 1);
    if !target.starts_with('/') {
        encoded.push('/');
    }
    for byte in target.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:@/?".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}

/// Returns the value of an `Authorization` field (RFC 7617).
fn basic(user_info: &str) -> Result<String, UrlError> {
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let (user, password) = (percent_decode(user)?, percent_decode(password)?);
    if user.contains(':') {
        return Err(UrlError::Credentials);
    }
    Ok(format!("Basic {}", base64(format!("{user}:{password}").as_bytes())))
}

fn percent_decode(text: &str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>().ok_or(UrlError::Credentials)?;
        let [Some(high), Some(low)] = digits.map(|digit| char::from(digit).to_digit(16)) else {
            return Err(UrlError::Credentials);
        };
        bytes.push((high << 4 | low) as u8);
        rest = after;
    }
    let decoded = String::from_utf8(bytes).map_err(|_| UrlError::Credentials)?;
    match decoded.chars().any(char::is_control) {
        true => Err(UrlError::Credentials),
        false => Ok(decoded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Url, UrlError> {
        Url::parse(text, &WEB_SOCKET)
    }

    #[test]
    fn the_parts_are_found() {
        let cases = [
            ("ws://example.org", "example.org", 80, "/"),
            ("WS://Example.ORG:80/", "example.org", 80, "/"),
            ("wss://example.org:/a/b?c=d&e", "example.org", 443, "/a/b?c=d&e"),
            ("wss://example.org:8443?q", "example.org:8443", 8443, "/?q"),
            ("ws://127.0.0.1:9001/x", "127.0.0.1:9001", 9001, "/x"),
            ("ws://[::1]:80/", "[::1]", 80, "/"),
            ("wss://[2001:DB8::1]", "[2001:db8::1]", 443, "/"),
            ("ws://a/päth/%20|\\?q={}", "a", 80, "/p%C3%A4th/%20%7C%5C?q=%7B%7D"),
            ("ws://a/x@y:z", "a", 80, "/x@y:z"),
        ];
        for (text, authority, port, target) in cases {
            let url = parse(text).unwrap();
            assert_eq!((url.authority().as_str(), url.port), (authority, port), "{text}");
            assert_eq!(url.target, target);
            assert_eq!(url.security == Security::Tls, text.starts_with("wss"));
        }
    }

    #[test]
    fn what_is_no_web_socket_url_is_refused_with_the_reason() {
        let scheme = UrlError::Scheme { expected: "ws or wss".into() };
        let cases = [
            ("", scheme.clone()),
            ("example.org", scheme.clone()),
            ("http://example.org", scheme.clone()),
            ("ws:example.org", scheme),
            ("ws://a/#part", UrlError::Fragment), // RFC 6455 section 3
            ("ws://a#part", UrlError::Fragment),
            ("ws://", UrlError::Host),
            ("ws:///x", UrlError::Host),
            ("ws://bücher.example/", UrlError::Host),
            ("ws://a%41/", UrlError::Host),
            ("ws://[::1/", UrlError::Host),
            ("ws://[::1]x/", UrlError::Host),
            ("ws://[127.0.0.1]/", UrlError::Host),
            ("ws://a:0/", UrlError::Port),
            ("ws://a:65536/", UrlError::Port),
            ("ws://a:+1/", UrlError::Port),
            ("ws://a:b/", UrlError::Port),
            ("ws://a/x y", UrlError::Character { character: ' ', at: 8 }),
            ("ws://a/\r\nX: y", UrlError::Character { character: '\r', at: 7 }),
            ("ws://a%3ab@c/", UrlError::Credentials),
            ("ws://a%4@c/", UrlError::Credentials),
            ("ws://a%+1b@c/", UrlError::Credentials),
            ("ws://a%0d@c/", UrlError::Credentials),
            ("ws://a%ff@c/", UrlError::Credentials),
        ];
        for (text, error) in cases {
            assert_eq!(parse(text).err(), Some(error), "{text}");
        }
    }

    #[test]
    fn credentials_become_basic_authorization() {
        // The examples of RFC 7617 sections 2 and 2.1.
        let cases = [
            ("ws://Aladdin:open%20sesame@a/", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("ws://test:123%C2%A3@a/", "Basic dGVzdDoxMjPCow=="),
            ("ws://user@a/", "Basic dXNlcjo="),
            ("ws://a@b:c@a/", "Basic YUBiOmM="),
        ];
        for (text, credentials) in cases {
            assert_eq!(parse(text).unwrap().credentials.as_deref(), Some(credentials), "{text}");
        }
        assert_eq!(parse("ws://a/").unwrap().credentials, None);
    }

    #[test]
    fn a_unix_socket_is_told_from_the_target_behind_it() {
        for (text, socket, target) in [
            ("unix:/run/a.sock", "/run/a.sock", "/"),
            ("unix:/run/a.sock:", "/run/a.sock", "/"),
            ("unix:/run/a.sock:/", "/run/a.sock", "/"),
            ("unix:///run/a.sock:/ws?b=c:/d", "///run/a.sock", "/ws?b=c:/d"),
            ("unix:a.sock:/topics/w\u{ed}nd", "a.sock", "/topics/w%C3%ADnd"),
            ("unix:/my files/#1?/a:b.sock:/ws", "/my files/#1?/a:b.sock", "/ws"),
        ] {
            let url = Url::of_server(text).unwrap();
            assert_eq!(url.socket.as_deref(), Some(std::path::Path::new(socket)), "{text}");
            assert_eq!((&*url.target, &*url.authority()), (target, "localhost"), "{text}");
            assert_eq!(url.security, Security::Plain);
        }
        for (text, error) in [
            ("unix:", UrlError::Socket),
            ("unix::/topics/a", UrlError::Socket),
            ("unix:/a\0b", UrlError::Socket),
            ("unix:/a:/b#c", UrlError::Fragment),
            ("unix:/a:/b\r\nX: y", UrlError::Character { character: '\r', at: 16 }),
        ] {
            assert_eq!(Url::of_server(text).err(), Some(error), "{text:?}");
        }
        assert_eq!(Url::of_server("ws://a/b").unwrap().socket, None);
    }

    #[test]
    fn a_proxy_is_a_host_and_a_port() {
        let proxy = |text| Url::parse(text, &PROXY);
        assert_eq!(proxy("http://proxy:3128").unwrap().port, 3128);
        assert_eq!(proxy("http://proxy/").unwrap().port, 80);
        assert_eq!(proxy("http://proxy/x").err(), Some(UrlError::ProxyPath));
        let scheme = UrlError::Scheme { expected: "http".into() };
        assert_eq!(proxy("socks5://proxy").err(), Some(scheme));
    }
}
