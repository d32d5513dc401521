//! The topics of this server and its WebSockets in AsyncAPI 3.0.
//!
//! It is written as it is serialized, without a tree of values, since there may be a thousand topics.

use std::borrow::Cow;

use anemone_hub::TopicName;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::request::methods::Methods;
use crate::request::own_path::OwnPath;
use crate::site::Site;
use crate::{PublishRight, TopicPattern};

/// The most topics in the document. Those beyond have the paths of the others.
const TOPICS_MAX: usize = 1_000;

/// Returns the document: a channel for each topic and each pattern, and those of the other WebSockets.
pub(super) fn asyncapi(site: &Site) -> String {
    let shared = SharedParts::new();
    let mut channels = Channels { shared: &shared, all: Vec::new() };
    for topic in site.hub.topics_after("", None, TOPICS_MAX) {
        let name = topic.name().as_str();
        let takes = site.publishing.methods(topic.name()) != Methods::Read;
        let payload = payload(site, name).map_or(Cow::Borrowed(&shared.nothing), Cow::Borrowed);
        channels.add_reading(format!("topic-{name}"), topic_path(name), payload, takes);
    }
    let (index, event) = (TopicName::INDEX, Cow::Owned(index_event()));
    channels.add_reading("index".to_owned(), topic_path(index), event, false);
    for rule in site.publishing.rules() {
        if rule.topics.name().is_none() {
            channels.add_pattern(&rule.topics, rule.publish != PublishRight::Nobody);
        }
    }
    let path = format!("{}/{{key}}", OwnPath::RUNS.name());
    let key = json!({"key": {"description": "The key of the run: 32 hexadecimal digits."}});
    channels.add_reading("run".to_owned(), path, Cow::Owned(run_event()), false).parameters =
        Some(Cow::Owned(key));
    if site.offered.contains(&"/ws") {
        let words = "Many requests on one connection, with the subprotocol anemone.v1.";
        channels.add_other("multiplexed", "ws", words, json!({"type": "string"}));
    }
    for (path, words) in [
        ("echo", "Each message comes back."),
        ("broadcast", "Each message goes to every client that is connected."),
    ] {
        if site.offered.contains(&&*format!("/{path}")) {
            channels.add_other(path, path, words, json!({}));
        }
    }
    // Only keys that are no strings are an error, and it has none.
    serde_json::to_string(&Document::of(&channels.all)).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    asyncapi: &'static str,
    info: Value,
    default_content_type: &'static str,
    #[serde(serialize_with = "channels")]
    channels: &'a [Channel<'a>],
    #[serde(serialize_with = "operations")]
    operations: &'a [Channel<'a>],
}

impl<'a> Document<'a> {
    fn of(channels: &'a [Channel<'a>]) -> Self {
        let info = json!({
            "title": "Anemone",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The topics of this server. Each is a WebSocket, and also has the paths of /openapi.json.",
        });
        let (asyncapi, default_content_type) = ("3.0.0", "application/json");
        Self { asyncapi, info, default_content_type, channels, operations: channels }
    }
}

struct SharedParts {
    nothing: Value,
    bindings: Value,
    reading_bindings: Value,
}

impl SharedParts {
    fn new() -> Self {
        let bindings = json!({"ws": {"method": "GET"}});
        let mut reading_bindings = bindings.clone();
        reading_bindings["ws"]["query"] = json!({
            "type": "object",
            "properties": {
                "after": {"type": "string", "description": "A position, -N, earliest or latest."},
                "since": {"type": "string"},
                "mode": {"type": "string", "enum": ["all", "latest"]},
            },
        });
        Self { nothing: json!({}), bindings, reading_bindings }
    }
}

/// A channel to which the server sends messages.
#[derive(Serialize)]
struct Channel<'a> {
    /// Its key among the channels.
    #[serde(skip)]
    name: String,
    /// True if it also takes some.
    #[serde(skip)]
    takes: bool,
    address: String,
    description: &'static str,
    messages: Messages<'a>,
    bindings: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Cow<'a, Value>>,
}

