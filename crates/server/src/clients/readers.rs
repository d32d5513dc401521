//! The list of connected readers, with their positions and lags.
//!
//! A reader updates its own entry, with one store for each page, and removes it at its end. The list holds no topic
//! and no connection.

use std::collections::{BTreeMap, HashMap, hash_map};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use anemone_hub::{Epoch, Position, Topic, UnixTime};
use anemone_wire::Mode;
use serde_json::json;

use crate::request::client::Client;
use crate::transport_name::TransportName;

#[derive(Debug, Default)]
pub(crate) struct Readers {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// Sorted by the addresses in memory of their topics and entries, so that readers of one topic are adjacent.
    all: BTreeMap<(usize, usize), Arc<Entry>>,
    /// The number of readers of each topic that has some.
    counts: HashMap<usize, usize>,
}

/// A reader's entry. There are many, with about 100 bytes each.
#[derive(Debug)]
struct Entry {
    epoch: AtomicU64,
    offset: AtomicU64,
    since: UnixTime,
    address: Option<IpAddr>,
    port: u16,
    transport: TransportName,
    mode: Mode,
}

impl Entry {
    /// Returns the client's address, with port 0 if it is not known.
    fn client(&self) -> Option<SocketAddr> {
        self.address.map(|ip| SocketAddr::new(ip, self.port))
    }

    fn position(&self) -> Position {
        let epoch = Epoch::from_bits(self.epoch.load(Ordering::Relaxed));
        Position { epoch, offset: self.offset.load(Ordering::Relaxed) }
    }
}

/// A reader's entry in the list. Dropping it removes the entry.
#[derive(Debug)]
pub(crate) struct Listing {
    readers: Arc<Readers>,
    topic: usize,
    entry: Arc<Entry>,
}

/// Formats a client's address, with the port if it is known.
pub(crate) fn in_words(client: SocketAddr) -> String {
    match client.port() {
        0 => client.ip().to_string(),
        _ => client.to_string(),
    }
}

impl Listing {
    pub(crate) fn client(&self) -> Option<SocketAddr> {
        self.entry.client()
    }

    /// Returns what tells where the reader is, as long as it is listed.
    pub(crate) fn watch(&self) -> WatchedReader {
        WatchedReader(Arc::downgrade(&self.entry))
    }

    pub(crate) fn transport(&self) -> TransportName {
        self.entry.transport
    }

    pub(crate) fn since(&self) -> UnixTime {
        self.entry.since
    }

    /// Records that the reader has moved from a position of this epoch to another position.
    pub(crate) fn moved(&self, from: Epoch, to: Position) {
        // Torn updates do no harm, since the list is only informative.
        if from != to.epoch {
            self.entry.epoch.store(to.epoch.bits(), Ordering::Relaxed);
        }
        self.entry.offset.store(to.offset, Ordering::Relaxed);
    }
}

/// Tells where a listed reader is.
#[derive(Clone, Debug)]
pub(crate) struct WatchedReader(Weak<Entry>);

