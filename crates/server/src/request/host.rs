//! The host of a request, and the server's own hosts.
//!
//! A page whose host name was pointed at this machine after it was loaded (DNS rebinding) has the same origin as the
//! server, so its browser sends no `Origin`. The name reveals it: it is the page's, and none of the server's. An
//! address cannot be repointed, so a page with an address as its host comes from that address.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use http::uri::Authority;
use http::{HeaderValue, Request, Version, header};

use crate::request::fields::Fields;
use crate::{Kind, Problem};

/// An additional host name of the server: `NAME` or `*.NAME`, which means all names with that ending, optionally with
/// `:PORT` if no other port is allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AllowedHost {
    name: String,
    /// True if it stands for all names that end in a dot and this name.
    is_ending: bool,
    port: Option<u16>,
}

/// An error of a text that is not a host.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is not a host: expected NAME or *.NAME, optionally with :PORT, without a scheme")]
pub struct HostError(String);

impl FromStr for AllowedHost {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let error = || HostError(text.chars().take(80).collect());
        let (rest, is_ending) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let host = Host::parse(rest).ok_or_else(error)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match host.name {
            Name::Text(name) if !name.is_empty() && name.bytes().all(is_name) => {
                Ok(Self { name: name.to_ascii_lowercase(), is_ending, port: host.port })
            }
            Name::Address(address) if !is_ending => {
                Ok(Self { name: address.to_string(), is_ending, port: host.port })
            }
            _ => Err(error()),
        }
    }
}

impl Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = if self.is_ending { "*." } else { "" };
        match self.name.contains(':') {
            true => write!(f, "[{}]", self.name)?, // an IPv6 address
            false => write!(f, "{begin}{}", self.name)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl AllowedHost {
    fn is(&self, host: &Host<'_>) -> bool {
        let is_port = self.port.is_none() || self.port == host.port;
        is_port
            && match host.name {
                Name::Address(address) => !self.is_ending && self.name == address.to_string(),
                Name::Text(name) if self.is_ending => ends_in(name, &self.name),
                Name::Text(name) => name.eq_ignore_ascii_case(&self.name),
            }
    }
}

/// Returns true if `ending` is the last labels of a name, but not all.
pub(crate) fn ends_in(name: &str, ending: &str) -> bool {
    let Some(begin) = name.len().checked_sub(ending.len() + 1) else { return false };
    let (begin, end) = name.as_bytes().split_at(begin);
    !begin.is_empty() && end[0] == b'.' && end[1..].eq_ignore_ascii_case(ending.as_bytes())
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Host<'a> {
    text: &'a str,
    name: Name<'a>,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Name<'a> {
    /// A name, without a dot at its end (RFC 1034 section 3.1).
    Text(&'a str),
    /// An address; IPv4 if it is mapped.
    Address(IpAddr),
}

impl<'a> Host<'a> {
    /// Parses `HOST` or `HOST:PORT`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        // Looks at all bytes: a branch for each costs more than the rest of a bad text.
        if !text.bytes().fold(true, |all, byte| all & IS_OF_A_HOST[usize::from(byte)]) {
            return None;
        }
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address = address.parse::<Ipv6Addr>().ok()?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
                (Name::Address(IpAddr::from(address).to_canonical()), port)
            }
            None => {
                // Searches bytes, since that is faster than to search text this short.
                let (name, port) = match text.bytes().position(|byte| byte == b':') {
                    Some(end) => (&text[..end], Some(&text[end + 1..])),
                    None => (text, None),
                };
                let name = name.strip_suffix('.').unwrap_or(name);
                let may_be_address = name.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
                let address = may_be_address.then(|| name.parse::<Ipv4Addr>().ok()).flatten();
                (address.map_or(Name::Text(name), |address| Name::Address(address.into())), port)
            }
        };
        // An empty port is the default of the scheme (RFC 3986 section 3.2.3).
        let port = match port {
            None | Some("") => None,
            Some(port) => Some(port.parse().ok()?),
        };
        Some(Self { text, name, port })
    }

    /// Returns the text of the request.
    pub(crate) fn as_str(&self) -> &'a str {
        self.text
    }

    /// Returns the name in lower case, or the address without brackets.
    pub(crate) fn name(&self) -> String {
        match self.name {
            Name::Address(address) => address.to_string(),
            Name::Text(name) => name.to_ascii_lowercase(),
        }
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the host with its port, or with this one if it has none.
    pub(crate) fn or_port(self, port: Option<u16>) -> Self {
        Self { port: self.port.or(port), ..self }
    }

    /// Returns the address, if it is one; port 0 if it has none.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self.name {
            Name::Address(address) => Some(SocketAddr::new(address, self.port.unwrap_or(0))),
            Name::Text(_) => None,
        }
    }

    /// Returns true if it differs only in case.
    pub(crate) fn is_same(&self, other: &Host<'_>) -> bool {
        self.text.eq_ignore_ascii_case(other.text)
    }

    /// Returns true if it can only be this machine (RFC 6761 section 6.3).
    pub(crate) fn is_loopback(&self) -> bool {
        match self.name {
            Name::Address(address) => address.is_loopback(),
            Name::Text(name) => {
                name.eq_ignore_ascii_case("localhost") || ends_in(name, "localhost")
            }
        }
    }
}

