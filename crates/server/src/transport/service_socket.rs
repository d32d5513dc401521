//! Plain WebSocket at the path of a service: the first message is the body of the request, and each item of the reply is
//! a message. If the message has started a run, its events are the reply, as at the path of the run.
//!
//! A task of the connection asks the service and takes the items. It waits while enough of them are on their way, so a
//! slow client holds its own service back, and no other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anemone_wire::Item;
use anemone_ws::Error;
use anemone_ws::proto::handshake::HandshakeResponse;
use anemone_ws::proto::{CloseCode, CloseFrame, Message, MisuseError, Sender};
use anemone_ws::reactor::{Handler, SendWaker};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::clients::connections::described::Described;
use crate::clients::permits::ConnectionPermit;
use crate::essential::Essentials;
use crate::exchange::handoff::Successor;
use crate::exchange::read_request::ReadRequest;
use crate::exchange::upgrade::{HandshakeRoute, HandshakeTransport};
use crate::exchange::visit::Visit;
use crate::limits::LimitsTable;
use crate::local::Local;
use crate::memory::counted;
use crate::read::fan::Fan;
use crate::read::pages::ItemEncoding;
use crate::read::reader::Reader;
use crate::reply::body::full;
use crate::request::client::Client;
use crate::request::handshake::Head;
use crate::request::own_path::in_log;
use crate::service::answer::Answer;
use crate::service::caller::Caller;
use crate::service::context::ServiceContext;
use crate::service::items::Items;
use crate::service::mounted::Mounted;
use crate::site::Site;
use crate::stream::in_web_socket::{InWebSocket, close_with, encoding};
use crate::transport_name::TransportName;
use crate::{Kind, Problem};

pub(super) static TRANSPORT: HandshakeTransport = HandshakeTransport {
    name: TransportName::WEBSOCKET,
    // Only at run services.
    subprotocols: &[Item::SUBPROTOCOL],
    limits: LimitsTable::Multiplexed,
    route: HandshakeRoute::Service(take_over),
};

fn take_over(
    _: &Site,
    client: Client,
    head: &Head<'_>,
    mount: &Arc<Mounted>,
    response: &HandshakeResponse,
) -> Result<Successor, Problem> {
    let target = head.query.map(|query| format!("{}?{query}", head.path));
    let path = head.path.to_owned();
    let target = Uri::try_from(target.unwrap_or_else(|| path.clone()))
        .map_err(|error| Problem::new(Kind::BadName, error.to_string()))?;
    let call = WaitingCall {
        mount: mount.clone(),
        target,
        fields: head.fields.to_map(is_of_the_request),
        client,
        encoding: encoding(response),
    };
    Ok(Successor::new(move |local, permit, visit| {
        CallSocket::new(call, path, local, permit, visit)
    }))
}

/// Returns true for a field of the handshake that the service sees: it is not about the connection, the WebSocket, or
/// the form of a body.
fn is_of_the_request(name: &HeaderName) -> bool {
    let is_of_the_connection = [
        header::CONNECTION,
        header::UPGRADE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::EXPECT,
        header::ACCEPT,
        header::ACCEPT_ENCODING,
    ];
    !is_of_the_connection.contains(name)
        && !name.as_str().starts_with("sec-websocket-")
        && !name.as_str().starts_with("content-")
}

/// A call that waits for its body.
struct WaitingCall {
    mount: Arc<Mounted>,
    target: Uri,
    fields: HeaderMap,
    client: Client,
    encoding: &'static ItemEncoding,
}

struct FirstMessage {
    body: Bytes,
    is_text: bool,
}

impl WaitingCall {
    /// Asks the service with the first message, and puts its reply into the outbox.
    async fn run(self, site: &Arc<Site>, first: oneshot::Receiver<FirstMessage>, outbox: &Outbox) {
        let first_timeout = site.limits.body_timeout;
        let last = match timeout(first_timeout, first).await {
            Ok(Ok(first)) => self.answer(site, first, outbox).await,
            // The connection is over.
            Ok(Err(_)) => return,
            Err(_) => Ok(Outgoing::End(CallEnd::late(first_timeout))),
        };
        outbox.put(last.unwrap_or_else(Outgoing::Refused));
    }

