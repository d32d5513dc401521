//! Routes a request to its reply. The decisions are here, and the work is in the transports.

mod begun;

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};

use crate::clients::access::{AccessLine, AnswerKind};
use crate::clients::connections::http::RequestPlace;
use crate::clients::places::Place;
use crate::exchange::arrival::Arrival;
use crate::exchange::destination::Destination;
use crate::exchange::handoff::{Handoff, Reply};
use crate::exchange::many_request::ManyRequest;
use crate::exchange::read_request::ReadRequest;
use crate::exchange::read_transport::{ReadAnswer, ReadTransport};
use crate::exchange::resource::ResourceValue;
use crate::exchange::upgrade::{HandshakeTransport, Upgrade};
use crate::memory::counted;
use crate::peer::Peer;
use crate::read::pages::ItemEncoding;
use crate::read::reader::Reader;
use crate::reply::body::{Body, empty, full, omitted, reply};
use crate::reply::kind;
use crate::request::client::Client;
use crate::request::fields::Fields;
use crate::request::handshake::Head;
use crate::request::methods::{Methods, Wanted, is_reading, reading_only};
use crate::request::own_path::{OwnPath, ReadPath};
use crate::request::query::{JSON, Need, Query, Representation, choose, prefers_page};
use crate::service::answer::{Answer, StartedRun};
use crate::service::caller::Caller;
use crate::service::context::ServiceContext;
use crate::service::event_stream;
use crate::service::mounted::{Answering, Mounted};
use crate::site::{Beside, Site};
use crate::stop::Stop;
use crate::{Kind, Problem, stream, transport};

pub(crate) use self::begun::{BegunCall, FirstReply, begin_call};

pub(crate) fn answer(
    site: &Arc<Site>,
    peer: Peer,
    mut request: Request<Body>,
    stop: Stop,
) -> PendingReply {
    let arrival = match Arrival::of(site, peer, &mut request) {
        Ok(arrival) => arrival,
        Err(refused) => return PendingReply::of(*refused),
    };
    let (method, uri) = (request.method().clone(), request.uri().clone());
    if arrival.is_preflight(&method) && !site.leaves_methods_open(uri.path()) {
        return PendingReply::of(arrival.finish(preflight(site.methods(uri.path())).into()));
    }
    let asked = Asked { arrival, method, uri };
    let client = asked.arrival.client;
    match upgrade(site, client, &Head::of(&request)) {
        Ok(None) => {}
        Ok(Some(upgrade)) => return PendingReply::of(asked.finish(Ok(upgrade.into()))),
        Err(problem) => return PendingReply::of(asked.finish(Err(problem))),
    }
    let page = list_page(site, &asked, request.headers().into());
    if let Some(mount) = page.or_else(|| mount_at(site, asked.uri.path())) {
        let context = ServiceContext::new(&site.limits, &site.memory).until(stop.clone());
        let wants_events = event_stream::wants_events(request.headers().into());
        let (is_page, caller) = (page.is_some(), Caller::new(client, "http"));
        let answering = mount.answer(request, caller, context);
        return PendingReply::Called(
            answering,
            Some(CalledRequest { asked, wants_events, is_page, stop }),
        );
    }
    // A topic and a run that do not exist have a page of their own.
    let may_be_nothing =
        is_reading(asked.method.as_str()) && ReadPath::at(asked.uri.path()).is_none();
    let pages = may_be_nothing
        .then(|| browser_pages(site, &[&JSON], request.headers().into()).cloned())
        .flatten();
    // The body is kept apart: while an answer waits, the request must be shareable between threads.
    let (head, body) = request.into_parts();
    let request = (Request::from_parts(head, ()), body);
    PendingReply::Waiting(Box::pin(async move {
        let routed = match (route(&asked, request, stop.clone()).await, pages) {
            (Err(nothing), Some(pages)) if nothing.kind() == Kind::UnknownPath => {
                // Apart, so that requests that wait do not hold room for it.
                Box::pin(nothing_page(&pages, &asked, nothing, stop)).await
            }
            (routed, _) => routed,
        };
        asked.finish(routed)
    }))
}

