//! Executes the requests of a connection.
//!
//! A reader is only a position: when its topic has grown it has a turn, reads a page, and queues again if there is
//! more. Nothing is read while queued output is not written, and no reader waits for all events of another.

mod turns;

use std::sync::Arc;

use anemone_wire::multiplexed::{Id, Reply, Request};
use anemone_ws::reactor::SendWaker;
use http::{HeaderMap, header};
use tokio::time::Instant;

use super::Outlet;
use super::call::{Call, Served, fields_of};
use super::call_waker::CallWakers;
use super::followed::FollowedTopics;
use super::payloads::Payloads;
use super::sending::{send_begin, send_failure, send_head, send_problem, send_reply};
use super::session::{Session, Step};
use super::submissions::Submissions;
use super::work::{Done, Submitted, WantedResource, Work};
use crate::alarms::{Alarm, Alarms};
use crate::clients::access::{AccessLine, AnswerKind};
use crate::clients::connections::described::{Described, READS_MAX};
use crate::clients::refusals::RefusedRequest;
use crate::exchange::arrival;
use crate::exchange::change::{self, Change};
use crate::exchange::destination::Destination;
use crate::exchange::page_reply;
use crate::exchange::read_request::ReadRequest;
use crate::exchange::resource::ResourceValue;
use crate::local::Local;
use crate::publish::{self, Expected, SentBody};
use crate::read::reader::Reader;
use crate::request::client::Client;
use crate::request::methods::{Wanted, is_reading, reading_only};
use crate::request::own_path::ReadPath;
use crate::request::query;
use crate::service::answer::StartedRun;
use crate::service::caller::Caller;
use crate::service::mounted::Mounted;
use crate::site::{Beside, Site};
use crate::stream::EndlessReply;
use crate::transport_name::TransportName;
use crate::{Kind, Problem};

