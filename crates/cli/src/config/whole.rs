//! The whole configuration, and its rules for topics.

use std::path::PathBuf;
use std::time::Duration;

use anemone_hub::{Keeps, Retention, Storage, TopicName};
use anemone_server::{Limits, PublishRight, StaticDir, TopicRule, TopicRules, TopicRulesError};
use anemone_services::CollectionOptions;

use super::keep::Keep;
use super::place::{Located, Place};
use super::runs::RunProgram;
use super::settings::{Data, Listening, TlsFiles};
use super::sources::{Kind, Source, StderrTo};
use super::values::{DAY, GIB};
use crate::log::{LogForm, LogRequests};

/// Statuses change rarely and are worth keeping for a day.
const STATUS_RETENTION: Retention =
    Retention { events_max: 1000, bytes_max: 1 << 20, age_max: DAY };

/// The configuration of `anemone serve`.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The file it was read from, if any.
    pub(crate) file: Option<PathBuf>,
    /// True to log events of each connection, too.
    pub(crate) verbose: bool,
    pub(crate) log: LogForm,
    pub(crate) log_requests: LogRequests,
    pub(crate) listening: Listening,
    pub(crate) tls: TlsFiles,
    pub(crate) data: Data,
    /// The retention of topics whose rules do not say it.
    pub(crate) keep: Keep,
    pub(crate) limits: Limits,
    /// The declared rules, and those of `demo`.
    pub(crate) topics: Vec<Located<TopicRule>>,
    /// The clients that may change the records of the demo's messages; `None` without the demo.
    pub(crate) messages: Option<PublishRight>,
    pub(crate) messages_limits: CollectionOptions,
    /// The declared sources, and those of `demo` and `host`.
    pub(crate) sources: Vec<Source>,
    pub(crate) files: Vec<Located<StaticDir>>,
    /// Programs that do the work of runs.
    pub(crate) runs: Vec<RunProgram>,
}

/// Keys that stand for sources and topics.
pub(super) struct Shorthands {
    pub(super) demo: Option<Located<bool>>,
    /// `None` if it depends on `demo`.
    pub(super) host: Option<bool>,
    pub(super) messages: PublishRight,
}

/// The name of the demo's resource, and of its topic.
pub(crate) const MESSAGES: &str = "messages";

/// The path of the demo's computations.
pub(crate) const COMPUTATIONS: &str = "/computations";

/// The path of the demo's coverages.
pub(crate) const PROPAGATION: &str = "/propagation";

/// The paths of the demo's services that have a page of their own: `/messages` has `messages.html`.
pub(crate) const WITH_PAGE: [&str; 3] = [COMPUTATIONS, "/messages", PROPAGATION];

impl Config {
    /// Returns the rules for topics: the declared ones, and one for each topic of a source, so that no client
    /// publishes to it or deletes it because of a matching pattern.
    ///
    /// # Errors
    /// When two rules have the same topics, which was checked before.
    pub(crate) fn rules(&self) -> Result<TopicRules, TopicRulesError> {
        let declared: Vec<_> = self.topics.iter().map(|rule| rule.value.clone()).collect();
        let rules = TopicRules::new(declared.iter().cloned())?;
        let mut all = declared;
        for source in &self.sources {
            for (name, part) in source.topics() {
                let at = all.iter().position(|rule| rule.topics.name() == Some(&name));
                let at = at.unwrap_or_else(|| {
                    all.push(source.rule(&name, part, self.retention(), &rules));
                    all.len() - 1
                });
                if part == Part::Status {
                    all[at].status_of = Some(source.topic.value.clone());
                }
            }
        }
        TopicRules::new(all)
    }

    /// Returns the retention of a topic whose rule says nothing about it.
    pub(crate) fn retention(&self) -> Retention {
        let age_max = self.keep.age.unwrap_or(Duration::MAX);
        Retention { age_max, ..Retention::default() }
    }

    pub(crate) fn shared_bytes_max(&self, storage: Storage) -> u64 {
        let in_memory = self.limits.memory_bytes_max() as u64 / MEMORY_ONE_IN;
        let in_memory = in_memory.clamp(Keep::BYTES_MIN, SHARED_BYTES_MAX);
        match (&self.data.dir, storage) {
            (Some(_), Storage::Data) => self.keep.bytes.unwrap_or(SHARED_BYTES_MAX),
            (Some(_), Storage::Memory) => in_memory,
            (None, _) => self.keep.bytes.unwrap_or(in_memory),
        }
    }

    pub(crate) fn keeps(&self, retention: Retention, storage: Storage) -> Keeps {
        let shared = || self.shared_bytes_max(storage);
        Keeps { retention, shared_bytes_max: retention.shares_bytes().then(shared) }
    }
}

/// The bytes that all topics share by default.
const SHARED_BYTES_MAX: u64 = GIB;

/// In memory, they share at most this part of what the server may hold for clients, which is half of the memory of the
/// machine by default.
const MEMORY_ONE_IN: u64 = 4;

/// The role of a source's topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Events,
    /// `NAME.status`.
    Status,
    /// `NAME.stderr`.
    Stderr,
}

impl Source {
    /// Returns the topics of the source, without those whose names would be too long.
    pub(crate) fn topics(&self) -> Vec<(TopicName, Part)> {
        let mut topics = vec![(self.topic.value.clone(), Part::Events)];
        let named = |ending| format!("{}{ending}", *self.topic).parse().ok();
        if !matches!(self.kind, Kind::Host(_)) {
            topics.extend(named(".status").map(|name| (name, Part::Status)));
        }
        if matches!(self.kind, Kind::Exec(_, StderrTo::Topic)) {
            topics.extend(named(".stderr").map(|name| (name, Part::Stderr)));
        }
        topics
    }

    /// Returns the rule for one of its topics that has no rule of its own.
    fn rule(
        &self,
        name: &TopicName,
        part: Part,
        retention: Retention,
        rules: &TopicRules,
    ) -> TopicRule {
        let own = TopicRule { retention, ..TopicRule::new(name.clone().into()) };
        let storage = Storage::Memory; // worthless after a restart
        match (part, rules.rule(name)) {
            (Part::Status, _) => TopicRule { retention: STATUS_RETENTION, storage, ..own },
            (Part::Events | Part::Stderr, Some(rule)) => {
                TopicRule { topics: own.topics, publish: PublishRight::Nobody, ..rule.clone() }
            }
            (Part::Events, None) if matches!(self.kind, Kind::Host(_)) => {
                TopicRule { storage, ..own }
            }
            (Part::Events | Part::Stderr, None) => own,
        }
    }
}

/// Creates the source for a shorthand or a flag.
pub(super) fn source(topic: &str, place: &Place, kind: Kind) -> Option<Source> {
    Some(Source { topic: Located::new(topic.parse().ok()?, place.clone()), kind })
}
