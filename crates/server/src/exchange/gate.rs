//! The gate for every request, on any transport: it checks the host (421), the origin of the page (403), the client,
//! and the room for the request (503). Permissions are checked later, where the request is handled.

use std::net::SocketAddr;

use anemone_ws::Memory;

use crate::Problem;
use crate::clients::places::Place;
use crate::clients::refusals::RefusedRequest;
use crate::peer::Peer;
use crate::request::client::{Client, ClientSigns};
use crate::request::fields::Fields;
use crate::request::handshake::Head;
use crate::request::host;
use crate::request::origin::{self, Target, Verdict};
use crate::request::own_path::OwnPath;
use crate::site::Site;

#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) client: Client,
    pub(crate) verdict: Verdict,
}

/// Checks a request by its fields.
pub(crate) fn admit(site: &Site, peer: Peer, head: &Head<'_>) -> Result<Admitted, Problem> {
    let (fields, version) = (head.fields, head.version);
    let host = host::of(fields, version)?;
    let said = if site.proxies.trusts(peer) { Some(site.proxies.read(fields)?) } else { None };
    // All forwarded hosts are checked: a proxy may forward a field of its client, but it also names its own host.
    let forwarded = said.iter().flat_map(|said| &said.hosts);
    let port = said.as_ref().and_then(|said| said.port);
    let hosts = forwarded.chain(&host);
    hosts.clone().try_for_each(|host| site.hosts.check(&host.or_port(port)))?;
    let scheme = said.as_ref().and_then(|said| said.scheme);
    let target = Target { scheme, host: hosts.copied().next(), port };
    let verdict = match origin::validate(fields, &target, &site.allowed_origins) {
        Err(refused) if is_for_any_page(site, head) => {
            // An origin alone may be the server's own, if a proxy replaces `Host`.
            if fields.has("origin") && origin::is_of_another_origin(fields) {
                let asked = address_of(site, peer, fields);
                let asked = RefusedRequest::request(asked, head.method, head.path);
                site.refusals.note_withheld(&refused, asked);
            }
            Verdict::Same
        }
        verdict => verdict?,
    };
    let client = match &said {
        Some(said) => Client::of_proxy(peer, said),
        None => Client::of_request(peer, &ClientSigns { version, host, fields }),
    };
    Ok(Admitted { client, verdict })
}

/// Returns true if a request is answered whatever its origin. The origin cannot match if a proxy changes `Host`, and
/// a page without its script cannot even report that. The files of a page are the same for everyone. Other reads are
/// allowed if the browser itself says that the page has the same origin. No page of another origin gets access by
/// this: the reply does not allow it.
fn is_for_any_page(site: &Site, head: &Head<'_>) -> bool {
    let is_reading = matches!(head.method, "GET" | "HEAD") && !head.fields.has("upgrade");
    is_reading && (origin::is_of_own_page(head.fields) || site.is_public(head.path))
}

/// Returns the address of a client whose request is refused, as far as it is known.
pub(crate) fn address_of(site: &Site, peer: Peer, fields: Fields<'_>) -> Option<SocketAddr> {
    match site.proxies.read(fields) {
        Ok(said) if site.proxies.trusts(peer) => Client::of_proxy(peer, &said).address(),
        _ => peer.address(),
    }
}

/// Makes room for an admitted request, for as long as it, its reply or its WebSocket lasts. `path` is normalized.
pub(crate) fn room(site: &Site, client: Client, path: &str) -> Result<Option<Place>, Problem> {
    check_memory(&site.memory, path)?;
    site.permits.take_for(client)
}

/// Checks that not too much memory is held. Requests for the server's health are always answered, and report it.
pub(crate) fn check_memory(memory: &Memory, path: &str) -> Result<(), Problem> {
    let is_for_health = || OwnPath::at(path) == Some((OwnPath::HEALTH, None));
    if memory.is_exceeded() && !is_for_health() {
        return Err(Problem::overloaded());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_alone_is_told_when_too_much_is_held() {
        let memory = Memory::new(1);
        let mut held = memory.reserve(1);
        assert!(check_memory(&memory, "/clock").is_ok());
        held.set(2);
        assert!(check_memory(&memory, "/clock").is_err());
        let path = crate::request::path::normal("/%68ealth").ok();
        assert_eq!(path.map(|path| check_memory(&memory, &path).is_ok()), Some(true));
    }
}
