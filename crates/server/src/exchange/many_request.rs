//! A request to read several topics: which ones, and where reading begins in each.

use std::collections::BTreeSet;
use std::sync::Arc;

use anemone_hub::{Position, Start, Topic, TopicName, UnixTime};
use anemone_wire::{After, Token, TopicItem};
use futures_util::future::BoxFuture;
use http::Response;

use crate::clients::access::{AccessLine, AnswerKind};
use crate::clients::connections::described::WireProtocol;
use crate::clients::connections::http::{RequestPlace, ThreadParts};
use crate::exchange::read_request::ReadRequest;
use crate::memory::counted;
use crate::read::many_reader::{Joining, ManyReader, TurnLimit};
use crate::read::reader::Reader;
use crate::read::told_token::too_long;
use crate::reply::body::{Body, full, omitted, reply};
use crate::request::client::Client;
use crate::request::handshake::Head;
use crate::request::methods::{Wanted, reading_only};
use crate::request::names::topic_name;
use crate::request::query::{ManyQuery, Query, TopicChoices, bad};
use crate::site::Site;
use crate::transport_name::TransportName;
use crate::{Kind, Problem};

/// The shortest entry of a token beside its name: a colon, a digit and a comma.
const ENTRY_BYTES_MIN: usize = 3;

/// The name of a topic; `None` if it does not exist.
type NamedTopic = (TopicName, Option<Arc<Topic>>);

/// A request to read several topics.
#[derive(Debug)]
pub(crate) struct ManyRequest {
    pub(crate) query: Query,
    token: Option<Token>,
    topics: Chosen,
    access: AccessLine,
}

/// The kind of a reader of several topics.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ManyReading {
    /// One page.
    Page(TransportName),
    /// One page, once there is something.
    Waiting(TransportName),
    Stream(TransportName),
}

/// The topics that were chosen, by whom, and what is asked of each.
#[derive(Clone, Debug)]
struct Chosen {
    site: Arc<Site>,
    client: Client,
    choices: TopicChoices,
    query: Query,
    place: Option<RequestPlace>,
}

/// Opens a reader of each chosen topic.
#[derive(Clone, Debug)]
struct Opening {
    topics: Chosen,
    reading: ManyReading,
}

impl ManyRequest {
    pub(crate) fn of(site: &Arc<Site>, client: Client, head: &Head<'_>) -> Result<Self, Problem> {
        reading_only(head.method)?;
        let ManyQuery { choices, token, mut query } =
            ManyQuery::parse(head.query, head.fields, &site.limits)?;
        query.wait = query.wait.map(|wait| wait.cut(site.limits.wait_proxied, client));
        let is_chosen = |name: &&str| *name == TopicName::INDEX || choices.has(name);
        if let Some(other) = token.iter().flat_map(Token::names).find(|name| !is_chosen(name)) {
            let detail = format!("has a place in {other:?}, which no topic= asks for");
            return Err(bad("after", &detail));
        }
        let (site, query_of_each) = (Arc::clone(site), query.clone());
        let topics = Chosen { site, client, choices, query: query_of_each, place: None };
        Ok(Self { query, token, topics, access: AccessLine::default() })
    }

    pub(crate) fn with_access_line(self, access: AccessLine) -> Self {
        access.set_topics(|| self.topics.choices.to_string());
        Self { access, ..self }
    }

    pub(crate) fn with_place(mut self, place: Option<RequestPlace>) -> Self {
        self.topics.place = place;
        self
    }

    /// Returns the protocol of its connection, if that is known.
    pub(crate) fn protocol(&self) -> WireProtocol {
        self.topics.place.as_ref().map_or(WireProtocol::Other, RequestPlace::protocol)
    }

    /// Returns what a stream shares with others of its thread, if its connection is one of this server.
    pub(crate) fn shared(&self) -> Option<&ThreadParts> {
        self.topics.place.as_ref().map(RequestPlace::shared)
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        &self.topics.site
    }

