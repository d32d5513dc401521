//! A service at a path, as the program sets it up.

use std::fmt;
use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anemone_hub::run::RunService;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use serde_json::Value;
use tower_service::Service;

use super::caught::catch;
use super::mount_path::{MountError, check_path};
use super::start_right::StartRight;
use crate::reply::body::{Body, BoxError};

pub(super) type ResponseFuture =
    Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

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
///
/// # Example
/// ```
/// use anemone_hub::{Epoch, Hub};
/// use anemone_server::{Mount, MountError, Server};
/// use axum::{Router, routing::get};
///
/// let router = Router::new().route("/hello", get(async || "hello"));
/// let server = Server::builder(Hub::new(Epoch::random()?))
///     .mount(Mount::new("/hello", router.clone())?)
///     .bind()?;
/// # drop(server);
/// assert!(matches!(Mount::new("/topics", router), Err(MountError::Own { first: "topics", .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Mount {
    pub(super) path: Arc<str>,
    pub(super) service: MountService,
    pub(super) start_right: StartRight,
    is_public: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    is_http_only: bool,
    has_browser_pages: bool,
    has_page_at_root: bool,
    finishes_changes: bool,
    pub(super) timeout: Option<Duration>,
    about: Option<(Arc<str>, Arc<Value>)>,
    parameters: Option<Arc<Value>>,
    description: Option<Arc<Value>>,
    events: Option<Arc<Value>>,
}

#[derive(Clone)]
pub(super) enum MountService {
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
        Self::of(path, MountService::Call(Arc::new(answer)))
    }

    /// Mounts a service that starts runs: each `POST` to the path or below it starts one. With `Prefer: respond-async`
    /// the reply is its state, and the run is watched at its `Location`; otherwise the reply has its events.
    ///
    /// [`RunService::prepare`] is called on a thread that serves clients, and must be quick. The work runs on a thread of its own.
    ///
    /// # Errors
    /// As [`Mount::new`].
    pub fn run(path: &str, service: impl RunService) -> Result<Self, MountError> {
        Self::of(path, MountService::Run(Arc::new(service)))
    }

    fn of(path: &str, service: MountService) -> Result<Self, MountError> {
        check_path(path)?;
        Ok(Self {
            path: path.into(),
            service,
            start_right: StartRight::Local,
            is_public: Arc::new(|_| false),
            is_http_only: false,
            has_browser_pages: false,
            has_page_at_root: false,
            finishes_changes: false,
            timeout: None,
            about: None,
            parameters: None,
            description: None,
            events: None,
        })
    }

    /// Sets the clients that may start runs here, also with `Prefer: respond-async` at a service that only answers.
    /// Default: those on the server's own machine. A run goes on when its client has gone.
    #[must_use]
    pub fn start_right(self, start_right: StartRight) -> Self {
        Self { start_right, ..self }
    }

    /// Returns true if its requests start runs.
    pub(crate) fn is_run_service(&self) -> bool {
        matches!(self.service, MountService::Run(_))
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

    /// Also answers a browser that opens the URL of a topic, of a run, of the list of runs, or of a mount with a
    /// [page](Self::page_at_root), if this mount is at `/`: a `GET` or `HEAD` whose `Accept` weighs `text/html` higher than
    /// everything that is there for programs. If the topic or the run exists, or its first event may create it, the server
    /// adds `Allow` to the reply: the methods that this client can use. Otherwise the request has the [`Problem`](crate::Problem) among its
    /// extensions, and the server gives the reply the status of that: 404. The same holds at a path at which the server has nothing
    /// ([`UnknownPath`](crate::Kind::UnknownPath)). The page of the list is for everybody, since it
    /// has no data: it asks for it, and is told who may see it.
    #[must_use]
    pub fn browser_pages(self) -> Self {
        Self { has_browser_pages: true, ..self }
    }

    /// Leaves a browser that opens the path of this mount to the mount at `/`, if that one has
    /// [pages](Self::browser_pages). All other requests are still answered here.
    #[must_use]
    pub fn page_at_root(self) -> Self {
        Self { has_page_at_root: true, ..self }
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

    /// Says in one sentence what a run service does, with the body of a request that shows it, or null for none, unless its
    /// paths are [described](Self::describe).
    #[must_use]
    pub fn about(self, sentence: &str, example: Value) -> Self {
        Self { about: Some((sentence.into(), Arc::new(example))), ..self }
    }

    /// Describes the parameters that a run service takes in the query, as a list of objects of OpenAPI 3.1, unless its paths
    /// are [described](Self::describe).
    #[must_use]
    pub fn parameters(self, parameters: Value) -> Self {
        Self { parameters: Some(Arc::new(parameters)), ..self }
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

    /// Returns what a run service does, and the body of a request that shows it.
    pub(crate) fn says(&self) -> Option<(&str, &Value)> {
        self.about.as_ref().map(|(sentence, example)| (&**sentence, &**example))
    }

    /// Returns the descriptions of the parameters of a run service.
    pub(crate) fn described_parameters(&self) -> &[Value] {
        self.parameters.as_deref().and_then(Value::as_array).map_or(&[], Vec::as_slice)
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

    pub(crate) fn is_http_only(&self) -> bool {
        self.is_http_only
    }

    /// Returns true if it answers a browser that opens the URL of a topic or a run.
    pub(crate) fn has_browser_pages(&self) -> bool {
        self.has_browser_pages
    }

    /// Returns true if the mount at `/` answers a browser that opens this path.
    pub(crate) fn has_page_at_root(&self, path: &str) -> bool {
        self.has_page_at_root && *self.path == *path
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

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount").field("path", &self.path).finish_non_exhaustive()
    }
}
