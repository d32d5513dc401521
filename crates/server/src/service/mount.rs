//! A service at a path, and the only way to it.

use std::error::Error;
use std::fmt;
use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anemone_hub::run::{RunService, RunWork};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use serde_json::Value;
use tokio::time::sleep;
use tower_service::Service;

use super::answer::Answer;
use super::caller::Caller;
use super::callers::Callers;
use super::caught::{Caught, Panicked, ServiceError, catch};
use super::context::ServiceContext;
use super::mount_path::{MountError, check_path};
use super::start::{Start, StartReply, input};
use super::starter::RunStarter;
use super::upload::{self, Taken};
use super::{download, work};
use crate::reply::body::{Body, BoxError, full};
use crate::request::methods::only_starts;
use crate::{Kind, Problem};

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

/// A service at a path: it answers requests for this path and all paths below it, over every transport.
///
/// The mount with the longest path that fits answers, and goes before the files of a
/// [`StaticDir`](crate::StaticDir). A mount at `/` answers for all paths that have nothing else. The service gets the
/// whole path and the query.
///
/// It gets a request only after the server's checks: the host is one of the server's own names, and the origin, if
/// the request has one, is allowed. The [`Caller`](crate::Caller) is among its extensions. The reply gets the
/// protective fields of every reply, unless it sets them itself.
///
/// # Streams
/// Each line of a reply of type `application/x-ndjson` is an item, unless a layer has compressed the reply. A client gets it as a line, as a server-sent event, or
/// as a message of a WebSocket at the same path. The service goes on only as fast as its client takes the items. An
/// item has at most 1 MiB.
///
/// A service cannot take over a connection: `Upgrade` in a request is for the server's own WebSockets, and a status of
/// 1xx becomes 500.
///
/// # Threads
/// Handlers run on the threads that serve the readers of topics. A handler must not block: while it does, nobody else
/// on its thread is served, and the server cannot stop that thread. Use tokio's `spawn_blocking` for work that blocks
/// or computes for long. `block_in_place` panics, since the runtime of each thread has only that thread.
///
/// # Clients that leave
/// A handler and its reply are dropped at once when the connection breaks. A client that has only ended its side may
/// still read, and gets its answer. But if nothing of the answer comes for
/// [`Limits::write_timeout`](crate::Limits::write_timeout), the handler and its reply are dropped, too.
///
/// # Limits
/// If nothing of a request's body comes for [`Limits::body_timeout`](crate::Limits::body_timeout), the handler gets
/// an error from the body, and the client gets 408 whatever the handler answers. A body that goes on may take long,
/// and may be as long as the handler allows; axum's extractors have a limit. A handler that has not begun its reply
/// [`Limits::service_timeout`](crate::Limits::service_timeout) after it has taken the last part of the body is
/// dropped, and the client gets 504. A body that came in one message counts as taken at once. The pieces of a body, and those of a reply that the client has not taken, count
/// in [`Limits::memory_max`](crate::Limits::memory_max) until they are dropped, but copies made by the handler do
/// not. Above that limit, an incomplete body gets 503.
#[derive(Clone)]
pub struct Mount {
    pub(super) path: Arc<str>,
    service: MountedService,
    callers: Callers,
    /// Starts its runs, once it belongs to a server.
    starter: Option<Arc<RunStarter>>,
    is_public: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    is_http_only: bool,
    has_topic_pages: bool,
    finishes_changes: bool,
    timeout: Option<Duration>,
    description: Option<Arc<Value>>,
    events: Option<Arc<Value>>,
}

/// The service of a mount.
#[derive(Clone)]
enum MountedService {
    Call(Arc<dyn Fn(Request<Body>) -> ResponseFuture + Send + Sync>),
    Run(Arc<dyn RunService>),
}

