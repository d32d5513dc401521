//! The last page of a topic, encoded once for all its readers at the same place, whatever carries them: the loop of a
//! thread, or tasks.
//!
//! A thread has these for itself, so readers on one thread wait for no other one. A page is shared for a second: that is
//! as long as a burst takes, and retention has not dropped its events for longer.

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use anemone_hub::{Gap, Head, Position, Topic};
use anemone_wire::multiplexed::ItemMessage;
use anemone_wire::{Item, Mode};
use anemone_ws::proto::{Message, Prepared};
use anemone_ws::{Memory, Reservation};
use bytes::Bytes;
use tokio::time::Instant;

use crate::memory::counted;
use crate::read::reader::{self, Page, ReadEnd, ReadPlace, Reader};

/// The time for which a page is shared.
pub(crate) const SHARED_FOR: Duration = Duration::from_secs(1);

/// The pages of a thread's topics by their addresses, since a name may belong to another topic by now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    topics: Arc<Mutex<HashMap<usize, Weak<TopicPages>>>>,
    memory: Memory,
}

/// The last pages of a topic.
#[derive(Debug)]
pub(crate) struct TopicPages {
    /// Keeps the topic alive, so that its address stays unique.
    _topic: Arc<Topic>,
    kept: Mutex<Kept>,
    /// Counts the pages.
    memory: Memory,
}

#[derive(Debug)]
struct Kept {
    head: Head,
    /// The last page for each encoding and mode.
    pages: Vec<Arc<SharedPage>>,
}

/// The encoding of items for a transport. Readers with the same encoding share pages. An encoding is identified by
/// its address, so each is a `static`, or part of one.
#[derive(Debug)]
pub(crate) enum ItemEncoding {
    /// A piece of an endless reply.
    Text(AppendItem),
    /// A message for each item, compressed once for all connections with the same parameters.
    Messages(AppendItem),
    /// Messages of multiplexed readers, to which each adds its id.
    WithoutIds,
}

