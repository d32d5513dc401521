//! Executes the requests of a connection.
//!
//! A reader is only a position: when its topic has grown it has a turn, reads a page, and queues again if there is
//! more. Nothing is read while queued output is not written, and no reader waits for all events of another.

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Published;
use anemone_wire::multiplexed::{Id, Reply, Request, status};
use anemone_ws::reactor::SendWaker;
use tokio::time::Instant;

use super::Outlet;
use super::followed::FollowedTopics;
use super::sending::{send_failure, send_final, send_item, send_page};
use super::session::{Session, Step};
use super::submissions::Submissions;
use crate::alarms::{Alarm, Alarms};
use crate::clients::access::{AccessLine, AnswerKind, CLIENT_GONE};
use crate::clients::refusals::RefusedRequest;
use crate::exchange::arrival;
use crate::exchange::change::{self, Change};
use crate::exchange::read_request::ReadRequest;
use crate::exchange::resource::Resource;
use crate::local::Local;
use crate::publish::{self, Expected, SentBody};
use crate::read::reader::Reader;
use crate::request::client::Client;
use crate::request::methods::{Methods, not_allowed};
use crate::request::own_path::ReadPath;
use crate::site::Site;
use crate::stream::{EndlessPart, EndlessReply};
use crate::transport_name::TransportName;
use crate::{Kind, Problem};

/// The reason for the end of requests that were still open.
const CONNECTION_CLOSED: &str = "connection closed";

/// The most requests served at once. Then other connections have their turn.
const TURNS_MAX: usize = 64;

/// The carrier of a connection.
#[derive(Debug)]
pub(super) struct Carrier {
    /// The name for its readers.
    pub(super) name: TransportName,
    /// The place of its messages, for the log.
    pub(super) endpoint: &'static str,
}

/// A connection's requests, with the state to execute them.
#[derive(Debug)]
pub(super) struct Multiplexer {
    site: Arc<Site>,
    alarms: Alarms,
    client: Client,
    carrier: &'static Carrier,
    session: Session<Work>,
    submissions: Submissions<Result<Done, Problem>>,
    /// The bytes of payloads whose events may not be kept yet.
    submitted_bytes: usize,
    topics: FollowedTopics,
    /// Set once the connection is open.
    waker: Option<SendWaker>,
    /// The alarm for heartbeats, while there are readers.
    alarm: Option<Alarm>,
}

/// The work of an open request.
#[derive(Debug)]
enum Work {
    Read(EndlessReply),
    /// To be answered after earlier output was written.
    Answer(Resource, AccessLine),
    /// To be answered when its outcome is known.
    Submit(Submitted),
}

/// A submitted change.
#[derive(Debug)]
struct Submitted {
    /// The length of its payload.
    bytes: usize,
    /// Its path for logs.
    path: String,
    is_deletion: bool,
    access: AccessLine,
}

/// A change that was made.
#[derive(Debug)]
enum Done {
    Published(Published),
    Deleted,
}

impl Multiplexer {
    pub(super) fn new(local: &Local, client: Client, carrier: &'static Carrier) -> Self {
        Self {
            site: Arc::clone(&local.site),
            alarms: local.alarms.clone(),
            client,
            carrier,
            session: Session::new(&local.site.limits, &local.site.memory),
            submissions: Submissions::default(),
            submitted_bytes: 0,
            topics: FollowedTopics::new(&local.fan),
            waker: None,
            alarm: None,
        }
    }

    /// Records that the connection is open.
    pub(super) fn open(&mut self, waker: SendWaker) {
        self.waker = Some(waker);
    }