    /// Returns what comes last.
    async fn answer(
        self,
        site: &Arc<Site>,
        first: FirstMessage,
        outbox: &Outbox,
    ) -> Result<Outgoing, Problem> {
        let Self { mount, target, fields, client, .. } = self;
        let method = first.method(&mount);
        let request = request(method, target, fields, first);
        let caller = Caller::new(client, TRANSPORT.name.as_str());
        let context = ServiceContext::new(&site.limits, &site.memory);
        let reply = match mount.answer(request, caller, context).await? {
            Answer::Reply(reply) => reply,
            Answer::Run(run) => {
                let read = ReadRequest::of_started(site, client, run.events)?;
                return Ok(Outgoing::Events(read.open_stream(TRANSPORT.name)?));
            }
        };
        let status = reply.status();
        let is_error = status.is_client_error() || status.is_server_error();
        let (mut items, mut detail) = (Items::of(reply, &site.memory), String::new());
        while let Some(item) = items.next().await {
            let Ok(item) = item else { return Ok(Outgoing::End(CallEnd::failed())) };
            if is_error && detail.is_empty() {
                detail = detail_of(&item);
            }
            outbox.send(item).await;
        }
        Ok(Outgoing::End(match is_error {
            true => CallEnd::of_status(status, &detail),
            false => CallEnd::complete(),
        }))
    }
}

impl FirstMessage {
    /// Returns the method of the request: an empty message asks without a body, but a run service is only posted to.
    fn method(&self, mount: &Mounted) -> Method {
        let is_get = self.body.is_empty() && !mount.is_run_service();
        if is_get { Method::GET } else { Method::POST }
    }
}

