//! The one reading core under every transport: "from this position to the head".

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use anemone_hub::{Event, Gap, Head, PageLimit, Position, ReadError, Start, Topic, UnixTime};
use anemone_wire::{EndReason, Item, Mode, PageEvent};
use futures_util::FutureExt;
use tokio::task::coop::unconstrained;

use crate::clients::access::AccessLine;
use crate::clients::readers::{Listing, Readers};
use crate::request::client::Client;
use crate::transport_name::TransportName;
use crate::{Kind, Problem, SlowReader};

/// A reader: a topic, and how far it was read.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Its place in the list of readers, if it stays. Dropped before the topic, by whose address it is found.
    listing: Option<Listing>,
    topic: Arc<Topic>,
    /// Made when it is first asked.
    head: Option<Head>,
    place: Place,
    /// Its treatment from its second page on, should it be too slow.
    slow: SlowReader,
    /// Told how far it is.
    access: AccessLine,
}

/// All that a reader's next page depends on, beside the topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) mode: Mode,
    pub(crate) limit: PageLimit,
    /// The treatment of a reader whose next events are gone.
    pub(crate) slow: SlowReader,
}

impl Reader {
    /// Begins at `start`, and reads every event.
    pub(crate) fn open(topic: Arc<Topic>, start: Start, limit: PageLimit) -> Result<Self, Problem> {
        let position = topic.start(UnixTime::now(), start)?;
        let slow = SlowReader::Gap;
        let place = Place { position, mode: Mode::All, limit, slow };
        let access = AccessLine::default();
        Ok(Self { topic, head: None, place, listing: None, slow, access })
    }

    /// The same, should it be too slow: `first` if it is by its first page, `then` if it is by a later one.
    pub(crate) fn when_slow(self, first: SlowReader, then: SlowReader) -> Self {
        Self { place: Place { slow: first, ..self.place }, slow: then, ..self }
    }

    /// The same in the list of readers, as one that is there by this transport for this client.
    pub(crate) fn listed(
        self,
        readers: &Arc<Readers>,
        client: Client,
        transport: TransportName,
    ) -> Self {
        let Place { position, mode, .. } = self.place;
        let listing = readers.enter(&self.topic, position, client, (transport, mode));
        Self { listing: Some(listing), ..self }
    }

    /// The same, for a request that has this line in the access log.
    pub(crate) fn told_in(self, access: AccessLine) -> Self {
        access.reached(self.place.position);
        Self { access, ..self }
    }

    /// The line of its request in the access log.
    pub(crate) fn access(&self) -> &AccessLine {
        &self.access
    }

    /// Nothing more is read: its line is written, with why that is so.
    pub(crate) fn over(&mut self, why: impl Into<Cow<'static, str>>) {
        std::mem::take(&mut self.access).ended(why);
    }

    /// The address of whom it reads for, if it is in the list of readers and that is known.
    pub(crate) fn client(&self) -> Option<SocketAddr> {
        self.listing.as_ref().and_then(Listing::client)
    }

    /// Whether events after its position are no longer kept.
    pub(crate) fn has_fallen_out(&self) -> bool {
        let info = self.topic.info(UnixTime::now());
        is_before(self.place.position, info.head, info.first)
    }

    /// The same in another mode.
    pub(crate) fn in_mode(self, mode: Mode) -> Self {
        Self { place: Place { mode, ..self.place }, ..self }
    }

