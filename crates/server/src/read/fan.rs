//! Fan-out: wakes a thread's readers of a topic once for each burst of events, and lets readers at the same position
//! share one page.
//!
//! Each topic with readers on the thread has one task, which holds no events. A woken reader continues from its own
//! position. The page that it reads is encoded once, and kept until the next one is read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ptr;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use anemone_hub::{Gap, Head, Position, Topic};
use anemone_wire::{Item, Mode};
use anemone_ws::proto::Prepared;
use anemone_ws::reactor::SendWaker;
use tokio::task::AbortHandle;

use crate::essential::Essentials;
use crate::read::reader::{self, Page, ReadEnd, ReadPlace, Reader};

#[derive(Debug)]
struct TopicReaders {
    /// Keeps the topic alive, so that its address stays unique.
    _topic: Arc<Topic>,
    /// In the order of subscription, which is close to the order of their sockets in memory.
    wakers: RefCell<BTreeMap<u64, SendWaker>>,
    next_key: Cell<u64>,
    head: RefCell<Head>,
    /// The last page for each encoding and mode.
    pages: RefCell<Vec<Rc<Frames>>>,
    task: AbortHandle,
}

/// The encoding of items for a transport. Readers with the same encoding share pages. An encoding is identified by
/// its address, so each is part of a `static`.
#[derive(Debug)]
pub(crate) struct ItemEncoding {
    /// Appends an item, or nothing if the transport has no form for it.
    pub(crate) append: fn(&Item<'_>, &mut String),
}

/// An encoded page, compressed once for all connections with the same parameters.
#[derive(Debug)]
pub(crate) struct Frames {
    place: ReadPlace,
    encoding: &'static ItemEncoding,
    pub(crate) messages: Vec<Prepared>,
    /// The text, in encodings without messages.
    pub(crate) chunk: Vec<u8>,
    pub(crate) gap: Option<Gap>,
    next: Position,
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
    /// Creates a fan whose tasks are among these.
    pub(crate) fn new(essentials: Essentials) -> Self {
        Self { essentials, ..Self::default() }
    }

    /// Wakes this connection whenever the topic has grown.
    pub(crate) fn subscribe(&self, topic: &Arc<Topic>, waker: SendWaker) -> Subscription {
        let mut topics = self.topics.borrow_mut();
        let address = Arc::as_ptr(topic).addr();
        let readers = topics.get(&address).and_then(Weak::upgrade).unwrap_or_else(|| {
            let readers = TopicReaders::start(topic, &self.essentials);
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
        encode: impl FnOnce(&Page) -> Vec<Prepared>,
    ) -> Result<Option<Rc<Frames>>, ReadEnd> {
        self.page(reader, encoding, |page| (encode(page), Vec::new()))
    }

    /// Returns the reader's next page as bytes.
    pub(crate) fn read_chunk(
        &self,
        reader: &mut Reader,
        encoding: &'static ItemEncoding,
        encode: impl FnOnce(&Page) -> Vec<u8>,
    ) -> Result<Option<Rc<Frames>>, ReadEnd> {
        self.page(reader, encoding, |page| (Vec::new(), encode(page)))
    }

    fn page(
        &self,
        reader: &mut Reader,
        encoding: &'static ItemEncoding,
        encode: impl FnOnce(&Page) -> (Vec<Prepared>, Vec<u8>),
    ) -> Result<Option<Rc<Frames>>, ReadEnd> {
        let place = reader.place();
        let frames = match self.readers.shared(place, encoding) {
            Some(frames) => {
                reader.pass(frames.next);
                frames
            }
            None if !self.readers.is_past(place.position) => return Ok(None),
            None => {
                let page = reader.read()?;
                let (messages, chunk) = encode(&page);
                let Page { gap, next, .. } = page;
                let frames = Frames { place, encoding, messages, chunk, gap, next };
                self.readers.keep(Rc::new(frames))
            }
        };
        if self.readers.is_past(frames.next) {
            self.waker.wake();
        }
        Ok(Some(frames))
    }
}

impl TopicReaders {
    fn start(topic: &Arc<Topic>, essentials: &Essentials) -> Rc<Self> {
        let mut head = topic.head();
        Rc::new_cyclic(|readers: &Weak<Self>| {
            let (readers, own_head) = (Weak::clone(readers), RefCell::new(head.clone()));
            let task = essentials.spawn(async move {
                loop {
                    head.grown().await;
                    let Some(readers) = readers.upgrade() else { return };
                    readers.wakers.borrow().values().for_each(SendWaker::wake);
                }
            });
            let (wakers, next_key, pages) = Default::default();
            let _topic = Arc::clone(topic);
            Self { _topic, wakers, next_key, head: own_head, pages, task }
        })
    }

    /// Returns true if there is something after `position`.
    fn is_past(&self, position: Position) -> bool {
        reader::is_past(&mut self.head.borrow_mut(), position)
    }

    /// Returns the last page, if it is the next one for a reader at this place.
    fn shared(&self, place: ReadPlace, encoding: &ItemEncoding) -> Option<Rc<Frames>> {
        let pages = self.pages.borrow();
        let frames = pages
            .iter()
            .find(|frames| ptr::eq(frames.encoding, encoding) && frames.place == place)?;
        // The page may no longer have the newest event.
        let is_old = place.mode == Mode::Latest && self.is_past(frames.next);
        (!is_old).then(|| Rc::clone(frames))
    }

    /// Replaces the last page. Readers that alternate at different places must each read for themselves, so they read
    /// at most twice as often.
    fn keep(&self, frames: Rc<Frames>) -> Rc<Frames> {
        let mut pages = self.pages.borrow_mut();
        pages.retain(|kept| {
            !ptr::eq(kept.encoding, frames.encoding) || kept.place.mode != frames.place.mode
        });
        pages.push(Rc::clone(&frames));
        frames
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.readers.wakers.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests;
