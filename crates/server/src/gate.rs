//! What every request goes through, whatever it came by: is it for this server (421), may its page talk to it (403),
//! and whose is it. What that one may do is decided where it is done.

use crate::Problem;
use crate::client::{Asked, Client, Peer};
use crate::fields::Fields;
use crate::handshake::Head;
use crate::host;
use crate::origin::{self, Verdict};
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
    let host = host::of(fields, version)?;
    if let Some(host) = &host {
        site.hosts.check(host)?;
    }
    let verdict = origin::judge(fields, &site.allowed_origins)?;
    let client = Client::of_request(peer, &Asked { version, host, fields });
    Ok(Admitted { client, verdict })
}
