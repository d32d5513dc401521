//! Resources besides the events of topics and runs: JSON, over HTTP and multiplexed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anemone_hub::run::{Run, RunList};
use anemone_hub::{Topic, TopicName, UnixTime};
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::json;

use super::documents::Documents;
use super::visible::{may_see_connections, may_see_readers, may_see_runs};
use crate::clients::connections::closed::CLOSED_MAX;
use crate::request::client::Client;
use crate::request::methods::Wanted;
use crate::request::own_path::OwnPath;
use crate::request::query::{self, RunsQuery, TopicsPage};
use crate::service::start::to_json;
use crate::site::Site;
use crate::{Problem, health};

/// The default and the greatest number of readers in a list.
const READERS_LISTED: usize = 100;
const READERS_LISTED_MAX: usize = 1_000;

/// The default and the greatest number of topics in a page. A list of all topics would occupy the thread for too
/// long.
const TOPICS_LISTED_MAX: usize = 1_000;

/// The default and the greatest number of runs in a list.
const RUNS_LISTED_MAX: usize = 1_000;

/// The default number of closed connections in a list.
const CLOSED_LISTED: usize = 100;

/// A resource of the server itself, besides the events of topics and runs.
#[derive(Clone, Debug)]
pub(crate) enum OwnResource {
    Topics(TopicsPage),
    Clock,
    Health,
    /// The description of its paths.
    OpenApi,
    /// The description of its topics.
    AsyncApi,
    /// The readers of a topic, at most this many.
    Readers(Arc<Topic>, usize),
    Runs(RunsQuery),
    State(Arc<Run>),
    /// The last connections that were closed, at most this many.
    ClosedConnections(usize),
}

/// The current value of a resource, and the parts of a reply with it.
#[derive(Debug)]
pub(crate) struct ResourceValue {
    pub(crate) status: StatusCode,
    /// The value as a line of JSON; `None` for a `HEAD`.
    pub(crate) line: Option<Bytes>,
    /// The field `Link` to the next page, if there is one.
    pub(crate) link: Option<HeaderValue>,
}

impl OwnResource {
    /// Returns the resource at this path, if this client may see it.
    pub(crate) fn at(
        site: &Site,
        client: Client,
        path: &str,
        query: Option<&str>,
    ) -> Result<Option<Self>, Problem> {
        Ok(Some(match OwnPath::at(path) {
            Some((OwnPath::TOPICS, None)) => {
                Self::Topics(TopicsPage::parse(query, TOPICS_LISTED_MAX)?)
            }
            Some((OwnPath::CLOCK, None)) => Self::Clock,
            Some((OwnPath::HEALTH, None)) => Self::Health,
            Some((OwnPath::OPENAPI, None)) => Self::OpenApi,
            Some((OwnPath::ASYNCAPI, None)) => Self::AsyncApi,
            Some((OwnPath::TOPICS, Some(below))) => match below.rsplit_once('/') {
                Some((name, "readers")) => Self::readers(site, client, name, query)?,
                _ => return Ok(None),
            },
            Some((OwnPath::RUNS, None)) => Self::runs(site, client, query)?,
            Some((OwnPath::CONNECTIONS, Some("closed"))) => {
                may_see_connections(site, client)?;
                let (default, max) = (CLOSED_LISTED, CLOSED_MAX);
                Self::ClosedConnections(query::limit_alone(query, default, max)?)
            }
            Some((OwnPath::RUNS, Some(key))) if query::asks_for_state(query)? => {
                Self::State(site.run(key)?)
            }
            _ => return Ok(None),
        }))
    }

    fn runs(site: &Site, client: Client, query: Option<&str>) -> Result<Self, Problem> {
        may_see_runs(site, client)?;
        Ok(Self::Runs(RunsQuery::parse(query, RUNS_LISTED_MAX)?))
    }

    fn readers(
        site: &Site,
        client: Client,
        name: &str,
        query: Option<&str>,
    ) -> Result<Self, Problem> {
        may_see_readers(site, client)?;
        let topic = site.topic(name)?;
        let limit = query::limit_alone(query, READERS_LISTED, READERS_LISTED_MAX)?;
        Ok(Self::Readers(topic, limit))
    }

    /// Returns its current value. For a `HEAD`, nothing is made but what its status and fields say.
    pub(crate) fn value(&self, site: &Site, wanted: Wanted, is_stopping: bool) -> ResourceValue {
        let json = match self {
            Self::Topics(page) => return listed(site, page, wanted),
            Self::Health => {
                let (status, report) = health::report(&site.hub, &site.memory, is_stopping);
                return ResourceValue { status, ..report.to_string().into() }.of(wanted);
            }
            _ if wanted == Wanted::Head => return ResourceValue::head(),
            Self::OpenApi => return ResourceValue::of_line(Documents::of(site).openapi(site)),
            Self::AsyncApi => return ResourceValue::of_line(Documents::of(site).asyncapi(site)),
            Self::Clock => json!({ "time": UnixTime::now() }).to_string(),
            Self::Readers(topic, limit) => site.readers.list(topic, *limit).to_string(),
            Self::Runs(query) => list_runs(site, query),
            Self::State(run) => state(run),
            Self::ClosedConnections(limit) => site.closed.list(*limit).to_string(),
        };
        json.into()
    }

