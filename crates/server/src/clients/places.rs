//! Counts something for each source of clients: an address, or a user of this machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::source::Source;

/// The interval at which refused sources are logged, with their number.
const TELL_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Places {
    /// The limit for one source.
    max: usize,
    /// The words for the log: what is counted, and the limit.
    words: Words,
    taken: Mutex<TakenPlaces>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// Such as "connections".
    pub(crate) what: &'static str,
    /// Such as "limits.connections_per_address_max".
    pub(crate) limit: &'static str,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    by_source: HashMap<Source, usize>,
    /// The number of refusals since the last log line.
    refused: usize,
    told_at: Option<Instant>,
}

/// A place of a source. Dropping it returns the place.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    source: Source,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().leave(self.source);
    }
}

impl Places {
    pub(crate) fn new(max: usize, words: Words) -> Self {
        Self { max, words, taken: Mutex::default() }
    }

    pub(crate) fn take(self: &Arc<Self>, source: Source) -> Option<Place> {
        self.try_count(source).then(|| Place { places: Arc::clone(self), source })
    }

    /// Counts one more and returns true, if the source may have one.
    fn try_count(&self, source: Source) -> bool {
        let mut taken = self.lock();
        let count = taken.by_source.entry(source).or_default();
        if *count < self.max {
            *count += 1;
            return true;
        }
        taken.refused += 1;
        let now = Instant::now();
        if taken.told_at.is_none_or(|told_at| now - told_at >= TELL_INTERVAL) {
            let refused = std::mem::take(&mut taken.refused);
            taken.told_at = Some(now);
            drop(taken);
            let (max, Words { what, limit }) = (self.max, self.words);
            tracing::warn!(
                "{source} has reached {limit}, {max} {what}: refused one more{}",
                more(refused)
            );
        }
        false
    }

    #[cfg(test)]
    pub(crate) fn sources(&self) -> usize {
        self.lock().by_source.len()
    }

    fn lock(&self) -> MutexGuard<'_, TakenPlaces> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Describes the number of refusals that were not logged.
fn more(refused: usize) -> String {
    match refused {
        0 | 1 => String::new(),
        refused => format!(" ({} more since the last such line)", refused - 1),
    }
}

impl TakenPlaces {
    fn leave(&mut self, source: Source) {
        if let Some(count) = self.by_source.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
    }
}
