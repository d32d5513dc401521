//! A reader of several topics: a reader for each, and a turn for those that have something.
//!
//! It has no queue: each of its readers is a position, and what does not fit a turn is read again in the next. It follows
//! the index of topics, so that a topic which is created later joins, from its first event. It hears of new topics at most
//! ten times a second, of all that were created since together.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Event, Head, PageLimit, Position, TopicName};
use anemone_wire::{After, EndReason, Item, Token, TopicItem};
use anemone_ws::Reservation;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Deserialize;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};

use crate::Problem;
use crate::cost::TOPIC_OF_MANY_BYTES;
use crate::read::merge::Merge;
use crate::read::reader::{Page, ReadEnd, Reader};
use crate::read::size::{Size, cut, share};
use crate::read::told_token::ToldToken;

/// The topics that a reader of many may have, and how it begins to read one that was created.
pub(crate) trait Joining: Send + Sync {
    /// Returns true if the reader reads the topic of this name, once there is one.
    fn is_chosen(&self, name: &str) -> bool;

    /// Returns the names of all topics that it reads now.
    fn names(&self) -> Result<Vec<TopicName>, Problem>;

    /// Returns what tells of news of the index after a position, if somebody tells all readers of a thread. Default: none.
    fn news_after(&self, position: Position) -> Option<BoxFuture<'static, ()>> {
        let _ = position;
        None
    }

    /// Opens a reader of a topic from its first event; `None` if there is no such topic.
    fn open(&self, name: &TopicName) -> Result<Option<Reader>, Problem>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnLimit {
    pub(crate) page: PageLimit,
    /// True if events are sent with the token.
    pub(crate) has_tokens: bool,
}

/// Receives an item, the token after it, and whether the client is told that token with it.
pub(crate) type Emit<'a> = dyn FnMut(&TopicItem<'_>, &Token, bool) + 'a;

pub(crate) struct ManyReader {
    parts: BTreeMap<TopicName, Part>,
    /// The parts that may have something to read; all others wait.
    ready: Vec<TopicName>,
    waiting: FuturesUnordered<BoxFuture<'static, (TopicName, Head)>>,
    /// The topics that have left, which nobody was told yet.
    left: Vec<Left>,
    token: ToldToken,
    /// The position in the index up to which its events have had their effect.
    seen: Position,
    /// The position in the index up to which it was read, once all are told who have left by then.
    followed: Option<Position>,
    /// The news of the index that it hears now, until it has read them all.
    hearing: Option<Hearing>,
    /// True if the index has said that one of the topics was created, and the place was not told since.
    has_joined: bool,
    joining: Box<dyn Joining>,
    /// Counts its memory.
    held: Reservation,
}

/// The reader of one topic.
#[derive(Debug)]
struct Part {
    reader: Reader,
    /// True if its events are told; false for the index, if it is only followed.
    is_told: bool,
}

/// A topic that has left. The token keeps its place until that is told, or nobody would hear of it after a cut.
#[derive(Debug)]
struct Left {
    name: TopicName,
    reason: EndReason,
    /// Its place in the token from then on.
    next: Option<After>,
}

/// The news of the index that a reader hears: the position where they end, and the time before which it hears no others.
#[derive(Clone, Copy, Debug)]
struct Hearing {
    end: Position,
    next_at: Instant,
}

type NamedPage = (TopicName, Page);

/// The effect of an event of the index.
#[derive(Debug, Deserialize)]
struct IndexChange<'a> {
    #[serde(borrow)]
    created: Option<&'a str>,
}

/// The bytes of an event beside its data, about.
const EVENT_BYTES: usize = 96;
/// The number of times that the rest of a page is shared out again. Each time reads pages anew.
const SHARINGS_MAX: usize = 4;
/// The interval at which a reader hears which topics were created, so that many join together. A thousand readers of `*`
/// would otherwise have a turn for each topic.
const HEARING_INTERVAL: Duration = Duration::from_millis(100);
/// The events of the index that one turn follows, if they are not told.
const FOLLOWED_MAX: PageLimit = PageLimit { events_max: 1000, bytes_max: 256 << 10 };

