//! Who is at the other end of a connection, as far as its address tells.

use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;

use crate::fields::Fields;

/// Fields with which a proxy says that it speaks for somebody else (RFC 7239, RFC 9110 section 7.6.3).
const FORWARDING: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Client {
    /// `None` when that could not be told.
    address: Option<SocketAddr>,
    /// It was not by the fields of the request that opened the connection.
    is_foreign: bool,
}

impl Client {
    /// As a socket says of its peer. That it cannot any more, for the peer is gone, is no error.
    pub(crate) fn new(peer: std::io::Result<SocketAddr>) -> Self {
        // An IPv4 client comes to an IPv6 socket with a mapped address.
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Self { address: peer.ok().map(canonical), is_foreign: false }
    }

    /// Its address, which may be that of a proxy.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        self.address
    }

    /// The client of a connection that a request with these fields has opened, and on which requests have
    /// no fields of their own: never local, if it is not by those.
    pub(crate) fn of_connection(self, fields: &(impl Fields + ?Sized)) -> Self {
        Self { is_foreign: !self.is_local(fields), ..self }
    }

    /// Whether a request with these fields is made on this very machine and by nobody else's order.
    ///
    /// The address alone does not tell. A proxy on this machine has a loopback address, too; and a page
    /// whose host's name was pointed at this machine after it was loaded (DNS rebinding) is of the same
    /// origin as the server. So what a browser's page sends must name the host by a loopback name.
    pub(crate) fn is_local(self, fields: &(impl Fields + ?Sized)) -> bool {
        let is_loopback = self.address.is_some_and(|address| address.ip().is_loopback());
        let is_forwarded = FORWARDING.into_iter().any(|name| fields.has(name));
        let is_of_a_page = fields.has("origin");
        is_loopback
            && !self.is_foreign
            && !is_forwarded
            && (!is_of_a_page || is_to_loopback(fields))
    }
}

/// Whether the request's host can only be this machine.
fn is_to_loopback(fields: &(impl Fields + ?Sized)) -> bool {
    let Some(Ok(authority)) = fields.first_str("host").map(str::parse::<Authority>) else {
        return false;
    };
    let host = authority.host().to_ascii_lowercase();
    // RFC 6761 section 6.3.
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn is_local(address: &str, fields: &[(&'static str, &str)]) -> bool {
        let fields =
            fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Client::new(Ok(SocketAddr::new(address.parse().unwrap(), 1)))
            .is_local(&fields.collect::<HeaderMap>())
    }

    #[test]
    fn loopback_is_told_by_the_address() {
        for address in ["127.0.0.1", "127.8.0.9", "::1", "::ffff:127.0.0.1"] {
            assert!(is_local(address, &[("host", "wind.example")]), "{address}");
        }
        for address in ["192.168.0.1", "10.0.0.1", "::2", "::ffff:10.0.0.1", "0.0.0.0"] {
            assert!(!is_local(address, &[("host", "localhost")]), "{address}");
        }
        let gone = Client::new(Err(std::io::ErrorKind::NotConnected.into()));
        assert!(!gone.is_local(&HeaderMap::new()));
    }

    #[test]
    fn a_proxy_that_speaks_for_others_is_not_local() {
        for name in FORWARDING {
            assert!(!is_local("127.0.0.1", &[(name, "1.2.3.4")]), "{name}");
        }
    }

    #[test]
    fn a_page_must_know_this_machine_by_a_loopback_name() {
        let page =
            |host| is_local("127.0.0.1", &[("origin", "http://any.example"), ("host", host)]);
        for host in ["localhost", "LOCALHOST:8080", "a.localhost:1", "127.0.0.1:8080", "[::1]:8080"]
        {
            assert!(page(host), "{host}");
        }
        for host in
            ["any.example", "localhost.any.example", "127.0.0.1.any.example", "10.0.0.1", "a b"]
        {
            assert!(!page(host), "{host}");
        }
    }
}
