//! The client of a connection or request.

use std::fmt;
use std::net::SocketAddr;

use anemone_hub::Waiter;
use anemone_hub::run::OwnerKey;
use anemone_wire::is_forwarding;
use http::Version;

use crate::owner::{self, Owner};
use crate::peer::{Peer, is_own_user};
use crate::request::fields::{self, Fields};
use crate::request::host::Host;
use crate::request::proxies::{Forwarded, Node, Proxies};
use crate::source::Source;

/// The reason why a client does not count as one of this machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Foreign {
    Elsewhere,
    /// It comes from a trusted proxy, and so from another client.
    Proxy,
    /// It has the address of a trusted proxy, and names no other client.
    ProxyAddress,
    /// It asks for a host that is not a loopback one.
    Host,
    /// It has a field with which a proxy reports its client.
    Forwarded,
    /// It uses HTTP/1.0, which proxies use to forward requests.
    Version,
    /// It has `Connection: upgrade` without an upgrade.
    Upgrade,
    /// It comes from the page of another host.
    Referer,
    /// It comes from a process of this user, who is neither the server's nor root.
    User(u32),
    /// It has closed its end, so its user is unknown.
    Gone,
    /// The system reports users, but none for this connection.
    UserUnknown,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User(user) => {
                return write!(
                    f,
                    "this one is another user of this machine, {user} (listen = \"unix:PATH\" is a way in for those who \
                     may open that file)"
                );
            }
            Self::Gone => "this one has closed its end, so its user cannot be determined",
            Self::UserUnknown => "the user of this one cannot be determined",
            Self::Elsewhere => "this one is not connected over 127.0.0.1 or ::1, as those are that use http://localhost",
            Self::Proxy => "this one comes through a trusted proxy",
            Self::ProxyAddress => {
                "this one has the address of a trusted proxy, and so may be anyone's (listen_local = \"unix:PATH\" is a way in \
                 for programs on this machine)"
            }
            Self::Host => "this one asks for a host other than localhost",
            Self::Forwarded => "this one has a field of a proxy",
            Self::Version => "this one uses HTTP/1.0, as a proxy does",
            Self::Upgrade => "this one upgrades to nothing, as a proxy does",
            Self::Referer => "this one is a page of another host",
        })
    }
}

/// The client of a request, or of all requests on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Client {
    /// `None` if it is not known.
    address: Option<SocketAddr>,
    foreign: Option<Foreign>,
    /// Its connection, unless that is one of a trusted proxy.
    peer: Option<Peer>,
    /// The number of the connection that its requests come on.
    connection: u64,
}

/// The parts of a request that identify its client.
pub(crate) struct ClientSigns<'a> {
    pub(crate) version: Version,
    pub(crate) host: Option<Host<'a>>,
    pub(crate) fields: Fields<'a>,
}

impl Client {
    /// Returns the client of a connection, before any request.
    pub(crate) fn of_connection(peer: Peer, proxies: &Proxies) -> Self {
        let foreign = match peer {
            _ if proxies.trusts(peer) => Some(Foreign::ProxyAddress),
            _ if peer.is_local() => None,
            _ => Some(Foreign::Elsewhere),
        };
        Self { address: peer.address(), foreign, peer: Some(peer), connection: peer.number() }
    }

    /// Returns the client that a trusted proxy reports.
    pub(crate) fn of_proxy(peer: Peer, said: &Forwarded<'_>) -> Self {
        let address = match said.client {
            Some(Node::Address(address)) => Some(address),
            Some(Node::Hidden) => None,
            None => peer.address(),
        };
        let is_named = said.client.is_some();
        let foreign = if is_named { Foreign::Proxy } else { Foreign::ProxyAddress };
        Self { address, foreign: Some(foreign), peer: None, connection: peer.number() }
    }

    pub(crate) fn of_request(peer: Peer, asked: &ClientSigns<'_>) -> Self {
        let foreign = if peer.is_local() { foreign(asked) } else { Some(Foreign::Elsewhere) };
        Self { address: peer.address(), foreign, peer: Some(peer), connection: peer.number() }
    }