/// Appends an item, or nothing if the transport has no form for it.
pub(crate) type AppendItem = fn(&Item<'_>, &mut String);

/// A page that readers at the same place share.
#[derive(Debug)]
pub(crate) struct SharedPage {
    place: ReadPlace,
    encoding: &'static ItemEncoding,
    pub(crate) encoded: Encoded,
    pub(crate) gap: Option<Gap>,
    next: Position,
    made: Instant,
    /// Counts its messages. A long text is counted by itself.
    _held: Reservation,
}

/// A page in one of the encodings.
#[derive(Debug)]
pub(crate) enum Encoded {
    Text(Bytes),
    Messages(Vec<Prepared>),
    WithoutIds(Vec<ItemMessage>),
}

impl ItemEncoding {
    /// Encodes an item, or nothing if the transport has no form for it.
    pub(crate) fn one(&self, item: &Item<'_>) -> String {
        let mut text = String::new();
        match self {
            Self::Text(append) | Self::Messages(append) => append(item, &mut text),
            Self::WithoutIds => item.write(&mut text),
        }
        text
    }

    fn encode(&self, page: &Page, memory: &Memory) -> Encoded {
        match self {
            Self::Text(append) => Encoded::Text(counted(memory, text(page, append))),
            Self::Messages(append) => Encoded::Messages(messages(page, append)),
            Self::WithoutIds => {
                let message = |item: Item<'_>| ItemMessage::new(&item, page.next);
                Encoded::WithoutIds(page.items().map(message).collect())
            }
        }
    }
}

/// Returns the items of a page as one text.
pub(crate) fn text(page: &Page, append: impl Fn(&Item<'_>, &mut String)) -> String {
    let mut text = String::with_capacity(page.text_bytes());
    page.items().for_each(|item| append(&item, &mut text));
    text
}

fn messages(page: &Page, append: &AppendItem) -> Vec<Prepared> {
    let mut text = String::new();
    let messages = page.items().filter_map(|item| {
        text.clear();
        append(&item, &mut text);
        (!text.is_empty()).then(|| Prepared::new(Message::Text(&text)))
    });
    messages.collect()
}

impl Encoded {
    pub(crate) fn text(&self) -> &Bytes {
        static NONE: Bytes = Bytes::new();
        if let Self::Text(text) = self { text } else { &NONE }
    }

    pub(crate) fn messages(&self) -> &[Prepared] {
        if let Self::Messages(messages) = self { messages } else { &[] }
    }

    pub(crate) fn without_ids(&self) -> &[ItemMessage] {
        if let Self::WithoutIds(messages) = self { messages } else { &[] }
    }

    /// Returns the bytes that nothing else counts.
    fn uncounted_bytes(&self) -> usize {
        match self {
            Self::Text(_) => 0,
            Self::Messages(messages) => messages.iter().map(Prepared::frame_bytes).sum(),
            Self::WithoutIds(messages) => messages.iter().map(ItemMessage::bytes).sum(),
        }
    }
}

impl Pages {
    /// Creates a place for pages that count in `memory`.
    pub(crate) fn new(memory: &Memory) -> Self {
        Self { memory: memory.clone(), ..Self::default() }
    }

    /// Returns the pages of a topic.
    pub(crate) fn of(&self, topic: &Arc<Topic>) -> Arc<TopicPages> {
        let mut topics = locked(&self.topics);
        let address = Arc::as_ptr(topic).addr();
        topics.get(&address).and_then(Weak::upgrade).unwrap_or_else(|| {
            let kept = Mutex::new(Kept { head: topic.head(), pages: Vec::new() });
            let (_topic, memory) = (Arc::clone(topic), self.memory.clone());
            let pages = Arc::new(TopicPages { _topic, kept, memory });
            topics.retain(|_, pages| pages.strong_count() > 0);
            topics.insert(address, Arc::downgrade(&pages));
            pages
        })
    }
}

impl TopicPages {
    /// Returns the reader's next page, and moves the reader past it; `None` when everything was read.
    pub(crate) fn read(
        &self,
        reader: &mut Reader,
        encoding: &'static ItemEncoding,
    ) -> Result<Option<Arc<SharedPage>>, ReadEnd> {
        let place = reader.place();
        let mut kept = locked(&self.kept);
        if let Some(shared) = kept.shared(place, encoding) {
            reader.pass(shared.next);
            return Ok(Some(shared));
        }
        if !kept.is_past(place.position) {
            kept.forget_old();
            return Ok(None);
        }
        // Others need not wait for the log. Two may encode the same page.
        drop(kept);
        let page = reader.read()?;
        let encoded = encoding.encode(&page, &self.memory);
        let _held = self.memory.reserve(encoded.uncounted_bytes());
        let Page { gap, next, .. } = page;
        let made = Instant::now();
        let shared = Arc::new(SharedPage { place, encoding, encoded, gap, next, made, _held });
        if next != place.position {
            locked(&self.kept).keep(Arc::clone(&shared));
        }
        Ok(Some(shared))
    }

    /// Returns true if there is something after the page.
    pub(crate) fn has_more(&self, page: &SharedPage) -> bool {
        locked(&self.kept).is_past(page.next)
    }

    /// Drops the pages that are shared no longer. Returns true if some are left.
    pub(crate) fn forget_old(&self) -> bool {
        let mut kept = locked(&self.kept);
        kept.forget_old();
        !kept.pages.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        locked(&self.kept).pages.len()
    }
}

impl SharedPage {
    fn is_old(&self) -> bool {
        self.made.elapsed() >= SHARED_FOR
    }
}

impl Kept {
    /// Returns true if there is something after `position`.
    fn is_past(&mut self, position: Position) -> bool {
        reader::is_past(&mut self.head, position)
    }

    /// Returns the last page, if it is the next one for a reader at this place.
    fn shared(&mut self, place: ReadPlace, encoding: &ItemEncoding) -> Option<Arc<SharedPage>> {
        let mut pages = self.pages.iter();
        let page =
            pages.find(|page| ptr::eq(page.encoding, encoding) && page.place == place)?.clone();
        // The page may no longer have the newest event.
        let is_outdated = place.mode == Mode::Latest && self.is_past(page.next);
        (!is_outdated && !page.is_old()).then_some(page)
    }

    /// Replaces the last page. Readers that alternate at different places must each read for themselves, so they read
    /// at most twice as often.
    fn keep(&mut self, page: Arc<SharedPage>) {
        self.forget_old();
        self.pages.retain(|kept| {
            !ptr::eq(kept.encoding, page.encoding) || kept.place.mode != page.place.mode
        });
        self.pages.push(page);
    }

    fn forget_old(&mut self) {
        self.pages.retain(|page| !page.is_old());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No method panics while it holds the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
