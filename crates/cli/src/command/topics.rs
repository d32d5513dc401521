//! `anemone topics`: lists the topics of a server.

use std::time::Duration;

use anemone_client::{Error, ListedTopic, Topics};
use anemone_hub::UnixTime;
use serde_json::Value;

use super::runtime;
use crate::args::{self, Listing};
use crate::config::closest;
use crate::output::{print, report};

pub(crate) fn run(args: &args::Topics) -> anyhow::Result<()> {
    let mut topics = args.reach.apply(&args.url, Topics::new(&args.url)?)?;
    runtime()?.block_on(async {
        let mut is_empty = true;
        while let Some(page) = topics.next_page().await? {
            is_empty &= page.is_empty();
            let width = page.iter().map(|topic| topic.url.len()).max().unwrap_or(0);
            let now = UnixTime::now();
            let lines = page.iter().map(|topic| match args.output {
                Listing::Line => line(topic, width, now),
                Listing::Json => json(topic),
            });
            if !print(lines)? {
                return Ok(());
            }
        }
        if is_empty && !args.reach.quiet {
            tracing::info!("there are no topics");
        }
        Ok(())
    })
}

fn line(topic: &ListedTopic, width: usize, now: UnixTime) -> String {
    let (url, events, bytes) = (&topic.url, topic.events(), topic.bytes);
    let s = if events == 1 { "" } else { "s" };
    let since = topic.oldest.map(|oldest| format!(" of {}", long(now.since(oldest))));
    let keeps = topic.keeps.as_ref().map(|keeps| format!("  keeps {keeps}"));
    let (since, keeps) = (since.unwrap_or_default(), keeps.unwrap_or_default());
    format!("{url:width$}  {events} event{s}  {bytes} bytes{since}{keeps}")
}

/// Returns a time in words, rounded down: the last `42 min`.
fn long(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [("d", 86_400), ("h", 3600), ("min", 60)];
    // Below two of a unit, the smaller one says more.
    let unit = units.iter().find(|(_, unit)| seconds >= 2 * unit);
    let (name, unit) = unit.copied().unwrap_or(("s", 1));
    format!("the last {} {name}", seconds / unit)
}

/// Names and URLs contain nothing that JSON would escape.
fn json(topic: &ListedTopic) -> String {
    let ListedTopic { name, url, first, next, bytes, .. } = topic;
    let oldest = topic.oldest.map_or_else(|| "null".to_owned(), |oldest| oldest.to_string());
    let keeps = Value::from(topic.keeps.clone());
    format!(
        r#"{{"name":"{name}","url":"{url}","first":{first},"next":"{next}","bytes":{bytes},"oldest":{oldest},"keeps":{keeps}}}"#
    )
}

pub(super) fn name(url: &str) -> Option<&str> {
    let (_, name) = args::split(url).1.split(['?', '#']).next()?.rsplit_once("/topics/")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

/// Returns an example of a topic's URL on the server of this one.
pub(super) fn example(url: &str) -> String {
    format!("{}/topics/NAME", args::split(url).0)
}

/// After a refusal for a missing topic, suggests the one that was probably meant, or lists the topics.
pub(super) async fn suggest_topic(url: &str, error: &anyhow::Error, reach: &args::Reach) {
    let Some(Error::Refused(refused)) = error.downcast_ref() else { return };
    let (Some("unknown-topic"), Some(name)) = (refused.problem(), name(url)) else { return };
    let listed = Topics::new(url).ok().and_then(|topics| reach.apply(url, topics).ok());
    let Some(mut topics) = listed else { return };
    let Ok(Some(page)) = topics.next_page().await else { return };
    let near = closest(name, page.iter().map(|topic| &*topic.name));
    match page.iter().find(|topic| Some(&*topic.name) == near) {
        Some(topic) => report(&format!("did you mean {}?", topic.url)),
        None => list(&page, url),
    }
}

/// Lists the topics after a server's URL was given as that of a topic. `example` is the URL of a topic at the
/// server's root.
pub(super) async fn print_topics(url: &str, example: &str, reach: &args::Reach) {
    for url in [url, example] {
        let Some(topics) = Topics::new(url).ok().and_then(|topics| reach.apply(url, topics).ok())
        else {
            continue;
        };
        let mut topics = topics;
        let Ok(Some(page)) = topics.next_page().await else { continue };
        return list(&page, url);
    }
}

/// Tells how to call the service that may be at the URL, if it has a path.
pub(super) fn suggest_call(url: &str, reach: &args::Reach) {
    let (server, target) = args::split(url);
    // A query may be secret.
    let path = target.split(['?', '#']).next().unwrap_or_default();
    if !["", "topics", "runs"].contains(&path.trim_matches('/')) {
        let (flags, url) = (reach.flags(), format!("{server}{path}"));
        let url = args::shell_word(&url);
        report(&format!("if it is a service, this calls it: anemone call{flags} GET {url}"));
    }
}

fn list(page: &[ListedTopic], url: &str) {
    const TOLD_MAX: usize = 20;
    let mut text = match page.is_empty() {
        true => "this server has no topics yet".to_owned(),
        false => "this server has these topics:".to_owned(),
    };
    for topic in page.iter().take(TOLD_MAX) {
        text += &format!("\n  {}", topic.url);
    }
    if page.len() > TOLD_MAX {
        text += &format!("\n  and more: anemone topics {}", args::shell_word(url));
    }
    report(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_a_unit_of_which_there_are_some() {
        for (seconds, expected) in [
            (0, "the last 0 s"),
            (119, "the last 119 s"),
            (120, "the last 2 min"),
            (7_199, "the last 119 min"),
            (7_200, "the last 2 h"),
            (172_799, "the last 47 h"),
            (2_592_000, "the last 30 d"),
        ] {
            assert_eq!(long(Duration::from_secs(seconds)), expected);
        }
    }
}
