//! `anemone sub`: prints a line for each event of a topic, or of several.
//!
//! It handles no signal: Ctrl-C ends it, as it ends `cat`.

use std::borrow::Cow;
use std::io;
use std::num::NonZero;

use anemone_client::{EndReason, Error, Item, Mode, Retry, RunHandle, Subscribe, Subscription};

use super::misuse::{Misuse, check_topic_word};
use super::{form, runtime, topics};
use crate::args::{self, Output};
use crate::output;

/// The topic ended before the requested events.
#[derive(Debug, thiserror::Error)]
#[error("{reason}{}", of(*seen, *count))]
pub(crate) struct Ended {
    pub(crate) reason: EndReason,
    seen: u64,
    count: Option<NonZero<u64>>,
}

fn of(seen: u64, count: Option<NonZero<u64>>) -> String {
    count.map(|count| format!(" (received {seen} of {count} events)")).unwrap_or_default()
}

pub(crate) fn run(args: &args::Sub) -> anyhow::Result<()> {
    let count = args.count;
    let url = &*url(args)?;
    let subscription = start(args, url)?;
    runtime()?.block_on(async {
        let is_quiet = args.reach.quiet;
        // A run is read from its beginning.
        let is_from_now = args.is_from_now() && RunHandle::at(url).is_err();
        let mut events =
            Events { subscription, is_quiet, is_from_now, has_begun: false, seen: 0, ended: None };
        let unread = output::unread();
        tokio::pin!(unread);
        while count.is_none_or(|count| events.seen < count.get()) {
            let item = tokio::select! {
                item = events.next() => item,
                () = &mut unread => return Ok(()),
            };
            if let Err(Error::NoTopic { example }) = &item {
                topics::print_topics(url, example, &args.reach).await;
                topics::suggest_call(url, &args.reach);
            }
            let item = match item.map_err(anyhow::Error::from) {
                // Of several topics, the refusal names the one that is missing.
                Err(error) if args.names().next().is_some() => return Err(error),
                Err(error) => {
                    topics::suggest_topic(url, &error, &args.reach).await;
                    return Err(error);
                }
                Ok(item) => item,
            };
            let Some(item) = item else { break };
            if !print(&item, args.output)? {
                return Ok(());
            }
        }
        match events.ended {
            None => Ok(()),
            Some(reason @ (EndReason::Ended | EndReason::Other(_))) if count.is_none() => {
                tracing::info!("{reason}");
                Ok(())
            }
            Some(reason) => Err(Ended { reason, seen: events.seen, count }.into()),
        }
    })
}

/// Returns the URL of the topic, or that of the server for several topics.
fn url(args: &args::Sub) -> Result<Cow<'_, str>, Misuse> {
    match args.name.as_ref().filter(|name| !name.contains('*')) {
        None => Ok(Cow::Borrowed(&args.url)),
        Some(name) => args::of_topic(&args.url, name).map(Cow::Owned).ok_or(Misuse::NamedTwice),
    }
}

fn start(args: &args::Sub, url: &str) -> anyhow::Result<Subscription> {
    check_topic_word(url)?;
    let retry = Retry { failures_max: args.retries, ..Retry::default() };
    let subscribe = args.reach.apply(url, Subscribe::new(url).retry(retry))?;
    let mut subscribe = args.begin(subscribe);
    if let Some(via) = args.via.into() {
        subscribe = subscribe.via(via);
    }
    if let Some(mode) = args.mode {
        subscribe = subscribe.mode(match mode {
            args::Behind::All => Mode::All,
            args::Behind::Latest => Mode::Latest,
        });
    }
    Ok(subscribe.start()?)
}

/// A subscription that reports its connections on standard error.
struct Events {
    subscription: Subscription,
    /// True to report nothing about connections.
    is_quiet: bool,
    /// True if it begins with future events: a position before the first event then means that there is none yet.
    is_from_now: bool,
    /// True if the beginning in several topics was reported.
    has_begun: bool,
    seen: u64,
    ended: Option<EndReason>,
}

impl Events {
    /// Returns the next item. Cancel safe.
    async fn next(&mut self) -> Result<Option<Item>, Error> {
        let item = self.subscription.next().await?;
        item.iter().for_each(|item| report_connection(item, self.is_quiet));
        match &item {
            // Programs expect an event in the first line of the output.
            Some(Item::Position(position)) => {
                tracing::info!("reading begins after {position}");
                if self.is_from_now && position.offset == 0 {
                    tracing::info!(
                        "the topic has no events yet: waiting for the first (anemone topics lists the names of \
                         all topics)"
                    );
                }
            }
            Some(Item::Token(token)) if !self.has_begun => {
                self.has_begun = true;
                tracing::info!("reading begins after {token}");
            }
            Some(Item::Of { item, .. }) => {
                self.seen += u64::from(matches!(**item, Item::Event { .. }))
            }
            Some(Item::Event { .. }) => self.seen += 1,
            Some(Item::End { reason }) => self.ended = Some(reason.clone()),
            _ => {}
        }
        Ok(item)
    }
}

pub(super) fn report_connection(item: &Item, is_quiet: bool) {
    match item {
        Item::Connected { via } => tracing::info!("connected over {via}"),
        Item::Disconnected { via, error, retry_in, next } if !is_quiet => {
            let hint = if error.is_connection_refused() { " (is the server running?)" } else { "" };
            let why = format!("{:#}{hint}", anyhow::Error::new(std::sync::Arc::clone(error)));
            match (via == next, retry_in.is_zero()) {
                (true, _) => tracing::warn!("retrying in {retry_in:.1?}: {why}"),
                (false, true) => {
                    tracing::warn!("trying another transport, {next} instead of {via}: {why}");
                }
                (false, false) => tracing::warn!(
                    "trying another transport, {next} instead of {via}, in {retry_in:.1?}: {why}"
                ),
            }
        }
        _ => {}
    }
}

/// Prints an event, and a notice if the format has one. Otherwise notices go to standard error, so that nobody misses
/// events unknowingly. The end is reported after everything before it. Returns false once nobody reads the output.
fn print(item: &Item, output: Output) -> io::Result<bool> {
    match (item, output) {
        (Item::Position(_) | Item::Token(_), _) => Ok(true),
        (item, Output::Json) => output::print(item.to_json()),
        (Item::Of { topic, item }, _) => match &**item {
            Item::Gap(gap) => {
                tracing::warn!("{topic}: {gap}");
                Ok(true)
            }
            Item::End { reason } => {
                tracing::warn!("{topic}: {reason}");
                Ok(true)
            }
            item => print(item, output),
        },
        (Item::Event { data, .. }, Output::Data) => output::write(&form::data(data)),
        (Item::Event { data, .. }, Output::Line) => output::write(&form::line(data)),
        (Item::Event { data, .. }, Output::Raw) => output::write(&form::raw(data)),
        (Item::Gap(gap), _) => {
            tracing::warn!("{gap}");
            Ok(true)
        }
        (Item::Skipped(count), _) => {
            tracing::info!("{count} events were skipped");
            Ok(true)
        }
        _ => Ok(true),
    }
}
