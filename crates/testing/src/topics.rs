//! The topics of a source, read once they have what a test waits for.

use std::sync::Arc;
use std::time::SystemTime;

use anemone_hub::{After, Epoch, Event, PageLimit, Position, Retention, Topic, UnixTime};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::within;

/// A task that ends with its owner.
pub struct Background<T>(pub JoinHandle<T>);

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The topics that a source publishes to.
#[derive(Clone)]
pub struct Topics {
    pub events: Arc<Topic>,
    pub status: Arc<Topic>,
}

fn now() -> UnixTime {
    SystemTime::now().into()
}

fn start(topic: &Topic) -> Position {
    topic.start(now(), After::Earliest).unwrap()
}

/// The data of all events that a topic keeps.
pub fn values(topic: &Topic) -> Vec<Value> {
    let limit = PageLimit { events_max: usize::MAX, bytes_max: u64::MAX };
    let page = topic.read(now(), start(topic), limit).unwrap();
    page.events.iter().map(value).collect()
}

fn value(event: &Arc<Event>) -> Value {
    serde_json::from_str(event.data.as_str()).unwrap()
}

impl Topics {
    pub fn new(name: &str) -> Self {
        Self::keeping(name, Retention::default())
    }

    pub fn keeping(name: &str, retention: Retention) -> Self {
        let topic = |name: &str| {
            Arc::new(Topic::new(name.parse().unwrap(), Epoch::from_bits(1), retention))
        };
        Self { events: topic(name), status: topic(&format!("{name}.status")) }
    }

    /// The data of all events that are kept.
    pub fn all(&self) -> Vec<Value> {
        values(&self.events)
    }

    /// Waits for this number of events, and returns the data of all.
    pub async fn events(&self, count: usize) -> Vec<Value> {
        let mut head = self.events.head();
        let mut position = start(&self.events);
        position.offset += count as u64 - 1;
        within(head.passed(position)).await;
        self.all()
    }

    /// Waits for the first status for which `is_so` holds.
    pub async fn status(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut head = self.status.head();
        let mut position = start(&self.status);
        within(async {
            loop {
                let page = self.status.read(now(), position, PageLimit::default()).unwrap();
                if let Some(status) = page.events.iter().map(value).find(&is_so) {
                    return status;
                }
                position = page.next;
                head.passed(position).await;
            }
        })
        .await
    }
}
