//! Fan-out: wakes a thread's readers of a topic, once for each burst of events, and has those who stand at the
//! same place share one page.
//!
//! One task for each topic that a thread has readers of, which holds no events. A reader that is woken reads on
//! from where it is; the page it reads is encoded once, and kept until the next one is read.

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

use crate::Problem;
use crate::essential::Essentials;
use crate::read::reader::{self, Page, Place, Reader};

/// A thread's readers of one topic.
#[derive(Debug)]
struct Readers {
    /// Keeps its address from being another's.
    _topic: Arc<Topic>,
    /// In the order they came, which is about that of their sockets in memory.
    wakers: RefCell<BTreeMap<u64, SendWaker>>,
    next_key: Cell<u64>,
    head: RefCell<Head>,
    /// The last that was read, one for each encoding and mode.
    pages: RefCell<Vec<Rc<Frames>>>,
    task: AbortHandle,
}

/// The encoding in which a transport tells its readers what they read. Those of one encoding share their pages; it is known
/// by its address, so each is part of a `static`.
#[derive(Debug)]
pub(crate) struct ItemEncoding {
    /// Appends an item; nothing where it is not told.
    pub(crate) append: fn(&Item<'_>, &mut String),
}

/// A page as it is sent: encoded once, and compressed once for all that compress alike.
#[derive(Debug)]
pub(crate) struct Frames {
    place: Place,
    encoding: &'static ItemEncoding,
    pub(crate) messages: Vec<Prepared>,
    /// In the encodings that are no messages.
    pub(crate) chunk: Vec<u8>,
    /// The gap before it.
    pub(crate) gap: Option<Gap>,
    next: Position,
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A thread's readers, by the address of their topic: a name may be another one's by now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fan {
    topics: Rc<RefCell<HashMap<usize, Weak<Readers>>>>,
    essentials: Essentials,
}

/// A reader's place in the fan; dropping it leaves.
#[derive(Debug)]
pub(crate) struct Subscription {
    readers: Rc<Readers>,
    key: u64,
    waker: SendWaker,
}

impl Fan {
    /// Its tasks are among these.
    pub(crate) fn new(essentials: Essentials) -> Self {
        Self { essentials, ..Self::default() }
    }

    /// Has this connection woken whenever the topic has grown.
    pub(crate) fn subscribe(&self, topic: &Arc<Topic>, waker: SendWaker) -> Subscription {
        let mut topics = self.topics.borrow_mut();
        let address = Arc::as_ptr(topic).addr();
        let readers = topics.get(&address).and_then(Weak::upgrade).unwrap_or_else(|| {
            let readers = Readers::start(topic, &self.essentials);
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
    /// The reader's next page, and moves it past that; `None` when it has read everything. When the limit cut
    /// it short, the reader is woken for the rest.
    pub(crate) fn read(
        &self,
        reader: &mut Reader,
        encoding: &'static ItemEncoding,
        encode: impl FnOnce(&Page) -> Vec<Prepared>,
    ) -> Result<Option<Rc<Frames>>, Problem> {
        self.page(reader, encoding, |page| (encode(page), Vec::new()))
    }

    /// The same as bytes.
    pub(crate) fn read_chunk(
        &self,
        reader: &mut Reader,
        encoding: &'static ItemEncoding,
        encode: impl FnOnce(&Page) -> Vec<u8>,
    ) -> Result<Option<Rc<Frames>>, Problem> {
        self.page(reader, encoding, |page| (Vec::new(), encode(page)))
    }

    fn page(
        &self,
        reader: &mut Reader,
        encoding: &'static ItemEncoding,
        encode: impl FnOnce(&Page) -> (Vec<Prepared>, Vec<u8>),
    ) -> Result<Option<Rc<Frames>>, Problem> {
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

impl Readers {
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

    /// Whether there is something after `position`.
    fn is_past(&self, position: Position) -> bool {
        reader::is_past(&mut self.head.borrow_mut(), position)
    }

    /// The page that was read last, if it is the next one for a reader at this place.
    fn shared(&self, place: Place, encoding: &ItemEncoding) -> Option<Rc<Frames>> {
        let pages = self.pages.borrow();
        let frames = pages
            .iter()
            .find(|frames| ptr::eq(frames.encoding, encoding) && frames.place == place)?;
        // What was the newest when it was read may not be any more.
        let is_old = place.mode == Mode::Latest && self.is_past(frames.next);
        (!is_old).then(|| Rc::clone(frames))
    }

    /// Keeps it instead of the one before: those who are behind read twice as often at worst, for in between each
    /// of them has to read for itself.
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
