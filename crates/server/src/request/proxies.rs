//! Trusted proxies: their reports about the client and the original request (RFC 7239, and the older `X-Forwarded-`
//! fields).
//!
//! Each proxy appends to the field, so the last entry is that of the proxy at the other end. Entries left of the
//! first address that is no trusted proxy's can be forged, and are ignored.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::peer::Peer;
use crate::reply::problem::excerpt;
use crate::request::fields::Fields;
use crate::request::host::Host;
use crate::{Kind, Problem};

/// The most proxies, or entries like them, in one request.
const HOPS_MAX: usize = 32;

/// Trusted proxies: `ADDRESS`, or `ADDRESS/BITS` for all addresses with the same first bits, or `unix` for all
/// clients of the Unix socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TrustedProxy(Range);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Range {
    Unix,
    Addresses(IpAddr, u32),
}

/// An error of a text that is not a proxy.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is not a proxy's address: expected IP or IP/BITS, such as 10.0.0.0/8, or unix")]
pub struct TrustedProxyError(String);

impl FromStr for TrustedProxy {
    type Err = TrustedProxyError;

    fn from_str(text: &str) -> Result<Self, TrustedProxyError> {
        let parse = || {
            if text == "unix" {
                return Some(Self(Range::Unix));
            }
            let (address, bits) = match text.split_once('/') {
                Some((address, bits)) => (address, Some(bits.parse().ok()?)),
                None => (text, None),
            };
            let address: IpAddr = address.parse().ok()?;
            let bits_max = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.unwrap_or(bits_max);
            (bits <= bits_max).then_some(Self(Range::Addresses(address, bits)))
        };
        parse().ok_or_else(|| TrustedProxyError(text.chars().take(80).collect()))
    }
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Range::Unix => f.write_str("unix"),
            Range::Addresses(address, bits) => {
                let bits_max = if address.is_ipv4() { 32 } else { 128 };
                match bits == bits_max {
                    true => write!(f, "{address}"),
                    false => write!(f, "{address}/{bits}"),
                }
            }
        }
    }
}

impl TrustedProxy {
    fn is(&self, address: IpAddr) -> bool {
        let Range::Addresses(own, bits) = self.0 else { return false };
        match (own, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= bits
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= bits
            }
            _ => false,
        }
    }
}

impl TrustedProxy {
    /// Returns `IPv4` or `IPv6` if these are all addresses of that kind: then every client can choose its address.
    #[must_use]
    pub fn everybody(proxies: &[Self]) -> Option<&'static str> {
        let kinds = [("IPv4", IpAddr::is_ipv4 as fn(&IpAddr) -> bool), ("IPv6", IpAddr::is_ipv6)];
        let is_all = |is_kind: fn(&IpAddr) -> bool| {
            let own = proxies.iter().filter_map(|proxy| match proxy.0 {
                Range::Addresses(address, bits) if is_kind(&address) => Some((address, bits)),
                _ => None,
            });
            let begins = own.map(|(address, bits)| match address {
                IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, bits),
                IpAddr::V6(address) => (address.to_bits(), bits),
            });
            has_all(&begins.collect::<Vec<_>>(), 0, 0)
        };
        kinds.into_iter().find(|(_, is_kind)| is_all(*is_kind)).map(|(name, _)| name)
    }
}

/// Returns true if every address that begins with these bits is in one of the ranges.
fn has_all(ranges: &[(u128, u32)], begin: u128, bits: u32) -> bool {
    let is_same = |one: u128, bits: u32| (one ^ begin).leading_zeros() >= bits;
    if ranges.iter().any(|&(own, of)| of <= bits && is_same(own, of)) {
        return true;
    }
    // If no range is smaller, there is none for either half. So each step goes towards a range.
    ranges.iter().any(|&(own, of)| of > bits && is_same(own, bits))
        && has_all(ranges, begin, bits + 1)
        && has_all(ranges, begin | 1 << (127 - bits), bits + 1)
}

#[derive(Debug, Default)]
pub(crate) struct Proxies(Vec<TrustedProxy>);

/// The reports of proxies about a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forwarded<'a> {
    /// The client of the outermost trusted proxy. `None` if no proxy reports it; port 0 if there is none.
    pub(crate) client: Option<Node>,
    /// The hosts that trusted proxies were asked for, the outermost first.
    pub(crate) hosts: Vec<Host<'a>>,
    /// The scheme with which the outermost was asked: `http` or `https`.
    pub(crate) scheme: Option<&'static str>,
    /// The port at which it was asked, if it tells that in a field of its own.
    pub(crate) port: Option<u16>,
}

