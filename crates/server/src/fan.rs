//! Fan-out: wakes a thread's readers of a topic, once for each burst of events.
//!
//! One task for each topic that a thread has readers of. It knows no positions and holds no events: a
//! reader that is woken reads on from where it is.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use anemone_hub::{Topic, TopicName};
use anemone_ws::reactor::Waker;
use tokio::task::AbortHandle;

/// A thread's readers of one topic.
#[derive(Debug)]
struct Readers {
    wakers: RefCell<HashSet<Waker>>,
    task: AbortHandle,
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A thread's readers, by topic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fan {
    topics: Rc<RefCell<HashMap<TopicName, Weak<Readers>>>>,
}

/// A reader's place in the fan; dropping it leaves.
#[derive(Debug)]
pub(crate) struct Subscription {
    readers: Rc<Readers>,
    waker: Waker,
}

impl Subscription {
    /// Wakes the reader, as if the topic had grown.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}

impl Fan {
    /// Has this connection woken whenever the topic has grown.
    pub(crate) fn subscribe(&self, topic: &Arc<Topic>, waker: Waker) -> Subscription {
        let mut topics = self.topics.borrow_mut();
        let readers = topics.get(topic.name()).and_then(Weak::upgrade).unwrap_or_else(|| {
            let readers = self.start(topic);
            topics.retain(|_, readers| readers.strong_count() > 0);
            topics.insert(topic.name().clone(), Rc::downgrade(&readers));
            readers
        });
        readers.wakers.borrow_mut().insert(waker.clone());
        Subscription { readers, waker }
    }

    fn start(&self, topic: &Arc<Topic>) -> Rc<Readers> {
        let mut head = topic.head();
        Rc::new_cyclic(|readers: &Weak<Readers>| {
            let readers = Weak::clone(readers);
            let task = tokio::task::spawn_local(async move {
                loop {
                    head.grown().await;
                    let Some(readers) = readers.upgrade() else { return };
                    readers.wakers.borrow().iter().for_each(Waker::wake);
                }
            });
            Readers { wakers: RefCell::default(), task: task.abort_handle() }
        })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.readers.wakers.borrow_mut().remove(&self.waker);
    }
}