#[derive(Serialize)]
struct Messages<'a> {
    event: Message<'a>,
}

#[derive(Serialize)]
struct Message<'a> {
    payload: Cow<'a, Value>,
}

struct Channels<'a> {
    shared: &'a SharedParts,
    all: Vec<Channel<'a>>,
}

impl<'a> Channels<'a> {
    /// Adds the channel of events at this path, without its leading `/`.
    fn add_reading(
        &mut self,
        name: String,
        path: String,
        payload: Cow<'a, Value>,
        takes: bool,
    ) -> &mut Channel<'a> {
        let words = "A message is the data of one event. ?after= says where reading begins.";
        let channel = self.add(name, &path, words, payload);
        channel.takes = takes;
        channel
    }

    fn add_pattern(&mut self, pattern: &TopicPattern, takes: bool) {
        let pattern = pattern.to_string();
        let prefix = pattern.trim_end_matches('*');
        let path = topic_path(&format!("{prefix}{{rest}}"));
        let rest = format!("The rest of a name that begins with {prefix:?}.");
        let payload = Cow::Borrowed(&self.shared.nothing);
        self.add_reading(format!("topics-{prefix}"), path, payload, takes).parameters =
            Some(Cow::Owned(json!({"rest": {"description": rest}})));
    }

    /// Adds the channel of another WebSocket, which takes messages.
    fn add_other(&mut self, name: &str, path: &str, words: &'static str, payload: Value) {
        let bindings = &self.shared.bindings;
        let channel = self.add(name.to_owned(), path, words, Cow::Owned(payload));
        (channel.takes, channel.bindings, channel.parameters) = (true, bindings, None);
    }

    fn add(
        &mut self,
        name: String,
        path: &str,
        description: &'static str,
        payload: Cow<'a, Value>,
    ) -> &mut Channel<'a> {
        let bindings = &self.shared.reading_bindings;
        let parameters = Some(Cow::Borrowed(&self.shared.nothing));
        let (address, messages) = (["/", path].concat(), Messages { event: Message { payload } });
        let at = self.all.len();
        self.all.push(Channel {
            name,
            takes: false,
            address,
            description,
            messages,
            bindings,
            parameters,
        });
        &mut self.all[at]
    }
}

fn channels<S: Serializer>(all: &&[Channel<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(all.iter().map(|channel| (&channel.name, channel)))
}

#[derive(Serialize)]
struct Operation {
    action: &'static str,
    channel: Reference,
}

#[derive(Serialize)]
struct Reference {
    #[serde(rename = "$ref")]
    target: String,
}

/// Writes the operations of the channels: reading, and publishing to those that take messages.
fn operations<S: Serializer>(all: &&[Channel<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    let of = |verb: &str, action, Channel { name, .. }: &Channel<'_>| {
        let channel = Reference { target: ["#/channels/", name].concat() };
        ([verb, "-", name].concat(), Operation { action, channel })
    };
    serializer.collect_map(all.iter().flat_map(|channel| {
        let publish = channel.takes.then(|| of("publish", "receive", channel));
        [of("read", "send", channel)].into_iter().chain(publish)
    }))
}

fn topic_path(name: &str) -> String {
    [OwnPath::TOPICS.name(), "/", name].concat()
}

/// Returns the JSON Schema of a topic's events that a mount gives.
fn payload<'a>(site: &'a Site, name: &str) -> Option<&'a Value> {
    site.mounts.all().find_map(|mount| mount.events()?.get(name))
}

/// Returns the JSON Schema of the events of a run, each of which has one of these members.
fn run_event() -> Value {
    let events = ["state", "progress", "partial"].map(|name| json!({"required": [name]}));
    json!({"title": "RunEvent", "type": "object", "anyOf": events})
}

fn index_event() -> Value {
    let events = ["created", "deleted"].map(|name| json!({"required": [name]}));
    json!({"title": "TopicChange", "type": "object", "anyOf": events})
}
