//! The resources that all threads are asked for: the connections, and the figures of each thread.

use std::net::SocketAddr;
use std::str::FromStr;

use anemone_hub::UnixTime;
use serde::Serialize;
use serde_json::json;

use super::resource::ResourceValue;
use super::visible::may_see_connections;
use crate::Problem;
use crate::clients::connections::survey::{ConnectionsPage, ListedId};
use crate::clients::readers::in_words;
use crate::request::client::Client;
use crate::request::methods::Wanted;
use crate::request::own_path::OwnPath;
use crate::request::query;
use crate::site::Site;

/// The default and the greatest number of connections in a page.
const CONNECTIONS_LISTED: usize = 100;
const CONNECTIONS_LISTED_MAX: usize = 1_000;

/// A resource that all threads are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Survey {
    /// At most this many connections behind this one, for a client with this address.
    Connections {
        after: Option<ListedId>,
        limit: usize,
        client: Option<SocketAddr>,
    },
    Threads,
}

#[derive(Serialize)]
struct ConnectionList {
    time: UnixTime,
    open: usize,
    /// The address of the client that asks.
    you: Option<String>,
    #[serde(flatten)]
    page: ConnectionsPage,
}

impl Survey {
    /// Returns the survey at this path, if this client may see it.
    pub(super) fn at(
        site: &Site,
        client: Client,
        path: &str,
        query: Option<&str>,
    ) -> Result<Option<Self>, Problem> {
        let survey = match OwnPath::at(path) {
            Some((OwnPath::CONNECTIONS, None)) => {
                may_see_connections(site, client)?;
                let (default, max) = (CONNECTIONS_LISTED, CONNECTIONS_LISTED_MAX);
                let (after, limit) = query::list_page(query, default, max, ListedId::from_str)?;
                Self::Connections { after, limit, client: client.address() }
            }
            Some((OwnPath::CONNECTIONS, Some("threads"))) => {
                may_see_connections(site, client)?;
                query::no_parameters(query)?;
                Self::Threads
            }
            _ => return Ok(None),
        };
        Ok(Some(survey))
    }

    /// Asks all threads for the current value; none for a `HEAD`, whose reply says nothing that only they know.
    pub(crate) async fn value(self, site: &Site, wanted: Wanted) -> ResourceValue {
        if wanted == Wanted::Head {
            return ResourceValue::head();
        }
        let time = UnixTime::now();
        match self {
            Self::Connections { after, limit, client } => {
                let page = site.surveyors.list(after, limit).await;
                let next = page.next.as_ref().map(|next| format!("?after={next}&limit={limit}"));
                let (open, you) = (site.permits.taken(), client.map(in_words));
                let list = ConnectionList { time, open, you, page };
                // Only keys that are no strings are an error, and it has none.
                let json = serde_json::to_string(&list).unwrap_or_default();
                ResourceValue::from(json).with_next(next)
            }
            Self::Threads => json!({
                "time": time,
                "open": site.permits.taken(),
                "held_bytes": site.memory.held_bytes(),
                "held_bytes_max": site.memory.bytes_max(),
                "threads": site.surveyors.figures().await,
            })
            .to_string()
            .into(),
        }
    }
}