/// A node of RFC 7239 section 6.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Node {
    Address(SocketAddr),
    /// It is deliberately hidden.
    Hidden,
}

impl Proxies {
    pub(crate) fn new(trusted: Vec<TrustedProxy>) -> Self {
        Self(trusted)
    }

    pub(crate) fn trusts(&self, peer: Peer) -> bool {
        match peer {
            _ if peer.is_direct() => false,
            Peer::Unix(..) => self.0.contains(&TrustedProxy(Range::Unix)),
            _ => peer.address().is_some_and(|address| self.has(address.ip())),
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|proxy| proxy.is(address))
    }

    /// Reads the fields of a trusted proxy. If the old and the new fields report the same thing, they must agree: a
    /// proxy that knows only one kind forwards whatever its client says in the other.
    pub(crate) fn read<'a>(&self, fields: Fields<'a>) -> Result<Forwarded<'a>, Problem> {
        let (old, new) = (self.old(fields)?, self.standard(fields)?);
        let ip = |said: &Forwarded<'_>| match said.client {
            Some(Node::Address(address)) => Some(address.ip()),
            _ => None,
        };
        let (mut old, new) = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            (said, None) | (None, said) => return Ok(said.unwrap_or_default()),
        };
        let is_same_host = match (old.hosts.first(), new.hosts.first()) {
            (Some(old), Some(new)) => old.is_same(new),
            _ => true,
        };
        let is_same_scheme =
            old.scheme.is_none() || new.scheme.is_none() || old.scheme == new.scheme;
        let is_same_client = old.client.is_none() || new.client.is_none() || ip(&old) == ip(&new);
        if !(is_same_client && is_same_host && is_same_scheme) {
            return Err(bad("Forwarded and the X-Forwarded fields contradict each other"));
        }
        old.client = old.client.or(new.client);
        old.scheme = old.scheme.or(new.scheme);
        old.hosts.extend(new.hosts);
        Ok(old)
    }

    /// Reads `X-Forwarded-For`, `-Host`, `-Proto` and `-Port`.
    fn old<'a>(&self, fields: Fields<'a>) -> Result<Option<Forwarded<'a>>, Problem> {
        let names =
            ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port"];
        let [nodes, hosts, schemes, ports] = names.map(|name| items(fields, name));
        let (nodes, hosts, schemes, ports) = (nodes?, hosts?, schemes?, ports?);
        if [&nodes, &hosts, &schemes, &ports].iter().all(|items| items.is_empty()) {
            return Ok(None);
        }
        let (client, hops) = self.walk(nodes.into_iter().map(Some))?;
        // Some proxies append to these and some replace them, so there may be fewer.
        let from = |count: usize| count.saturating_sub(hops + 1);
        let hosts = hosts[from(hosts.len())..].iter().map(|host| parse_host(host));
        let scheme = schemes.get(from(schemes.len())).map(|scheme| parse_scheme(scheme));
        let port = ports.get(from(ports.len())).map(|port| parse_port(port));
        Ok(Some(Forwarded {
            client,
            hosts: hosts.collect::<Result<_, _>>()?,
            scheme: scheme.transpose()?,
            port: port.transpose()?,
        }))
    }

    /// Reads `Forwarded`.
    fn standard<'a>(&self, fields: Fields<'a>) -> Result<Option<Forwarded<'a>>, Problem> {
        // RFC 7239 section 4 lets a proxy append to the field, or add another. If a proxy added its own before its
        // client's, the client's would count, so only a single field is accepted.
        if fields.all("forwarded").nth(1).is_some() {
            return Err(bad(
                "the field Forwarded appears twice, and the server cannot know which one is the proxy's own; \
                 have the first proxy remove its clients' field, and the proxies after it append to the one \
                 field",
            ));
        }
        let elements = items(fields, "forwarded")?;
        if elements.is_empty() {
            return Ok(None);
        }
        let elements = elements.into_iter().map(Element::parse).collect::<Result<Vec<_>, _>>()?;
        let (client, hops) = self.walk(elements.iter().map(|element| element.node))?;
        let own = &elements[elements.len().saturating_sub(hops + 1)..];
        let hosts = own.iter().filter_map(|element| element.host).map(parse_host);
        let scheme = own.first().and_then(|element| element.scheme).map(parse_scheme);
        Ok(Some(Forwarded {
            client,
            hosts: hosts.collect::<Result<_, _>>()?,
            scheme: scheme.transpose()?,
            port: None, // its host has it
        }))
    }

    /// Returns the first node from the right that is no trusted proxy, and the number of proxies right of it.
    fn walk<'a>(
        &self,
        nodes: impl DoubleEndedIterator<Item = Option<&'a str>>,
    ) -> Result<(Option<Node>, usize), Problem> {
        let mut last = (None, 0);
        for (hops, node) in nodes.rev().enumerate() {
            let node = node.map_or(Ok(Node::Hidden), parse_node)?;
            last = (Some(node), hops);
            match node {
                Node::Address(address) if self.has(address.ip()) => {}
                _ => break,
            }
        }
        Ok(last)
    }
}

