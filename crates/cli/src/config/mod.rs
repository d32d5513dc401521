//! The configuration of `anemone serve`: a file, environment variables and the command line.
//!
//! The command line counts more than the environment, and that more than the file; what none of
//! them says has its default. `anemone.toml` at the root of the repository has every key.
//!
//! - `place` and `fault`: where something was said, and what is wrong with it; all of it at once.
//! - `document`: a file as it was written; `env` lays variables over it.
//! - `table` and `values`: keys and values as they are read.
//! - `settings`, `limits`, `topics`, `sources`, `files`: what the keys are; `flags` are those of the command line.
//! - `judge`: what fits together.

mod document;
mod env;
mod fault;
pub(crate) mod files;
mod flags;
mod judge;
mod limits;
mod place;
mod settings;
mod sources;
mod table;
mod topics;
mod values;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use anemone_hub::{Retention, Storage, TopicName};
use anemone_server::{Limits, PublishRight, StaticDir, TopicRule, TopicRules, TopicRulesError};

use self::document::Node;
use self::env::Variables;
pub(crate) use self::fault::ConfigError;
use self::fault::Faults;
pub(crate) use self::place::{Located, Place};
use self::settings::Data;
pub(crate) use self::settings::{Listening, TlsFiles};
pub(crate) use self::sources::{Kind, Source, StderrTo};
use self::table::Table;
use self::values::{DAY, boolean, word};
pub(crate) use self::values::{Size, Time, parse_mode, parse_size};
use crate::args;
use crate::log::{LogForm, LogRequests};

/// Statuses change seldom and are all worth keeping for a day.
const STATUS_RETENTION: Retention =
    Retention { events_max: 1000, bytes_max: 1 << 20, age_max: DAY };

/// The events that `demo` keeps of each topic that is published to: 100,000 of up to 1.2 KB on average.
const SCRATCH_RETENTION: Retention =
    Retention { events_max: 100_000, bytes_max: 128 << 20, age_max: DAY };
/// Most of those topics. It is programs on this very machine that fill them.
const SCRATCH_TOPICS_MAX: usize = 1000;

/// The words for how the log is written.
const LOG_FORMS: [(&str, LogForm); 2] = [("text", LogForm::Text), ("json", LogForm::Json)];

/// The words for which requests are logged.
const LOG_REQUESTS: [(&str, LogRequests); 3] =
    [("off", LogRequests::Off), ("sampled", LogRequests::Sampled), ("all", LogRequests::All)];

/// All that `anemone serve` goes by.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The file it was read from, if any.
    pub(crate) file: Option<PathBuf>,
    /// Whether what happens on each connection is logged, too.
    pub(crate) verbose: bool,
    /// The form in which the log is written.
    pub(crate) log: LogForm,
    /// The requests that are logged.
    pub(crate) log_requests: LogRequests,
    pub(crate) listening: Listening,
    pub(crate) tls: TlsFiles,
    pub(crate) data: Data,
    pub(crate) limits: Limits,
    /// Those that are declared, and those that `demo` stands for.
    pub(crate) topics: Vec<Located<TopicRule>>,
    /// Those that are declared, and those that `demo` and `host` stand for.
    pub(crate) sources: Vec<Source>,
    /// Directories whose files are served.
    pub(crate) files: Vec<Located<StaticDir>>,
}

/// Keys that stand for sources and topics.
struct Shorthands {
    demo: Option<Located<bool>>,
    /// `None` leaves it to `demo`.
    host: Option<bool>,
}