    /// Handles a message.
    pub(super) fn receive(&mut self, message: &[u8], outlet: &mut impl Outlet) {
        match self.session.receive(message) {
            Step::Begin(id, request) => {
                let (method, (path, _)) = (request.method, request.path_and_query());
                let (access, entered) = arrival::enter(&self.site, self.client, method, path);
                access.by(AnswerKind::Stream(self.carrier.name));
                let begun =
                    entered.and_then(|path| self.begin(id, &path, &request, &access, outlet));
                if let Err(problem) = begun {
                    arrival::note(&self.site, self.client, &problem, method, path);
                    send_failure(id, &problem, &access, outlet);
                }
            }
            // A submission cannot be withdrawn: its own reply is the last.
            Step::Cancel(id) if matches!(self.session.work(id), Some(Work::Submit(_))) => {}
            Step::Cancel(id) => {
                let access = self.end(id);
                access.set_end("cancelled");
                send_final(id, Reply::done(), &access, outlet);
            }
            Step::Pass => {}
            Step::Refuse(id, request, problem) => {
                let asked = RefusedRequest::message(self.client.address(), self.carrier.endpoint);
                let line = request
                    .as_ref()
                    .map_or(("-", "-"), |request| (request.method, request.path_and_query().0));
                let access = arrival::record(&self.site, &problem, asked, line);
                access.by(AnswerKind::Stream(self.carrier.name));
                if request.is_none() && access.is_some() {
                    access.set_end(format!("malformed request: {}", problem.detail()));
                }
                send_failure(id, &problem, &access, outlet);
            }
        }
    }

    /// Answers a request for this path, or opens it.
    fn begin(
        &mut self,
        id: Id,
        path: &str,
        request: &Request<'_>,
        access: &AccessLine,
        outlet: &mut impl Outlet,
    ) -> Result<(), Problem> {
        let (_, query) = request.path_and_query();
        if !request.fields.is_empty() {
            let detail = "only a request to a service or a run may have fields: use parameters";
            return Err(Problem::new(Kind::BadMessage, detail));
        }
        let is_get = request.method == "GET";
        let resource = Resource::at(&self.site, self.client, path, query)?;
        if let Some(path) = ReadPath::at(path).filter(|_| resource.is_none()) {
            if !is_get {
                return self.change(id, path, request, access, outlet);
            }
            let read = ReadRequest::multiplexed(&self.site, self.client, path, query)?;
            return self.read(id, &read.with_access_line(access.clone()), outlet);
        }
        let resource = resource.ok_or_else(|| Problem::nothing_at(path))?;
        if !is_get {
            return Err(not_allowed(request.method, Methods::Read));
        }
        let has_room = outlet.queued_bytes() < self.output_bytes_max();
        if has_room && !self.session.has_turns() {
            self.answer(id, &resource, access, outlet);
        } else {
            // Small requests, many of which arrive in one read, may have large answers. Answers keep the order of
            // requests.
            self.session.open(id, Work::Answer(resource, access.clone()));
            self.wake();
        }
        Ok(())
    }

    /// Handles another request for a topic or a run than reading.
    fn change(
        &mut self,
        id: Id,
        path: ReadPath<'_>,
        request: &Request<'_>,
        access: &AccessLine,
        outlet: &mut impl Outlet,
    ) -> Result<(), Problem> {
        let (_, query) = request.path_and_query();
        let submitted = |bytes, is_deletion| Submitted {
            bytes,
            path: path.in_log(),
            is_deletion,
            access: access.clone(),
        };
        match Change::of(&self.site, self.client, request.method, path)? {
            Change::Publish(permit) => {
                let (content, key) = publish::of_multiplexed(query)?;
                self.check_payload(request.payload.len())?;
                let (site, body) = (Arc::clone(&self.site), request.payload.to_vec());
                let bytes = body.len();
                let held = site.memory.reserve(bytes);
                let submission = async move {
                    let _held = held;
                    let sent = SentBody { content, body: &body, key, expected: Expected::Anything };
                    permit.submit(&site.limits, sent).await.map(Done::Published)
                };
                self.submit(id, submitted(bytes, false), submission, outlet);
            }
            Change::Delete(permit) => {
                publish::no_parameters(query)?;
                let deletion = async move { permit.delete().await.map(|()| Done::Deleted) };
                self.submit(id, submitted(0, true), deletion, outlet);
            }
            Change::Cancel(run) => {
                publish::no_parameters(query)?;
                let state = change::cancel(&run)?;
                send_final(id, Reply::answer(&state), access, outlet);
            }
        }
        Ok(())
    }

    /// Checks that a payload fits a body, and that not too many are waiting.
    fn check_payload(&self, bytes: usize) -> Result<(), Problem> {
        let limits = &self.site.limits;
        if bytes > limits.batch_bytes_max {
            let limit = limits.batch_bytes_max;
            let detail = format!("the payload has {bytes} bytes, at most {limit} are allowed");
            return Err(Problem::new(Kind::BodyTooBig, detail));
        }
        let (waiting, limit) = (self.submitted_bytes, limits.multiplexed_waiting_bytes_max);
        if waiting > 0 && waiting + bytes > limit {
            let detail =
                format!("{waiting} bytes wait to be stored, at most {limit} may on a connection");
            return Err(Problem::new(Kind::TooManyRequests, detail));
        }
        Ok(())
    }