    pub(crate) fn client(&self) -> Client {
        self.topics.client
    }

    pub(crate) fn access(&self) -> &AccessLine {
        &self.access
    }

    pub(crate) fn page_limit(&self) -> TurnLimit {
        TurnLimit { page: self.query.page, has_tokens: false }
    }

    pub(crate) fn open(&self, reading: ManyReading) -> Result<ManyReader, Problem> {
        self.access.set_answer(match reading {
            ManyReading::Page(transport) | ManyReading::Waiting(transport) => {
                AnswerKind::Page(transport)
            }
            ManyReading::Stream(transport) => AnswerKind::Stream(transport),
        });
        let opening = Opening { topics: self.topics.clone(), reading };
        let topics = &self.topics;
        // Before the topics are listed: later changes are followed.
        let index = Arc::clone(topics.site.hub.index());
        let now = index.info(UnixTime::now()).head;
        let told = self.place(TopicName::INDEX);
        let is_told = topics.choices.has_name(TopicName::INDEX);
        let seen = told.and_then(After::position).unwrap_or(now);
        let reader = match is_told {
            true => opening.reader(&index, told.map(Start::from))?,
            false => Reader::open(index, After::Anew(seen).into(), self.query.page)?,
        };
        let (held, limits) = (topics.site.memory.reservation(), &topics.site.limits);
        let (names, token_bytes_max) = (self.names()?, limits.token_bytes_max);
        let joining = Box::new(opening.clone());
        let mut many = ManyReader::new((reader, is_told, seen), joining, token_bytes_max, held);
        for (name, topic) in names {
            self.add(&mut many, &opening, name, topic)?;
        }
        many.check_token()?;
        Ok(many)
    }

    /// Adds a chosen topic, or says that it is gone.
    fn add(
        &self,
        many: &mut ManyReader,
        opening: &Opening,
        name: TopicName,
        topic: Option<Arc<Topic>>,
    ) -> Result<(), Problem> {
        let place = self.place(name.as_str());
        let Some(topic) = topic else {
            if place.and_then(After::position).is_some() {
                many.add_deleted(name, place);
            }
            return Ok(());
        };
        let start = match place {
            Some(place) => Some(place.into()),
            // It was created since.
            None if self.resumes() => Some(first_event(&topic)),
            None => None,
        };
        match opening.reader(&topic, start) {
            Ok(reader) => many.add_topic(reader),
            Err(problem) if problem.kind() == Kind::TopicDeleted => many.add_deleted(name, place),
            Err(problem) => return Err(problem.in_front(&format!("{name}: "))),
        }
        Ok(())
    }

    /// Returns the chosen topics; `None` for one that does not exist.
    fn names(&self) -> Result<Vec<NamedTopic>, Problem> {
        let topics = &self.topics;
        let mut names: BTreeSet<TopicName> = topics.names()?.into_iter().collect();
        // Those that a pattern matched.
        let known = self.token.iter().flat_map(Token::names).filter_map(|name| name.parse().ok());
        names.extend(known);
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let topic = match topics.site.hub.topic(&name) {
                None if topics.choices.has_name(name.as_str()) => {
                    match topics.site.topic(name.as_str()) {
                        // A stream waits for it to come back, and so does who resumes it.
                        Err(_) if self.resumes() => None,
                        topic => Some(topic?),
                    }
                }
                topic => topic,
            };
            found.push((name, topic));
        }
        Ok(found)
    }

    fn place(&self, name: &str) -> Option<After> {
        self.token.as_ref().and_then(|token| token.get(name))
    }

    /// Returns true if the token is the server's, which says as of when the topics are all in it.
    fn resumes(&self) -> bool {
        self.place(TopicName::INDEX).is_some()
    }

    pub(crate) fn page_reply(
        &self,
        many: &mut ManyReader,
        wanted: Wanted,
    ) -> Result<Response<Body>, Problem> {
        let (mut notices, mut events) = (String::new(), String::new());
        many.turn(self.page_limit(), &mut |item, token, _| {
            if wanted == Wanted::Head || matches!(item, TopicItem::At) {
                return;
            }
            let list = if item.is_event() { &mut events } else { &mut notices };
            if !list.is_empty() {
                list.push(',');
            }
            item.write(token, list);
        })?;
        self.access.set_places(many.token());
        let body = match wanted {
            Wanted::Head => omitted(),
            Wanted::All => {
                let mut page = String::with_capacity(notices.len() + events.len() + 128);
                anemone_wire::write_topics_page(many.token(), &notices, &events, &mut page);
                full(counted(&self.site().memory, page))
            }
        };
        let mut response = reply("application/json", "no-store", body);
        let (topics, token) = (self.topics.choices.query(), many.token());
        if let Ok(link) = format!("<?{topics}&after={token}>; rel=\"next\"").try_into() {
            response.headers_mut().insert(http::header::LINK, link);
        }
        Ok(response)
    }
}

