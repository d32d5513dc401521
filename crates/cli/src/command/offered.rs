//! The topics, run services and files of a configuration, a line for each.

use std::fmt::Write as _;

use anemone_hub::{Keeps, Storage};
use anemone_server::{PublishRight, StartRight, TopicRule};

use crate::config::{
    COMPUTATIONS, Config, Kind, Located, MESSAGES, PROPAGATION, RunProgram, Source, Time,
};

/// Returns a line for each source, rule, service and directory, with its URL below `url`, or its path if that is empty.
pub(crate) fn offered(config: &Config, url: &str) -> Vec<String> {
    let sources = config.sources.iter().map(|source| source_line(source, url));
    let topics = config.topics.iter().map(|rule| {
        let keeps = config.keeps(rule.retention, rule.storage);
        rule_told(rule, keeps, url)
    });
    let runs = config.runs.iter().map(|run| run_line(run, url));
    let files = config.files.iter();
    let files =
        files.map(|dir| format!("static   {url}{}: files of {}", dir.path, dir.dir.display()));
    let messages = config.messages.map(|right| {
        format!("service  {url}/{MESSAGES}: messages; {} change them", who_may(right))
    });
    let computations = config.messages.map(|_| {
        let who = who_may(PublishRight::Loopback);
        format!("run      {url}{COMPUTATIONS}: lists that are sorted; {who} start runs")
    });
    let coverages = config.messages.map(|_| {
        let who = who_may(PublishRight::Loopback);
        format!("run      {url}{PROPAGATION}: the coverage of radio transmitters; {who} start runs")
    });
    let services = messages.into_iter().chain(computations).chain(coverages);
    let kept = std::iter::once(kept_line(config));
    sources.chain(topics).chain(services).chain(runs).chain(files).chain(kept).collect()
}

/// Returns the line about topics whose rules say nothing about it.
fn kept_line(config: &Config) -> String {
    let place = match &config.data.dir {
        Some(dir) => format!("in {}", dir.display()),
        None => "in memory".to_owned(),
    };
    let keeps = config.keeps(config.retention(), Storage::Data);
    format!("topics   without a rule keep {keeps} ({place})")
}

fn source_line(source: &Source, url: &str) -> String {
    let what = match &source.kind {
        Kind::Serial(options) => format!("{} at {} baud", options.path.display(), options.baud),
        Kind::SerialLines(options) => {
            format!(
                "lines of {} at {} baud, {}",
                options.path.display(),
                options.baud,
                options.framing
            )
        }
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

fn who_may(right: PublishRight) -> &'static str {
    match right {
        PublishRight::Nobody => "no client may",
        PublishRight::Loopback => "programs on this machine may",
        PublishRight::Anyone => "every client may",
    }
}

fn run_line(run: &RunProgram, url: &str) -> String {
    let right = match run.start_right {
        StartRight::Local => PublishRight::Loopback,
        StartRight::Anyone => PublishRight::Anyone,
    };
    let (path, command, who) = (&*run.path, &run.options.command, who_may(right));
    let most = run.options.time_max.map(|time| format!(" of {} at most", Time(time)));
    format!("run      {url}{path}: {command}; {who} start runs{}", most.unwrap_or_default())
}

fn rule_told(rule: &Located<TopicRule>, keeps: Keeps, url: &str) -> String {
    let path = if url.is_empty() { String::new() } else { format!("{url}/topics/") };
    format!("topic    {path}{}: {} publish; keeps {keeps}", rule.topics, who_may(rule.publish))
}
