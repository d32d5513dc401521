//! A request to read a topic or a run: what is read, the beginning, and the client.
//!
//! Owns where reading begins, and the rule for slow readers. `read` does the reading, and `query` parses the request.

use std::sync::Arc;

use anemone_hub::{PageLimit, ReadError, Start, Storage, Topic};
use anemone_wire::After;
use httparse::Header;

use crate::clients::access::{AccessLine, AnswerKind};
use crate::clients::connections::described::WireProtocol;
use crate::clients::connections::http::RequestPlace;
use crate::publish::{PublishPermit, PublishRefusal};
use crate::read::pages::{Pages, TopicPages};
use crate::read::readable::Readable;
use crate::read::reader::Reader;
use crate::request::client::Client;
use crate::request::fields::Fields;
use crate::request::handshake::Head;
use crate::request::methods::{Methods, reading_only};
use crate::request::own_path::ReadPath;
use crate::request::query::Query;
use crate::site::Site;
use crate::transport_name::TransportName;
use crate::{Kind, Problem, SlowReader};

#[derive(Debug)]
pub(crate) struct ReadRequest {
    pub(crate) site: Arc<Site>,
    readable: Readable,
    pub(crate) query: Query,
    slow: SlowReader,
    /// The storage of the topic, if it is not created yet.
    storage: Storage,
    client: Client,
    access: AccessLine,
    place: Option<RequestPlace>,
}

impl ReadRequest {
    pub(crate) fn of(
        site: &Arc<Site>,
        client: Client,
        head: &Head<'_>,
        path: ReadPath<'_>,
    ) -> Result<Self, Problem> {
        let readable = site.readable(path)?;
        reading_only(head.method)?;
        let mut query = Query::parse(head.query, head.fields, &site.limits)?;
        query.wait = query.wait.map(|wait| wait.cut(site.limits.wait_proxied, client));
        Ok(Self::new(site, client, readable, query))
    }

    /// Creates a request for all events of a run, which its client has just started.
    pub(crate) fn of_started(
        site: &Arc<Site>,
        client: Client,
        events: Readable,
    ) -> Result<Self, Problem> {
        let query = Query::parse(None, Fields::Parsed(&[]), &site.limits)?;
        Ok(Self::new(site, client, events, query))
    }

    /// Creates a multiplexed request for what is at `path`. Of the fields that a request for a run may have, `Last-Event-ID`
    /// says where reading begins. A `HEAD` may have the parameters of a poll, as over HTTP; no other request is one.
    pub(crate) fn multiplexed(
        site: &Arc<Site>,
        client: Client,
        path: ReadPath<'_>,
        (query, last_event_id): (Option<&str>, Option<&[u8]>),
        is_head: bool,
    ) -> Result<Self, Problem> {
        let readable = site.readable(path)?;
        let resumed = last_event_id.map(|value| Header { name: "last-event-id", value });
        let query = Query::parse(query, Fields::Parsed(resumed.as_slice()), &site.limits)?;
        let unfit = [("wait", query.wait.is_some()), ("frame", query.frame.is_some())];
        if let Some((name, _)) = unfit.iter().find(|(_, is_given)| *is_given && !is_head) {
            let detail = format!("{name} is not a parameter of a multiplexed reader");
            return Err(Problem::new(Kind::BadParameter, detail));
        }
        Ok(Self::new(site, client, readable, query))
    }

    pub(crate) fn of_topic(
        site: &Arc<Site>,
        client: Client,
        topic: Arc<Topic>,
        query: Query,
    ) -> Self {
        Self::new(site, client, topic.into(), query)
    }

    fn new(site: &Arc<Site>, client: Client, readable: Readable, query: Query) -> Self {
        let name = (!readable.is_run()).then(|| readable.topic().name());
        let slow = name.map_or(SlowReader::Gap, |name| site.publishing.slow_reader(name));
        let storage = name.and_then(|name| site.publishing.may_create(name)).unwrap_or_default();
        let (site, access) = (Arc::clone(site), AccessLine::default());
        Self { site, readable, query, slow, storage, client, access, place: None }
    }

    /// Returns the methods that its client can use on what it reads.
    pub(crate) fn methods(&self) -> Methods {
        if self.permit().is_err() {
            return Methods::Read;
        }
        self.site.publishing.methods(self.readable.topic().name())
    }

    pub(crate) fn permit(&self) -> Result<PublishPermit, PublishRefusal> {
        match self.readable.is_run() {
            true => Err(PublishRefusal::Run),
            false => self.site.publishing.permit(self.readable.topic().name(), self.client),
        }
    }

    /// Returns where reading begins, if the request does not say it and this is its transport's default.
    fn start(&self, default: Start) -> Start {
        let beginning = || self.readable.beginning().map_or(default, Start::from);
        self.query.start.unwrap_or_else(beginning)
    }