/// The reason for the end of requests that were still open.
const CONNECTION_CLOSED: &str = "connection closed";

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
    payloads: Payloads,
    topics: FollowedTopics,
    /// Set once the connection is open.
    waker: Option<SendWaker>,
    /// `None` until there was a call.
    call_wakers: Option<CallWakers>,
    /// The alarm for heartbeats, while there are readers or calls.
    alarm: Option<Alarm>,
    /// True once the client has ended its side.
    has_ended: bool,
    /// True if the last message has caused work that its length does not tell.
    has_worked: bool,
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
            payloads: Payloads::new(&local.site.limits),
            topics: FollowedTopics::new(&local.fan),
            waker: None,
            call_wakers: None,
            alarm: None,
            has_ended: false,
            has_worked: false,
        }
    }

    pub(super) fn open(&mut self, waker: SendWaker) {
        self.waker = Some(waker);
    }

    /// Returns true, once, if the last message has caused work that its length does not tell: an answer of a service, a
    /// resource or a page was made. Opening a reader is not such work, and reading has turns of its own.
    pub(super) fn has_worked(&mut self) -> bool {
        std::mem::take(&mut self.has_worked)
    }

    pub(super) fn receive(&mut self, message: &[u8], outlet: &mut impl Outlet) {
        match self.session.receive(message) {
            Step::Begin(id, request) => {
                let (method, (path, _)) = (request.method, request.path_and_query());
                let (access, entered) = arrival::enter(&self.site, self.client, method, path);
                access.set_answer(AnswerKind::Stream(self.carrier.name));
                let begun =
                    entered.and_then(|path| self.begin(id, &path, &request, &access, outlet));
                if let Err(problem) = begun {
                    arrival::note(&self.site, self.client, &problem, method, path);
                    let json = if method == "HEAD" { String::new() } else { problem.to_json() };
                    send_problem(id, &problem, &json, &access, outlet);
                }
            }
            // A change cannot be withdrawn: its own reply is the last.
            Step::Cancel(id) if self.session.work(id).is_some_and(|work| work.is_change()) => {}
            Step::Cancel(id) => {
                let access = self.end(id);
                access.set_end("cancelled");
                send_reply(id, Reply::done(), &access, outlet);
            }
            Step::Pass => {}
            Step::Refuse(id, request, problem) => {
                let asked = RefusedRequest::message(self.client.address(), self.carrier.endpoint);
                let line = request
                    .as_ref()
                    .map_or(("-", "-"), |request| (request.method, request.path_and_query().0));
                let access = arrival::record(&self.site, &problem, asked, line);
                access.set_answer(AnswerKind::Stream(self.carrier.name));
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
        match Destination::of(&self.site, self.client, path, query)? {
            Destination::Beside(Beside::Mount(mount)) if !mount.is_http_only() => {
                let mount = Arc::clone(mount);
                self.call(id, &mount, (path, request), access, outlet)
            }
            Destination::Events(events) => {
                check_fields(request, path)?;
                if !is_reading(request.method) {
                    return self.change(id, events, request, access, outlet);
                }
                let id_given = request.fields.get("last-event-id");
                let asked = (query, id_given.as_deref());
                let wanted = Wanted::by(request.method);
                let is_head = wanted == Wanted::Head;
                let read =
                    ReadRequest::multiplexed(&self.site, self.client, events, asked, is_head)?;
                let read = read.with_access_line(access.clone());
                if is_head {
                    self.has_worked = true;
                    let no_fields = HeaderMap::new();
                    let page = page_reply::poll(&read, &no_fields, wanted, self.carrier.name)?;
                    send_head(id, page.status(), &fields_of(page.headers(), true), access, outlet);
                    return Ok(());
                }
                self.read(id, &read, &HeaderMap::new(), outlet)
            }
            Destination::Resource(resource) => {
                check_fields(request, path)?;
                reading_only(request.method)?;
                self.has_worked = !resource.is_small();
                let wanted = WantedResource { resource, wanted: Wanted::by(request.method) };
                if self.may_answer(outlet) {
                    self.answer(id, &wanted, access, outlet);
                } else {
                    self.session.open(id, Work::Answer(wanted, access.clone()));
                    self.wake();
                }
                Ok(())
            }
            Destination::Survey(survey) => {
                check_fields(request, path)?;
                reading_only(request.method)?;
                self.has_worked = true;
                let (site, wanted) = (Arc::clone(&self.site), Wanted::by(request.method));
                let told = async move { Ok(Done::Told(survey.value(&site, wanted).await)) };
                let (path, access) = (path.to_owned(), access.clone());
                self.submit(
                    id,
                    Submitted { bytes: 0, path, is_deletion: false, access },
                    told,
                    outlet,
                );
                Ok(())
            }
            Destination::ManyTopics => Err(query::one_topic_each()),
            _ => Err(Problem::nothing_at(path)),
        }
    }

    /// Calls a service. What it answers at once needs no turn.
    fn call(
        &mut self,
        id: Id,
        mount: &Arc<Mounted>,
        (path, request): (&str, &Request<'_>),
        access: &AccessLine,
        outlet: &mut impl Outlet,
    ) -> Result<(), Problem> {
        let Some(waker) = self.waker.clone() else { return Ok(()) };
        self.has_worked = true;
        let payload_bytes = request.payload.len();
        self.payloads.check(payload_bytes)?;
        let caller = Caller::new(self.client, self.carrier.name.as_str());
        let mut call = Call::begin(&self.site, mount, caller, (path, request), access.clone())?;
        let (may_answer, output_bytes_max) = (self.may_answer(outlet), self.output_bytes_max());
        let wakers = self.call_wakers.get_or_insert_with(|| CallWakers::new(&waker));
        let served = match may_answer {
            true => call.serve(id, wakers, outlet, output_bytes_max),
            false => Served::Again,
        };
        let has_more = match served {
            Served::Over => return Ok(()),
            Served::Started(run) => return self.follow(id, run, access, outlet),
            Served::Failed(problem) => {
                arrival::note(&self.site, self.client, &problem, request.method, path);
                call.send_problem(id, &problem, outlet);
                return Ok(());
            }
            Served::Waiting => false,
            Served::Again => true,
        };
        call.keep(request.method, path, payload_bytes);
        self.payloads.add(payload_bytes);
        self.session.hold(id, Work::Call(Box::new(call)));
        self.set_alarm(Instant::now() + self.site.limits.heartbeat);
        if has_more {
            self.session.give_turn(id);
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
                self.payloads.check(request.payload.len())?;
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
                change::unconditional(request.fields.get("if-match").is_some())?;
                let state = change::cancel(&run)?;
                send_reply(id, Reply::answer(&state), access, outlet);
            }
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
                self.payloads.add(submitted.bytes);
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
                send_reply(id, reply(published.last, &json), access, outlet);
            }
            Ok(Done::Deleted) => send_reply(id, Reply::done(), access, outlet),
            Ok(Done::Told(value)) => send_value(id, value, access, outlet),
            Err(problem) => send_failure(id, &problem, access, outlet),
        }
    }

    fn answer(
        &self,
        id: Id,
        wanted: &WantedResource,
        access: &AccessLine,
        outlet: &mut impl Outlet,
    ) {
        // A stopping server tells its connections, and answers nothing more on them.
        let value = wanted.resource.value(&self.site, wanted.wanted, false);
        send_value(id, value, access, outlet);
    }

    /// Opens a reader of a run that was started.
    fn follow(
        &mut self,
        id: Id,
        StartedRun { events, fields }: StartedRun,
        access: &AccessLine,
        outlet: &mut impl Outlet,
    ) -> Result<(), Problem> {
        let read = ReadRequest::of_started(&self.site, self.client, events)?;
        self.read(id, &read.with_access_line(access.clone()), &fields, outlet)
    }

    /// Opens a reader, whose first message has these fields.
    fn read(
        &mut self,
        id: Id,
        read: &ReadRequest,
        fields: &HeaderMap,
        outlet: &mut impl Outlet,
    ) -> Result<(), Problem> {
        let Some(waker) = self.waker.clone() else { return Ok(()) };
        let now = Instant::now();
        let mut reply = EndlessReply::new(read.open_stream(self.carrier.name)?, now);
        send_begin(id, &mut reply, &fields_of(fields, true), outlet);
        if self.has_ended {
            reply.half_close(self.site.limits.write_timeout);
        }
        self.topics.follow(reply.reader().topic(), id, &waker);
        self.session.open(id, Work::Read(reply));
        self.set_alarm(now + self.site.limits.heartbeat);
        self.wake();
        Ok(())
    }

    /// Handles the client's end: its readers get the current events, and then end. Services have some time to go on.
    /// Returns true if a request has no final status yet.
    pub(super) fn on_end(&mut self, outlet: &mut impl Outlet) -> bool {
        let mut readers = Vec::new();
        let (now, grace) = (Instant::now(), self.site.limits.write_timeout);
        let due = now + grace;
        let is_first = !std::mem::replace(&mut self.has_ended, true);
        for (id, work) in self.session.works() {
            match work {
                Work::Read(reply) if reply.is_open() && !reply.is_half_closed() => {
                    reply.half_close(grace);
                    readers.push(id);
                }
                Work::Call(call) if is_first => call.set_due(due),
                _ => {}
            }
        }
        if is_first {
            self.set_alarm(due);
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

    /// Ends a request, except a submitted one. Returns its line in the access log.
    fn end(&mut self, id: Id) -> AccessLine {
        let Some(work) = self.session.end(id) else { return AccessLine::default() };
        let access = work.access().clone();
        match work {
            Work::Read(reply) => self.topics.leave(reply.reader().topic(), id),
            Work::Call(call) => self.payloads.remove(call.payload_bytes()),
            Work::Answer(..) | Work::Submit(_) => {}
        }
        access
    }

    /// Adds its requests and readers to the description of its connection.
    pub(super) fn describe(&self, connection: Described) -> Described {
        let readers = self.session.all().filter_map(|work| match work {
            Work::Read(reply) => Some(reply.reader()),
            Work::Answer(..) | Work::Submit(_) | Work::Call(_) => None,
        });
        let reads = readers.clone().take(READS_MAX).map(Reader::describe).collect();
        let (requests, readers) = (self.session.all().count(), readers.count());
        Described { requests, reads, readers, ..connection }
    }

    pub(super) fn client(&self) -> Client {
        self.client
    }

    pub(super) fn site(&self) -> &Site {
        &self.site
    }

    /// Returns the most output to queue, besides the item that exceeds it.
    fn output_bytes_max(&self) -> usize {
        usize::try_from(self.site.limits.stream_bytes_max).unwrap_or(usize::MAX)
    }

    /// Returns true if a request can be answered at once. Answers keep the order of requests, and may be large though
    /// many requests arrive in one read.
    fn may_answer(&self, outlet: &impl Outlet) -> bool {
        outlet.queued_bytes() < self.output_bytes_max() && !self.session.has_turns()
    }

    pub(super) fn open_bytes(&self) -> usize {
        self.session.held_bytes()
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

fn send_value(id: Id, value: ResourceValue, access: &AccessLine, outlet: &mut impl Outlet) {
    let link = value.link.map(|link| (header::LINK, link));
    let fields = fields_of(&link.into_iter().collect(), true);
    let status = value.status.as_u16();
    // A message ends without a line feed.
    let json = value.line.as_deref().map_or(&b""[..], |line| line.trim_ascii_end());
    let reply = Reply::of_service(status, fields.as_fields(), json);
    send_reply(id, reply, access, outlet);
}

/// Checks that a request to what is no service has only fields that it may have.
fn check_fields(request: &Request<'_>, path: &str) -> Result<(), Problem> {
    if request.fields.is_empty() || matches!(ReadPath::at(path), Some(ReadPath::Run(_))) {
        return Ok(());
    }
    let detail = "only a request to a service or a run may have fields: use parameters";
    Err(Problem::new(Kind::BadMessage, detail))
}

impl Drop for Multiplexer {
    fn drop(&mut self) {
        self.session.works().for_each(|(_, work)| work.access().set_end(CONNECTION_CLOSED));
    }
}