    /// Returns its address; port 0 if that is not known. It may be the address of an untrusted proxy, or of one that
    /// does not report its client.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        self.address
    }

    /// Checks that it is on this machine, belongs to the server's user or root, and is no proxy. Returns the reason
    /// if not.
    ///
    /// Asks the kernel unless that was done before: use [`settled`](Self::settled) clients for frequent checks.
    pub(crate) fn check_local(self) -> Result<(), Foreign> {
        if let Some(foreign) = self.foreign {
            return Err(foreign);
        }
        // The permissions of the Unix socket have decided about its clients.
        let Some(peer) = self.peer.filter(|peer| !peer.is_unix()) else { return Ok(()) };
        match peer.owner() {
            Owner::User(user) if !is_own_user(user) => Err(Foreign::User(user)),
            Owner::Nobody => Err(Foreign::Gone),
            Owner::Unknown if owner::are_reported() => Err(Foreign::UserUnknown),
            Owner::User(_) | Owner::Unknown => Ok(()),
        }
    }

    /// Returns the client with the result of that check.
    pub(crate) fn settled(self) -> Self {
        let asked = Self { peer: self.peer.map(Peer::with_owner), ..self };
        Self { foreign: asked.check_local().err(), ..asked }
    }

    /// Returns the source that limits count it for: its user if it is on this machine and no client of a trusted proxy,
    /// and else its address. `None` if neither is known.
    pub(crate) fn source(self) -> Option<Source> {
        match self.peer {
            Some(peer) => peer.source(),
            None => self.address.map(|address| Source::of(address.ip())),
        }
    }

    /// Returns the owner of what it starts: its source. Clients whose source is not known are one owner, that of the unspecified
    /// address, which no client has.
    pub(crate) fn owner(self) -> OwnerKey {
        OwnerKey(self.source().map_or(0, Source::bits))
    }

    /// Returns the client as one of those who take turns, whose limits hold for exempt clients, too: what waits takes memory.
    pub(crate) fn waiter(self) -> Waiter {
        Waiter { client: Some(self.owner()), connection: self.connection }
    }

    /// Returns the client as one of those who start runs: all exempt clients are one, without a limit of its own.
    pub(crate) fn waiter_for_runs(self) -> Waiter {
        let waiter = self.waiter();
        Waiter { client: waiter.client.filter(|_| !self.is_exempt()), ..waiter }
    }

    /// Returns the source of a client that a trusted proxy has named.
    pub(crate) fn source_by_proxy(self) -> Option<Source> {
        if self.foreign == Some(Foreign::Proxy) { self.source() } else { None }
    }

    /// Returns true for a local client of the server's own user or of root, to whom limits for one client do not apply. Others
    /// may have the rights of local clients, too, if the Unix socket lets them in.
    pub(crate) fn is_exempt(self) -> bool {
        self.check_local().is_ok() && self.peer.is_some_and(Peer::is_own)
    }
}

