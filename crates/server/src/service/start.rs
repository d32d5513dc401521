//! Starts of runs: by any request to a run service, and by one with `Prefer: respond-async` to any service.
//!
//! A start is the same on every transport: from a request to an answer. For a client that waits for the events, the
//! answer is the run.

use std::time::Instant;

use anemone_hub::run::{
    OwnerKey, Run, RunInput, RunRefusal, RunStatus, RunWork, StartError, StartRun, Started,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};

use super::answer::{Answer, StartedRun};
use super::caller::Caller;
use super::callers::Callers;
use super::context::ServiceContext;
use super::starter::RunStarter;
use crate::clients::places::Source;
use crate::publish::key;
use crate::read::readable::Readable;
use crate::reply::body::{Body, full, reply};
use crate::request::body::receive;
use crate::request::methods::only_starts;
use crate::request::origin;
use crate::request::own_path::OwnPath;
use crate::request::query::prefers_async;
use crate::{Kind, Problem};

/// The reply that a start asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StartReply {
    /// The state of the run, at once.
    State,
    /// The events of the run.
    Events {
        /// True if the run belongs to the reply.
        is_attached: bool,
    },
}

/// A request to start a run, and the place where it starts.
pub(super) struct Start<'a> {
    pub(super) reply: StartReply,
    /// The path of the mount.
    pub(super) path: &'a str,
    pub(super) callers: Callers,
    pub(super) starter: &'a RunStarter,
}

impl StartReply {
    /// Returns the reply that a request to a mount asks for; `None` if it only calls the service.
    ///
    /// # Errors
    /// When a run service does not take its method.
    pub(super) fn of<B>(
        is_run_service: bool,
        request: &Request<B>,
    ) -> Result<Option<Self>, Problem> {
        let is_post = request.method() == Method::POST;
        let is_async = || prefers_async(request.headers().into());
        match is_run_service {
            false => Ok((is_post && is_async()).then_some(Self::State)),
            true if !is_post => Err(only_starts(request.method())),
            true if is_async() => Ok(Some(Self::State)),
            true => {
                let is_attached = parameters(request.uri().query()).any(is_attach);
                Ok(Some(Self::Events { is_attached }))
            }
        }
    }
}

impl Start<'_> {
    /// Starts the run with the work that `make_work` returns for the request, and answers.
    ///
    /// # Errors
    /// When the client may not start runs here, the input is refused, or there is no room.
    pub(super) async fn answer(
        self,
        request: Request<Body>,
        caller: Caller,
        context: ServiceContext,
        make_work: impl FnOnce(Request<Bytes>) -> Result<RunWork, Problem> + Send,
    ) -> Result<Answer, Problem> {
        self.check(caller)?;
        origin::refuse_unnamed(request.headers().into())?;
        let key = key(None, request.headers())?;
        let (head, body) = request.into_parts();
        let mut request = Request::new(body);
        *request.headers_mut() = head.headers.clone();
        let body =
            receive(request, self.starter.body, &context.memory, context.stop.clone()).await?;
        // A copy, since the hub counts what waits with a run.
        let request = Request::from_parts(head, Bytes::copy_from_slice(body.as_ref()));
        drop(body);
        let path = request.uri().path().to_owned();
        let start = StartRun {
            owner: Some(owner(caller)),
            is_exempt: caller.is_local(),
            is_attached: self.reply == StartReply::Events { is_attached: true },
            key: key.map(|key| (key, input(&request).digest())),
            held_bytes: request.body().len() as u64,
            ..StartRun::new(self.path, make_work(request)?)
        };
        let Started { run, is_replayed, attachment } = self.starter.runs.start(start)?;
        let mut fields = HeaderMap::new();
        if is_replayed {
            fields.insert("idempotent-replayed", HeaderValue::from_static("true"));
        }
        // Plain characters are always a field's value.
        if let Ok(location) = HeaderValue::try_from(location(&path, &run)) {
            fields.insert(header::LOCATION, location);
        }
        if self.reply == StartReply::State {
            let mut response = accepted(&run);
            response.headers_mut().extend(fields);
            return Ok(Answer::Reply(response));
        }
        Ok(Answer::Run(StartedRun { events: Readable::started(&run, attachment), fields }))
    }

    /// Checks that the client may start runs here.
    fn check(&self, caller: Caller) -> Result<(), Problem> {
        if self.callers == Callers::Anyone {
            return Ok(());
        }
        caller.client().check_local().map_err(|foreign| {
            let detail =
                format!("only clients on the server's own machine may start runs here; {foreign}");
            Problem::new(Kind::StartRefused, detail)
        })
    }
}