    /// Answers at once, or opens the request until its outcome is known.
    fn submit(
        &mut self,
        id: Id,
        submitted: Submitted,
        submission: impl Future<Output = Result<Done, Problem>> + 'static,
        outlet: &mut impl Outlet,
    ) {
        let waker = self.waker.clone();
        let wake = move || waker.iter().for_each(SendWaker::wake);
        match self.submissions.begin(id, submission, wake) {
            Some(result) => self.send_result(id, &submitted, result, outlet),
            None => {
                self.submitted_bytes += submitted.bytes;
                self.session.open(id, Work::Submit(submitted));
            }
        }
    }

    fn send_result(
        &self,
        id: Id,
        submitted: &Submitted,
        result: Result<Done, Problem>,
        outlet: &mut impl Outlet,
    ) {
        let access = &submitted.access;
        if let Err(problem) = &result {
            let method = if submitted.is_deletion { "DELETE" } else { "POST" };
            arrival::note(&self.site, self.client, problem, method, &submitted.path);
        }
        match result {
            Ok(Done::Published(published)) => {
                let json = anemone_wire::Published::from(published).to_json();
                let reply = if published.repeated { Reply::replayed } else { Reply::published };
                send_final(id, reply(published.last, &json), access, outlet);
            }
            Ok(Done::Deleted) => send_final(id, Reply::done(), access, outlet),
            Err(problem) => send_failure(id, &problem, access, outlet),
        }
    }

    fn answer(&self, id: Id, resource: &Resource, access: &AccessLine, outlet: &mut impl Outlet) {
        // A stopping server tells its connections, and answers nothing more on them.
        let value = resource.value(&self.site, false);
        let reply = Reply { status: value.status.as_u16(), ..Reply::answer(&value.json) };
        send_final(id, reply, access, outlet);
    }

    /// Opens a reader.
    fn read(
        &mut self,
        id: Id,
        read: &ReadRequest,
        outlet: &mut impl Outlet,
    ) -> Result<(), Problem> {
        let Some(waker) = self.waker.clone() else { return Ok(()) };
        let now = Instant::now();
        let mut reply = EndlessReply::new(read.open_stream(self.carrier.name)?, now);
        let begin = reply.begin();
        reply.reader().access().status(status::EVENT);
        send_item(id, &begin, &reply, outlet);
        self.topics.follow(reply.reader().topic(), id, &waker);
        self.session.open(id, Work::Read(reply));
        if self.alarm.is_none() {
            self.alarm = Some(self.alarms.set(now + self.site.limits.heartbeat, waker));
        }
        self.wake();
        Ok(())
    }

    /// Serves requests, after a wake-up or when queued output was written.
    pub(super) fn ready(&mut self, outlet: &mut impl Outlet) {
        for (id, result) in self.submissions.take() {
            if let Some(Work::Submit(submitted)) = self.session.end(id) {
                self.submitted_bytes -= submitted.bytes;
                self.send_result(id, &submitted, result, outlet);
            }
        }
        self.topics.with_news().for_each(|id| self.session.give_turn(id));
        let now = Instant::now();
        if self.alarm.as_ref().is_some_and(|alarm| alarm.due() <= now) {
            self.alarm = self.give_turns_to_quiet(now);
        }
        for turns in 0.. {
            if !self.session.has_turns() {
                break;
            }
            if turns == TURNS_MAX || outlet.queued_bytes() >= self.output_bytes_max() {
                // Continues later, after pending output was written.
                self.wake();
                break;
            }
            if let Some(id) = self.session.take_turn() {
                self.serve(id, now, outlet);
            }
        }
    }

    /// Handles the client's end: its readers get the current events, and then end. Returns true if a request has no
    /// final status yet.
    pub(super) fn on_end(&mut self, outlet: &mut impl Outlet) -> bool {
        let mut readers = Vec::new();
        for (id, work) in self.session.works() {
            if let Work::Read(reply) = work
                && reply.is_open()
            {
                reply.half_close();
                readers.push(id);
            }
        }
        if !readers.is_empty() {
            readers.into_iter().for_each(|id| self.session.give_turn(id));
            self.ready(outlet);
        }
        !self.session.is_empty()
    }

