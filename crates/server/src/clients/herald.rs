//! The news of the index for the streams of several topics of a thread.
//!
//! A creation would wake each of a thousand streams at once, and everybody else would wait behind all of them. So a herald
//! follows the index for them, and tells them one after the other; between two, every other task of the thread has its turn.
//! It begins to tell at most ten times a second, and then tells everything since.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anemone_hub::{Position, Topic};
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::rounds::{InRounds, Rounds};

/// The least time from one beginning to the next.
const INTERVAL: Duration = Duration::from_millis(100);

/// Tells the streams of a thread that the index has grown.
#[derive(Debug, Default)]
pub(crate) struct Herald {
    waiting: Mutex<WaitingStreams>,
    /// Notified when a stream waits for earlier news than all others.
    wanted: Notify,
}

#[derive(Debug, Default)]
struct WaitingStreams {
    all: Vec<oneshot::Sender<()>>,
    /// The earliest position after which one of them waits.
    earliest: Option<Position>,
    /// The number of streams at which those that are gone are removed.
    full_at: usize,
}

/// With fewer streams than this, none is looked for that is gone.
const FULL_AT_LEAST: usize = 64;

impl WaitingStreams {
    /// Adds a stream; returns true if it waits for earlier news than all others.
    fn add(&mut self, position: Position, tell: oneshot::Sender<()>) -> bool {
        if self.all.len() >= self.full_at {
            self.all.retain(|tell| !tell.is_closed());
            self.full_at = (2 * self.all.len()).max(FULL_AT_LEAST);
        }
        self.all.push(tell);
        let is_earliest = self.earliest.is_none_or(|earliest| position.offset < earliest.offset);
        if is_earliest {
            self.earliest = Some(position);
        }
        is_earliest
    }
}

impl Herald {
    /// Returns once the index may have grown beyond this position, and it is the caller's turn to hear of that.
    pub(crate) async fn news_after(self: Arc<Self>, position: Position) {
        let (tell, told) = oneshot::channel();
        if self.waiting().add(position, tell) {
            self.wanted.notify_one();
        }
        // An error says that the thread ends.
        let _ = told.await;
    }

    /// Follows the index. It runs on the thread of the streams, and waits in the rounds of their connections: the next
    /// stream is told once those who came before it have had their turns.
    pub(crate) async fn run(self: Arc<Self>, index: Arc<Topic>, rounds: Arc<Rounds>) {
        let (mut head, mut own) = (index.head(), InRounds::new(&rounds));
        loop {
            let Some(earliest) = self.waiting().earliest else {
                self.wanted.notified().await;
                continue;
            };
            tokio::select! {
                biased;
                () = head.passed(earliest) => {}
                () = self.wanted.notified() => continue,
            }
            let next_at = Instant::now() + INTERVAL;
            let told = std::mem::take(&mut *self.waiting()).all;
            for tell in told {
                // Fails if the stream is gone.
                if tell.send(()).is_ok() {
                    yield_now().await;
                    own.admitted().await;
                }
            }
            sleep_until(next_at).await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingStreams> {
        // No method panics while it holds the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use anemone_hub::{Epoch, Hub, Retention, UnixTime};
    use futures_util::FutureExt;
    use tokio::task::{LocalSet, spawn_local};

    use super::*;

    fn create(hub: &Hub, name: &str) {
        hub.create(name.parse().unwrap(), Retention::default()).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn streams_hear_of_news_one_after_the_other_and_ten_times_a_second() {
        let turns = async {
            let (hub, herald) = (Hub::new(Epoch::from_bits(1)), Arc::<Herald>::default());
            let run = Arc::clone(&herald).run(Arc::clone(hub.index()), Arc::default());
            let following = spawn_local(run);
            let log = Rc::new(RefCell::new(Vec::new()));
            let hear = |position| {
                let (herald, log) = (Arc::clone(&herald), Rc::clone(&log));
                spawn_local(async move {
                    herald.news_after(position).await;
                    log.borrow_mut().push("told");
                })
            };
            let other = Rc::clone(&log);
            let other = spawn_local(async move {
                loop {
                    yield_now().await;
                    other.borrow_mut().push("other");
                    if other.borrow().len() > 1000 {
                        return;
                    }
                }
            });
            let begun = Instant::now();
            let position = hub.index().info(UnixTime::now()).head;
            let streams: Vec<_> = (0..10).map(|_| hear(position)).collect();
            yield_now().await;
            create(&hub, "first");
            for stream in streams {
                stream.await.unwrap();
            }
            assert_eq!(begun.elapsed(), Duration::ZERO, "the first news is told at once");
            assert!(log.borrow().windows(2).all(|two| two != ["told", "told"]), "{log:?}");
            other.await.unwrap();
            let position = hub.index().info(UnixTime::now()).head;
            create(&hub, "second");
            hear(position).await.unwrap();
            assert_eq!(begun.elapsed().as_millis(), INTERVAL.as_millis());
            following.abort();
        };
        LocalSet::new().run_until(turns).await;
    }

    #[test]
    fn those_who_leave_without_news_are_forgotten() {
        let hub = Hub::new(Epoch::from_bits(1));
        let position = hub.index().info(UnixTime::now()).head;
        let herald = Arc::<Herald>::default();
        let stays = || Box::pin(Arc::clone(&herald).news_after(position));
        let mut staying: Vec<_> = (0..10).map(|_| stays()).collect();
        assert!(staying.iter_mut().all(|stays| stays.now_or_never().is_none()));
        for _ in 0..10_000 {
            assert!(stays().now_or_never().is_none());
        }
        assert!(herald.waiting().all.len() <= FULL_AT_LEAST, "{}", herald.waiting().all.len());
    }
}
