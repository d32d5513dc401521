//! `anemone sub`: what comes of a topic, a line for each event.
//!
//! It listens for no signal: Ctrl-C ends it, as it does `cat`.

use anemone_client::{Error, Item, Mode, Subscribe, Subscription, one_line};
use anyhow::bail;

use super::{print, runtime};
use crate::args::{self, Output};

pub(crate) fn run(args: args::Sub) -> anyhow::Result<()> {
    let (count, output) = (args.count, args.output);
    let subscription = start(args)?;
    runtime()?.block_on(async {
        let mut events = Events { subscription, seen: 0 };
        while count.is_none_or(|count| events.seen < count.get()) {
            let Some(item) = events.next().await? else { break };
            let line = match output {
                Output::Json => item.to_json(),
                Output::Data => data(item),
            };
            if !print(line)? {
                return Ok(());
            }
        }
        match count {
            Some(count) if events.seen < count.get() => {
                bail!("the topic ended after {} of {count} events", events.seen)
            }
            _ => Ok(()),
        }
    })
}

fn start(args: args::Sub) -> Result<Subscription, Error> {
    let mut subscribe = Subscribe::new(args.url);
    if let Some(via) = args.via.into() {
        subscribe = subscribe.via(via);
    }
    if let Some(after) = args.after {
        subscribe = subscribe.after(after);
    }
    if let Some(mode) = args.mode {
        subscribe = subscribe.mode(match mode {
            args::Behind::All => Mode::All,
            args::Behind::Latest => Mode::Latest,
        });
    }
    subscribe.start()
}

/// A subscription that tells standard error how it fares.
struct Events {
    subscription: Subscription,
    /// How many there were.
    seen: u64,
}

impl Events {
    async fn next(&mut self) -> Result<Option<Item>, Error> {
        let item = self.subscription.next().await?;
        match &item {
            Some(Item::Connected { via }) => tracing::info!("connected by {via}"),
            Some(Item::Disconnected { error, retry_in }) => {
                let why = anyhow::Error::new(std::sync::Arc::clone(error));
                match retry_in.is_zero() {
                    true => tracing::warn!("trying another transport: {why:#}"),
                    false => tracing::warn!("trying again in {retry_in:.1?}: {why:#}"),
                }
            }
            Some(Item::Event { .. }) => self.seen += 1,
            _ => {}
        }
        Ok(item)
    }
}

/// An event's data. Notices are told on standard error: nobody is to miss events without knowing.
fn data(item: Item) -> Option<String> {
    match item {
        Item::Event { data, .. } => Some(one_line(&data).into_owned()),
        Item::Gap(gap) => {
            tracing::warn!("{gap}");
            None
        }
        Item::Skipped(count) => {
            tracing::info!("{count} events were passed over");
            None
        }
        Item::End { reason } => {
            tracing::info!("the topic has ended: {reason:?}");
            None
        }
        _ => None,
    }
}