impl Mount {
    /// Mounts an axum `Router`, or any other `tower::Service`, at a path: `/`, or `/NAME` with any number of further
    /// names. If the service fails or panics, the reply has status 500. The log has each failure, also that of a
    /// reply's body.
    ///
    /// # Errors
    /// When the path is malformed, or begins with one of the server's own names ([`OWN_PATHS`](crate::OWN_PATHS)).
    pub fn new<S, B>(path: &str, service: S) -> Result<Self, MountError>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let answer = move |request: Request<Body>| -> ResponseFuture {
            let mut service = service.clone();
            // Most services are always ready, and then only their own future is kept.
            match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => Box::pin(service.call(request).map(answered)),
                Poll::Ready(Err(error)) => Box::pin(ready(Err(error.into()))),
                Poll::Pending => Box::pin(async move {
                    poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
                    answered(service.call(request).await)
                }),
            }
        };
        Self::of(path, MountedService::Call(Arc::new(answer)))
    }

    /// Mounts a service that starts runs: each `POST` to the path or below it starts one. With `Prefer: respond-async`
    /// the reply is its state, and the run is watched at its `Location`; otherwise the reply has its events.
    ///
    /// [`RunService::prepare`] is called on a thread that serves clients, and must be quick. The work runs on a thread of its own.
    ///
    /// # Errors
    /// As [`Mount::new`].
    pub fn run(path: &str, service: impl RunService) -> Result<Self, MountError> {
        Self::of(path, MountedService::Run(Arc::new(service)))
    }

    fn of(path: &str, service: MountedService) -> Result<Self, MountError> {
        check_path(path)?;
        Ok(Self {
            path: path.into(),
            service,
            callers: Callers::Local,
            starter: None,
            is_public: Arc::new(|_| false),
            is_http_only: false,
            has_topic_pages: false,
            finishes_changes: false,
            timeout: None,
            description: None,
            events: None,
        })
    }

    /// Sets the clients that may start runs here, also with `Prefer: respond-async` at a service that only answers.
    /// Default: those on the server's own machine. A run goes on when its client has gone.
    #[must_use]
    pub fn callers(self, callers: Callers) -> Self {
        Self { callers, ..self }
    }

    /// Sets what starts its runs.
    pub(super) fn starting(self, starter: &Arc<RunStarter>) -> Self {
        Self { starter: Some(Arc::clone(starter)), ..self }
    }

    /// Returns true if its requests start runs.
    pub(crate) fn is_run_service(&self) -> bool {
        matches!(self.service, MountedService::Run(_))
    }

    /// Sets the paths whose `GET` and `HEAD` are answered whatever the `Origin` of the request. Default: none.
    ///
    /// Use it for the files of a page. A browser requests them with an `Origin` that cannot match if a proxy changes
    /// `Host`. No page of another origin may read the reply.
    #[must_use]
    pub fn public_at(self, is_public: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { is_public: Arc::new(is_public), ..self }
    }

    /// Answers only over HTTP, as files do. Use it for pages: a WebSocket handshake or a multiplexed request then gets
    /// 404.
    #[must_use]
    pub fn http_only(self) -> Self {
        Self { is_http_only: true, ..self }
    }

    /// Also answers a browser that opens the URL of a topic, if this mount is at `/`: a `GET` or `HEAD` whose `Accept`
    /// weighs `text/html` higher than everything that a topic is read as. The topic exists, or its first event may
    /// create it. The server adds `Allow` to the reply: the methods that this client can use.
    #[must_use]
    pub fn topic_pages(self) -> Self {
        Self { has_topic_pages: true, ..self }
    }

    /// Finishes each request that may change something, whose method is not `GET`, `HEAD` or `OPTIONS`, even if its
    /// client cancels it over a multiplexed connection. The request then gets its own final status, not 204. Use it for
    /// a service that carries out a change that it has begun, such as a resource.
    #[must_use]
    pub fn finishes_changes(self) -> Self {
        Self { finishes_changes: true, ..self }
    }

    /// Sets the time in which the service must begin its reply, instead of
    /// [`Limits::service_timeout`](crate::Limits::service_timeout).
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Describes the service with the members of an OpenAPI 3.1 object `paths`: its own path and those below it. With any
    /// other path, the server is not bound ([`BindError::Described`](crate::BindError::Described)).
    #[must_use]
    pub fn describe(self, paths: Value) -> Self {
        Self { description: Some(Arc::new(paths)), ..self }
    }

    /// Describes the topics to which the service publishes, with the JSON Schema of the events of each topic, by name.
    #[must_use]
    pub fn topics(self, schemas: Value) -> Self {
        Self { events: Some(Arc::new(schemas)), ..self }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the description of its paths, if there is one.
    #[must_use]
    pub fn description(&self) -> Option<&Value> {
        self.description.as_deref()
    }

    /// Returns the JSON Schemas of events by topic, if there are any.
    pub(crate) fn events(&self) -> Option<&Value> {
        self.events.as_deref()
    }

    /// Returns true if a path is answered whatever the origin.
    pub(crate) fn is_public(&self, path: &str) -> bool {
        catch(|| (self.is_public)(path)).unwrap_or(false)
    }

    /// Returns true if a request with this method cannot be cancelled.
    pub(crate) fn finishes(&self, method: &str) -> bool {
        self.finishes_changes && !matches!(method, "GET" | "HEAD" | "OPTIONS")
    }

    /// Returns true if it answers only over HTTP.
    pub(crate) fn is_http_only(&self) -> bool {
        self.is_http_only
    }

    /// Returns true if it answers a browser that opens the URL of a topic.
    pub(crate) fn has_topic_pages(&self) -> bool {
        self.has_topic_pages
    }

    /// Answers a request, on any transport: calls the service, or starts a run.
    ///
    /// # Errors
    /// When the service fails or takes too long, the body does not come, or the client is gone before there is a
    /// reply.
    ///
    /// # Cancel safety
    /// Dropping the future drops the service's work for the request.
    pub(crate) fn answer(
        self: &Arc<Self>,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> Answering {
        Answering::New(Arc::clone(self), request, caller, context)
    }

    /// Begins to answer. What is answered at once needs no memory.
    fn begin(
        self: Arc<Self>,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
        cx: &mut Context<'_>,
    ) -> Result<Result<Answer, Problem>, AnswerFuture> {
        let is_start = match self.start(&request) {
            Ok(start) => start.is_some(),
            Err(problem) => return Ok(Err(problem)),
        };
        let mut rest: AnswerFuture = if is_start {
            Box::pin(async move { self.start_run(request, caller, context).await })
        } else {
            let mut called = match self.call_service(request, caller, context) {
                Ok(called) => called,
                Err(problem) => return Ok(Err(problem)),
            };
            if let Poll::Ready(answered) = called.answering.poll_unpin(cx) {
                return Ok(self.reply(answered, called.taken, called.context).map(Answer::Reply));
            }
            Box::pin(async move { self.finish(called).await.map(Answer::Reply) })
        };
        // This sets the timers of a call.
        match rest.poll_unpin(cx) {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => Err(rest),
        }
    }

    /// Starts the run that a request asks for.
    async fn start_run(
        &self,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> Result<Answer, Problem> {
        let Some(start) = self.start(&request)? else {
            return self.call(request, caller, context).await.map(Answer::Reply);
        };
        let (mount, own) = (self.clone(), context.clone());
        let make_work = move |request| mount.work(request, caller, &own);
        start.answer(request, caller, context, make_work).await
    }

    /// Returns the start of a run that a request asks for, if it does.
    fn start(&self, request: &Request<Body>) -> Result<Option<Start<'_>>, Problem> {
        let Self { path, callers, .. } = self;
        let is_run_service = self.is_run_service();
        // Pages start no runs.
        let may_start = is_run_service || !self.is_http_only;
        let Some(starter) = self.starter.as_deref().filter(|_| may_start) else {
            return Ok(None);
        };
        let reply = StartReply::of(is_run_service, request)?;
        Ok(reply.map(|reply| Start { reply, path, callers: *callers, starter }))
    }

    /// Returns the work of a run that a request starts.
    fn work(
        self,
        request: Request<Bytes>,
        caller: Caller,
        context: &ServiceContext,
    ) -> Result<RunWork, Problem> {
        if let MountedService::Run(service) = &self.service {
            let prepared = catch(|| service.prepare(input(&request)));
            return Ok(prepared.map_err(|panicked| self.failed(&panicked))??);
        }
        let (own, memory) = (context.of_run(), context.memory.clone());
        // Settled now, since the connection may be gone when the work begins.
        let caller = caller.of_run();
        let call = async move { self.call(request.map(full), caller, own).await };
        Ok(work::of_call(call, memory))
    }

    /// Calls the service, and waits for its reply.
    async fn call(
        &self,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> Result<Response<Body>, Problem> {
        let called = self.call_service(request, caller, context)?;
        self.finish(called).await
    }

    /// Calls the service.
    fn call_service(
        &self,
        mut request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
    ) -> Result<Called, Problem> {
        let MountedService::Call(answer) = &self.service else {
            return Err(only_starts(request.method()));
        };
        let extensions = request.extensions_mut();
        extensions.remove::<OnUpgrade>();
        extensions.insert(caller);
        let taken = upload::watch(request.body_mut(), context.body_timeout, &context.memory);
        let answering = catch(|| answer(request)).map_err(|panicked| self.failed(&panicked))?;
        Ok(Called { answering: Caught::new(answering), taken, context })
    }

    /// Waits for the reply of the service.
    async fn finish(&self, called: Called) -> Result<Response<Body>, Problem> {
        let Called { answering, taken, mut context } = called;
        let answered = self.wait(answering, &mut context, taken.as_ref()).await?;
        self.reply(answered, taken, context)
    }

    /// Returns the reply to a client, from the answer of the service.
    fn reply(
        &self,
        answered: Result<Result<Response<Body>, BoxError>, Panicked>,
        taken: Option<Taken>,
        context: ServiceContext,
    ) -> Result<Response<Body>, Problem> {
        if let Some(fault) = taken.as_ref().and_then(Taken::fault) {
            drop(Caught::new(answered));
            return Err(fault.clone());
        }
        match answered {
            Ok(Ok(reply)) if reply.status().is_informational() => {
                let status = reply.status();
                drop(Caught::new(reply));
                Err(self.failed(&Informational(status)))
            }
            Ok(Ok(reply)) => Ok(reply.map(|body| download::watched(body, &self.path, context))),
            Ok(Err(error)) => Err(self.failed(&ServiceError::of(error))),
            Err(panicked) => Err(self.failed(&panicked)),
        }
    }

    /// Waits for an answer, within the limits on the time.
    async fn wait<F: Future + Unpin>(
        &self,
        answering: F,
        context: &mut ServiceContext,
        taken: Option<&Taken>,
    ) -> Result<F::Output, Problem> {
        let timeout = self.timeout.unwrap_or(context.service_timeout);
        let ServiceContext { body_timeout, write_timeout, is_run, .. } = *context;
        let passes = async {
            match taken {
                Some(taken) => taken.overdue(timeout, body_timeout).await,
                None => sleep(timeout).await,
            }
        };
        tokio::select! {
            biased;
            answered = answering => Ok(answered),
            () = context.gone() => Err(Problem::client_gone(write_timeout)),
            () = passes, if !is_run => Err(overdue(timeout)),
        }
    }

    fn failed(&self, error: &(dyn Error + 'static)) -> Problem {
        tracing::error!(error, mount = %self.path, "a service failed");
        Problem::new(Kind::Internal, "the service at this path failed")
    }
}

/// The result of a service, with the body that every reply has.
fn answered<B, E>(answered: Result<Response<B>, E>) -> Result<Response<Body>, BoxError>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    E: Into<BoxError>,
{
    Ok(answered.map_err(Into::into)?.map(Body::new))
}

/// A service at work for a request.
struct Called {
    answering: Caught<ResponseFuture>,
    /// `None` if the service has the whole body.
    taken: Option<Taken>,
    context: ServiceContext,
}

/// The rest of the work for a request.
type AnswerFuture = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send>>;

/// The work of a mount for a request. The mount is asked in the first poll, and only what waits then is kept in memory.
#[expect(clippy::large_enum_variant, reason = "most calls are over before they would be boxed")]
#[must_use]
pub(crate) enum Answering {
    New(Arc<Mount>, Request<Body>, Caller, ServiceContext),
    Waiting(AnswerFuture),
    Over,
}

impl Future for Answering {
    type Output = Result<Answer, Problem>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Self::Waiting(rest) = &mut *self {
            return rest.poll_unpin(cx);
        }
        let Self::New(mount, request, caller, context) = std::mem::replace(&mut *self, Self::Over)
        else {
            return Poll::Pending;
        };
        match mount.begin(request, caller, context, cx) {
            Ok(answer) => Poll::Ready(answer),
            Err(rest) => {
                *self = Self::Waiting(rest);
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The problem of a service that has not begun its reply in time.
fn overdue(timeout: Duration) -> Problem {
    let detail = format!("the service has not begun its reply within {timeout:?}");
    Problem::new(Kind::ServiceTimeout, detail)
}

/// A service answered without a final status.
#[derive(Debug, thiserror::Error)]
#[error("it answered with the informational status {0}")]
struct Informational(StatusCode);

#[cfg(test)]
mod tests {
    use anemone_ws::Memory;
    use axum::Router;
    use futures_util::stream;
    use tokio::time::sleep;

    use super::*;
    use crate::Limits;
    use crate::peer::Peer;
    use crate::reply::body;
    use crate::request::client::Client;
    use crate::request::proxies::Proxies;

    /// Asks a service that waits for so many seconds once it has the body, whose pieces come after so many seconds each.
    async fn ask(pieces: &'static [u64], wait: u64) -> Result<StatusCode, Problem> {
        let handler = async move |body: Bytes| {
            sleep(Duration::from_secs(wait)).await;
            body.len().to_string()
        };
        let mount = Mount::new("/a", Router::new().fallback(handler)).unwrap();
        let pieces = stream::unfold(pieces.iter(), |mut pieces| async {
            sleep(Duration::from_secs(*pieces.next()?)).await;
            Some((Bytes::from_static(b"x"), pieces))
        });
        let client = Client::of_connection(Peer::Unknown, &Proxies::default());
        let context = ServiceContext::new(&Limits::default(), &Memory::default());
        let request = Request::new(body::stream(pieces));
        let reply = mount.call(request, Caller::new(client, "http"), context).await;
        reply.map(|reply| reply.status())
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_service_begins_when_it_has_the_body() {
        let kind = |asked: Result<StatusCode, Problem>| asked.map_err(|problem| problem.kind());
        assert_eq!(kind(ask(&[], 29).await), Ok(StatusCode::OK));
        assert_eq!(kind(ask(&[], 31).await), Err(Kind::ServiceTimeout));
        assert_eq!(kind(ask(&[20; 100], 29).await), Ok(StatusCode::OK));
        assert_eq!(kind(ask(&[20; 100], 31).await), Err(Kind::ServiceTimeout));
        assert_eq!(kind(ask(&[20, 31], 0).await), Err(Kind::BodyTimeout));
    }
}