    /// Returns true if a reply with it costs no more than its bytes.
    pub(crate) fn is_small(&self) -> bool {
        matches!(self, Self::Clock)
    }
}

impl ResourceValue {
    pub(super) fn head() -> Self {
        Self { status: StatusCode::OK, line: None, link: None }
    }

    pub(super) fn of_line(line: Bytes) -> Self {
        Self { line: Some(line), ..Self::head() }
    }

    fn of(self, wanted: Wanted) -> Self {
        if wanted == Wanted::Head { Self { line: None, ..self } } else { self }
    }

    /// Adds a link to the next page, whose query needs no escaping.
    pub(super) fn with_next(self, query: Option<String>) -> Self {
        let link = query.and_then(|query| format!("<{query}>; rel=\"next\"").try_into().ok());
        Self { link, ..self }
    }
}

impl From<String> for ResourceValue {
    fn from(mut json: String) -> Self {
        json.push('\n');
        Self::of_line(json.into())
    }
}

pub(crate) fn state(run: &Run) -> String {
    to_json(&run.status(Instant::now()))
}

/// Lists runs with their states, and says how many there are and how long they are kept after their end. Results may be large, so
/// the list has none.
fn list_runs(site: &Site, RunsQuery { service, states, limit }: &RunsQuery) -> String {
    let now = Instant::now();
    let RunList { total, runs, .. } = match service {
        Some(service) => site.runs.list_of_service(service, states, *limit),
        None => site.runs.list(states, *limit),
    };
    let states = runs.into_iter().map(|run| run.status(now).brief());
    let states = states.map(|state| to_json(&state)).collect::<Vec<_>>();
    let kept_ms = site.runs.limits().retention.as_millis();
    format!("{{\"total\":{total},\"kept_ms\":{kept_ms},\"runs\":[{}]}}", states.join(","))
}

/// A page of the list of topics. It is made anew for each request, since the events of each topic change it.
#[derive(Serialize)]
struct TopicList<'a> {
    position: String,
    topics: Vec<ListedTopic<'a>>,
    /// The name of the last topic, while there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

#[derive(Serialize)]
struct ListedTopic<'a> {
    name: &'a str,
    /// Relative to the list, so that it is also correct below a path of another server.
    url: String,
    first: u64,
    next: String,
    bytes: u64,
    events: u64,
    oldest: Option<UnixTime>,
    time: Option<UnixTime>,
    keeps: Option<String>,
    storage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_of: Option<&'a str>,
    readers: usize,
}

/// Lists topics with their positions in the order of names, with the link to the next page.
fn listed(site: &Site, page: &TopicsPage, wanted: Wanted) -> ResourceValue {
    let TopicsPage { after, prefix, limit } = page;
    let now = UnixTime::now();
    // First, so that reading on from here tells every later change.
    let position = site.hub.index().info(now).head;
    let mut topics = site.hub.topics_after(prefix, after.as_ref(), limit + 1);
    let has_more = topics.len() > *limit;
    topics.truncate(*limit);
    let next = topics.last().filter(|_| has_more).map(|last| last.name().as_str());
    let link = next.map(|next| page.query_after(next));
    if wanted == Wanted::Head {
        return ResourceValue::head().with_next(link);
    }
    let readers = site.readers.counts(&topics);
    let topics = topics.iter().zip(readers).map(|(topic, readers)| {
        let info = topic.info(now);
        ListedTopic {
            name: topic.name().as_str(),
            url: [OwnPath::TOPICS.name(), "/", topic.name().as_str()].concat(),
            first: info.first,
            next: info.head.to_string(),
            bytes: info.bytes,
            events: info.events(),
            oldest: info.oldest,
            time: info.newest,
            keeps: topic.keeps().map(|keeps| keeps.to_string()),
            storage: if topic.is_on_disk() { "disk" } else { "memory" },
            units: site.publishing.units(topic.name()),
            status_of: site.publishing.status_of(topic.name()).map(TopicName::as_str),
            readers,
        }
    });
    let list = TopicList { position: position.to_string(), topics: topics.collect(), next };
    // Only keys that are no strings are an error, and it has none.
    ResourceValue::from(serde_json::to_string(&list).unwrap_or_default()).with_next(link)
}
