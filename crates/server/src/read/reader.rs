//! The core of reading for all transports: "from this position to the head".

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use anemone_hub::{Event, Gap, Head, PageLimit, Position, ReadError, Start, Topic, UnixTime};
use anemone_wire::{EndReason, Item, Mode, PageEvent};
use futures_util::FutureExt;
use tokio::task::coop::unconstrained;

use crate::clients::access::AccessLine;
use crate::clients::connections::described::ReadDescription;
use crate::clients::readers::{Listing, Readers, WatchedReader};
use crate::read::readable::Readable;
use crate::request::client::Client;
use crate::transport_name::TransportName;
use crate::{Kind, Problem, SlowReader};

/// A reader: a topic or a run, and a position.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Its entry in the list of readers, if it stays. Dropped before the topic, by whose address it is found.
    listing: Option<Listing>,
    readable: Readable,
    /// Created on first use.
    head: Option<Head>,
    place: ReadPlace,
    /// Its treatment from the second page on, if it is too slow.
    slow: SlowReader,
    /// Records its position.
    access: AccessLine,
}

/// The parameters of a reader's next page, besides the topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ReadPlace {
    pub(crate) position: Position,
    pub(crate) mode: Mode,
    pub(crate) limit: PageLimit,
    /// The treatment of a reader whose next events are gone.
    pub(crate) slow: SlowReader,
}

impl Reader {
    /// Opens a reader that begins at `start` and reads every event.
    pub(crate) fn open(
        readable: impl Into<Readable>,
        start: Start,
        limit: PageLimit,
    ) -> Result<Self, Problem> {
        let readable = readable.into();
        let started = readable.topic().start(UnixTime::now(), start);
        let position = started.map_err(|error| readable.problem(error))?;
        let slow = SlowReader::Gap;
        let place = ReadPlace { position, mode: Mode::All, limit, slow };
        let access = AccessLine::default();
        Ok(Self { readable, head: None, place, listing: None, slow, access })
    }

    /// Sets the treatment if it is too slow: `first` for its first page, `then` for later ones.
    pub(crate) fn when_slow(self, first: SlowReader, then: SlowReader) -> Self {
        Self { place: ReadPlace { slow: first, ..self.place }, slow: then, ..self }
    }

    /// Adds it to the list of readers, with this transport and client.
    pub(crate) fn listed(
        self,
        readers: &Arc<Readers>,
        client: Client,
        transport: TransportName,
    ) -> Self {
        let ReadPlace { position, mode, .. } = self.place;
        let listing = readers.enter(self.topic(), position, client, (transport, mode));
        Self { listing: Some(listing), ..self }
    }

    pub(crate) fn with_access_line(self, access: AccessLine) -> Self {
        access.set_position(self.place.position);
        Self { access, ..self }
    }

    pub(crate) fn access(&self) -> &AccessLine {
        &self.access
    }

    /// Ends reading: completes the line with the reason.
    pub(crate) fn end(&mut self, why: impl Into<Cow<'static, str>>) {
        std::mem::take(&mut self.access).set_end(why);
    }

    pub(crate) fn describe(&self) -> ReadDescription {
        let ReadPlace { position, mode, .. } = self.place;
        let lag = self.topic().lag(UnixTime::now(), position);
        ReadDescription { path: self.readable.path_in_log(), position, mode, lag }
    }

    /// Returns what tells others where it is, if it is listed.
    pub(crate) fn watch(&self) -> Option<WatchedReader> {
        self.listing.as_ref().map(Listing::watch)
    }

    /// Returns the time since when it is listed, if it is.
    pub(crate) fn since(&self) -> Option<UnixTime> {
        self.listing.as_ref().map(Listing::since)
    }

    pub(crate) fn transport(&self) -> Option<TransportName> {
        self.listing.as_ref().map(Listing::transport)
    }

    /// Returns the address of its client, if it is listed and the address is known.
    pub(crate) fn client(&self) -> Option<SocketAddr> {
        self.listing.as_ref().and_then(Listing::client)
    }

    /// Returns true if events after its position are no longer kept.
    pub(crate) fn has_fallen_out(&self) -> bool {
        let info = self.topic().info(UnixTime::now());
        is_before(self.place.position, info.head, info.first)
    }

