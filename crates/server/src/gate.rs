//! What every request goes through, whatever it came by: is it for this server (421), may its page talk to it (403),
//! and whose is it. What that one may do is decided where it is done.

use crate::Problem;
use crate::client::{Asked, Client, Peer};
use crate::fields::Fields;
use crate::handshake::Head;
use crate::host;
use crate::host::Host;
use crate::origin::{self, Target, Verdict};
use crate::routes::Site;

/// A request that is let in.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) client: Client,
    pub(crate) verdict: Verdict,
}

/// Judges a request by its fields.
pub(crate) fn admit<F: Fields + ?Sized>(
    site: &Site,
    peer: Peer,
    head: &Head<'_, F>,
) -> Result<Admitted, Problem> {
    let (fields, version) = (head.fields, head.version);
    if site.memory.is_exceeded() && head.path != "/health" {
        return Err(Problem::overloaded());
    }
    let host = host::of(fields, version)?;
    let said = if site.proxies.trust(peer) { Some(site.proxies.read(fields)?) } else { None };
    // All that are named: a proxy may pass on a field that its client made up, but names itself, too.
    let forwarded = said.iter().flat_map(|said| &said.hosts);
    forwarded.clone().chain(&host).try_for_each(|host| site.hosts.check(host))?;
    let target = Target {
        scheme: said.as_ref().and_then(|said| said.scheme),
        host: forwarded.chain(&host).next().map(Host::as_str),
    };
    let verdict = origin::judge(fields, &target, &site.allowed_origins)?;
    let client = match &said {
        Some(said) => Client::of_proxy(peer, said),
        None => Client::of_request(peer, &Asked { version, host, fields }),
    };
    Ok(Admitted { client, verdict })
}