/// An element of `Forwarded` (RFC 7239 section 4).
#[derive(Default)]
struct Element<'a> {
    node: Option<&'a str>,
    host: Option<&'a str>,
    scheme: Option<&'a str>,
}

impl<'a> Element<'a> {
    fn parse(text: &'a str) -> Result<Self, Problem> {
        let mut element = Self::default();
        for pair in split(text, ';')?.into_iter().filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| bad("Forwarded has a pair without ="))?;
            // Section 4 allows no space around `=`.
            if name.ends_with(char::is_whitespace) || value.starts_with(char::is_whitespace) {
                return Err(bad("Forwarded has space around ="));
            }
            let place = match &*name.to_ascii_lowercase() {
                "for" => &mut element.node,
                "host" => &mut element.host,
                "proto" => &mut element.scheme,
                _ => continue,
            };
            let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            if place.replace(bare.unwrap_or(value)).is_some() {
                return Err(bad("Forwarded has a parameter twice"));
            }
        }
        Ok(element)
    }
}

fn items<'a>(fields: Fields<'a>, name: &'static str) -> Result<Vec<&'a str>, Problem> {
    let mut items = Vec::new();
    for field in fields.all(name) {
        let text = str::from_utf8(field).map_err(|_| bad("it is not text"))?;
        items.extend(split(text, ',')?.into_iter().filter(|item| !item.is_empty()));
        if items.len() > HOPS_MAX {
            return Err(bad("it was forwarded too many times"));
        }
    }
    Ok(items)
}

/// Splits a text at separators outside of quotation marks.
fn split(text: &str, separator: char) -> Result<Vec<&str>, Problem> {
    let mut is_quoted = false;
    let parts = text.split(|char| {
        is_quoted ^= char == '"';
        char == separator && !is_quoted
    });
    let parts = parts.map(str::trim).collect();
    // No address and no host has an escaped character.
    if is_quoted || text.contains('\\') {
        Err(bad("a quoted string does not end"))
    } else {
        Ok(parts)
    }
}

fn parse_node(text: &str) -> Result<Node, Problem> {
    let wrong = || bad(&format!("{:?} is not an address", excerpt(text, 60)));
    if text.eq_ignore_ascii_case("unknown") || text.starts_with('_') {
        return Ok(Node::Hidden);
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(Node::Address(SocketAddr::new(IpAddr::from(address).to_canonical(), 0)));
    }
    // The port may be hidden, too.
    let (text, is_hidden) = match text.rsplit_once(":_") {
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let address = Host::parse(text).and_then(|host| host.address()).ok_or_else(wrong)?;
    Ok(Node::Address(if is_hidden { SocketAddr::new(address.ip(), 0) } else { address }))
}

fn parse_host(text: &str) -> Result<Host<'_>, Problem> {
    Host::parse(text).ok_or_else(|| bad("the host it was sent to is not valid"))
}

fn parse_scheme(text: &str) -> Result<&'static str, Problem> {
    let schemes = [("http", "http"), ("https", "https"), ("ws", "http"), ("wss", "https")];
    let known = schemes.into_iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    known.map(|(_, scheme)| scheme).ok_or_else(|| bad("its scheme is neither http nor https"))
}

fn parse_port(text: &str) -> Result<u16, Problem> {
    text.parse().map_err(|_| bad("the port it was sent to is not a number from 0 to 65535"))
}

