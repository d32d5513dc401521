//! The right to see lists of other clients.

use crate::request::client::Client;
use crate::site::Site;
use crate::{Kind, Problem, ViewRight};

pub(super) fn may_see_connections(site: &Site, client: Client) -> Result<(), Problem> {
    may_see(site.connections_to, client, "the connections")
}

/// Checks that a client may see the readers of a topic, who are connected, too.
pub(super) fn may_see_readers(site: &Site, client: Client) -> Result<(), Problem> {
    may_see(site.connections_to, client, "the readers")
}

/// Checks that a client may see the list of runs, which has their keys.
pub(super) fn may_see_runs(site: &Site, client: Client) -> Result<(), Problem> {
    may_see(site.runs_to, client, "the runs")
}

fn may_see(right: ViewRight, client: Client, what: &str) -> Result<(), Problem> {
    if right == ViewRight::Anyone {
        return Ok(());
    }
    client.check_local().map_err(|foreign| {
        let detail = format!("only clients on the server's own machine may see {what}; {foreign}");
        Problem::new(Kind::LocalOnly, detail)
    })
}
