//! The partial results of a service that streams, published together.
//!
//! One after the other costs each of them a lock, a clock and the wake-up of every watcher.

use std::time::Duration;

use anemone_hub::run::{RunContext, RunFailure};
use anemone_hub::{Data, DataError};
use anemone_wire::ProgressLine;
use futures_util::FutureExt;
use tokio::time::Instant;

use super::items::{Items, ItemsError};

/// The most items that are published together.
const ITEMS_MAX: usize = 256;
/// The bytes of items from which on they are published.
const BYTES_MAX: usize = 64 << 10;
/// The longest time between two publications while items come without a pause.
const INTERVAL: Duration = Duration::from_millis(5);

/// Takes a stream to its end: each item is progress, or a partial result. Items that are there together are published
/// together.
pub(super) async fn pass_on(items: &mut Items, run: &RunContext) -> Result<(), RunFailure> {
    let mut batch = PartialBatch::new();
    loop {
        let item = match items.next().now_or_never() {
            Some(item) => item,
            None => {
                publish(&mut batch, run)?;
                items.next().await
            }
        };
        match item {
            Some(Ok(item)) => tell(&mut batch, &item, run)?,
            end => {
                publish(&mut batch, run)?;
                return end.map_or(Ok(()), |item| item.map(drop).map_err(broken));
            }
        }
    }
}

/// Tells progress, or adds a partial result.
fn tell(batch: &mut PartialBatch, item: &[u8], run: &RunContext) -> Result<(), RunFailure> {
    let line = String::from_utf8_lossy(item);
    if let Some(ProgressLine { fraction, text }) = ProgressLine::parse(&line) {
        publish(batch, run)?;
        run.progress(fraction, text.as_deref())?;
    } else {
        let value = Data::parse(&line).or_else(|_| string(&line))?;
        if batch.add(Instant::now(), value) {
            publish(batch, run)?;
        }
    }
    Ok(())
}

fn publish(batch: &mut PartialBatch, run: &RunContext) -> Result<(), RunFailure> {
    if !batch.values.is_empty() {
        run.partials(&batch.values)?;
        batch.clear(Instant::now());
    }
    Ok(())
}

pub(super) fn broken(error: ItemsError) -> RunFailure {
    RunFailure::new(error.to_string())
}

pub(super) fn string(text: &str) -> Result<Data, RunFailure> {
    Data::json(text).map_err(unfit)
}

pub(super) fn unfit(error: DataError) -> RunFailure {
    RunFailure::new(error.to_string())
}

/// The partial results that are not published yet. Has no clock.
#[derive(Debug)]
struct PartialBatch {
    values: Vec<Data>,
    bytes: usize,
    /// The time of the last publication.
    published: Option<Instant>,
}

impl PartialBatch {
    fn new() -> Self {
        Self { values: Vec::new(), bytes: 0, published: None }
    }

    /// Adds a partial result. Returns true if all are to be published now: the first one after a pause is not held back.
    fn add(&mut self, now: Instant, value: Data) -> bool {
        self.bytes += value.bytes().len();
        self.values.push(value);
        let is_due = self.published.is_none_or(|published| published + INTERVAL <= now);
        is_due || self.values.len() >= ITEMS_MAX || self.bytes >= BYTES_MAX
    }

    fn clear(&mut self, now: Instant) {
        self.values.clear();
        (self.bytes, self.published) = (0, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds numbers at this time until they are to be published. Returns how many.
    fn taken(batch: &mut PartialBatch, now: Instant, value: &str) -> usize {
        let value = Data::parse(value).unwrap();
        while !batch.add(now, value.clone()) {}
        let count = batch.values.len();
        batch.clear(now);
        count
    }

    #[test]
    fn items_without_a_pause_are_published_together_and_the_first_one_at_once() {
        let now = Instant::now();
        let mut batch = PartialBatch::new();
        let long = format!("\"{}\"", "x".repeat(BYTES_MAX / 4));
        let counts = ["1", "1", &long, "1"].map(|value| taken(&mut batch, now, value));
        assert_eq!(counts, [1, ITEMS_MAX, 4, ITEMS_MAX]);
        assert!(!batch.add(now + INTERVAL / 2, Data::parse("1").unwrap()));
        assert_eq!(taken(&mut batch, now + INTERVAL, "1"), 2);
        assert_eq!(taken(&mut batch, now + 2 * INTERVAL, "1"), 1, "there was a pause");
    }
}
