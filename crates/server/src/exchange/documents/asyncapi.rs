//! The topics of this server and its WebSockets in AsyncAPI 3.0.

use anemone_hub::TopicName;
use serde_json::{Map, Value, json};

use crate::request::methods::Methods;
use crate::request::own_path::OwnPath;
use crate::site::Site;
use crate::{PublishRight, TopicPattern};

/// The most topics in the document. Those beyond have the paths of the others.
const TOPICS_MAX: usize = 1_000;

/// Returns the document: a channel for each topic and each pattern, and those of the other WebSockets.
pub(in crate::exchange) fn asyncapi(site: &Site) -> Value {
    let mut channels = Channels::default();
    for topic in site.hub.topics_after("", None, TOPICS_MAX) {
        let name = topic.name().as_str();
        let takes = site.publishing.methods(topic.name()) != Methods::Read;
        channels.add(
            &format!("topic-{name}"),
            topic_channel(name, payload(site, name), json!({})),
            takes,
        );
    }
    channels.add("index", topic_channel(TopicName::INDEX, index_event(), json!({})), false);
    for rule in site.publishing.rules() {
        if rule.topics.name().is_none() {
            channels.add_pattern(&rule.topics, rule.publish != PublishRight::Nobody);
        }
    }
    let key = json!({"key": {"description": "The key of the run: 32 hexadecimal digits."}});
    channels.add(
        "run",
        reading_channel(&format!("{}/{{key}}", OwnPath::RUNS.name()), run_event(), key),
        false,
    );
    if site.offered.contains(&"/ws") {
        let words = "Many requests on one connection, with the subprotocol anemone.v1.";
        channels.add("multiplexed", channel("ws", words, json!({"type": "string"})), true);
    }
    for (path, words) in [
        ("echo", "Each message comes back."),
        ("broadcast", "Each message goes to every client that is connected."),
    ] {
        if site.offered.contains(&&*format!("/{path}")) {
            channels.add(path, channel(path, words, json!({})), true);
        }
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Anemone",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The topics of this server. Each is a WebSocket, and also has the paths of /openapi.json.",
        },
        "defaultContentType": "application/json",
        "channels": channels.channels,
        "operations": channels.operations,
    })
}

#[derive(Default)]
struct Channels {
    channels: Map<String, Value>,
    operations: Map<String, Value>,
}

impl Channels {
    /// Adds a channel to which the server sends events, and from which it may take some.
    fn add(&mut self, name: &str, channel: Value, takes: bool) {
        let operation = |action: &str| {
            let channel = format!("#/channels/{name}");
            json!({"action": action, "channel": {"$ref": channel}})
        };
        self.operations.insert(format!("read-{name}"), operation("send"));
        if takes {
            self.operations.insert(format!("publish-{name}"), operation("receive"));
        }
        self.channels.insert(name.to_owned(), channel);
    }

    fn add_pattern(&mut self, pattern: &TopicPattern, takes: bool) {
        let pattern = pattern.to_string();
        let prefix = pattern.trim_end_matches('*');
        let parameters = json!({"rest": {"description": format!("The rest of a name that begins with {prefix:?}.")}});
        let channel = topic_channel(&format!("{prefix}{{rest}}"), json!({}), parameters);
        self.add(&format!("topics-{prefix}"), channel, takes);
    }
}

/// Returns the JSON Schema of a topic's events: the one that a mount gives, or any value.
fn payload(site: &Site, name: &str) -> Value {
    let of = |schemas: &Value| schemas.get(name).cloned();
    site.mounts.all().find_map(|mount| of(mount.events()?)).unwrap_or_else(|| json!({}))
}

fn topic_channel(name: &str, payload: Value, parameters: Value) -> Value {
    reading_channel(&format!("{}/{name}", OwnPath::TOPICS.name()), payload, parameters)
}

/// Returns the JSON Schema of the events of a run, each of which has one of these members.
fn run_event() -> Value {
    let events = ["state", "progress", "partial"].map(|name| json!({"required": [name]}));
    json!({"title": "RunEvent", "type": "object", "anyOf": events})
}

/// Returns the JSON Schema of the events of the index.
fn index_event() -> Value {
    let events = ["created", "deleted"].map(|name| json!({"required": [name]}));
    json!({"title": "TopicChange", "type": "object", "anyOf": events})
}

fn reading_channel(path: &str, payload: Value, parameters: Value) -> Value {
    let words = "A message is the data of one event. ?after= says where reading begins.";
    let mut channel = channel(path, words, payload);
    let query = json!({
        "type": "object",
        "properties": {
            "after": {"type": "string", "description": "A position, -N, earliest or latest."},
            "since": {"type": "string"},
            "mode": {"type": "string", "enum": ["all", "latest"]},
        },
    });
    channel["bindings"]["ws"]["query"] = query;
    channel["parameters"] = parameters;
    channel
}

fn channel(path: &str, words: &str, payload: Value) -> Value {
    json!({
        "address": format!("/{path}"),
        "description": words,
        "messages": {"event": {"payload": payload}},
        "bindings": {"ws": {"method": "GET"}},
    })
}
