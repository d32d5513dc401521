//! The resource `messages` of the demo.

use anemone_hub::Hub;
use anemone_server::{
    Caller, Mount, MountError, PublishRight, TopicRule, TopicRules, TopicRulesError,
};
use anemone_services::{Guard, Messages, ResourceError, ResourceService};
use anyhow::Context;
use http::Method;
use http::request::Parts;
use serde_json::json;

use crate::config::{Config, MESSAGES};

/// The messages, and the right to change them.
pub(super) struct DemoMessages {
    messages: Messages,
    right: PublishRight,
}

impl DemoMessages {
    /// Opens the messages, if the demo is on. Comes before anything else changes their topic.
    pub(super) fn open(hub: &Hub, config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(right) = config.messages else { return Ok(None) };
        let messages = Messages::open(hub, MESSAGES.parse()?, config.messages_limits)
            .context("cannot open the messages of the demo")?;
        Ok(Some(Self { messages, right }))
    }

    /// Adds the rule for their topic: it stays as it is, and no client publishes to it.
    pub(super) fn with_rule(&self, rules: &TopicRules) -> Result<TopicRules, TopicRulesError> {
        let topic = self.messages.collection().topic();
        let options = self.messages.collection().topic_options();
        let rule = TopicRule {
            retention: options.retention,
            keys: options.keys,
            storage: options.storage,
            ..TopicRule::new(topic.name().clone().into())
        };
        TopicRules::new(rules.iter().cloned().chain([rule]))
    }

    pub(super) fn mount(self) -> Result<Mount, MountError> {
        let (path, right) = (format!("/{MESSAGES}"), self.right);
        let service = ResourceService::new(path.as_str(), self.messages);
        let (paths, events) = (service.openapi_paths(), service.event_schema());
        let guarded = Guard::new(service, move |head| may(right, head));
        let mount = Mount::new(&path, guarded)?.finishes_changes().page_at_root();
        Ok(mount.describe(paths).topics(json!({ MESSAGES: events })))
    }
}

/// Checks that a client may do what it asks for. All may read.
fn may(right: PublishRight, head: &Parts) -> Result<(), ResourceError> {
    let is_local = || head.extensions.get::<Caller>().is_some_and(Caller::is_local);
    let refused = |words: &str| Err(ResourceError::Refused(words.to_owned()));
    match right {
        _ if [Method::GET, Method::HEAD, Method::OPTIONS].contains(&head.method) => Ok(()),
        PublishRight::Anyone => Ok(()),
        PublishRight::Loopback if is_local() => Ok(()),
        PublishRight::Loopback => refused(
            "only programs of the server's own user or root, on its machine and through no proxy, may change messages, \
             unless demo_messages says otherwise",
        ),
        PublishRight::Nobody => refused("no client may change messages"),
    }
}
