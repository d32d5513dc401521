//! From a request to its reply. The decisions are here, the work is in the transports.

use std::sync::Arc;

use anemone_hub::{After, Hub, PageLimit, Topic, TopicName};
use anemone_ws::proto::NegotiatedDeflate;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::json;
use tokio::sync::{broadcast as channel, watch};

use crate::body::{Body, full};
use crate::origin::{self, AllowedOrigin, Verdict};
use crate::query::{Form, Query, form};
use crate::reading::{Reader, now};
use crate::transport::{broadcast, echo, long_poll, poll, sse, websocket};
use crate::{Kind, Limits, Problem, Tls, assets, handshake};

/// What every request can see.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) hub: Hub,
    pub(crate) limits: Limits,
    pub(crate) allowed_origins: Vec<AllowedOrigin>,
    pub(crate) tls: Option<Tls>,
    /// To the members of `/broadcast` on every thread.
    pub(crate) broadcast: channel::Sender<broadcast::Posted>,
}

/// Tells that the server stops.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    pub(crate) fn new(receiver: watch::Receiver<bool>) -> Self {
        Self(receiver)
    }

    /// Returns once the server stops. Cancel safe.
    pub(crate) async fn stopped(&mut self) {
        // A server that is gone has stopped, too.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

/// A request to read a topic.
#[derive(Debug)]
pub(crate) struct Read {
    /// The topic's path, for the link to the next page.
    pub(crate) path: String,
    topic: Arc<Topic>,
    query: Query,
    stream_bytes_max: u64,
}

impl Read {
    /// What a request asks to read of the topic called `name`.
    fn of<B>(site: &Site, request: &Request<B>, name: &str) -> Result<Self, Problem> {
        let unknown = || {
            let name: String = name.chars().take(80).collect();
            Problem::new(Kind::UnknownTopic, format!("there is no topic {name:?}"))
        };
        let name: TopicName = name.parse().map_err(|_| unknown())?;
        let topic = site.hub.topic(&name).ok_or_else(unknown)?;
        reading_only(request)?;
        let query = Query::parse(request.uri().query(), request.headers(), &site.limits)?;
        let (path, stream_bytes_max) =
            (request.uri().path().to_owned(), site.limits.stream_bytes_max);
        Ok(Self { path, topic, query, stream_bytes_max })
    }

    /// A reader of one page that begins where the request says, or else `default`.
    pub(crate) fn open(&self, default: After) -> Result<Reader, Problem> {
        Reader::open(Arc::clone(&self.topic), self.query.after.unwrap_or(default), self.query.page)
    }

    /// A reader that stays: from where the request says, or else from now on.
    pub(crate) fn open_stream(&self) -> Result<Reader, Problem> {
        let limit = PageLimit { bytes_max: self.stream_bytes_max, ..self.query.page };
        Reader::open(Arc::clone(&self.topic), self.query.after.unwrap_or(After::Latest), limit)
    }
}

/// A reply, and what to do with the connection when it is one to a handshake.
pub(crate) struct Reply {
    pub(crate) response: Response<Body>,
    pub(crate) handover: Option<Handover>,
}

/// What a connection becomes after its handshake.
#[derive(Debug)]
pub(crate) struct Handover {
    pub(crate) to: Destination,
    /// Compression, if it was negotiated.
    pub(crate) deflate: Option<NegotiatedDeflate>,
}

/// Who takes a connection over.
#[derive(Debug)]
pub(crate) enum Destination {
    /// A reader of a topic.
    Events(websocket::Subscriber),
    /// An echo.
    Echo,
    /// One to whom everyone else's messages go.
    Broadcast,
}

impl From<Response<Body>> for Reply {
    fn from(response: Response<Body>) -> Self {
        Self { response, handover: None }
    }
}

/// Answers a request.
pub(crate) async fn answer(site: &Site, request: Request<Incoming>, stop: Stop) -> Reply {
    let verdict = match origin::judge(request.headers(), &site.allowed_origins) {
        Ok(verdict) => verdict,
        Err(problem) => return problem.into_response().into(),
    };
    let reply = if request.method() == Method::OPTIONS && matches!(verdict, Verdict::Allowed(_)) {
        preflight().into()
    } else {
        route(site, request, stop).await.unwrap_or_else(|problem| problem.into_response().into())
    };
    allow(reply, verdict)
}

/// Answers a WebSocket handshake; `None` when the request is no such thing, or is refused.
pub(crate) fn shake_hands<B>(site: &Site, request: &Request<B>) -> Option<Reply> {
    let verdict = origin::judge(request.headers(), &site.allowed_origins).ok()?;
    let reply = upgrade(site, request).ok()??;
    Some(allow(reply, verdict))
}

/// Where WebSockets are. `None` when none is asked for, or there is none.
fn upgrade<B>(site: &Site, request: &Request<B>) -> Result<Option<Reply>, Problem> {
    if !handshake::is_asked(request) {
        return Ok(None);
    }
    let path = request.uri().path();
    if let Some(name) = path.strip_prefix("/topics/") {
        let read = Read::of(site, request, name)?;
        return websocket::answer(request, read, site.limits.deflate.as_ref()).map(Some);
    }
    match path {
        "/echo" => echo::accept(request, &site.limits).map(Some),
        "/broadcast" => broadcast::accept(request, &site.limits).map(Some),
        _ => Ok(None),
    }
}

async fn route(site: &Site, request: Request<Incoming>, stop: Stop) -> Result<Reply, Problem> {
    if let Some(reply) = upgrade(site, &request)? {
        return Ok(reply);
    }
    let path = request.uri().path();
    if let Some(name) = path.strip_prefix("/topics/") {
        return read_topic(site, &request, name, stop).await;
    }
    if path == "/echo" {
        return echo::answer(request, &site.limits, stop).await;
    }
    let headers = request.headers();
    let response = match path {
        "/broadcast" => return broadcast::accept(&request, &site.limits), // which says what is missing
        "/topics" => list_topics(site),
        "/clock" => json_response(&json!({ "time": now() })),
        _ => match path.strip_prefix("/problems/").and_then(Kind::explanation) {
            Some(text) => text_response(text),
            None => assets::file(path, headers).ok_or_else(|| {
                let path: String = path.chars().take(80).collect();
                Problem::new(Kind::UnknownPath, format!("there is nothing at {path}"))
            })?,
        },
    };
    reading_only(&request)?;
    Ok(response.into())
}

async fn read_topic<B>(
    site: &Site,
    request: &Request<B>,
    name: &str,
    stop: Stop,
) -> Result<Reply, Problem> {
    let read = Read::of(site, request, name)?;
    let limits = &site.limits;
    let wait = read.query.wait;
    let response = match (form(request.headers())?, wait) {
        // A HEAD gets the fields of a poll at once: a stream without its body says nothing.
        _ if request.method() == Method::HEAD => poll::answer(read)?,
        (Form::EventStream, _) => sse::answer(read, limits.sse_heartbeat, stop)?,
        (Form::Json, Some(wait)) => long_poll::answer(read, wait, stop).await?,
        (Form::Json, None) => poll::answer(read)?,
    };
    Ok(vary(response, header::ACCEPT.as_str()).into())
}

fn reading_only<B>(request: &Request<B>) -> Result<(), Problem> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(());
    }
    let method: String = request.method().as_str().chars().take(40).collect();
    let problem =
        Problem::new(Kind::MethodNotAllowed, format!("{method} is not a method of this path"));
    Err(problem.field("allow", HeaderValue::from_static("GET, HEAD")))
}

