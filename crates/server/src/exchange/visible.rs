//! The right to see lists of other clients.

use crate::request::client::Client;
use crate::site::Site;
use crate::{Kind, Problem, ViewRight};

/// Checks that a client may see what only those on this machine may.
pub(super) fn only_local(client: Client, what: &str) -> Result<(), Problem> {
    client.check_local().map_err(|foreign| {
        let detail = format!("only clients on the server's own machine may see {what}; {foreign}");
        Problem::new(Kind::LocalOnly, detail)
    })
}

/// Checks that a client may see who is connected.
pub(super) fn may_see_connections(site: &Site, client: Client) -> Result<(), Problem> {
    match site.connections_to {
        ViewRight::Anyone => Ok(()),
        ViewRight::Local => only_local(client, "the connections"),
    }
}