/// The future of a reply. A service that answers at once needs no memory for it.
#[expect(clippy::large_enum_variant, reason = "most calls are over before they would be boxed")]
#[must_use]
pub(crate) enum PendingReply {
    /// A service was called. The request is `None` when it is over.
    Called(Answering, Option<CalledRequest>),
    Waiting(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

impl PendingReply {
    fn of(reply: Reply) -> Self {
        Self::Waiting(Box::pin(ready(reply)))
    }
}

impl Future for PendingReply {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        if let Self::Called(answering, call) = &mut *self {
            let answered = ready!(answering.poll_unpin(cx));
            let Some(call) = call.take() else { return Poll::Pending };
            match answered {
                Ok(Answer::Run(run)) => *self = Self::Waiting(Box::pin(call.follow(run))),
                Ok(Answer::Reply(reply)) => return Poll::Ready(call.finish(reply)),
                Err(problem) => return Poll::Ready(call.asked.finish(Err(problem))),
            }
        }
        match &mut *self {
            Self::Called(..) => Poll::Pending,
            Self::Waiting(reply) => reply.poll_unpin(cx),
        }
    }
}

/// A request that has arrived, and its target.
pub(crate) struct Asked {
    arrival: Arrival,
    method: Method,
    uri: Uri,
}

impl Asked {
    /// Finishes the reply, or refuses the request.
    fn finish(self, routed: Result<Reply, Problem>) -> Reply {
        let Self { arrival, method, uri } = self;
        let refuse = |problem| arrival.refuse(problem, method.as_str(), uri.path());
        let reply = routed.unwrap_or_else(refuse);
        arrival.finish(reply)
    }
}

/// A request for which a service is called.
pub(crate) struct CalledRequest {
    asked: Asked,
    wants_events: bool,
    /// True if something else answers at the same path when no browser asks.
    is_page: bool,
    stop: Stop,
}

impl CalledRequest {
    fn finish(self, reply: Response<Body>) -> Reply {
        let Site { limits, memory, .. } = &*self.asked.arrival.site;
        let reply = event_stream::over_http(reply, self.wants_events, limits.heartbeat, memory);
        let reply = if self.is_page { vary(reply, CHOICE) } else { reply };
        self.asked.arrival.finish(reply.into())
    }

