//! Fan-out: wakes a thread's readers of a topic once for each burst of events.
//!
//! Each topic with readers on the thread has one task, which holds no events. A woken reader continues from its own
//! position, by a page that it shares with others at the same place.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use anemone_hub::Topic;
use anemone_ws::reactor::SendWaker;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::essential::Essentials;
use crate::read::pages::{ItemEncoding, Pages, SHARED_FOR, SharedPage, TopicPages};
use crate::read::reader::{ReadEnd, Reader};

#[derive(Debug)]
struct TopicReaders {
    /// In the order of subscription, which is close to the order of their sockets in memory.
    wakers: RefCell<BTreeMap<u64, SendWaker>>,
    next_key: Cell<u64>,
    pages: Arc<TopicPages>,
    task: AbortHandle,
}

impl Drop for TopicReaders {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A thread's readers by the addresses of their topics, since a name may belong to another topic by now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fan {
    topics: Rc<RefCell<HashMap<usize, Weak<TopicReaders>>>>,
    /// Those of the thread.
    pages: Pages,
    essentials: Essentials,
}

/// A reader's subscription in the fan. Dropping it removes the reader.
#[derive(Debug)]
pub(crate) struct Subscription {
    readers: Rc<TopicReaders>,
    key: u64,
    waker: SendWaker,
}

impl Fan {
    /// Creates a fan whose tasks are among these, and whose readers share these pages.
    pub(crate) fn new(essentials: Essentials, pages: Pages) -> Self {
        Self { essentials, pages, ..Self::default() }
    }

    /// Wakes this connection whenever the topic has grown.
    pub(crate) fn subscribe(&self, topic: &Arc<Topic>, waker: SendWaker) -> Subscription {
        let mut topics = self.topics.borrow_mut();
        let address = Arc::as_ptr(topic).addr();
        let readers = topics.get(&address).and_then(Weak::upgrade).unwrap_or_else(|| {
            let readers = TopicReaders::start(topic, self.pages.of(topic), &self.essentials);
            topics.retain(|_, readers| readers.strong_count() > 0);
            topics.insert(address, Rc::downgrade(&readers));
            readers
        });
        let key = readers.next_key.get();
        readers.next_key.set(key + 1);
        readers.wakers.borrow_mut().insert(key, waker.clone());
        Subscription { readers, key, waker }
    }
}

impl Subscription {
    /// Returns the reader's next page, and moves the reader past it; `None` when everything was read. If a limit cut
    /// the page short, the reader is woken for the rest.
    pub(crate) fn read(
        &self,
        reader: &mut Reader,
        encoding: &'static ItemEncoding,
    ) -> Result<Option<Arc<SharedPage>>, ReadEnd> {
        let pages = &self.readers.pages;
        let page = pages.read(reader, encoding)?;
        if page.as_ref().is_some_and(|page| pages.has_more(page)) {
            self.waker.wake();
        }
        Ok(page)
    }
}

impl TopicReaders {
    fn start(topic: &Arc<Topic>, pages: Arc<TopicPages>, essentials: &Essentials) -> Rc<Self> {
        let mut head = topic.head();
        Rc::new_cyclic(|readers: &Weak<Self>| {
            let (readers, last_pages) = (Weak::clone(readers), Arc::clone(&pages));
            let task = essentials.spawn(async move {
                let mut has_pages = false;
                loop {
                    if !has_pages {
                        head.grown().await;
                    } else if timeout(SHARED_FOR, head.grown()).await.is_err() {
                        has_pages = last_pages.forget_old();
                        continue;
                    }
                    has_pages = true;
                    let Some(readers) = readers.upgrade() else { return };
                    readers.wakers.borrow().values().for_each(SendWaker::wake);
                }
            });
            let (wakers, next_key) = Default::default();
            Self { wakers, next_key, pages, task }
        })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.readers.wakers.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests;