fn bad(detail: &str) -> Problem {
    Problem::new(
        Kind::BadForwarding,
        format!("what the proxy says about this request is not valid: {detail}"),
    )
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn a_trusted_proxy_is_shown_as_it_is_said() {
        for text in ["unix", "127.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32"] {
            assert_eq!(text.parse::<TrustedProxy>().unwrap().to_string(), text);
        }
    }

    /// Client, first host and scheme, with 10.0.0.0/8 and 2001:db8::/32 trusted.
    fn read(fields: &[(&str, &str)]) -> Result<(String, String, String), String> {
        let proxies =
            Proxies::new(["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().unwrap()).into());
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            let name: http::HeaderName = name.parse().unwrap();
            map.append(name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let said = proxies.read((&map).into()).map_err(|problem| problem.detail().to_owned())?;
        let client = match said.client {
            Some(Node::Address(address)) => address.to_string(),
            Some(Node::Hidden) => "hidden".to_owned(),
            None => String::new(),
        };
        let host = said.hosts.first().map(ToString::to_string).unwrap_or_default();
        Ok((client, host, said.scheme.unwrap_or_default().to_owned()))
    }

    #[test]
    fn the_port_is_that_of_the_outermost_proxy_that_is_trusted() {
        let port = |client: &str, port: &str| {
            let proxies = Proxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
            let fields = [("x-forwarded-for", client), ("x-forwarded-port", port)];
            let fields = fields
                .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
            proxies.read((&HeaderMap::from_iter(fields)).into()).map(|said| said.port)
        };
        for (client, ports, expected) in [
            ("1.2.3.4", "8443", Some(8443)),
            ("1.2.3.4, 10.0.0.1", "8443, 80", Some(8443)),
            ("1.1.1.1, 1.2.3.4", "1, 8443", Some(8443)),
            ("1.2.3.4", "", None),
        ] {
            assert_eq!(port(client, ports).unwrap(), expected, "{client} {ports}");
        }
        for ports in ["x", "-1", "65536", "80x"] {
            let problem = port("1.2.3.4", ports).unwrap_err();
            assert!(problem.detail().contains("the port it was sent to"), "{}", problem.detail());
        }
    }

    fn client(name: &str, value: &str) -> String {
        read(&[(name, value)]).unwrap().0
    }

    #[test]
    fn the_first_from_the_right_who_is_no_proxy_is_the_client() {
        for (value, expected) in [
            ("192.0.2.1", "192.0.2.1:0"),
            ("192.0.2.1:99", "192.0.2.1:99"),
            ("127.0.0.1, 192.0.2.1", "192.0.2.1:0"),
            ("nonsense, 192.0.2.1, 10.0.0.2, 10.9.9.9", "192.0.2.1:0"),
            ("10.0.0.1, 10.0.0.2", "10.0.0.1:0"),
            ("2001:db9::7", "[2001:db9::7]:0"),
            ("[2001:db9::7]:5, 2001:db8::1", "[2001:db9::7]:5"),
            ("::ffff:192.0.2.1", "192.0.2.1:0"),
            ("127.0.0.1, unknown, 10.0.0.1", "hidden"),
            ("", ""),
        ] {
            assert_eq!(client("x-forwarded-for", value), expected, "{value}");
        }
        let twice = [("x-forwarded-for", "127.0.0.1"), ("x-forwarded-for", "192.0.2.1, 10.0.0.1")];
        assert_eq!(read(&twice).unwrap().0, "192.0.2.1:0");
        for (value, expected) in [
            ("for=192.0.2.1", "192.0.2.1:0"),
            ("For=\"[2001:db9::7]:_x\";proto=https;by=_me", "[2001:db9::7]:0"),
            ("for=127.0.0.1, for=192.0.2.1;ext=\"a,b;c\", for=10.0.0.1", "192.0.2.1:0"),
            ("for=127.0.0.1, for=_secret", "hidden"),
            ("proto=https ; for=192.0.2.1 , for=10.0.0.1", "192.0.2.1:0"),
            ("for=127.0.0.1, proto=https", "hidden"),
        ] {
            assert_eq!(client("forwarded", value), expected, "{value}");
        }
    }

    #[test]
    fn host_and_scheme_are_of_the_outermost_proxy_that_is_trusted() {
        let said = read(&[(
            "forwarded",
            "for=1.1.1.1;host=evil, for=1.2.3.4;host=a.example;proto=https, for=10.0.0.1;host=b",
        )]);
        assert_eq!(said.unwrap(), ("1.2.3.4:0".into(), "a.example".into(), "https".into()));
        let said = read(&[
            ("x-forwarded-for", "1.1.1.1, 1.2.3.4"),
            ("x-forwarded-host", "evil, a.example"),
            ("x-forwarded-proto", "https"),
        ]);
        assert_eq!(said.unwrap(), ("1.2.3.4:0".into(), "a.example".into(), "https".into()));
    }

    #[test]
    fn what_is_said_twice_is_the_same_or_refused() {
        let both = |old: &'static str, new| read(&[("x-forwarded-for", old), ("forwarded", new)]);
        assert_eq!(both("1.2.3.4", "for=1.2.3.4;proto=https").unwrap().2, "https");
        // A proxy that only knows the one passes on what its client made up of the other.
        assert!(both("1.2.3.4", "for=127.0.0.1").is_err());
        assert!(read(&[("x-forwarded-host", "a"), ("forwarded", "host=b")]).is_err());
        assert!(read(&[("x-forwarded-proto", "http"), ("forwarded", "proto=https")]).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let many = "10.0.0.1,".repeat(33);
        for (name, value) in [
            ("x-forwarded-for", "nonsense"),
            ("x-forwarded-for", "1.2.3.4, nonsense, 10.0.0.1"),
            ("x-forwarded-for", "1.2.3.4:port"),
            ("x-forwarded-for", "\"1.2.3.4"),
            ("x-forwarded-for", "é"),
            ("x-forwarded-for", &many),
            ("x-forwarded-host", "a/b"),
            ("x-forwarded-host", "me@a"),
            ("x-forwarded-proto", "ftp"),
            ("forwarded", "for"),
            ("forwarded", "for=\"1.2.3.4"),
            ("forwarded", "for = 1.2.3.4"),
            ("forwarded", "for= 1.2.3.4"),
            ("forwarded", "ext =a;for=1.2.3.4"),
            ("forwarded", "for=1.2.3.4;for=127.0.0.1"),
            ("forwarded", "for=\"1.2\\.3.4\""),
        ] {
            assert!(read(&[(name, value)]).is_err(), "{name}: {value}");
        }
        assert!(read(&[("forwarded", "for=1.2.3.4"), ("forwarded", "for=10.0.0.1")]).is_err());
    }

    #[test]
    fn proxies_are_told_by_the_bits_of_their_address() {
        let trusts = |range: &str, address: &str| {
            range.parse::<TrustedProxy>().unwrap().is(address.parse().unwrap())
        };
        assert!(trusts("10.1.0.0/16", "10.1.255.255") && !trusts("10.1.0.0/16", "10.2.0.0"));
        assert!(trusts("127.0.0.1", "127.0.0.1") && !trusts("127.0.0.1", "127.0.0.2"));
        assert!(trusts("0.0.0.0/0", "9.9.9.9") && !trusts("0.0.0.0/0", "::1"));
        assert!(
            trusts("2001:db8::/33", "2001:db8::1") && !trusts("2001:db8::/33", "2001:db8:8000::")
        );
        for text in ["", "a", "10.0.0.0/33", "10.0.0.0/", "::/129", "10.0.0.0/-1", "10.0.0.1:80"] {
            assert!(text.parse::<TrustedProxy>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_that_has_everybody_is_known_in_whatever_pieces() {
        let everybody = |list: &[&str]| {
            let list: Vec<TrustedProxy> = list.iter().map(|text| text.parse().unwrap()).collect();
            TrustedProxy::everybody(&list)
        };
        for list in [
            &["0.0.0.0/0"][..],
            &["9.9.9.9/0"],
            &["128.0.0.0/1", "0.0.0.0/1"],
            &["0.0.0.0/2", "unix", "64.0.0.0/2", "192.0.0.0/2", "128.0.0.0/3", "160.0.0.0/3"],
        ] {
            assert_eq!(everybody(list), Some("IPv4"), "{list:?}");
        }
        assert_eq!(everybody(&["10.0.0.0/8", "::/0"]), Some("IPv6"));
        assert_eq!(everybody(&["8000::/1", "::/1"]), Some("IPv6"));
        for list in [
            &[][..],
            &["unix"],
            &["10.0.0.0/8", "fd00::/8"],
            &["0.0.0.0/1"],
            &["0.0.0.0/1", "8000::/1"],
            &["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3"],
            &["0.0.0.0", "::"],
        ] {
            assert_eq!(everybody(list), None, "{list:?}");
        }
    }
}