    /// Closes the connection, and frees its requests.
    pub(super) fn close(&mut self) {
        self.session.works().for_each(|(_, work)| work.access().set_end(CONNECTION_CLOSED));
        self.session.clear();
        self.topics.clear();
        self.alarm = None;
    }

    /// Serves a request in its turn.
    fn serve(&mut self, id: Id, now: Instant, outlet: &mut impl Outlet) {
        match self.session.work(id) {
            None | Some(Work::Submit(_)) => {}
            Some(Work::Answer(resource, access)) => {
                let (resource, access) = (resource.clone(), access.clone());
                self.answer(id, &resource, &access, outlet);
                self.end(id);
            }
            Some(Work::Read(reply)) => {
                let heartbeat = early(self.site.limits.heartbeat);
                let read =
                    |reader: &mut Reader| reader.is_behind().then(|| reader.read()).transpose();
                match reply.poll(now, heartbeat, read) {
                    EndlessPart::Page(page) => {
                        let bytes = send_page(id, &page, outlet);
                        reply.reader().access().sent(bytes);
                        if reply.is_behind() || !reply.is_open() {
                            self.session.give_turn(id);
                        }
                    }
                    EndlessPart::Failed { notice, problem } => {
                        notice.iter().for_each(|item| send_item(id, item, reply, outlet));
                        reply.note(&problem, &self.site.refusals);
                        let access = self.end(id);
                        send_failure(id, &problem, &access, outlet);
                    }
                    EndlessPart::Ended(notice) => {
                        send_item(id, &notice, reply, outlet);
                        let access = self.end(id);
                        send_final(id, Reply::answer(""), &access, outlet);
                    }
                    EndlessPart::Item(item) => send_item(id, &item, reply, outlet),
                    EndlessPart::Nothing => {}
                    EndlessPart::Over => {
                        let access = self.end(id);
                        access.set_end(CLIENT_GONE);
                        send_final(id, Reply::done(), &access, outlet);
                    }
                }
            }
        }
    }

    /// Gives a turn to each reader whose heartbeat is due. Returns the next alarm, if there are readers.
    fn give_turns_to_quiet(&mut self, now: Instant) -> Option<Alarm> {
        let heartbeat = self.site.limits.heartbeat;
        let (mut next, mut quiet) = (None, Vec::new());
        for (id, work) in self.session.works() {
            let Work::Read(reply) = work else { continue };
            let is_quiet = reply.due(early(heartbeat)) <= now;
            let due = if is_quiet { now + heartbeat } else { reply.due(heartbeat) };
            next = Some(next.map_or(due, |next: Instant| next.min(due)));
            quiet.extend(is_quiet.then_some(id));
        }
        quiet.into_iter().for_each(|id| self.session.give_turn(id));
        Some(self.alarms.set(next?, self.waker.clone()?))
    }

    /// Ends a request, except a submitted one. Returns its line in the access log.
    fn end(&mut self, id: Id) -> AccessLine {
        let Some(work) = self.session.end(id) else { return AccessLine::default() };
        let access = work.access().clone();
        if let Work::Read(reply) = work {
            self.topics.leave(reply.reader().topic(), id);
        }
        access
    }

    /// Returns the most output to queue, besides the item that exceeds it.
    fn output_bytes_max(&self) -> usize {
        usize::try_from(self.site.limits.stream_bytes_max).unwrap_or(usize::MAX)
    }

    /// Returns the cost of its open requests in bytes.
    pub(super) fn open_bytes(&self) -> usize {
        self.session.held_bytes()
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

/// Returns the time after which a reader gets a heartbeat: a little before it has to, so that many share a wake-up.
fn early(heartbeat: Duration) -> Duration {
    heartbeat - heartbeat / 8
}

impl Drop for Multiplexer {
    fn drop(&mut self) {
        self.session.works().for_each(|(_, work)| work.access().set_end(CONNECTION_CLOSED));
    }
}

impl Work {
    /// Returns the line of its request in the access log.
    fn access(&self) -> &AccessLine {
        match self {
            Self::Read(reply) => reply.reader().access(),
            Self::Answer(_, access) => access,
            Self::Submit(submitted) => &submitted.access,
        }
    }
}
