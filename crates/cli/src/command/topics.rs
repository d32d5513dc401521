//! `anemone topics`: what topics a server has.

use anemone_client::{ListedTopic, Topics};

use super::runtime;
use crate::args::{self, Listing};
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

/// Names and URLs have nothing that JSON would escape.
fn json(topic: &ListedTopic) -> String {
    let ListedTopic { name, url, first, next, bytes } = topic;
    format!(r#"{{"name":"{name}","url":"{url}","first":{first},"next":"{next}","bytes":{bytes}}}"#)
}

/// Tells who gave the URL of a server for that of a topic what topics it has. `example` is the URL of one at the server's
/// root.
pub(super) async fn tell(url: &str, example: &str, reach: &args::Reach) {
    const TOLD_MAX: usize = 20;
    for url in [url, example] {
        let Some(topics) = Topics::new(url).ok().and_then(|topics| reach.apply(url, topics).ok())
        else {
            continue;
        };
        let mut topics = topics;
        let Ok(Some(page)) = topics.next_page().await else { continue };
        let mut text = match page.is_empty() {
            true => "this server has no topics yet".to_owned(),
            false => "this server has these topics:".to_owned(),
        };
        for topic in page.iter().take(TOLD_MAX) {
            text += &format!("\n  {}", topic.url);
        }
        if page.len() > TOLD_MAX {
            text += &format!("\n  and more: anemone topics {url}");
        }
        return report(&text);
    }
}