    pub(crate) fn in_mode(self, mode: Mode) -> Self {
        Self { place: ReadPlace { mode, ..self.place }, ..self }
    }

    /// Returns the position of the last event read, or else the beginning.
    pub(crate) fn position(&self) -> Position {
        self.place.position
    }

    pub(crate) fn place(&self) -> ReadPlace {
        self.place
    }

    /// Reads the next page, maybe an empty one, and moves past it.
    pub(crate) fn read(&mut self) -> Result<Page, ReadEnd> {
        let page = self.peek()?;
        self.pass(page.next);
        Ok(page)
    }

    /// Reads the next page, maybe an empty one, without moving.
    pub(crate) fn peek(&self) -> Result<Page, ReadEnd> {
        match self.place.mode {
            Mode::All => self.next(),
            Mode::Latest => self.newest(),
        }
    }

    pub(crate) fn limit_to(&mut self, limit: PageLimit) {
        self.place.limit = limit;
    }

    /// Reads the page of a poll: an empty one after the end of a run.
    pub(crate) fn read_page(&mut self) -> Result<Page, Problem> {
        match self.read() {
            Ok(page) => Ok(page),
            Err(ReadEnd::Complete) => Ok(self.last_page()),
            Err(ReadEnd::Failed(problem)) => Err(problem),
        }
    }

    /// Returns true if the run has ended, and everything was read.
    pub(crate) fn is_complete(&self) -> bool {
        self.readable.is_over_at(self.place.position)
    }

    fn last_page(&self) -> Page {
        let (first, next) = (self.topic().info(UnixTime::now()).first, self.place.position);
        Page { first, gap: None, begin: next, skipped: 0, events: Vec::new(), next, is_last: true }
    }

    /// Moves past a page that another reader read at this place.
    pub(crate) fn pass(&mut self, next: Position) {
        if let Some(listing) = &self.listing {
            listing.moved(self.place.position.epoch, next);
        }
        self.access.set_position(next);
        self.place.position = next;
        self.place.slow = self.slow;
    }

    /// Returns the events after its position, or the problem if they are gone and that ends the reader.
    fn next(&self) -> Result<Page, ReadEnd> {
        let ReadPlace { position, limit, slow, .. } = self.place;
        let page = self.topic().read(UnixTime::now(), position, limit);
        let page = page.map_err(|error| self.end_by(error))?;
        match &page.gap {
            Some(gap)
                if slow == SlowReader::Close && is_before(position, page.next, page.first) =>
            {
                Err(Problem::too_slow(gap.clone()).into())
            }
            _ => Ok(page.into()),
        }
    }

    /// Returns the newest event, unless it was read. Events between are skipped, kept or not; events that were lost
    /// before count as a gap.
    fn newest(&self) -> Result<Page, ReadEnd> {
        let (now, one) = (UnixTime::now(), PageLimit { events_max: 1, ..self.place.limit });
        let read = |position| {
            let page = self.topic().read(now, position, one);
            page.map(Page::from).map_err(|error| self.end_by(error))
        };
        let nearest = read(self.place.position)?;
        let before_newest = self.topic().start(now, Start::Newest);
        let before_newest = before_newest.map_err(|error| self.end_by(error))?;
        if before_newest.offset <= nearest.begin.offset {
            return Ok(nearest);
        }
        let page = read(before_newest)?;
        let skipped = page.next.offset - page.events.len() as u64 - nearest.begin.offset;
        Ok(Page { gap: nearest.gap, begin: nearest.begin, skipped, ..page })
    }

    /// Ends its run, if that belongs to its client.
    pub(crate) fn detach(&mut self) {
        self.readable.detach();
    }

    fn end_by(&self, error: ReadError) -> ReadEnd {
        match error {
            ReadError::Ended => ReadEnd::Complete,
            error => ReadEnd::Failed(self.readable.problem(error)),
        }
    }

    pub(crate) fn end_by_now(&self) -> Position {
        self.topic().info(UnixTime::now()).head
    }

    /// Returns true if it has read up to `end`.
    pub(crate) fn has_reached(&self, end: Position) -> bool {
        let ReadPlace { position, .. } = self.place;
        position.epoch == end.epoch && position.offset >= end.offset
    }