impl Chosen {
    /// Returns the names of the topics that there are.
    fn names(&self) -> Result<Vec<TopicName>, Problem> {
        let mut names: BTreeSet<TopicName> = BTreeSet::new();
        let bytes_max = self.site.limits.token_bytes_max;
        for name in self.choices.names().filter(|name| *name != TopicName::INDEX) {
            names.insert(topic_name(name)?);
        }
        // One more than can fit.
        let topics_max = bytes_max / (1 + ENTRY_BYTES_MIN) + 1;
        for prefix in self.choices.prefixes() {
            let topics = self.site.hub.topics_after(prefix, None, topics_max);
            names.extend(topics.iter().map(|topic| topic.name().clone()));
        }
        let bytes = names.iter().map(|name| name.as_str().len() + ENTRY_BYTES_MIN).sum();
        if bytes > bytes_max {
            return Err(too_long(bytes, names.len(), bytes_max));
        }
        Ok(names.into_iter().collect())
    }
}

impl Opening {
    fn reader(&self, topic: &Arc<Topic>, start: Option<Start>) -> Result<Reader, Problem> {
        let Chosen { site, client, query, place, .. } = &self.topics;
        let query = Query { start: start.or(query.start), ..query.clone() };
        let read = ReadRequest::of_topic(site, *client, Arc::clone(topic), query)
            .with_place(place.clone());
        match self.reading {
            ManyReading::Page(transport) => read.open(transport, Start::Newest),
            ManyReading::Waiting(transport) => read.open_waiting(transport, Start::Newest),
            ManyReading::Stream(transport) => read.open_stream(transport),
        }
    }
}

impl Joining for Opening {
    fn is_chosen(&self, name: &str) -> bool {
        self.topics.choices.has(name)
    }

    fn names(&self) -> Result<Vec<TopicName>, Problem> {
        self.topics.names()
    }

    fn news_after(&self, position: Position) -> Option<BoxFuture<'static, ()>> {
        let herald = Arc::clone(&self.topics.place.as_ref()?.shared().herald);
        Some(Box::pin(herald.news_after(position)))
    }

    fn open(&self, name: &TopicName) -> Result<Option<Reader>, Problem> {
        let Some(topic) = self.topics.site.hub.topic(name) else { return Ok(None) };
        match self.reader(&topic, Some(first_event(&topic))) {
            Ok(reader) => Ok(Some(reader)),
            Err(problem) if problem.kind() == Kind::TopicDeleted => Ok(None),
            Err(problem) => Err(problem),
        }
    }
}

/// The place before the first event of a topic. What is missing there is a gap, and no reader is too slow for it.
fn first_event(topic: &Topic) -> Start {
    After::Anew(topic.info(UnixTime::now()).head.at(0)).into()
}