impl WatchedReader {
    /// Returns its position and mode, unless it is gone.
    pub(crate) fn state(&self) -> Option<(Position, Mode)> {
        let entry = self.0.upgrade()?;
        Some((entry.position(), entry.mode))
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        let key = (self.topic, address(&self.entry));
        let mut entries = self.readers.entries();
        entries.all.remove(&key);
        if let hash_map::Entry::Occupied(mut count) = entries.counts.entry(self.topic) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Readers {
    /// Adds a reader of this topic, which outlives the entry, at this position.
    pub(crate) fn enter(
        self: &Arc<Self>,
        topic: &Arc<Topic>,
        position: Position,
        client: Client,
        (transport, mode): (TransportName, Mode),
    ) -> Listing {
        let peer = client.address();
        let entry = Arc::new(Entry {
            epoch: AtomicU64::new(position.epoch.bits()),
            offset: AtomicU64::new(position.offset),
            since: UnixTime::now(),
            address: peer.map(|peer| peer.ip()),
            port: peer.map_or(0, |peer| peer.port()),
            transport,
            mode,
        });
        let topic = address(topic);
        let mut entries = self.entries();
        entries.all.insert((topic, address(&entry)), Arc::clone(&entry));
        *entries.counts.entry(topic).or_default() += 1;
        drop(entries);
        Listing { readers: Arc::clone(self), topic, entry }
    }

    pub(crate) fn counts(&self, topics: &[Arc<Topic>]) -> Vec<usize> {
        let entries = self.entries();
        let count = |topic| entries.counts.get(&address(topic)).copied().unwrap_or_default();
        topics.iter().map(count).collect()
    }

    /// Returns the readers of a topic as JSON, those furthest behind first: at most `limit` of them, and their
    /// number.
    pub(crate) fn list(&self, topic: &Arc<Topic>, limit: usize) -> serde_json::Value {
        let mut entries = self.of(topic);
        let now = UnixTime::now();
        let head = topic.info(now).head;
        // A reader in another epoch has read nothing of this one.
        entries.sort_by_cached_key(|entry| {
            let position = entry.position();
            (position.epoch == head.epoch, position.offset, entry.since)
        });
        let lag_max = entries.first().map(|slowest| topic.lag(now, slowest.position()));
        let readers = entries.iter().take(limit).map(|entry| {
            let position = entry.position();
            json!({
                "transport": entry.transport.as_str(),
                "client": entry.client().map(in_words),
                "mode": entry.mode.as_str(),
                "since": entry.since,
                "position": position.to_string(),
                "lag": topic.lag(now, position),
            })
        });
        json!({
            "next": head.to_string(),
            "count": entries.len(),
            "lag_max": lag_max.unwrap_or_default(),
            "readers": readers.collect::<Vec<_>>(),
        })
    }

    fn of(&self, topic: &Arc<Topic>) -> Vec<Arc<Entry>> {
        let topic = address(topic);
        let entries = self.entries();
        entries
            .all
            .range((topic, 0)..=(topic, usize::MAX))
            .map(|(_, entry)| Arc::clone(entry))
            .collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // No method panics while it holds the lock.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn address<T>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).addr()
}

#[cfg(test)]
mod tests {
    use anemone_hub::{Data, Retention};

    use super::*;
    use crate::peer::Peer;

    #[test]
    fn an_entry_takes_at_most_56_bytes() {
        assert!(size_of::<Entry>() <= 56, "{}", size_of::<Entry>());
    }

    #[test]
    fn the_slowest_stand_first_and_all_are_counted() {
        let topic = |name: &str| {
            Arc::new(Topic::new(name.parse().unwrap(), Epoch::from_bits(9), Retention::default()))
        };
        let (wind, other) = (topic("wind"), topic("other"));
        for _ in 0..5 {
            wind.publish(UnixTime::now(), Data::parse("\"xxxx\"").unwrap()).unwrap();
        }
        let readers = Arc::new(Readers::default());
        let client = Client::of_connection(
            Peer::new(Ok("[::ffff:10.0.0.1]:7".parse().unwrap())),
            &Default::default(),
        );
        let enter = |topic, epoch, offset| {
            let position = Position { epoch: Epoch::from_bits(epoch), offset };
            readers.enter(topic, position, client, (TransportName::WEBSOCKET, Mode::All))
        };
        let _others = enter(&other, 9, 0);
        let (fast, slow, elsewhere) = (enter(&wind, 9, 5), enter(&wind, 9, 3), enter(&wind, 8, 99));
        assert_eq!(readers.counts(&[Arc::clone(&wind), Arc::clone(&other)]), [3, 1]);
        let list = readers.list(&wind, 2);
        assert_eq!((&list["next"], &list["count"]), (&json!("9-5"), &json!(3)));
        assert_eq!(list["lag_max"], json!({ "events": 5, "bytes": 30 }));
        let listed = list["readers"].as_array().unwrap();
        assert_eq!(listed.len(), 2);
        assert_eq!(
            (&listed[0]["position"], &listed[0]["lag"]["events"]),
            (&json!("8-99"), &json!(5))
        );
        assert_eq!(listed[1]["lag"], json!({ "events": 2, "bytes": 12 }));
        assert_eq!(listed[1]["client"], "10.0.0.1:7");
        elsewhere.moved(Epoch::from_bits(8), Position { epoch: Epoch::from_bits(9), offset: 4 });
        slow.moved(Epoch::from_bits(9), Position { epoch: Epoch::from_bits(9), offset: 5 });
        assert_eq!(readers.list(&wind, 9)["lag_max"]["events"], 1);
        drop((fast, slow, elsewhere));
        assert_eq!(readers.list(&wind, 9)["count"], 0);
        assert_eq!(readers.counts(&[Arc::clone(&wind), Arc::clone(&other)]), [0, 1]);
        assert_eq!(readers.entries().counts.len(), 1, "nothing is kept of topics without readers");
        assert_eq!(readers.list(&other, 9)["count"], 1);
    }
}
