//! A request to a service, until its final status.
//!
//! The connection polls the service itself, in the turns of the request: first when the request arrives, and again
//! when the service has woken it. It takes items only while there is room for them.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use anemone_wire::multiplexed::{FieldList, Id, REPLY_FIELDS, Reply, Request, status};
use anemone_ws::{Memory, Reservation};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use tokio::time::Instant;

use super::Outlet;
use super::call_waker::{CallWaker, CallWakers};
use super::sending::{send_problem, send_reply};
use super::service_request::service_request;
use crate::clients::access::AccessLine;
use crate::cost::CALL_BYTES;
use crate::reply::body::Body;
use crate::service::answer::{Answer, StartedRun};
use crate::service::caller::Caller;
use crate::service::context::ServiceContext;
use crate::service::items::{Division, Items};
use crate::service::media_type::MediaType;
use crate::service::mounted::{Answering, Mounted};
use crate::site::Site;
use crate::{Kind, Problem};

/// The most bytes of items in a turn, besides the item that exceeds it. Then other requests have their turn.
const TURN_BYTES_MAX: usize = 64 << 10;

/// A request to a service.
pub(super) struct Call {
    state: CallState,
    access: AccessLine,
    memory: Memory,
    is_head: bool,
    /// True if it is carried out whatever the client does.
    is_change: bool,
    waker: Option<Arc<CallWaker>>,
    /// `None` until the first turn is over.
    kept: Option<KeptCall>,
    /// The time by which there must be something to send, once the client has ended its side.
    due: Option<Instant>,
}

#[expect(clippy::large_enum_variant, reason = "most calls are over before they would be boxed")]
enum CallState {
    Answering(Answering),
    Replying(ServiceReply),
}

/// The facts that a call keeps while it is open.
struct KeptCall {
    method: Box<str>,
    path: Box<str>,
    payload_bytes: usize,
    _held: Reservation,
}

/// A reply of a service, and what is left of it.
struct ServiceReply {
    status: StatusCode,
    /// Its fields, until its first message was sent.
    fields: FieldList,
    /// The whole body, if it existed from the beginning.
    whole: Bytes,
    /// `None` if the body is whole, or there is none.
    items: Option<Items>,
}

struct ReplyMessage {
    status: u16,
    fields: FieldList,
    payload: Bytes,
}

struct Turn<'a, O> {
    id: Id,
    outlet: &'a mut O,
    output_bytes_max: usize,
    /// The length of the output at the beginning of the turn.
    begun_bytes: usize,
}

#[derive(Debug)]
pub(super) enum Served {
    /// The service wakes it.
    Waiting,
    /// There may be more for another turn.
    Again,
    /// It has had its final status.
    Over,
    /// It is over, and the events of this run are the reply.
    Started(StartedRun),
    /// Its final status is to be this problem.
    Failed(Problem),
}

impl Call {
    /// Creates the call of a request with this normalized path. The service begins in the first turn.
    pub(super) fn begin(
        site: &Site,
        mount: &Arc<Mounted>,
        caller: Caller,
        (path, request): (&str, &Request<'_>),
        access: AccessLine,
    ) -> Result<Self, Problem> {
        let (memory, is_head) = (site.memory.clone(), request.method == "HEAD");
        let is_change = mount.finishes(request.method);
        let request = service_request(path, request)?;
        let context = ServiceContext::new(&site.limits, &site.memory);
        let state = CallState::Answering(mount.answer(request, caller, context));
        let (waker, kept, due) = Default::default();
        Ok(Self { state, access, memory, is_head, is_change, waker, kept, due })
    }

    /// Keeps what an open call needs. It counts in the memory.
    pub(super) fn keep(&mut self, method: &str, path: &str, payload_bytes: usize) {
        let _held = self.memory.reserve(CALL_BYTES + payload_bytes);
        let (method, path) = (method.into(), path.into());
        self.kept = Some(KeptCall { method, path, payload_bytes, _held });
    }

    pub(super) fn access(&self) -> &AccessLine {
        &self.access
    }

    /// Returns true if it cannot be cancelled.
    pub(super) fn is_change(&self) -> bool {
        self.is_change
    }

    /// Returns the method and the path of an open call.
    pub(super) fn line(&self) -> (&str, &str) {
        self.kept.as_ref().map_or(("-", "-"), |kept| (&kept.method, &kept.path))
    }

    pub(super) fn payload_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.payload_bytes)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Sets the time by which there must be something to send.
    pub(super) fn set_due(&mut self, due: Instant) {
        self.due = Some(due);
    }