/// Returns the owner of what a client starts: its address or /64. Clients without an address are one owner, that of
/// the unspecified address, which no client has.
fn owner(caller: Caller) -> OwnerKey {
    OwnerKey(caller.address().map_or(0, |address| Source::of(address.ip()).bits()))
}

/// Returns the input for a run service: the request without what is for the server alone.
pub(super) fn input(request: &Request<Bytes>) -> RunInput {
    let others = parameters(request.uri().query()).filter(|parameter| !is_attach(parameter));
    let query = others.collect::<Vec<_>>().join("&");
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
    RunInput {
        path: request.uri().path().to_owned(),
        query: (!query.is_empty()).then_some(query),
        content_type: content_type.map(Into::into),
        body: request.body().clone(),
    }
}

fn parameters(query: Option<&str>) -> impl Iterator<Item = &str> {
    query.into_iter().flat_map(|query| query.split('&'))
}

fn is_attach(parameter: &str) -> bool {
    matches!(parameter, "attach" | "attach=")
}

/// Returns the path of a run, relative to that of the request that has started it.
fn location(path: &str, run: &Run) -> String {
    let depth = path.matches('/').count().saturating_sub(1);
    format!("{}{}/{}", "../".repeat(depth), OwnPath::RUNS.name(), run.key())
}

/// Returns the answer to a client that does not wait for the run.
fn accepted(run: &Run) -> Response<Body> {
    let state = to_json(&run.status(Instant::now()));
    let mut response = reply("application/json", "no-store", full(state + "\n"));
    *response.status_mut() = StatusCode::ACCEPTED;
    let applied = HeaderValue::from_static("respond-async");
    response.headers_mut().insert("preference-applied", applied);
    response
}

/// Serializes a state, of which a result is copied as it was written.
pub(crate) fn to_json(status: &RunStatus) -> String {
    // Only keys that are no strings are an error, and a state has none.
    serde_json::to_string(status).unwrap_or_default()
}

impl From<RunRefusal> for Problem {
    fn from(refusal: RunRefusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            RunRefusal::BadBody(_) => Self::new(Kind::BadBody, detail),
            RunRefusal::UnsupportedType(_) => Self::new(Kind::UnsupportedType, detail),
            RunRefusal::BadParameter(_) => Self::new(Kind::BadParameter, detail),
            RunRefusal::Unprocessable { pointer: Some(pointer), .. } => {
                Self::new(Kind::Unprocessable, detail).at(pointer)
            }
            _ => Self::new(Kind::Unprocessable, detail),
        }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        let kind = match &error {
            StartError::KeyReused => Kind::KeyReused,
            StartError::Stopping => Kind::Stopping,
            StartError::System(error) => {
                tracing::error!(error = error as &dyn std::error::Error, "cannot start a run");
                Kind::Internal
            }
            _ => Kind::TooManyRuns,
        };
        let problem = Self::new(kind, error.to_string());
        match kind {
            Kind::TooManyRuns => problem.field("retry-after", HeaderValue::from_static("10")),
            _ => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, target: &str, prefer: &str) -> Request<()> {
        Request::builder().method(method).uri(target).header("prefer", prefer).body(()).unwrap()
    }

    #[test]
    fn a_request_asks_for_the_state_or_the_events() {
        let events = |is_attached| Some(StartReply::Events { is_attached });
        for (is_run_service, method, target, prefer, expected) in [
            (false, "POST", "/a", "respond-async", Some(StartReply::State)),
            (false, "POST", "/a", "wait=3, Respond-Async; x", Some(StartReply::State)),
            (false, "POST", "/a", "wait=3", None),
            (false, "GET", "/a", "respond-async", None),
            (true, "POST", "/a", "respond-async", Some(StartReply::State)),
            (true, "POST", "/a?b=1", "", events(false)),
            (true, "POST", "/a?b=1&attach", "", events(true)),
            (true, "POST", "/a?attach=", "", events(true)),
            (true, "POST", "/a?attached", "", events(false)),
        ] {
            let reply = StartReply::of(is_run_service, &request(method, target, prefer));
            assert_eq!(reply, Ok(expected), "{method} {target} {prefer}");
        }
        let refused = StartReply::of(true, &request("GET", "/a", "")).unwrap_err();
        assert_eq!(refused.kind(), Kind::MethodNotAllowed);
    }

    #[test]
    fn what_is_for_the_server_alone_is_no_input() {
        let of = |target| input(&request("POST", target, "").map(|()| Bytes::from("x"))).query;
        for (target, query) in [
            ("/a", None),
            ("/a?attach", None),
            ("/a?b=%20&attach&c", Some("b=%20&c")),
            ("/a?attachment=1", Some("attachment=1")),
        ] {
            assert_eq!(of(target).as_deref(), query, "{target}");
        }
    }
}
