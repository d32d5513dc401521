//! Tests with a scripted server: it breaks connections, refuses, falls silent, repeats itself and omits events.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod calling;
mod ending;
mod failing;
mod fake;
mod falling_back;
mod listing;
mod multiplexing;
mod publishing;
mod resuming;
mod running;
mod secured;
mod several;

use std::time::Duration;

use anemone_client::{Item, Retry, Subscribe, Subscription, Timeouts, Via};
use fake::Fake;

/// Delays that are too short to notice.
const SOON: Retry = Retry {
    delay_min: Duration::from_millis(1),
    delay_max: Duration::from_millis(4),
    failures_max: Some(1000),
};

/// A subscription to the server's topic that tries again soon.
fn subscribe(fake: &Fake, via: Via) -> Subscribe {
    let timeouts = Timeouts { poll_interval: Duration::from_millis(1), ..Timeouts::default() };
    Subscribe::new(fake.url(via)).via(via).retry(SOON).timeouts(timeouts)
}

/// Returns the items of the topic in short form, until this number of events was received.
async fn told(subscription: &mut Subscription, events: usize) -> Vec<String> {
    let (mut told, mut count) = (Vec::new(), 0);
    while count < events {
        let item = subscription.next().await.unwrap().expect("the topic has not ended");
        count += usize::from(matches!(item, Item::Event { .. }));
        told.extend(short(&item));
    }
    told
}

/// Returns `None` for an item about the connection.
fn short(item: &Item) -> Option<String> {
    Some(match item {
        Item::Position(position) => format!("at {position}"),
        Item::Event { position, data, .. } => format!("{position}={data}"),
        Item::Gap(gap) => format!("gap {} {:?} to {}", gap.reason.as_str(), gap.missed, gap.resume),
        Item::Skipped(count) => format!("skipped {count}"),
        Item::End { reason } => format!("end {}", reason.as_str()),
        _ => return None,
    })
}

/// Returns the events of these offsets in the form of [`told`].
fn events(offsets: std::ops::RangeInclusive<u64>) -> Vec<String> {
    offsets.map(|offset| format!("e-{offset}={}", fake::data(offset))).collect()
}
