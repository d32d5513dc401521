//! Wakes connections at given times, with one task for all connections of a thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;

use anemone_ws::reactor::SendWaker;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The alarms of a thread. Clones are handles to the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarms(Rc<AlarmState>);

#[derive(Debug, Default)]
struct AlarmState {
    /// Sorted by due time, and then in the order in which they were set.
    set: RefCell<BTreeMap<(Instant, u64), SendWaker>>,
    count: Cell<u64>,
    /// Notified when a new alarm is due before all others.
    is_sooner: Notify,
}

/// The alarm of one connection. Dropping it cancels it.
#[derive(Debug)]
pub(crate) struct Alarm {
    shared: Rc<AlarmState>,
    key: (Instant, u64),
}

impl Alarms {
    pub(crate) fn set(&self, due: Instant, waker: SendWaker) -> Alarm {
        let shared = Rc::clone(&self.0);
        let key = (due, shared.count.get());
        shared.count.set(key.1 + 1);
        let mut set = shared.set.borrow_mut();
        if set.first_key_value().is_none_or(|(first, _)| key < *first) {
            shared.is_sooner.notify_one();
        }
        set.insert(key, waker);
        drop(set);
        Alarm { shared, key }
    }

    /// Wakes connections for as long as it is polled.
    pub(crate) async fn ring(&self) -> Infallible {
        loop {
            let first = self.0.set.borrow().first_key_value().map(|((due, _), _)| *due);
            let due = async {
                match first {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => self.ring_until(Instant::now()),
                () = self.0.is_sooner.notified() => {}
            }
        }
    }

    fn ring_until(&self, now: Instant) {
        let mut set = self.0.set.borrow_mut();
        while let Some(first) = set.first_entry()
            && first.key().0 <= now
        {
            first.remove().wake();
        }
    }
}

impl Alarm {
    /// Returns the time of the alarm, past or future.
    pub(crate) fn due(&self) -> Instant {
        self.key.0
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.shared.set.borrow_mut().remove(&self.key);
    }
}
