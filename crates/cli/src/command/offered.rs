//! The topics and files of a configuration, a line for each.

use std::fmt::Write as _;

use anemone_server::{PublishRight, TopicRule};

use crate::config::{Config, Kind, Located, Size, Source, Time};

/// Returns a line for each source, rule and directory, with its URL below `url`, or its path if that is empty.
pub(crate) fn offered(config: &Config, url: &str) -> Vec<String> {
    let sources = config.sources.iter().map(|source| source_line(source, url));
    let topics = config.topics.iter().map(|rule| rule_told(rule, url));
    let files = config.files.iter();
    let files =
        files.map(|dir| format!("static   {url}{}: files of {}", dir.path, dir.dir.display()));
    sources.chain(topics).chain(files).collect()
}

fn source_line(source: &Source, url: &str) -> String {
    let what = match &source.kind {
        Kind::Serial(options) => format!("{} at {} baud", options.path.display(), options.baud),
        Kind::Exec(options, _) => options.command.to_string(),
        Kind::File(options) => options.path.display().to_string(),
        Kind::Stdin(_) => "standard input".to_owned(),
        Kind::Host(interval) => format!("the load of this machine, every {}", Time(*interval)),
        Kind::Demo(_) => "an emulated WindSonic".to_owned(),
    };
    let mut line = format!("source   {}: {what} ->", source.kind.name());
    for (name, _) in source.topics() {
        let _ = write!(line, " {url}/topics/{name}");
    }
    line
}

fn rule_told(rule: &Located<TopicRule>, url: &str) -> String {
    let who = match rule.publish {
        PublishRight::Nobody => "no client may publish",
        PublishRight::Loopback => "programs on this machine may publish",
        PublishRight::Anyone => "every client may publish",
    };
    let kept = &rule.retention;
    let path = if url.is_empty() { String::new() } else { format!("{url}/topics/") };
    format!(
        "topic    {path}{}: {who}; retains {} events, {}, {}",
        rule.topics,
        kept.events_max,
        Size(kept.bytes_max),
        Time(kept.age_max)
    )
}