/// Returns the reason why a request from this machine may be another client's.
///
/// The address is not enough, since a proxy on this machine has a loopback address, too. Many proxies add a field.
/// nginx does not by default: before 1.29.7 it speaks HTTP/1.0, or, if configured for WebSockets, sends `Connection:
/// upgrade` in every request. And the request of a page contains the page's address. A proxy without any of these
/// signs is still recognized if it has its own user.
fn foreign(asked: &ClientSigns<'_>) -> Option<Foreign> {
    let fields = asked.fields;
    let is_upgrade = |field: &[u8]| {
        fields::split(&String::from_utf8_lossy(field), ',')
            .any(|token| token.eq_ignore_ascii_case("upgrade"))
    };
    // A value that is not a page's URL is refused too, since no browser sends it.
    let is_of_this_machine = |referer: &[u8]| {
        let page =
            std::str::from_utf8(referer).ok().and_then(|page| Some(page.split_once("://")?.1));
        page.is_some_and(|page| {
            let end = page.find(['/', '?', '#']).unwrap_or(page.len());
            Host::parse(&page[..end]).is_some_and(|host| host.is_loopback())
        })
    };
    if !asked.host.is_some_and(|host| host.is_loopback()) {
        Some(Foreign::Host)
    } else if fields.names().any(is_forwarding) {
        Some(Foreign::Forwarded)
    } else if asked.version < Version::HTTP_11 {
        Some(Foreign::Version)
    } else if fields.all("connection").any(is_upgrade) && !fields.has("upgrade") {
        Some(Foreign::Upgrade)
    } else if !fields.all("referer").all(is_of_this_machine) {
        Some(Foreign::Referer)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::peer::Door;

    fn of(address: &str, version: Version, fields: &[(&str, &str)]) -> Option<Foreign> {
        let peer = Peer::new(Ok(SocketAddr::new(address.parse().unwrap(), 1)));
        let fields: HeaderMap = fields
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        let host = crate::request::host::of((&fields).into(), version).unwrap();
        Client::of_request(peer, &ClientSigns { version, host, fields: (&fields).into() }).foreign
    }

    const HOST: (&str, &str) = ("host", "localhost:8080");

    fn of_this_machine(fields: &[(&str, &str)]) -> Option<Foreign> {
        of("127.0.0.1", Version::HTTP_11, &[&[HOST], fields].concat())
    }

    #[test]
    fn this_machine_is_told_by_its_addresses() {
        for address in ["127.0.0.1", "127.8.0.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(of(address, Version::HTTP_11, &[HOST]), None, "{address}");
        }
        for address in ["192.168.0.1", "10.0.0.1", "::2", "::ffff:10.0.0.1", "0.0.0.0"] {
            assert_eq!(
                of(address, Version::HTTP_11, &[HOST]),
                Some(Foreign::Elsewhere),
                "{address}"
            );
        }
        let gone = Peer::new(Err(std::io::ErrorKind::NotConnected.into()));
        let client = Client::of_connection(gone, &Proxies::default());
        assert_eq!(client.check_local(), Err(Foreign::Elsewhere));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_user_of_a_connection_stays_known_when_its_client_is_gone() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let unasked = Peer::of(&stream, Door::Common);
        let asked = unasked.with_owner();
        let check = |peer| Client::of_connection(peer, &Proxies::default()).check_local();
        assert_eq!((check(unasked), check(asked)), (Ok(()), Ok(())));
        drop(client);
        assert_eq!((check(unasked), check(asked)), (Err(Foreign::Gone), Ok(())));
        let other = Peer::Owned(stream.peer_addr().unwrap(), 54_321, Door::Common);
        assert_eq!(check(other.with_owner()), Err(Foreign::User(54_321)));
    }

    #[test]
    fn it_asks_for_a_loopback_host() {
        for (host, foreign) in [
            ("LOCALHOST", None),
            ("a.localhost:1", None),
            ("127.0.0.1:8080", None),
            ("[::1]:8080", None),
            ("", Some(Foreign::Host)),
            ("any.example", Some(Foreign::Host)),
            ("localhost.any.example", Some(Foreign::Host)),
            ("10.0.0.1", Some(Foreign::Host)),
        ] {
            assert_eq!(of("127.0.0.1", Version::HTTP_11, &[("host", host)]), foreign, "{host}");
        }
        assert_eq!(of("127.0.0.1", Version::HTTP_2, &[]), Some(Foreign::Host));
    }

    #[test]
    fn a_proxy_that_speaks_for_others_is_not_local() {
        for name in [
            "Forwarded",
            "Via",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X-Forwarded-Proto",
            "X-Forwarded-Anything",
            "X-Forwarded",
            "X-Real-IP",
            "CF-Connecting-IP",
            "CF-Ray",
            "True-Client-IP",
            "X-Client-IP",
            "Client-IP",
            "X-Envoy-External-Address",
            "X-Original-Forwarded-For",
            "Fastly-Client-IP",
            "CDN-Loop",
        ] {
            assert_eq!(of_this_machine(&[(name, "1.2.3.4")]), Some(Foreign::Forwarded), "{name}");
            assert_eq!(of_this_machine(&[(name, "127.0.0.1")]), Some(Foreign::Forwarded), "{name}");
        }
        assert_eq!(of_this_machine(&[("x-form", "1"), ("cookie", "1"), ("te", "trailers")]), None);
    }

    #[test]
    fn a_proxy_that_does_not_say_so_speaks_http_1_0_or_upgrades_everything() {
        assert_eq!(of("127.0.0.1", Version::HTTP_10, &[HOST]), Some(Foreign::Version));
        let upgrade = ("connection", "keep-alive, Upgrade");
        assert_eq!(of_this_machine(&[upgrade]), Some(Foreign::Upgrade));
        assert_eq!(of_this_machine(&[upgrade, ("upgrade", "websocket")]), None);
        assert_eq!(of_this_machine(&[("connection", "close")]), None);
    }

    #[test]
    fn a_page_that_a_proxy_serves_gives_the_proxy_away() {
        for (page, foreign) in [
            ("http://localhost:8080/", None),
            ("http://127.0.0.1:8080", None),
            ("https://wind.example/topics", Some(Foreign::Referer)),
            ("http://localhost@wind.example/", Some(Foreign::Referer)),
            ("//wind.example/", Some(Foreign::Referer)),
            ("", Some(Foreign::Referer)),
        ] {
            assert_eq!(of_this_machine(&[("referer", page)]), foreign, "{page}");
        }
    }
}