impl Config {
    /// The configuration of this command line, with the file it names and the environment of this process.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn load(flags: &args::Serve) -> Result<Self, ConfigError> {
        Self::with(flags, std::env::vars_os())
    }

    fn with(
        flags: &args::Serve,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let variables = Variables::of(environment);
        let flag = flags.config.as_ref().map(|path| (path, Place::Flag("--config")));
        let variable = || {
            let path = variables.file.as_ref()?;
            Some((path, Place::Variable(env::FILE.to_owned())))
        };
        let file = flag.or_else(variable);
        let node = file.map(|(path, place)| Node::read(path, &place)).transpose()?;
        Self::of(node, &variables, flags)
    }

    fn of(
        file: Option<Node>,
        variables: &Variables,
        flags: &args::Serve,
    ) -> Result<Self, ConfigError> {
        let faults = Faults::default();
        let mut node = file.unwrap_or_else(Node::empty);
        variables.apply(&mut node, &faults);
        let config = Self::read(node, flags, &faults);
        faults.into_result()?;
        Ok(config)
    }

    /// Reads all of it, whatever is wrong.
    fn read(node: Node, flags: &args::Serve, faults: &Faults) -> Self {
        let file = node.place.source().map(|source| source.path().to_owned());
        let mut root = Table::root(node, faults);
        let deflate = limits::deflate(root.table("deflate"));
        let mut config = Self {
            file,
            verbose: root.value("verbose", false, boolean),
            log: root.value("log", LogForm::default(), word(LOG_FORMS)),
            log_requests: root.value("log_requests", LogRequests::default(), word(LOG_REQUESTS)),
            listening: Listening::read(&mut root),
            tls: TlsFiles::read(root.table("tls")),
            data: Data::read(root.table("data")),
            limits: limits::read(root.table("limits"), deflate),
            topics: root.tables("topic").into_iter().filter_map(topics::read).collect(),
            sources: root.tables("source").into_iter().filter_map(sources::read).collect(),
            files: root.tables("static").into_iter().filter_map(files::read).collect(),
        };
        let demo = root.optional("demo", boolean);
        let mut short =
            Shorthands { demo, host: root.optional("host", boolean).map(|host| host.value) };
        root.finish();
        flags::apply(flags, &mut config, &mut short, faults);
        config.complete(&short, flags);
        judge::judge(&config, faults);
        config
    }

    /// Adds what the shorthands stand for.
    fn complete(&mut self, short: &Shorthands, flags: &args::Serve) {
        if let Some(demo) = short.demo.as_ref().filter(|demo| demo.value) {
            (self.listening.echo, self.listening.broadcast) = (true, true);
            self.sources.extend(source(
                "wind",
                &demo.place,
                Kind::Demo(flags.unit.unwrap_or_default()),
            ));
            let own = |pattern| {
                let rule = TopicRule {
                    publish: PublishRight::Loopback,
                    retention: SCRATCH_RETENTION,
                    topics_max: SCRATCH_TOPICS_MAX,
                    ..TopicRule::new(pattern)
                };
                Located::new(rule, demo.place.clone())
            };
            let scratch = "scratch-*".parse().ok().map(own);
            let is_declared =
                |rule: &Located<TopicRule>| self.topics.iter().any(|own| own.topics == rule.topics);
            self.topics.extend(scratch.filter(|rule| !is_declared(rule)));
        }
        let is_host = |source: &Source| matches!(source.kind, Kind::Host(_));
        let demo = short.demo.as_ref().is_some_and(|demo| demo.value);
        if short.host.unwrap_or(demo) && !self.sources.iter().any(is_host) {
            let kind = Kind::Host(anemone_sources::host::INTERVAL_DEFAULT);
            // First: whoever takes its topic is told so.
            self.sources.splice(..0, source("host", &Place::Default, kind));
        }
    }

    /// The rules for topics: those that are declared, and for each topic of a source one of its own, so that
    /// no client publishes to it or deletes it because of a pattern it happens to match.
    ///
    /// # Errors
    /// When two rules are for the same topics, which was refused before.
    pub(crate) fn rules(&self) -> Result<TopicRules, TopicRulesError> {
        let declared: Vec<_> = self.topics.iter().map(|rule| rule.value.clone()).collect();
        let rules = TopicRules::new(declared.iter().cloned())?;
        let mut all = declared.clone();
        for source in &self.sources {
            for (name, part) in source.topics() {
                if declared.iter().all(|rule| rule.topics.name() != Some(&name)) {
                    all.push(source.rule(&name, part, &rules));
                }
            }
        }
        TopicRules::new(all)
    }
}

/// The part of a source that a topic has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Events,
    /// `NAME.status`.
    Status,
    /// `NAME.stderr`.
    Stderr,
}

impl Source {
    /// The topics it publishes to, those with names too long for one left out.
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

    /// The rule for one of its topics that no rule names, beside these.
    fn rule(&self, name: &TopicName, part: Part, rules: &TopicRules) -> TopicRule {
        let own = TopicRule::new(name.clone().into());
        let storage = Storage::Memory; // what is worth nothing after a restart
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

fn source(topic: &str, place: &Place, kind: Kind) -> Option<Source> {
    Some(Source { topic: Located::new(topic.parse().ok()?, place.clone()), kind })
}
