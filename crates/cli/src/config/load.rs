//! Loads a configuration from all its sources.

use std::ffi::OsString;
use std::time::Duration;

use anemone_hub::Retention;
use anemone_server::{PublishRight, TopicRule};

use super::document::Node;
use super::env::{self, Variables};
use super::fault::{ConfigError, Faults};
use super::keep::{Keep, keep};
use super::place::{Located, Place};
use super::settings::{Data, Listening, TlsFiles};
use super::sources::{Kind, Source};
use super::table::Table;
use super::values::{DAY, boolean, word};
use super::whole::{Config, Shorthands, source};
use super::{files, flags, limits, runs, sources, topics, validate};
use crate::args;
use crate::log::{LogForm, LogRequests};

/// The retention of topics that `demo` lets clients create: 100,000 events of up to 1.2 KB on average.
pub(super) const SCRATCH_RETENTION: Retention =
    Retention { events_max: 100_000, bytes_max: 128 << 20, age_max: DAY };
/// The most of those topics. Only programs on this machine can create them.
const SCRATCH_TOPICS_MAX: usize = 1000;

const LOG_FORMS: [(&str, LogForm); 2] = [("text", LogForm::Text), ("json", LogForm::Json)];

const LOG_REQUESTS: [(&str, LogRequests); 3] =
    [("off", LogRequests::Off), ("sampled", LogRequests::Sampled), ("all", LogRequests::All)];

impl Config {
    /// Loads the configuration for this command line, with the file it names and the environment of this process.
    ///
    /// # Errors
    /// All errors in it.
    pub(crate) fn load(flags: &args::Serve) -> Result<Self, ConfigError> {
        Self::with(flags, std::env::vars_os())
    }

    pub(super) fn with(
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

    pub(super) fn of(
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

    /// Reads everything, whatever the errors.
    pub(super) fn read(node: Node, flags: &args::Serve, faults: &Faults) -> Self {
        let file = node.place.source().map(|source| source.path().to_owned());
        let mut root = Table::root(node, faults);
        let deflate = limits::deflate(root.table("deflate"));
        let (limits, messages_limits) = limits::read(root.table("limits"), deflate);
        let mut config = Self {
            file,
            verbose: root.value("verbose", false, boolean),
            log: root.value("log", LogForm::default(), word(LOG_FORMS)),
            log_requests: root.value("log_requests", LogRequests::default(), word(LOG_REQUESTS)),
            listening: Listening::read(&mut root),
            tls: TlsFiles::read(root.table("tls")),
            data: Data::read(root.table("data")),
            keep: root.value("keep", Keep::default(), keep),
            limits,
            topics: root.tables("topic").into_iter().filter_map(topics::read).collect(),
            sources: root.tables("source").into_iter().filter_map(sources::read).collect(),
            messages: None,
            messages_limits,
            files: root.tables("static").into_iter().filter_map(files::read).collect(),
            runs: root.tables("run").into_iter().filter_map(runs::read).collect(),
        };
        let demo = root.optional("demo", boolean);
        let mut short = Shorthands {
            demo,
            host: root.optional("host", boolean).map(|host| host.value),
            messages: root.value("demo_messages", PublishRight::Loopback, word(topics::RIGHTS)),
        };
        root.finish();
        flags::apply(flags, &mut config, &mut short, faults);
        config.complete(&short, flags);
        validate::validate(&config, faults);
        config
    }

    /// Adds the sources and topics of the shorthands, and what `keep` says.
    fn complete(&mut self, short: &Shorthands, flags: &args::Serve) {
        if let Some(demo) = short.demo.as_ref().filter(|demo| demo.value) {
            (self.listening.echo, self.listening.broadcast) = (true, true);
            self.messages = Some(short.messages);
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
        let keep_age = self.retention().age_max;
        for rule in &mut self.topics {
            let age_max = &mut rule.value.retention.age_max;
            *age_max = if *age_max == Duration::MAX { keep_age } else { *age_max };
        }
        let is_host = |source: &Source| matches!(source.kind, Kind::Host(_));
        let demo = short.demo.as_ref().is_some_and(|demo| demo.value);
        if short.host.unwrap_or(demo) && !self.sources.iter().any(is_host) {
            let kind = Kind::Host(anemone_sources::host::INTERVAL_DEFAULT);
            // It comes first, so that the error about a conflict names the other source.
            self.sources.splice(..0, source("host", &Place::Default, kind));
        }
    }
}