    /// Replies with the events of a run that the request has started.
    async fn follow(self, StartedRun { events, fields }: StartedRun) -> Reply {
        let Self { asked, wants_events, stop, .. } = self;
        let Arrival { site, client, access, .. } = &asked.arrival;
        let followed = async {
            let read = ReadRequest::of_started(site, *client, events)?;
            let read = read.with_access_line(access.clone());
            // The fields of the request were for the service.
            let (transport, asked) = (transport::stream(wants_events), HeaderMap::new());
            let mut reply = read_by(transport, &read, &asked, stop).await?;
            reply.headers_mut().extend(fields);
            Ok(reply.into())
        };
        let followed = followed.await;
        asked.finish(followed)
    }
}

/// Answers a WebSocket handshake of HTTP/1.1 with the response and the handoff. Returns `None` if the request is not
/// a handshake, is refused, or comes from a page that needs permission in the response.
pub(crate) fn shake_hands(
    site: &Arc<Site>,
    peer: Peer,
    head: &Head<'_>,
) -> Option<(Vec<u8>, Handoff)> {
    if !head.asks_for_web_socket() {
        return None;
    }
    let arrival = Arrival::first(site, peer, head).filter(Arrival::is_of_own_page)?;
    let upgrade = upgrade(site, arrival.client, head).ok()??;
    let response = upgrade.response.head().into_bytes();
    Some((response, arrival.with_access_line(head).hand_off(upgrade.handoff)))
}

/// Returns the stream that a HTTP/1.1 request asks for, with the head of its reply, if the thread's loop can serve
/// it; `None` for any other request, or a refusal.
pub(crate) fn begin_stream(site: &Arc<Site>, peer: Peer, head: &Head<'_>) -> Option<LoopStream> {
    let transport = choose(transport::READING, head.fields, |_| false).ok()?;
    let ReadAnswer::Stream(encoding) = &transport.answer else { return None };
    if head.method != "GET" || head.fields.has("upgrade") {
        return None;
    }
    let path = ReadPath::at(head.path)?;
    if browser_pages(site, transport::READING, head.fields).is_some() {
        return None;
    }
    let arrival = Arrival::first(site, peer, head)?;
    let read = ReadRequest::of(site, arrival.client, head, path).ok()?;
    if read.query.frame.is_some() || read.has_all() {
        return None;
    }
    let reader = read.open_stream(transport.name).ok()?;
    let arrival = arrival.with_access_line(head);
    let access = arrival.access.clone();
    access.set_status(StatusCode::OK.as_u16());
    access.set_answer(AnswerKind::Stream(transport.name));
    let reader = reader.with_access_line(access);
    let head = stream::in_loop::head(transport.representation.media_type);
    let (head, place) = arrival.finish_head(vary(head, CHOICE));
    Some(LoopStream { reader, encoding, head, place })
}

/// A stream for the thread's loop, with the head of its reply.
#[derive(Debug)]
pub(crate) struct LoopStream {
    pub(crate) reader: Reader,
    pub(crate) encoding: &'static ItemEncoding,
    pub(crate) head: Response<Body>,
    /// Its place among the requests of a trusted proxy's client.
    pub(crate) place: Option<Place>,
}

/// Returns the WebSocket that a request asks for; `None` if it asks for none, or there is none. A handshake is a GET
/// (RFC 6455 section 4.1); `Upgrade` in other requests is ignored, as RFC 9110 section 7.8 allows.
fn upgrade(site: &Arc<Site>, client: Client, head: &Head<'_>) -> Result<Option<Upgrade>, Problem> {
    if head.method != "GET" {
        return Ok(None);
    }
    if !head.asks_for_web_socket() {
        return head.refuse_lost().map(|()| None);
    }
    let Some(transport) = taking_over(site, head.path) else { return Ok(None) };
    let read = match ReadPath::at(head.path) {
        Some(path) => Some(ReadRequest::of(site, client, head, path)?),
        None => None,
    };
    if read.as_ref().is_some_and(|read| read.query.frame.is_some()) {
        let detail = "frame needs text/html, but this is a WebSocket handshake";
        return Err(Problem::new(Kind::BadParameter, detail));
    }
    transport.accept(site, client, head, read.as_ref()).map(Some)
}

/// Returns the transport for handshakes at this path.
fn taking_over(site: &Site, path: &str) -> Option<&'static HandshakeTransport> {
    transport::SHAKING_HANDS.iter().copied().find(|transport| transport.is_at(site, path))
}

/// Answers a request that is neither a handshake nor for a service.
#[expect(clippy::manual_async_fn, reason = "an async fn would keep its arguments twice")]
fn route(
    asked: &Asked,
    (request, body): (Request<()>, Body),
    stop: Stop,
) -> impl Future<Output = Result<Reply, Problem>> + Send {
    async move {
        let Asked { arrival: Arrival { site, client, access, .. }, method, uri } = asked;
        let client = *client;
        let nothing = || Problem::nothing_at(uri.path());
        // The futures of some destinations are boxed, since they would make the future of every request large.
        let response = match Destination::of(site, client, uri.path(), uri.query())? {
            Destination::Resource(resource) => {
                reading_only(method.as_str())?;
                let wanted = Wanted::by(method.as_str());
                resource_reply(site, resource.value(site, wanted, stop.is_stopping()))
            }
            Destination::Survey(survey) => {
                reading_only(method.as_str())?;
                let wanted = Wanted::by(method.as_str());
                resource_reply(site, Box::pin(survey.value(site, wanted)).await)
            }
            Destination::Transport(own) => {
                let (transport, post) = transport::at_own(own).ok_or_else(nothing)?;
                match post.filter(|_| *method == Method::POST) {
                    Some(post) => post(request.map(|()| body), site, stop).await?,
                    // It refuses other requests, and says what they lack.
                    None => {
                        let head = Head::of(&request);
                        return transport.accept(site, client, &head, None).map(Reply::from);
                    }
                }
            }
            Destination::Events(path) if is_reading(method.as_str()) => {
                let request = (request, body);
                return Box::pin(read_events(site, client, request, path, (stop, access))).await;
            }
            Destination::ManyTopics => {
                return Box::pin(read_many(site, client, &request, stop, access)).await;
            }
            Destination::Events(path) => {
                let request = request.map(|()| body);
                Box::pin(transport::change(site, client, request, path, stop, access)).await?
            }
            Destination::Explanation(name) => {
                let text = kind::explanation(name).ok_or_else(nothing)?;
                reading_only(method.as_str())?;
                text_response(text)
            }
            // A page of any origin may load these.
            Destination::Beside(Beside::Files(tree)) => {
                reading_only(method.as_str())?;
                Box::pin(tree.answer(&request)).await?
            }
            // `answer` calls it before it comes here.
            Destination::Beside(Beside::Mount(_)) => return Err(nothing()),
        };
        Ok(response.into())
    }
}