    pub(crate) fn with_access_line(self, access: AccessLine) -> Self {
        Self { access, ..self }
    }

    pub(crate) fn with_place(self, place: Option<RequestPlace>) -> Self {
        Self { place, ..self }
    }

    /// Returns the protocol of its connection, if that is known.
    pub(crate) fn protocol(&self) -> WireProtocol {
        self.place.as_ref().map_or(WireProtocol::Other, RequestPlace::protocol)
    }

    /// Opens a reader for one page that begins where the request says, or else at `default`.
    pub(crate) fn open(&self, transport: TransportName, default: Start) -> Result<Reader, Problem> {
        self.access.set_answer(AnswerKind::Page(transport));
        self.place.iter().for_each(|place| place.reads_by(transport));
        self.open_page(self.readable.clone(), default)
    }

    fn open_page(&self, readable: Readable, default: Start) -> Result<Reader, Problem> {
        let start = self.start(default);
        // A position means that the client has read earlier pages: it is continuing, not beginning.
        let first = match start {
            Start::After(After::Position(_)) => self.slow,
            _ => SlowReader::Gap,
        };
        Ok(self.open_at(readable, start, self.query.page)?.when_slow(first, self.slow))
    }

    /// Returns true if the client resumes after the last event of a run that has ended.
    pub(crate) fn has_all(&self) -> bool {
        match self.query.start {
            Some(Start::After(After::Position(position))) => {
                self.query.is_resumed && self.readable.is_over_at(position)
            }
            _ => false,
        }
    }

    /// Returns true if the answer changes with time even without new events, so that no tag can identify it.
    pub(crate) fn depends_on_time(&self) -> bool {
        matches!(self.query.start, Some(Start::Since(_)))
    }

    /// Opens a reader for one page that waits for events.
    pub(crate) fn open_waiting(
        &self,
        transport: TransportName,
        default: Start,
    ) -> Result<Reader, Problem> {
        self.access.set_answer(AnswerKind::Page(transport));
        Ok(self.list(self.open_page(self.awaited()?, default)?, transport))
    }

    /// Returns the pages that readers of a topic share, on its thread or in another HTTP server.
    pub(crate) fn pages(&self, topic: &Arc<Topic>) -> Arc<TopicPages> {
        let create = || Pages::new(&self.site.memory);
        let pages = match &self.place {
            Some(place) => place.shared().state(create),
            None => self.site.state(create),
        };
        pages.of(topic)
    }

    /// Opens a reader that stays, from where the request says, or else for future events.
    pub(crate) fn open_stream(&self, transport: TransportName) -> Result<Reader, Problem> {
        self.access.set_answer(AnswerKind::Stream(transport));
        let limit = PageLimit { bytes_max: self.site.limits.stream_bytes_max, ..self.query.page };
        let start = self.start(After::Latest.into());
        let reader = self.open_at(self.awaited()?, start, limit)?;
        let begins_with_gap = match start {
            Start::After(After::Latest) => false,
            Start::After(After::Position(_)) => {
                self.slow == SlowReader::Close && reader.has_fallen_out()
            }
            // The oldest event may be dropped at any moment.
            Start::After(_) | Start::Newest | Start::Since(_) => true,
        };
        let first = if begins_with_gap { SlowReader::Gap } else { self.slow };
        Ok(self.list(reader.when_slow(first, self.slow), transport))
    }

    fn list(&self, reader: Reader, transport: TransportName) -> Reader {
        let reader = reader.listed(&self.site.readers, self.client, transport);
        if let (Some(place), Some(watched)) = (&self.place, reader.watch()) {
            place.reads_by(transport);
            place.add_reader(reader.readable().path_in_log(), reader.topic(), watched);
        }
        reader
    }

    fn open_at(
        &self,
        readable: Readable,
        start: Start,
        limit: PageLimit,
    ) -> Result<Reader, Problem> {
        let topic = readable.topic();
        if let Start::After(after) = start
            && let Some(position) = after.position()
            && !topic.is_created()
            && self.site.hub.was_deleted(topic.name(), position.epoch)
        {
            // A reader of the deleted topic is told so, and does not wait for another one.
            return Err(ReadError::Deleted.into());
        }
        let reader = Reader::open(readable, start, limit)?.in_mode(self.query.mode);
        Ok(reader.with_access_line(self.access.clone()))
    }

    /// Returns what a reader that stays reads: the future topic, if it is not created yet.
    fn awaited(&self) -> Result<Readable, Problem> {
        let topic = self.readable.topic();
        if topic.is_created() {
            return Ok(self.readable.clone());
        }
        let admit = || self.site.awaited.admit(self.client);
        self.site.hub.await_topic(topic.name(), self.storage, admit).map(Readable::from)
    }
}
