//! Wakers of calls, which services keep while they wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use anemone_wire::multiplexed::Id;
use anemone_ws::reactor::{SendWaker, SyncWaker};

#[derive(Debug)]
pub(super) struct CallWakers {
    woken: Arc<WokenCalls>,
    /// The waker of a call that is over, which serves another one if nobody else has it.
    spare: Option<Arc<CallWaker>>,
}

#[derive(Debug)]
struct WokenCalls {
    ids: Mutex<Vec<Id>>,
    connection: SyncWaker,
}

/// Wakes a call from any thread. If the call is over, another one with its id may be woken for nothing.
#[derive(Debug)]
pub(super) struct CallWaker {
    id: Id,
    /// True from a wake-up until the call is polled. Until then, the id is in the list once.
    is_woken: AtomicBool,
    woken: Arc<WokenCalls>,
}

impl CallWakers {
    pub(super) fn new(connection: &SendWaker) -> Self {
        let woken = WokenCalls { ids: Mutex::default(), connection: connection.to_sync() };
        Self { woken: Arc::new(woken), spare: None }
    }

    pub(super) fn create(&mut self, id: Id) -> Arc<CallWaker> {
        if let Some(mut spare) = self.spare.take()
            && let Some(waker) = Arc::get_mut(&mut spare)
        {
            waker.id = id;
            *waker.is_woken.get_mut() = false;
            return spare;
        }
        let (is_woken, woken) = (AtomicBool::new(false), Arc::clone(&self.woken));
        Arc::new(CallWaker { id, is_woken, woken })
    }

    /// Takes back the waker of a call that is over.
    pub(super) fn take_back(&mut self, waker: Arc<CallWaker>) {
        self.spare = Some(waker);
    }

    /// Takes the calls that were woken. Some may be over.
    pub(super) fn take(&self) -> Vec<Id> {
        std::mem::take(&mut *self.woken.lock())
    }
}

impl WokenCalls {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Id>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallWaker {
    /// Records that the call is polled now.
    pub(super) fn reset(&self) {
        self.is_woken.store(false, Ordering::Release);
    }
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.woken.lock().push(self.id);
            self.woken.connection.wake();
        }
    }
}