/// Returns the mount at this path, or at `/`.
fn mount_at<'a>(site: &'a Site, path: &str) -> Option<&'a Arc<Mounted>> {
    match site.beside(path)? {
        Beside::Mount(mount) => Some(mount),
        Beside::Files(_) => None,
    }
}

/// Returns the mount with pages for browsers, if the request is that of a browser that opens a URL. Programs get what is
/// `offered` there.
fn browser_pages<'a, T: AsRef<Representation>>(
    site: &'a Site,
    offered: &[&'static T],
    fields: Fields<'_>,
) -> Option<&'a Arc<Mounted>> {
    let mount = site.mounts.root().filter(|mount| mount.has_browser_pages())?;
    prefers_page(offered, fields).then_some(mount)
}

/// Returns the mount with the page about the list of runs, about the connections, or about what another mount has.
fn list_page<'a>(site: &'a Site, asked: &Asked, fields: Fields<'_>) -> Option<&'a Arc<Mounted>> {
    let path = asked.uri.path();
    let lists = [OwnPath::RUNS, OwnPath::CONNECTIONS];
    let is_list = || matches!(OwnPath::at(path), Some((own, None)) if lists.contains(&own));
    let has_page = || mount_at(site, path).is_some_and(|mount| mount.has_page_at_root(path));
    let is_asked = is_reading(asked.method.as_str()) && (is_list() || has_page());
    is_asked.then(|| browser_pages(site, &[&JSON], fields)).flatten()
}

/// Returns the page that says to a browser that there is nothing at a path.
async fn nothing_page(
    mount: &Arc<Mounted>,
    asked: &Asked,
    nothing: Problem,
    stop: Stop,
) -> Result<Reply, Problem> {
    let Asked { arrival: Arrival { site, client, .. }, method, uri } = asked;
    let mut request = Request::new(Body::default());
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri.clone();
    let context = ServiceContext::new(&site.limits, &site.memory).until(stop);
    let caller = Caller::new(*client, "http");
    events_page(mount, request, Err(nothing), caller, context).await.map(Reply::from)
}

/// Returns the page about a topic or a run, with the methods that its client can use on it; or, if there is nothing, the
/// page that says so.
async fn events_page(
    mount: &Arc<Mounted>,
    mut request: Request<Body>,
    read: Result<Methods, Problem>,
    caller: Caller,
    context: ServiceContext,
) -> Result<Response<Body>, Problem> {
    if let Err(missing) = &read {
        request.extensions_mut().insert(missing.clone());
        // A 304 would have the wrong status, and no body.
        request.headers_mut().remove(header::IF_NONE_MATCH);
    }
    let Answer::Reply(mut page) = mount.answer(request, caller, context).await? else {
        return Err(Problem::new(Kind::Internal, "a page about a topic starts no run"));
    };
    match read {
        Ok(methods) => {
            let methods = HeaderValue::from_static(methods.as_str());
            page.headers_mut().insert(header::ALLOW, methods);
        }
        Err(missing) => *page.status_mut() = missing.code(),
    }
    Ok(vary(page, CHOICE))
}

