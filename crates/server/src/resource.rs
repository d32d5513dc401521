//! What there is beside the events of topics and is answered with JSON, by HTTP as well as multiplexed.

use std::sync::Arc;

use anemone_hub::Topic;
use http::StatusCode;
use serde_json::{Value, json};

use crate::client::Client;
use crate::reading::now;
use crate::routes::{self, Site};
use crate::{Kind, Problem, health, query};

/// How many readers are listed unless `limit` says otherwise, and at most.
const READERS_LISTED: usize = 100;
const READERS_LISTED_MAX: usize = 1_000;

/// What can be asked for.
#[derive(Clone, Debug)]
pub(crate) enum Resource {
    /// Which topics there are.
    Topics,
    /// What time it is.
    Clock,
    /// How the server is doing.
    Health,
    /// Who reads a topic, at most so many of them.
    Readers(Arc<Topic>, usize),
}

impl Resource {
    /// What is at this path, if this client may see it.
    pub(crate) fn at(
        site: &Site,
        client: Client,
        path: &str,
        query: Option<&str>,
    ) -> Result<Option<Self>, Problem> {
        Ok(Some(match path {
            "/topics" => Self::Topics,
            "/clock" => Self::Clock,
            "/health" => Self::Health,
            _ => match path.strip_prefix("/topics/").and_then(|rest| rest.strip_suffix("/readers"))
            {
                Some(name) => Self::readers(site, client, name, query)?,
                None => return Ok(None),
            },
        }))
    }

    fn readers(
        site: &Site,
        client: Client,
        name: &str,
        query: Option<&str>,
    ) -> Result<Self, Problem> {
        if let Err(foreign) = client.check_local() {
            let detail = format!(
                "who reads is told to clients on the server's own machine alone; {foreign}"
            );
            return Err(Problem::new(Kind::LocalOnly, detail));
        }
        let topic = routes::topic(site, name)?;
        let limit = query::limit_alone(query, READERS_LISTED, READERS_LISTED_MAX)?;
        Ok(Self::Readers(topic, limit))
    }

    /// What it is now, and the status that goes with that.
    pub(crate) fn value(&self, site: &Site, is_stopping: bool) -> (StatusCode, Value) {
        let value = match self {
            Self::Topics => list_topics(site),
            Self::Clock => json!({ "time": now() }),
            Self::Health => return health::report(&site.hub, &site.memory, is_stopping),
            Self::Readers(topic, limit) => site.readers.list(topic, *limit),
        };
        (StatusCode::OK, value)
    }
}

/// Every topic with its positions, in the order of names.
fn list_topics(site: &Site) -> Value {
    let topics = site.hub.topics();
    let topics = topics.iter().map(|topic| {
        let info = topic.info(now());
        json!({
            "name": info.name.as_str(),
            "url": format!("/topics/{}", info.name),
            "first": info.first,
            "next": info.head.to_string(),
            "bytes": info.bytes,
        })
    });
    json!({ "topics": topics.collect::<Vec<_>>() })
}