    /// Has a turn: polls the service, and sends what there is while the output is shorter than `output_bytes_max`.
    pub(super) fn serve(
        &mut self,
        id: Id,
        wakers: &mut CallWakers,
        outlet: &mut impl Outlet,
        output_bytes_max: usize,
    ) -> Served {
        let waker = self.waker.take().unwrap_or_else(|| wakers.create(id));
        waker.reset();
        let task = Waker::from(Arc::clone(&waker));
        let begun_bytes = outlet.queued_bytes();
        let mut turn = Turn { id, outlet, output_bytes_max, begun_bytes };
        let served = self.poll(&mut Context::from_waker(&task), &mut turn);
        drop(task);
        match served {
            Served::Waiting | Served::Again => self.waker = Some(waker),
            Served::Over | Served::Started(_) | Served::Failed(_) => wakers.take_back(waker),
        }
        served
    }

    /// Sends the problem that ends it.
    pub(super) fn send_problem(&self, id: Id, problem: &Problem, outlet: &mut impl Outlet) {
        let json = if self.is_head { String::new() } else { problem.to_json() };
        send_problem(id, problem, &json, &self.access, outlet);
    }

    fn poll<O: Outlet>(&mut self, cx: &mut Context<'_>, turn: &mut Turn<'_, O>) -> Served {
        loop {
            let reply = match &mut self.state {
                CallState::Answering(answering) => match answering.poll_unpin(cx) {
                    Poll::Pending => return Served::Waiting,
                    Poll::Ready(Err(problem)) => return Served::Failed(problem),
                    Poll::Ready(Ok(Answer::Run(run))) => return Served::Started(run),
                    Poll::Ready(Ok(Answer::Reply(reply))) => {
                        let reply = ServiceReply::of(reply, self.is_head, &self.memory);
                        self.state = CallState::Replying(reply);
                        continue;
                    }
                },
                CallState::Replying(reply) => reply,
            };
            match reply.poll_message(cx) {
                Poll::Pending => return Served::Waiting,
                Poll::Ready(Err(problem)) => return Served::Failed(problem),
                Poll::Ready(Ok(message)) if turn.send(&message, &self.access) => {
                    return Served::Over;
                }
                Poll::Ready(Ok(_)) if turn.is_over() => return Served::Again,
                Poll::Ready(Ok(_)) => {}
            }
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("line", &self.line()).finish_non_exhaustive()
    }
}

impl ServiceReply {
    fn of(reply: Response<Body>, is_head: bool, memory: &Memory) -> Self {
        // 206 is not final here.
        let status = match reply.status() {
            StatusCode::PARTIAL_CONTENT => StatusCode::OK,
            status => status,
        };
        let is_bodiless = is_head
            || matches!(
                status,
                StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
            );
        let media_type = MediaType::of(reply.headers());
        let division = Division::with(media_type, &reply);
        // The type of most replies says nothing. But parts of JSON would look like the items of a stream.
        let has_usual_type = media_type != MediaType::Other && division != Division::Parts;
        let fields = fields_of(reply.headers(), has_usual_type);
        let items = |body| Some(Items::new(body, division, memory));
        let (whole, items) = match reply.into_body() {
            _ if is_bodiless => (Bytes::new(), None),
            body if division == Division::Whole => match body.into_whole() {
                Ok(bytes) => (bytes, None),
                Err(pieces) => (Bytes::new(), items(pieces)),
            },
            body => (Bytes::new(), items(body)),
        };
        Self { status, fields, whole, items }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<ReplyMessage, Problem>> {
        let item = match &mut self.items {
            Some(items) => ready!(items.poll_next(cx)).transpose(),
            None => Ok(Some(std::mem::take(&mut self.whole))),
        };
        let item = item.map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
        let status =
            if item.is_none() || self.is_whole() { self.status.as_u16() } else { status::EVENT };
        let (fields, payload) = (std::mem::take(&mut self.fields), item.unwrap_or_default());
        Poll::Ready(Ok(ReplyMessage { status, fields, payload }))
    }

    fn is_whole(&self) -> bool {
        self.items.as_ref().is_none_or(|items| items.division() == Division::Whole)
    }
}

impl<O: Outlet> Turn<'_, O> {
    /// Sends a message. Returns true if it is the last.
    fn send(&mut self, message: &ReplyMessage, access: &AccessLine) -> bool {
        let ReplyMessage { status, fields, payload } = message;
        let reply = Reply::of_service(*status, fields.as_fields(), payload);
        send_reply(self.id, reply, access, self.outlet);
        reply.is_final()
    }

    fn is_over(&self) -> bool {
        let queued_bytes = self.outlet.queued_bytes();
        queued_bytes >= self.output_bytes_max || queued_bytes >= self.begun_bytes + TURN_BYTES_MAX
    }
}

/// Returns the fields of a reply that its messages have; without its type if that is a usual one.
pub(super) fn fields_of(headers: &HeaderMap, has_usual_type: bool) -> FieldList {
    let mut fields = FieldList::default();
    for name in headers.keys() {
        let is_usual = has_usual_type && name == header::CONTENT_TYPE;
        if is_usual || !REPLY_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let values: Vec<_> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        // What a header takes, a line takes.
        let _ = fields.push(name.as_str(), &values.join(&b", "[..]));
    }
    fields
}
