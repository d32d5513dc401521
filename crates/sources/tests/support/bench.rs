//! A source's topics, and waits that end.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use anemone_hub::{After, Epoch, Event, PageLimit, Position, Retention, Topic, UnixTime};
use serde_json::Value;
use tokio::task::JoinHandle;

/// No wait here takes this long, on any machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.expect("nothing happened for 30 s")
}

/// A task that ends with its owner.
pub(crate) struct Background<T>(pub(crate) JoinHandle<T>);

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The topics that a source publishes to.
#[derive(Clone)]
pub(crate) struct Topics {
    pub(crate) events: Arc<Topic>,
    pub(crate) status: Arc<Topic>,
}

fn now() -> UnixTime {
    SystemTime::now().into()
}

fn start(topic: &Topic) -> Position {
    topic.start(now(), After::Earliest).unwrap()
}

fn value(event: &Arc<Event>) -> Value {
    serde_json::from_str(event.data.as_str()).unwrap()
}

impl Topics {
    pub(crate) fn new(name: &str) -> Self {
        Self::keeping(name, Retention::default())
    }

    pub(crate) fn keeping(name: &str, retention: Retention) -> Self {
        let topic = |name: &str| {
            Arc::new(Topic::new(name.parse().unwrap(), Epoch::from_bits(1), retention))
        };
        Self { events: topic(name), status: topic(&format!("{name}.status")) }
    }

    /// All events kept.
    pub(crate) fn all(&self) -> Vec<Value> {
        let limit = PageLimit { events_max: usize::MAX, bytes_max: u64::MAX };
        let page = self.events.read(now(), start(&self.events), limit).unwrap();
        page.events.iter().map(value).collect()
    }

    /// All events, once there are this many.
    pub(crate) async fn events(&self, count: usize) -> Vec<Value> {
        let mut head = self.events.head();
        let mut position = start(&self.events);
        position.offset += count as u64 - 1;
        within(head.passed(position)).await;
        self.all()
    }

    /// The first status that is so.
    pub(crate) async fn status(&self, is_so: impl Fn(&Value) -> bool) -> Value {
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

/// A directory of its own for a test, removed at its end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("anemone-sources-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // One of a process before, which had the same id and was killed.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