impl Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Name::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Name::Address(address) => address.fmt(f),
            Name::Text(name) => name.chars().take(80).try_for_each(|char| write!(f, "{char}")),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Hosts {
    /// The addresses on which it listens; an unspecified one means every address.
    addresses: Vec<IpAddr>,
    allowed: Vec<AllowedHost>,
}

impl Hosts {
    /// Creates the hosts of a server that listens on these addresses. The names of its machine are its own if it listens
    /// everywhere.
    pub(crate) fn new(
        addresses: impl IntoIterator<Item = SocketAddr>,
        mut allowed: Vec<AllowedHost>,
        machine_names: &[String],
    ) -> Self {
        let addresses = addresses.into_iter().map(|address| address.ip().to_canonical());
        let addresses: Vec<_> = addresses.collect();
        if addresses.iter().any(IpAddr::is_unspecified) {
            allowed.extend(machine_names.iter().filter_map(|name| name.parse().ok()));
        }
        Self { addresses, allowed }
    }

    /// Checks that a host is the server's own, or allowed.
    pub(crate) fn check(&self, host: &Host<'_>) -> Result<(), Problem> {
        let is_own = |own: &IpAddr| match host.name {
            // Behind a forwarded port it is not one of this machine's addresses. An address cannot be repointed,
            // though.
            Name::Address(address) => own.is_unspecified() || *own == address,
            Name::Text(_) => false,
        };
        if host.is_loopback()
            || self.addresses.iter().any(is_own)
            || self.allowed.iter().any(|allowed| allowed.is(host))
        {
            return Ok(());
        }
        let detail = format!(
            "the request is for {host}, which is not one of this server's names; if it should be, set \
             allow_hosts = [\"{host}\"], or --allow-host {host}"
        );
        Err(Problem::new(Kind::Misdirected, detail))
    }
}

