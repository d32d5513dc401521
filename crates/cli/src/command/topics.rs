//! `anemone topics`: lists the topics of a server.

use anemone_client::{Error, ListedTopic, Topics};

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
            let lines = page.iter().map(|topic| match args.output {
                Listing::Line => line(topic, width),
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

fn line(topic: &ListedTopic, width: usize) -> String {
    let (url, events, bytes) = (&topic.url, topic.events(), topic.bytes);
    let s = if events == 1 { "" } else { "s" };
    format!("{url:width$}  {events} event{s}  {bytes} bytes")
}

/// Names and URLs contain nothing that JSON would escape.
fn json(topic: &ListedTopic) -> String {
    let ListedTopic { name, url, first, next, bytes } = topic;
    format!(r#"{{"name":"{name}","url":"{url}","first":{first},"next":"{next}","bytes":{bytes}}}"#)
}

/// Returns the topic's name in this URL.
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