/// The reply with a resource as JSON, and with a link to its next page.
fn resource_reply(site: &Site, value: ResourceValue) -> Response<Body> {
    let ResourceValue { status, line, link } = value;
    let body = line.map_or_else(omitted, |line| full(counted(&site.memory, line)));
    let mut response = reply("application/json", "no-store", body);
    *response.status_mut() = status;
    if let Some(link) = link {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

/// Answers a `GET` of a topic or a run.
async fn read_events(
    site: &Arc<Site>,
    client: Client,
    (request, body): (Request<()>, Body),
    path: ReadPath<'_>,
    (stop, access): (Stop, &AccessLine),
) -> Result<Reply, Problem> {
    let head = Head::of(&request);
    let read = ReadRequest::of(site, client, &head, path);
    let has_page = match &read {
        Ok(read) => read.query.frame.is_none(),
        Err(problem) => matches!(problem.kind(), Kind::UnknownTopic | Kind::UnknownRun),
    };
    let pages = browser_pages(site, transport::READING, head.fields);
    if let Some(mount) = pages.filter(|_| has_page) {
        let context = ServiceContext::new(&site.limits, &site.memory).until(stop);
        let caller = Caller::new(client, "http");
        let methods = read.map(|read| read.methods());
        let page = events_page(mount, request.map(|()| body), methods, caller, context);
        return page.await.map(Reply::from);
    }
    let read = read?.with_access_line(access.clone()).with_place(place_of(&request));
    let transport = read_transport(&request, &read.query)?;
    read_by(transport, &read, request.headers(), stop).await.map(Reply::from)
}

/// Answers a `GET` of several topics.
async fn read_many(
    site: &Arc<Site>,
    client: Client,
    request: &Request<()>,
    stop: Stop,
    access: &AccessLine,
) -> Result<Reply, Problem> {
    let read = ManyRequest::of(site, client, &Head::of(request))?;
    let read = read.with_access_line(access.clone()).with_place(place_of(request));
    let transport = read_transport(request, &read.query)?;
    let response = (transport.many)(&read, request.headers(), stop).await?;
    Ok(vary(response, CHOICE).into())
}

/// Returns the place of a request in the list of its connection, if that has one.
fn place_of(request: &Request<()>) -> Option<RequestPlace> {
    request.extensions().get().cloned()
}

fn read_transport(request: &Request<()>, query: &Query) -> Result<&'static ReadTransport, Problem> {
    let given = |need| match need {
        Need::Wait => query.wait.is_some(),
        Need::Frame => query.frame.is_some(),
    };
    let transport = choose(transport::READING, request.headers().into(), given)?;
    Ok(if request.method() == Method::HEAD { transport::HEAD } else { transport })
}

/// Answers a request to read; `headers` are its fields.
async fn read_by(
    transport: &'static ReadTransport,
    read: &ReadRequest,
    headers: &HeaderMap,
    stop: Stop,
) -> Result<Response<Body>, Problem> {
    let response = match &transport.answer {
        ReadAnswer::Now(answer) => answer(read, headers, stop)?,
        ReadAnswer::Later(answer) => answer(read, stop).await?,
        // This stops an `EventSource`, which would ask for the next stream.
        ReadAnswer::Stream(_) if read.has_all() => empty(StatusCode::NO_CONTENT),
        ReadAnswer::Stream(encoding) => {
            let content_type = transport.representation.media_type;
            stream::answer(
                read,
                transport.name,
                content_type,
                stop,
                stream::TextEncoding::Shared(encoding),
            )?
        }
    };
    Ok(vary(response, CHOICE))
}

fn text_response(text: String) -> Response<Body> {
    let mut response = Response::new(full(text));
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// Returns the reply to a browser's preflight request (Fetch, section 3.2.2).
fn preflight(methods: Methods) -> Response<Body> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers
        .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods.as_str()));
    let fields = HeaderValue::from_static(match methods {
        Methods::Read | Methods::Cancel => "If-None-Match, Last-Event-ID, Prefer",
        Methods::Publish | Methods::Delete => {
            "Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer"
        }
        Methods::Start => "Content-Type, Idempotency-Key, Prefer",
    });
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, fields);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// The fields that choose between a page for people and what programs get.
const CHOICE: &str = "accept, sec-fetch-mode";

fn vary(mut response: Response<Body>, field: &str) -> Response<Body> {
    // The name of a field is always a valid value.
    if let Ok(field) = HeaderValue::from_str(field) {
        response.headers_mut().append(header::VARY, field);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The allocator is slow with more than 1 KiB.
    #[test]
    fn the_future_of_a_reply_is_small() {
        let bytes = size_of::<PendingReply>();
        assert!(bytes < 900, "{bytes}");
    }
}