fn request(
    method: Method,
    target: Uri,
    fields: HeaderMap,
    FirstMessage { body, is_text }: FirstMessage,
) -> Request<crate::Body> {
    let (is_empty, mut request) = (body.is_empty(), Request::new(full(body)));
    (*request.uri_mut(), *request.headers_mut()) = (target, fields);
    *request.method_mut() = method;
    if !is_empty {
        let content_type = if is_text { "application/json" } else { "application/octet-stream" };
        let content_type = HeaderValue::from_static(content_type);
        request.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    request
}

fn detail_of(body: &[u8]) -> String {
    let problem = serde_json::from_slice::<Value>(body).unwrap_or_default();
    problem["detail"].as_str().unwrap_or_default().to_owned()
}

#[derive(Debug)]
struct CallEnd {
    frame: CloseFrame,
    cause: Option<EndCause>,
}

/// The server's own reason to end a call.
#[derive(Debug)]
enum EndCause {
    Refused(Problem),
    /// The setting whose limit the client has reached.
    Limit(&'static str),
}

impl CallEnd {
    fn complete() -> Self {
        Self { frame: CloseFrame::new(CloseCode::NORMAL, ""), cause: None }
    }

    fn of_status(status: StatusCode, detail: &str) -> Self {
        // All codes from 4000 to 4999 are for private use (RFC 6455 section 7.4.2).
        let code = CloseCode::new(4000 + status.as_u16()).unwrap_or(CloseCode::INTERNAL_ERROR);
        Self { frame: CloseFrame::new(code, detail), cause: None }
    }

    fn refused(problem: Problem) -> Self {
        let Self { frame, .. } = Self::of_status(problem.code(), problem.detail());
        Self { frame, cause: Some(EndCause::Refused(problem)) }
    }

    fn second_message() -> Self {
        let detail = "a call takes one message: open another WebSocket for the next call";
        let frame = CloseFrame::new(CloseCode::POLICY_VIOLATION, detail);
        let problem = Problem::new(Kind::BadMessage, detail);
        Self { frame, cause: Some(EndCause::Refused(problem)) }
    }

    /// The service failed after the beginning of its reply.
    fn failed() -> Self {
        Self::of_status(StatusCode::INTERNAL_SERVER_ERROR, "the service at this path failed midway")
    }

    fn late(after: Duration) -> Self {
        let reason = format!("no message came within {after:?}");
        let frame = CloseFrame::new(CloseCode::POLICY_VIOLATION, &reason);
        Self { frame, cause: Some(EndCause::Limit("limits.body_timeout")) }
    }
}

/// The messages that the task of a connection wants to send.
#[derive(Debug)]
enum Outgoing {
    Item(Bytes),
    End(CallEnd),
    /// The problem that is the whole reply.
    Refused(Problem),
    /// The reader of a run that was started.
    Events(Reader),
}

/// The items on their way from the service to the socket.
#[derive(Debug)]
struct Outbox {
    queue: RefCell<VecDeque<Outgoing>>,
    bytes: Cell<usize>,
    /// From this many bytes on, the next item waits.
    bytes_max: usize,
    has_room: Notify,
    waker: RefCell<Option<SendWaker>>,
}

/// The cost of an item in the outbox beside its bytes, so that their number is bounded, too.
const ITEM_COST: usize = 64;

impl Outbox {
    fn new(bytes_max: usize) -> Self {
        let (queue, bytes, has_room, waker) = Default::default();
        Self { queue, bytes, bytes_max, has_room, waker }
    }

    /// Puts an item into the outbox, and waits until there is room for the next one.
    async fn send(&self, item: Bytes) {
        self.put(Outgoing::Item(item));
        while self.bytes.get() >= self.bytes_max {
            self.has_room.notified().await;
        }
    }

    fn put(&self, outgoing: Outgoing) {
        if let Outgoing::Item(item) = &outgoing {
            self.bytes.set(self.bytes.get() + item.len() + ITEM_COST);
        }
        self.queue.borrow_mut().push_back(outgoing);
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake();
        }
    }

    fn take(&self) -> Option<Outgoing> {
        let taken = self.queue.borrow_mut().pop_front();
        if let Some(Outgoing::Item(item)) = &taken {
            self.bytes.set(self.bytes.get() - item.len() - ITEM_COST);
            self.has_room.notify_one();
        }
        taken
    }
}

/// A task that ends with its connection.
struct CallTask(AbortHandle);

impl Drop for CallTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct CallSocket {
    path: String,
    essentials: Essentials,
    site: Arc<Site>,
    fan: Fan,
    encoding: &'static ItemEncoding,
    /// The call, until the connection is open.
    call: Option<WaitingCall>,
    /// The way of the first message to the task, until it has come.
    first: Option<oneshot::Sender<FirstMessage>>,
    outbox: Rc<Outbox>,
    task: Option<CallTask>,
    /// The reply, if the call has started a run.
    events: Option<InWebSocket>,
    visit: Visit,
    _permit: ConnectionPermit,
}

impl CallSocket {
    fn new(
        call: WaitingCall,
        path: String,
        local: &Local,
        permit: ConnectionPermit,
        visit: Visit,
    ) -> Self {
        let bytes_max = usize::try_from(local.site.limits.stream_bytes_max).unwrap_or(usize::MAX);
        let (site, fan) = (Arc::clone(&local.site), local.fan.clone());
        let (essentials, encoding) = (local.essentials.clone(), call.encoding);
        let (call, outbox) = (Some(call), Rc::new(Outbox::new(bytes_max)));
        Self {
            path,
            essentials,
            site,
            fan,
            encoding,
            call,
            first: None,
            outbox,
            task: None,
            events: None,
            visit,
            _permit: permit,
        }
    }

    fn send_next(&mut self, sender: &mut Sender) -> Result<(), MisuseError> {
        while sender.queued_bytes() < self.outbox.bytes_max {
            match self.outbox.take() {
                Some(Outgoing::Item(item)) => {
                    let message =
                        str::from_utf8(&item).map_or(Message::Binary(&item), Message::Text);
                    self.visit.counted(sender, |sender| sender.send(message))?;
                }
                Some(Outgoing::End(end)) => return self.end(&end, sender),
                Some(Outgoing::Refused(problem)) => {
                    let text = problem.to_json();
                    self.visit.counted(sender, |sender| sender.send(Message::Text(&text)))?;
                    return self.end(&CallEnd::refused(problem), sender);
                }
                Some(Outgoing::Events(reader)) => {
                    self.follow(reader, sender);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Sends the events of a run from now on.
    fn follow(&mut self, reader: Reader, sender: &mut Sender) {
        let Some(waker) = self.outbox.waker.borrow().clone() else { return };
        let reader = reader.with_access_line(self.visit.access().clone());
        let events = self.events.insert(InWebSocket::new(reader, self.encoding));
        events.open(&self.fan, waker, &self.visit, sender);
    }

    fn end(&mut self, end: &CallEnd, sender: &mut Sender) -> Result<(), MisuseError> {
        (self.task, self.events) = (None, None);
        let CallEnd { frame, cause } = end;
        match cause {
            Some(EndCause::Refused(problem)) => self.visit.record_refusal(problem, &self.path),
            Some(EndCause::Limit(limit)) => {
                let reason = frame.reason.as_str();
                self.visit.record_limit(frame.code, reason, Some(limit), &self.path);
            }
            None => {}
        }
        close_with(frame, &self.visit, sender)
    }
}

impl CallSocket {
    fn described(&self) -> Described {
        match &self.events {
            Some(events) => events.describe(&self.visit, TRANSPORT.name),
            None => {
                let described = self.visit.describe(TRANSPORT.name, &in_log(&self.path));
                Described { requests: self.task.is_some().into(), ..described }
            }
        }
    }
}

impl Handler for CallSocket {
    fn on_open(&mut self, waker: SendWaker, _sender: &mut Sender) {
        let Some(call) = self.call.take() else { return };
        self.outbox.waker.replace(Some(waker));
        let (first, came) = oneshot::channel();
        self.first = Some(first);
        let (site, outbox) = (Arc::clone(&self.site), Rc::clone(&self.outbox));
        let task = self.essentials.spawn(async move { call.run(&site, came, &outbox).await });
        self.task = Some(CallTask(task));
    }

    fn on_message(&mut self, message: Message<'_>, sender: &mut Sender) {
        if sender.is_closing() {
            return;
        }
        let (bytes, is_text) = match message {
            Message::Text(text) => (text.as_bytes(), true),
            Message::Binary(bytes) => (bytes, false),
        };
        if let Some(first) = self.first.take() {
            let body = counted(&self.site.memory, bytes.to_vec());
            // Fails if the time for it is over, which its sender is told.
            let _ = first.send(FirstMessage { body, is_text });
            return;
        }
        // Fails only if the connection is closing, which was asked above.
        let _ = self.end(&CallEnd::second_message(), sender);
    }

    fn on_ready(&mut self, sender: &mut Sender) {
        if let Some(events) = &mut self.events {
            return events.send_next(&self.visit, sender);
        }
        if let Err(error) = self.send_next(sender) {
            tracing::debug!(%error, "nothing more can be sent");
        }
    }

    fn on_shutdown(&mut self, sender: &mut Sender) {
        if let Some(events) = &mut self.events {
            events.finish_run(self.site.limits.stream_bytes_max, &self.visit, sender);
        }
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.described()))
    }

    fn on_error(&mut self, error: &Error) {
        self.visit.record_error(error, &self.path);
    }

    fn on_close(&mut self, frame: Option<&CloseFrame>) {
        let described = self.described();
        (self.task, self.events) = (None, None);
        self.visit.record_end(frame, &described);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn an_item_waits_while_the_outbox_is_full() {
        let outbox = Outbox::new(10 * ITEM_COST);
        let send = || outbox.send(Bytes::new()).now_or_never();
        let sent = std::iter::from_fn(send).count();
        assert_eq!((sent, outbox.queue.borrow().len()), (9, 10), "the tenth is in, and waits");
        let mut waiting = Box::pin(outbox.send(Bytes::from_static(&[0; 100])));
        assert_eq!((&mut waiting).now_or_never(), None);
        for _ in 0..11 {
            assert!(outbox.take().is_some());
        }
        assert_eq!(waiting.now_or_never(), Some(()));
        assert_eq!(outbox.bytes.get(), 0);
        assert!(outbox.take().is_none());
    }
}