    /// Waits until the next page has an event or a gap. Cancel safe.
    pub(crate) async fn ready(&mut self) {
        let position = self.place.position;
        self.head().passed(position).await;
    }

    /// Returns true if the next page has an event or a gap. Does not use the log.
    pub(crate) fn is_behind(&mut self) -> bool {
        let position = self.place.position;
        is_past(self.head(), position)
    }

    /// Takes what watches its topic, to wait elsewhere until there is something after its position.
    pub(crate) fn take_head(&mut self) -> Head {
        self.head.take().unwrap_or_else(|| self.topic().head())
    }

    /// Gives back what watches its topic.
    pub(crate) fn give_head(&mut self, head: Head) {
        self.head = Some(head);
    }

    fn head(&mut self) -> &mut Head {
        let topic = self.readable.topic();
        self.head.get_or_insert_with(|| topic.head())
    }

    pub(crate) fn readable(&self) -> &Readable {
        &self.readable
    }

    pub(crate) fn topic(&self) -> &Arc<Topic> {
        self.readable.topic()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReadEnd {
    /// The run has ended, and everything was read.
    Complete,
    Failed(Problem),
}

/// Returns true if there is something after `position`.
pub(crate) fn is_past(head: &mut Head, position: Position) -> bool {
    // tokio would otherwise make a task that has used up its turn wait.
    unconstrained(head.passed(position)).now_or_never().is_some()
}

/// Returns true if the event after `position` was dropped by retention, given the log's head and its first offset.
/// Damaged events are missing too, but no reader was too slow for them.
fn is_before(position: Position, own: Position, first: u64) -> bool {
    position.epoch == own.epoch && position.offset.saturating_add(1) < first
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Page {
    /// The offset of the oldest kept event, or else that of the next one.
    pub(crate) first: u64,
    /// The gap before everything else, if there is one.
    pub(crate) gap: Option<Gap>,
    /// The position at which the page begins, after the gap.
    pub(crate) begin: Position,
    /// The number of events skipped after that.
    pub(crate) skipped: u64,
    /// The events in the log's order, without a hole.
    pub(crate) events: Vec<Arc<Event>>,
    /// The position to continue from.
    pub(crate) next: Position,
    /// True if nothing follows: the topic has ended.
    pub(crate) is_last: bool,
}

impl From<anemone_hub::Page> for Page {
    fn from(page: anemone_hub::Page) -> Self {
        let anemone_hub::Page { first, gap, events, next, is_last } = page;
        let before_first = events.first().map_or(next.offset, |event| event.offset - 1);
        let begin = Position { offset: before_first, ..next };
        Self { first, gap, begin, skipped: 0, events, next, is_last }
    }
}

impl Page {
    pub(crate) fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.wire_page().into_items()
    }

    pub(crate) fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.text_bytes());
        let end = self.is_last.then_some(EndReason::Ended);
        anemone_wire::Page { end, ..self.wire_page() }.write(&mut out);
        out
    }

    /// Returns the page in terms of the protocol, without its end.
    fn wire_page(&self) -> anemone_wire::Page<impl Iterator<Item = PageEvent<'_>>> {
        let Self { first, next, ref gap, skipped, ref events, .. } = *self;
        let events = events.iter().map(|event| PageEvent {
            offset: event.offset,
            time: Some(event.time),
            data: event.data.as_str().into(),
        });
        anemone_wire::Page { first, next, gap: gap.clone(), skipped, end: None, events }
    }

    /// Returns the approximate length of its text.
    pub(crate) fn text_bytes(&self) -> usize {
        let events = self.events.iter().map(|event| event.data.bytes().len() + 64);
        events.sum::<usize>() + 128
    }
}

/// Returns the words of the access log for the end of reading.
pub(crate) const fn in_log(reason: &EndReason) -> &'static str {
    match reason {
        EndReason::TooSlow { .. } => "too slow",
        EndReason::Ended => "the run has ended",
        _ => "topic deleted",
    }
}

impl From<Problem> for ReadEnd {
    fn from(problem: Problem) -> Self {
        Self::Failed(problem)
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
