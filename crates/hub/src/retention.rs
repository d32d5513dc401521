//! Retention: the limits of a log. Pure; the log applies it.

use std::time::Duration;

use crate::UnixTime;

/// The limits of a log. The oldest events are dropped beyond any limit.
///
/// By default, a topic has no limit of its own: it shares the bytes of its [`Hub`](crate::Hub) with the others.
///
/// ```
/// use anemone_hub::{After, Data, Epoch, Retention, Topic, UnixTime};
///
/// let last_ten = Retention { events_max: 10, ..Retention::default() };
/// let wind = Topic::new("wind".parse()?, Epoch::random()?, last_ten);
/// let begin = wind.start(UnixTime::now(), After::Latest)?;
/// for number in 1..=15 {
///     wind.publish(UnixTime::now(), Data::json(&number)?)?;
/// }
/// let page = wind.read(UnixTime::now(), begin, Default::default())?;
/// assert_eq!((page.first, page.events.len()), (6, 10));
/// assert_eq!(page.gap.unwrap().missed, Some(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// The most events kept. Default [`NO_LIMIT`](Self::NO_LIMIT); at least 1 event is kept.
    pub events_max: u64,
    /// The most bytes kept, data and overhead together. In memory an event counts for its data and 152 bytes, about
    /// what it takes; on disk for its record, which is its data and 40 bytes.
    ///
    /// Default [`NO_LIMIT`](Self::NO_LIMIT): the topic keeps what fits in the bytes that it shares with all others
    /// that have no limit in bytes. When these are used up, the topics that hold most evict their oldest events; a
    /// topic that holds at most an equal share of them evicts nothing.
    pub bytes_max: u64,
    /// The longest time that an event is kept after [`Event::time`](crate::Event::time). Default [`Duration::MAX`],
    /// for no limit.
    pub age_max: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { events_max: Self::NO_LIMIT, bytes_max: Self::NO_LIMIT, age_max: Duration::MAX }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) oldest: UnixTime,
}

/// The size of a log's contents without its oldest piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Without {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl Retention {
    /// The number of events, or bytes, of a topic without such a limit.
    pub const NO_LIMIT: u64 = u64::MAX;

    /// Returns true if the topic has no limit in bytes, and shares those of its hub.
    #[must_use]
    pub fn shares_bytes(&self) -> bool {
        self.bytes_max == Self::NO_LIMIT
    }

    /// Returns true if a piece of a log can be dropped as a whole: the limits are reached without it, or its newest
    /// event is too old.
    pub(crate) fn lets_go(self, without: Without, newest: UnixTime, now: UnixTime) -> bool {
        without.events >= self.events_max.max(1)
            || without.bytes >= self.bytes_max
            || now.since(newest) > self.age_max
    }

    /// Returns true if the oldest event must be dropped.
    pub(crate) fn is_passed(&self, held: Holding, now: UnixTime) -> bool {
        held.events > self.events_max.max(1)
            || held.bytes > self.bytes_max
            || now.since(held.oldest) > self.age_max
    }
}
