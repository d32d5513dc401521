//! Resources besides the events of topics: JSON, over HTTP and multiplexed.

use std::sync::Arc;

use anemone_hub::{Topic, TopicName, UnixTime};
use http::StatusCode;
use serde_json::{Value, json};

use crate::request::client::Client;
use crate::request::own_path::OwnPath;
use crate::request::query;
use crate::site::Site;
use crate::{Kind, Problem, health};

/// The default and the greatest number of readers in a list.
const READERS_LISTED: usize = 100;
const READERS_LISTED_MAX: usize = 1_000;

/// The default and the greatest number of topics in a page. A list of all topics would occupy the thread for too
/// long.
const TOPICS_LISTED_MAX: usize = 1_000;

/// A resource besides the events of topics.
#[derive(Clone, Debug)]
pub(crate) enum Resource {
    /// The list of topics: after this name, at most this many.
    Topics(Option<TopicName>, usize),
    /// The time.
    Clock,
    /// The health of the server.
    Health,
    /// The readers of a topic, at most this many.
    Readers(Arc<Topic>, usize),
}

impl Resource {
    /// Returns the resource at this path, if this client may see it.
    pub(crate) fn at(
        site: &Site,
        client: Client,
        path: &str,
        query: Option<&str>,
    ) -> Result<Option<Self>, Problem> {
        Ok(Some(match OwnPath::at(path) {
            Some((OwnPath::TOPICS, None)) => {
                let (after, limit) = query::topics(query, TOPICS_LISTED_MAX)?;
                Self::Topics(after, limit)
            }
            Some((OwnPath::CLOCK, None)) => Self::Clock,
            Some((OwnPath::HEALTH, None)) => Self::Health,
            Some((OwnPath::TOPICS, Some(below))) => match below.rsplit_once('/') {
                Some((name, "readers")) => Self::readers(site, client, name, query)?,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    fn readers(
        site: &Site,
        client: Client,
        name: &str,
        query: Option<&str>,
    ) -> Result<Self, Problem> {
        if let Err(foreign) = client.check_local() {
            let detail =
                format!("only clients on the server's own machine may see the readers; {foreign}");
            return Err(Problem::new(Kind::LocalOnly, detail));
        }
        let topic = site.topic(name)?;
        let limit = query::limit_alone(query, READERS_LISTED, READERS_LISTED_MAX)?;
        Ok(Self::Readers(topic, limit))
    }

    /// Returns its current value, with the status of the reply.
    pub(crate) fn value(&self, site: &Site, is_stopping: bool) -> (StatusCode, Value) {
        let value = match self {
            Self::Topics(after, limit) => list_topics(site, after.as_ref(), *limit),
            Self::Clock => json!({ "time": UnixTime::now() }),
            Self::Health => return health::report(&site.hub, &site.memory, is_stopping),
            Self::Readers(topic, limit) => site.readers.list(topic, *limit),
        };
        (StatusCode::OK, value)
    }

    /// Returns the query for the next page, if `value` is a page and there are more.
    pub(crate) fn next_page(&self, value: &Value) -> Option<String> {
        let Self::Topics(_, limit) = self else { return None };
        value["next"].as_str().map(|next| format!("?after={next}&limit={limit}"))
    }
}

/// Lists topics with their positions in the order of names, and the last of these names while there are more.
fn list_topics(site: &Site, after: Option<&TopicName>, limit: usize) -> Value {
    let mut topics = site.hub.topics_after(after, limit + 1);
    let has_more = topics.len() > limit;
    topics.truncate(limit);
    let now = UnixTime::now();
    let listed = topics.iter().map(|topic| {
        let info = topic.info(now);
        json!({
            "name": info.name.as_str(),
            // Relative to the list, so that it is also correct below a path of another server.
            "url": format!("{}/{}", OwnPath::TOPICS.name(), info.name),
            "first": info.first,
            "next": info.head.to_string(),
            "bytes": info.bytes,
        })
    });
    let mut list = json!({ "topics": listed.collect::<Vec<_>>() });
    if let Some(last) = topics.last().filter(|_| has_more) {
        list["next"] = last.name().as_str().into();
    }
    list
}