/// Returns the host of a request; `None` if it has none, or an empty one. Old requests and those of HTTP/2 may have none, but
/// all browsers send one.
pub(crate) fn of(fields: Fields<'_>, version: Version) -> Result<Option<Host<'_>>, Problem> {
    let mut hosts = fields.all("host");
    let wrong = match (hosts.next(), hosts.next()) {
        (None, _) if version != Version::HTTP_11 => return Ok(None),
        (None, _) => "the field Host is missing",
        (Some(_), Some(_)) => "the field Host appears twice",
        (Some(b""), None) => return Ok(None),
        (Some(host), None) => match str::from_utf8(host).ok().and_then(Host::parse) {
            Some(host) => return Ok(Some(host)),
            None => "the field Host is not HOST or HOST:PORT",
        },
    };
    Err(Problem::new(Kind::BadHost, wrong))
}

/// Lets the host in a request's target override its field (RFC 9112 section 3.2.2, RFC 9113 section 8.3.1).
pub(crate) fn take_from_target<B>(request: &mut Request<B>) -> Result<(), Problem> {
    let Some(host) = request.uri().authority().map(Authority::as_str) else { return Ok(()) };
    of(request.headers().into(), request.version()).map(drop)?;
    let (host, rest) = (HeaderValue::try_from(host), request.uri().path_and_query().cloned());
    if let Ok(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
    if let Some(rest) = rest {
        *request.uri_mut() = rest.into();
    }
    Ok(())
}

/// True for each byte that may stand in a host and port (RFC 3986 section 3.2). Delimiters, user names and characters
/// outside of URIs are excluded.
static IS_OF_A_HOST: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], b'!');
    while byte <= b'~' {
        table[byte as usize] = !matches!(
            byte,
            b'/' | b'?'
                | b'#'
                | b'@'
                | b'\\'
                | b'"'
                | b'<'
                | b'>'
                | b'^'
                | b'`'
                | b'{'
                | b'|'
                | b'}'
        );
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn an_allowed_host_is_shown_as_it_is_said() {
        for text in ["a.example", "*.a.example", "a.example:81", "192.0.2.1:81", "[2001:db8::1]:81"]
        {
            assert_eq!(text.parse::<AllowedHost>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_host_is_there_once_and_can_be_one() {
        let is_fine = |version, hosts: &[&str]| {
            let mut fields = HeaderMap::new();
            for host in hosts {
                fields.append("host", HeaderValue::try_from(*host).unwrap());
            }
            of((&fields).into(), version).is_ok()
        };
        for host in ["", "a", "a.example:8080", "127.0.0.1:1", "[::1]:8080", "a_b", "xn--4ca%20~"] {
            assert!(is_fine(Version::HTTP_11, &[host]), "{host:?}");
        }
        for hosts in [
            &[][..],
            &["a", "a"],
            &["a b"],
            &["a/b"],
            &["user@a"],
            &["a?b"],
            &["a#b"],
            &["é"],
            &["http://a"],
            &["a:b"],
            &["a:65536"],
            &["[::1"],
            &["[::1]8080"],
            &["[a]"],
            &["::1"],
        ] {
            assert!(!is_fine(Version::HTTP_11, hosts), "{hosts:?}");
        }
        assert!(is_fine(Version::HTTP_10, &[]) && is_fine(Version::HTTP_2, &[]));
        assert!(!is_fine(Version::HTTP_10, &["a", "b"]));
    }

    fn accepts(listen: &str, allowed: &[&str], host: &str) -> bool {
        let allowed = allowed.iter().map(|host| host.parse().unwrap()).collect();
        let machine_names = ["box".to_owned(), "box.local".to_owned()];
        let hosts = Hosts::new([listen.parse().unwrap()], allowed, &machine_names);
        hosts.check(&Host::parse(host).unwrap()).is_ok()
    }

    #[test]
    fn loopback_and_where_it_listens_are_its_own() {
        for host in [
            "localhost",
            "LOCALHOST:1",
            "localhost.",
            "a.localhost:1",
            "127.0.0.1",
            "127.8.0.9:80",
            "[::1]:1",
            "[::ffff:127.0.0.1]",
            "192.168.0.7:9",
        ] {
            assert!(accepts("192.168.0.7:8080", &[], host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "alocalhost",
            ".localhost",
            "192.168.0.8",
            "0.0.0.0",
            "2130706433",
            "0x7f.1",
            "127.1",
            "[::2]",
            "192.168.0.7.evil.example",
        ] {
            assert!(!accepts("192.168.0.7:8080", &[], host), "{host}");
        }
    }

    #[test]
    fn listening_everywhere_makes_every_address_its_own_and_the_names_of_the_machine() {
        for listen in ["0.0.0.0:1", "[::]:1"] {
            for (host, is_own) in [
                ("192.0.2.1:8080", true),
                ("[2001:db8::1]", true),
                ("box:8080", true),
                ("Box.local:8080", true),
                ("box.local.", true),
                ("a.box.local", false),
                ("box.example", false),
                ("evil.example", false),
            ] {
                assert_eq!(accepts(listen, &[], host), is_own, "{listen} {host}");
            }
        }
        for host in ["box", "box.local"] {
            assert!(!accepts("192.168.0.7:1", &[], host), "{host}");
        }
    }

    #[test]
    fn a_name_is_allowed_as_it_is_said() {
        let listen = "127.0.0.1:1";
        for (allowed, host, is_own) in [
            ("wind.example", "WIND.example:8443", true),
            ("wind.example", "wind.example.", true),
            ("wind.example", "a.wind.example", false),
            ("wind.example", "wind.example.evil", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "a.b.Example.org:1", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "evilexample.org", false),
            ("wind.example:8443", "wind.example:8443", true),
            ("wind.example:8443", "wind.example", false),
            ("wind.example:8443", "wind.example:8444", false),
            ("192.0.2.1", "192.0.2.1:8080", true),
            ("[2001:db8::1]:1", "[2001:db8:0::1]:1", true),
        ] {
            assert_eq!(accepts(listen, &[allowed], host), is_own, "{allowed} {host}");
        }
        for text in
            ["", "*", "*.", "a*", "*.127.0.0.1", "http://a", "a/", "a:x", "a b", "é", "*.*.a"]
        {
            assert!(text.parse::<AllowedHost>().is_err(), "{text:?}");
        }
    }
}