impl ManyReader {
    /// Creates a reader of these topics. `index` reads the index, and is told if that is one of the topics; changes after
    /// `seen` have an effect.
    pub(crate) fn new(
        (index, is_told, seen): (Reader, bool, Position),
        joining: Box<dyn Joining>,
        token_bytes_max: usize,
        held: Reservation,
    ) -> Self {
        let (parts, ready, left) = Default::default();
        let (waiting, token) = (FuturesUnordered::new(), ToldToken::new(token_bytes_max));
        let mut many = Self {
            parts,
            ready,
            waiting,
            left,
            token,
            seen,
            followed: None,
            hearing: None,
            has_joined: false,
            joining,
            held,
        };
        many.add(index, is_told);
        many
    }

    /// Adds a topic, at a random place behind the index. Each poll begins anew: in one order, those at the end would wait for
    /// as long as those before them fill the pages.
    pub(crate) fn add_topic(&mut self, reader: Reader) {
        self.add(reader, true);
        let last = self.ready.len() - 1;
        let random = RandomState::new().hash_one(last) % last.max(1) as u64;
        self.ready.swap(last - usize::try_from(random).unwrap_or(0), last);
    }

    fn add(&mut self, reader: Reader, is_told: bool) {
        let name = reader.topic().name().clone();
        self.token.place(name.as_str(), After::Position(reader.position()));
        self.parts.insert(name.clone(), Part { reader, is_told });
        self.ready.push(name);
        self.held.set(self.parts.len() * TOPIC_OF_MANY_BYTES);
    }

    /// Records that a topic is gone, which the next turn tells.
    pub(crate) fn add_deleted(&mut self, name: TopicName, place: Option<After>) {
        if let Some(place) = place {
            self.token.place(name.as_str(), place);
        }
        self.left.push(Left { name, reason: EndReason::Deleted, next: None });
    }

    /// Returns the places up to which was told.
    pub(crate) fn token(&self) -> &Token {
        self.token.token()
    }

    /// Returns when the token has to be sent: some time after an event that came without.
    pub(crate) fn token_due(&self) -> Option<Instant> {
        self.token.due()
    }

    /// Notes that the token is sent, and returns true if events had come without.
    pub(crate) fn note_token_sent(&mut self) -> bool {
        self.token.note_sent()
    }

    pub(crate) fn check_token(&mut self) -> Result<(), Problem> {
        self.token.check()
    }

    /// Waits until the next turn may have something. Cancel safe.
    pub(crate) async fn ready(&mut self) {
        if !self.ready.is_empty() || !self.left.is_empty() {
            return;
        }
        match self.waiting.next().await {
            Some(woken) => self.wake(woken),
            None => pending().await,
        }
    }