/// Every topic with its positions, in the order of names.
fn list_topics(site: &Site) -> Response<Body> {
    let topics = site.hub.topics();
    let topics = topics.iter().map(|topic| {
        let info = topic.info(now());
        json!({
            "name": info.name.as_str(),
            "url": format!("/topics/{}", info.name),
            "first": info.first,
            "next": info.head.to_string(),
            "bytes": info.bytes,
        })
    });
    json_response(&json!({ "topics": topics.collect::<Vec<_>>() }))
}

fn json_response(value: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(full(format!("{value}\n")));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn text_response(text: String) -> Response<Body> {
    let mut response = Response::new(full(text));
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// The answer to a browser that asks before it sends (Fetch, section 3.2.2).
fn preflight() -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
    let fields = HeaderValue::from_static("Last-Event-ID, Prefer");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, fields);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Lets a page of an allowed origin see the reply.
fn allow(mut reply: Reply, verdict: Verdict) -> Reply {
    if let Verdict::Allowed(origin) = verdict {
        let headers: &mut HeaderMap = reply.response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static("Link, Preference-Applied");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        reply.response = vary(reply.response, header::ORIGIN.as_str());
    }
    reply
}

fn vary(mut response: Response<Body>, field: &str) -> Response<Body> {
    // The name of a field is always a value of one.
    if let Ok(field) = HeaderValue::from_str(field) {
        response.headers_mut().append(header::VARY, field);
    }
    response
}