    /// The position of the last event read, or where reading begins.
    pub(crate) fn position(&self) -> Position {
        self.place.position
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// The next page, maybe an empty one, and moves past it.
    pub(crate) fn read(&mut self) -> Result<Page, Problem> {
        let page = match self.place.mode {
            Mode::All => self.next()?,
            Mode::Latest => self.newest()?,
        };
        self.pass(page.next);
        Ok(page)
    }

    /// Moves past a page that somebody else read at this place.
    pub(crate) fn pass(&mut self, next: Position) {
        if let Some(listing) = &self.listing {
            listing.moved(self.place.position.epoch, next);
        }
        self.access.reached(next);
        self.place.position = next;
        self.place.slow = self.slow;
    }

    /// The events after its position, unless they are gone and that is its end.
    fn next(&self) -> Result<Page, Problem> {
        let Place { position, limit, slow, .. } = self.place;
        let page = self.topic.read(UnixTime::now(), position, limit)?;
        match &page.gap {
            Some(gap)
                if slow == SlowReader::Close && is_before(position, page.next, page.first) =>
            {
                Err(Problem::too_slow(gap.clone()))
            }
            _ => Ok(page.into()),
        }
    }

    /// The newest event, unless it was read. Everything between is skipped, be it kept or not; what
    /// was gone before is a gap.
    fn newest(&self) -> Result<Page, ReadError> {
        let (now, one) = (UnixTime::now(), PageLimit { events_max: 1, ..self.place.limit });
        let nearest = Page::from(self.topic.read(now, self.place.position, one)?);
        let before_newest = self.topic.start(now, Start::Newest)?;
        if before_newest.offset <= nearest.begin.offset {
            return Ok(nearest);
        }
        let page = Page::from(self.topic.read(now, before_newest, one)?);
        let skipped = page.next.offset - page.events.len() as u64 - nearest.begin.offset;
        Ok(Page { gap: nearest.gap, begin: nearest.begin, skipped, ..page })
    }

    /// Up to where there is something to read by now.
    pub(crate) fn end_by_now(&self) -> Position {
        self.topic.info(UnixTime::now()).head
    }

    /// Whether it has read on to there.
    pub(crate) fn has_reached(&self, end: Position) -> bool {
        let Place { position, .. } = self.place;
        position.epoch == end.epoch && position.offset >= end.offset
    }

    /// Waits until the next page holds an event or a gap. Cancel safe.
    pub(crate) async fn ready(&mut self) {
        let position = self.place.position;
        self.head().passed(position).await;
    }

    /// Whether the next page holds an event or a gap. Does not touch the log.
    pub(crate) fn is_behind(&mut self) -> bool {
        let position = self.place.position;
        is_past(self.head(), position)
    }

    fn head(&mut self) -> &mut Head {
        let topic = &self.topic;
        self.head.get_or_insert_with(|| topic.head())
    }

    /// The topic that is read.
    pub(crate) fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }
}

/// Whether there is something after `position`.
pub(crate) fn is_past(head: &mut Head, position: Position) -> bool {
    // tokio would have a task that has used its turn up wait.
    unconstrained(head.passed(position)).now_or_never().is_some()
}

/// Whether the event after `position` has gone, of a log that is at `own` and keeps events from `first` on. What is
/// damaged is missing, too, but nobody was too slow for it.
fn is_before(position: Position, own: Position, first: u64) -> bool {
    position.epoch == own.epoch && position.offset.saturating_add(1) < first
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Page {
    /// Offset of the oldest event the log keeps, or of the next to come when it keeps none.
    pub(crate) first: u64,
    /// The gap before everything else, if there is one.
    pub(crate) gap: Option<Gap>,
    /// The position at which it begins, after the gap.
    pub(crate) begin: Position,
    /// The number of events after that which were passed over.
    pub(crate) skipped: u64,
    /// In the log's order, without a hole.
    pub(crate) events: Vec<Arc<Event>>,
    /// The position to read on from.
    pub(crate) next: Position,
}

impl From<anemone_hub::Page> for Page {
    fn from(page: anemone_hub::Page) -> Self {
        let anemone_hub::Page { first, gap, events, next } = page;
        let before_first = events.first().map_or(next.offset, |event| event.offset - 1);
        let begin = Position { offset: before_first, ..next };
        Self { first, gap, begin, skipped: 0, events, next }
    }
}

impl Page {
    /// Its items, in the order they are to be told.
    pub(crate) fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.wire_page().into_items()
    }

    /// The JSON that a poll is answered with.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.text_bytes());
        self.wire_page().write(&mut out);
        out
    }

    /// The page in the words of the protocol.
    fn wire_page(&self) -> anemone_wire::Page<impl Iterator<Item = PageEvent<'_>>> {
        let Self { first, next, ref gap, skipped, ref events, .. } = *self;
        let events = events.iter().map(|event| PageEvent {
            offset: event.offset,
            time: Some(event.time),
            data: event.data.as_str().into(),
        });
        anemone_wire::Page { first, next, gap: gap.clone(), skipped, events }
    }

    /// About as many bytes as its text has.
    pub(crate) fn text_bytes(&self) -> usize {
        let events = self.events.iter().map(|event| event.data.bytes().len() + 64);
        events.sum::<usize>() + 128
    }
}

/// The words of the access log for why reading has ended.
pub(crate) const fn in_log(reason: &EndReason) -> &'static str {
    match reason {
        EndReason::TooSlow { .. } => "too slow",
        _ => "topic deleted",
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Ahead { .. } => Self::new(Kind::PositionAhead, error.to_string()),
            ReadError::Deleted => Self::new(Kind::TopicDeleted, error.to_string()),
            ReadError::Storage(_) => Self::new(Kind::StorageFailed, error.to_string()),
            error => Self::new(Kind::Internal, error.to_string()),
        }
    }
}