    /// Returns true if the next turn has something to tell.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub(crate) fn has_news(&mut self) -> Result<bool, Problem> {
        self.take_woken();
        let one = PageLimit { events_max: 1, bytes_max: 1 };
        let mut names = std::mem::take(&mut self.ready).into_iter();
        let mut has_news = false;
        for name in names.by_ref() {
            if self.peek(&name, one)?.is_some() {
                has_news = true;
                self.ready.push(name);
                break;
            }
        }
        self.ready.extend(names);
        Ok(has_news || !self.left.is_empty())
    }

    /// Returns true if it knows of nothing to read.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.left.is_empty()
    }

    pub(crate) fn ends_by_now(&self) -> Vec<(TopicName, Position)> {
        self.parts.iter().map(|(name, part)| (name.clone(), part.reader.end_by_now())).collect()
    }

    /// Returns true if it has read each topic up to its end, or has it no longer.
    pub(crate) fn has_reached(&self, ends: &[(TopicName, Position)]) -> bool {
        let is_at =
            |name, end| self.parts.get(name).is_none_or(|part| part.reader.has_reached(end));
        self.left.is_empty() && ends.iter().all(|(name, end)| is_at(name, *end))
    }

    /// Reads what there is, within the limit, and passes each item to `emit`. Each topic that has something gets a share.
    ///
    /// If events have tokens, a long token comes with some of them, and a while after the others ([`ToldToken`]).
    ///
    /// # Errors
    /// When the token has become too long, or a topic cannot be read.
    pub(crate) fn turn(&mut self, limit: TurnLimit, emit: &mut Emit<'_>) -> Result<(), Problem> {
        self.take_woken();
        self.tell_left(emit);
        let token_bytes = if limit.has_tokens { self.token.event_bytes_max() } else { 0 };
        let overhead = EVENT_BYTES + token_bytes;
        let pages = self.pages(limit.page, overhead)?;
        self.tell_left(emit);
        if let Some(next) = self.followed.take() {
            self.token.place(TopicName::INDEX, After::Position(next));
        }
        if std::mem::take(&mut self.has_joined) {
            // Events do not say as of when the topics are in the token. A reader that resumes before this place would be
            // told again which topics were created and are gone.
            self.check_token()?;
            self.token.note_sent();
            emit(&TopicItem::At, self.token.token(), true);
        }
        self.emit_pages(&pages, limit, emit);
        self.check_token()
    }

    /// Reads a page of each topic that has something, without moving. Each gets an equal share of the limit, and what
    /// some do not need goes to those that have more. If events are longer than a share, the limit is reached before the last
    /// topics; these are the first of the next turn.
    fn pages(&mut self, limit: PageLimit, overhead: usize) -> Result<Vec<NamedPage>, Problem> {
        let mut pages = Vec::with_capacity(self.ready.len());
        let share = share(limit, self.ready.len(), overhead);
        let (mut names, mut bytes) = (std::mem::take(&mut self.ready).into_iter(), 0);
        while bytes < limit.bytes_max
            && let Some(name) = names.next()
        {
            if let Some(mut page) = self.peek(&name, share)? {
                cut(&mut page, share.bytes_max, overhead);
                bytes += Size::of([&page], overhead).bytes;
                pages.push((name, page));
            }
        }
        self.ready = names.chain(std::mem::take(&mut self.ready)).collect();
        for _ in 0..SHARINGS_MAX {
            let used = Size::of(pages.iter().map(|(_, page)| page), overhead);
            let (cut, mut shared): (Vec<_>, Vec<_>) =
                pages.into_iter().partition(|(name, page)| self.has_more(name, page));
            let more = used.more_for_each(cut.len(), limit);
            for (name, page) in cut {
                let longest = Size::of([&page], overhead) + more;
                let longer = match more.events {
                    0 => None,
                    _ => self.longer(&name, longest.into())?,
                };
                // A limit counts data alone, and this also what is around it.
                let fits = |longer: &Page| Size::of([longer], overhead).bytes <= longest.bytes;
                shared.push((name, longer.filter(fits).unwrap_or(page)));
            }
            pages = shared;
            if more.events == 0 {
                break;
            }
        }
        Ok(pages)
    }

    /// Reads a longer page of a topic that has more, without moving. If the topic has ended meanwhile, there is none, and
    /// the next turn tells the end, after the page.
    fn longer(&mut self, name: &TopicName, limit: PageLimit) -> Result<Option<Page>, Problem> {
        let Some(part) = self.parts.get_mut(name) else { return Ok(None) };
        part.reader.limit_to(limit);
        let page = part.reader.peek().ok();
        if let Some(page) = page.as_ref().filter(|_| name.as_str() == TopicName::INDEX) {
            self.follow(page)?;
        }
        Ok(page)
    }

    fn has_more(&self, name: &TopicName, page: &Page) -> bool {
        self.parts.get(name).is_some_and(|part| part.reader.end_by_now() != page.next)
    }

    /// Reads the next page of a topic, without moving; `None` if there is nothing to tell.
    fn peek(&mut self, name: &TopicName, share: PageLimit) -> Result<Option<Page>, Problem> {
        let Some(part) = self.parts.get_mut(name) else { return Ok(None) };
        part.reader.limit_to(if part.is_told { share } else { FOLLOWED_MAX });
        let page = match part.reader.peek() {
            Ok(page) => page,
            Err(end) => return self.leave(name, end).map(|()| None),
        };
        if page.gap.is_none() && page.skipped == 0 && page.events.is_empty() {
            self.wait(name);
            return Ok(None);
        }
        let (is_told, end) = (part.is_told, part.reader.end_by_now());
        if name.as_str() == TopicName::INDEX {
            let next_at = Instant::now() + HEARING_INTERVAL;
            self.hearing.get_or_insert(Hearing { end, next_at });
            self.follow(&page)?;
        }
        if is_told {
            return Ok(Some(page));
        }
        self.followed = Some(page.next);
        self.pass(name, page.next);
        Ok(None)
    }

    /// Moves a reader, and lets it wait if it has everything.
    fn pass(&mut self, name: &TopicName, next: Position) {
        let Some(part) = self.parts.get_mut(name) else { return };
        part.reader.pass(next);
        if part.is_told {
            self.token.place(name.as_str(), After::Position(next));
        }
        if name.as_str() == TopicName::INDEX
            && let Some(hearing) = self.hearing.filter(|hearing| has_reached(next, hearing.end))
        {
            self.hearing = None;
            return self.wait_until(name, Some(hearing.next_at));
        }
        match part.reader.is_behind() {
            true => self.ready.push(name.clone()),
            false => self.wait(name),
        }
    }

    fn wait(&mut self, name: &TopicName) {
        self.wait_until(name, None);
    }

    fn wait_until(&mut self, name: &TopicName, time: Option<Instant>) {
        let Some(part) = self.parts.get_mut(name) else { return };
        let (mut head, position, name) =
            (part.reader.take_head(), part.reader.position(), name.clone());
        if name.as_str() == TopicName::INDEX
            && let Some(news) = self.joining.news_after(position)
        {
            return self.waiting.push(Box::pin(news.map(|()| (name, head))));
        }
        let passed = async move {
            head.passed(position).await;
            (name, head)
        };
        self.waiting.push(match time {
            None => Box::pin(passed),
            // There is one, so it may take more memory.
            Some(time) => Box::pin(async move {
                sleep_until(time).await;
                passed.await
            }),
        });
    }

    fn wake(&mut self, (name, head): (TopicName, Head)) {
        if let Some(part) = self.parts.get_mut(&name) {
            part.reader.give_head(head);
            self.ready.push(name);
        }
    }

    fn take_woken(&mut self) {
        // tokio would otherwise make a task that has used up its turn wait.
        while let Some(Some(woken)) = unconstrained(self.waiting.next()).now_or_never() {
            self.wake(woken);
        }
    }

    /// Passes on what pages have, in the order of time, until the limit is reached. Each page tells its first event even if
    /// those of others have reached the limit of bytes, or a busy topic would hold up the quiet ones.
    fn emit_pages(
        &mut self,
        pages: &[NamedPage],
        TurnLimit { page: limit, has_tokens }: TurnLimit,
        emit: &mut Emit<'_>,
    ) {
        let mut items: Vec<_> = pages.iter().map(|(_, page)| page.items()).collect();
        let mut told = vec![None; pages.len()];
        let (mut events, mut bytes) = (0, 0);
        for index in Merge::of(pages.iter().map(|(_, page)| page)) {
            if events > 0 && events >= limit.events_max {
                break;
            }
            if bytes >= limit.bytes_max && told[index].is_some() {
                continue;
            }
            let name = pages[index].0.as_str();
            for item in items[index].by_ref() {
                if let Some(position) = item.position() {
                    told[index] = Some(position);
                    self.token.place(name, After::Position(position));
                }
                let is_event = matches!(item, Item::Event { .. });
                let mut has_token = has_tokens && self.check_token().is_ok();
                if let Item::Event { data, .. } = &item {
                    let event_bytes = EVENT_BYTES + data.len();
                    (events, bytes) = (events + 1, bytes + event_bytes as u64);
                    has_token &= self.token.comes_with(event_bytes);
                }
                if has_token {
                    self.token.note_sent();
                    bytes += self.token.bytes() as u64;
                }
                emit(&TopicItem::Of { topic: name, item }, self.token.token(), has_token);
                if is_event {
                    break;
                }
            }
        }
        drop(items);
        if has_tokens && self.token.is_due() && self.check_token().is_ok() {
            self.token.note_sent();
            emit(&TopicItem::At, self.token.token(), true);
        }
        let names = || pages.iter().map(|(name, _)| name).zip(&told);
        // Before those that have told something and have more.
        self.ready.extend(names().filter(|(_, told)| told.is_none()).map(|(name, _)| name.clone()));
        for (name, told) in names() {
            if let Some(position) = *told {
                self.pass(name, position);
            }
        }
    }

    fn tell_left(&mut self, emit: &mut Emit<'_>) {
        for Left { name, reason, next } in std::mem::take(&mut self.left) {
            match next {
                Some(next) => self.token.place(name.as_str(), next),
                None => self.token.remove(name.as_str()),
            }
            let item = Item::End(reason);
            let has_token = self.check_token().is_ok();
            self.token.note_sent();
            emit(&TopicItem::Of { topic: name.as_str(), item }, self.token.token(), has_token);
        }
    }

    /// Removes a topic that has ended for this reader. One that was created again joins.
    fn leave(&mut self, name: &TopicName, end: ReadEnd) -> Result<(), Problem> {
        let problem = match end {
            ReadEnd::Failed(problem) => problem,
            ReadEnd::Complete => return Ok(()),
        };
        let Some(reason) = problem.end_reason() else {
            return Err(problem.in_front(&format!("{name}: ")));
        };
        self.parts.remove(name);
        self.held.set(self.parts.len() * TOPIC_OF_MANY_BYTES);
        let mut next = match &reason {
            EndReason::TooSlow { gap: Some(gap) } => Some(After::Anew(gap.resume)),
            _ => None,
        };
        if reason == EndReason::Deleted
            && let Some(reader) = self.joining.open(name)?
        {
            let place = self.token.token().get(name.as_str());
            next = Some(After::Position(reader.position()));
            self.add(reader, true);
            if let Some(place) = place {
                self.token.place(name.as_str(), place);
            }
        }
        self.left.push(Left { name: name.clone(), reason, next });
        Ok(())
    }

    /// Lets the topics join that the index says were created. After a gap in it, all join that are there.
    fn follow(&mut self, page: &Page) -> Result<(), Problem> {
        if page.gap.is_some() || page.skipped > 0 {
            for name in self.joining.names()? {
                self.join(&name, false)?;
            }
        }
        let seen = self.seen;
        let is_new =
            |event: &&Arc<Event>| page.next.epoch != seen.epoch || event.offset > seen.offset;
        for event in page.events.iter().filter(is_new) {
            let change: Option<IndexChange<'_>> = serde_json::from_str(event.data.as_str()).ok();
            let created = change.and_then(|change| change.created);
            if let Some(name) = created.and_then(|name| name.parse().ok()) {
                self.join(&name, true)?;
            }
        }
        if page.next.epoch != seen.epoch || page.next.offset > seen.offset {
            self.seen = page.next;
        }
        Ok(())
    }

    /// Lets a topic join from its first event. If it was created, but is gone already, that is told.
    fn join(&mut self, name: &TopicName, was_created: bool) -> Result<(), Problem> {
        if !self.joining.is_chosen(name.as_str()) {
            return Ok(());
        }
        self.has_joined = true;
        if self.parts.contains_key(name) {
            return Ok(());
        }
        match self.joining.open(name)? {
            Some(reader) => self.add(reader, true),
            None if was_created => self.add_deleted(name.clone(), None),
            None => {}
        }
        self.check_token()
    }
}

fn has_reached(position: Position, end: Position) -> bool {
    position.epoch != end.epoch || position.offset >= end.offset
}

impl fmt::Debug for ManyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManyReader").field("token", &self.token).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
