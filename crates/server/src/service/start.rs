//! Starts of runs: by any request to a run service, and by one with `Prefer: respond-async` to any service.
//!
//! A start is the same on every transport: from a request to an answer. For a client that waits for the events, the
//! answer is the run.

use std::borrow::Cow;
use std::time::Instant;

use anemone_hub::run::{
    InputDigest, Run, RunInput, RunName, RunNameError, RunRefusal, RunStatus, RunWork, ShownInput,
    StartError, StartRun, Started,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};

use super::answer::{Answer, StartedRun};
use super::caller::Caller;
use super::context::ServiceContext;
use super::held_request::copy_head;
use super::start_right::StartRight;
use super::starter::{ReadingThread, RunStarter};
use crate::publish::key;
use crate::read::readable::Readable;
use crate::reply::body::{Body, full, reply};
use crate::request::body::receive;
use crate::request::methods::only_starts;
use crate::request::origin;
use crate::request::own_path::OwnPath;
use crate::request::query::{bad, prefers_async};
use crate::{Kind, Problem};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StartReply {
    /// The state of the run, at once.
    State,
    Events {
        /// True if the run belongs to the reply.
        is_attached: bool,
    },
}

/// A request to start a run, and the place where it starts.
pub(super) struct StartRequest<'a> {
    pub(super) reply: StartReply,
    pub(super) path: &'a str,
    /// True if runs are all that there is at this mount.
    pub(super) is_run_service: bool,
    pub(super) start_right: StartRight,
    pub(super) starter: &'a RunStarter,
}

impl StartReply {
    /// Returns the reply that a request to a mount asks for; `None` if it only calls the service.
    ///
    /// # Errors
    /// When a run service does not take its method, or cannot attach the run as it asks.
    pub(super) fn of<B>(
        is_run_service: bool,
        request: &Request<B>,
    ) -> Result<Option<Self>, Problem> {
        let is_post = request.method() == Method::POST;
        let is_async = prefers_async(request.headers().into());
        if !is_run_service {
            return Ok((is_post && is_async).then_some(Self::State));
        }
        if !is_post {
            return Err(only_starts(request.method()));
        }
        match (is_async, OwnParameters::of(request.uri().query())?.is_attached) {
            (true, true) => Err(bad(
                "attach",
                "takes no Prefer: respond-async, whose reply ends before the run",
            )),
            (true, false) => Ok(Some(Self::State)),
            (false, is_attached) => Ok(Some(Self::Events { is_attached })),
        }
    }
}

impl StartRequest<'_> {
    /// Starts the run with the work that `make_work` returns for the request, and answers. It also returns the bytes that
    /// the work holds, besides its own size. It is called on the thread that `reading_thread` chooses for the body.
    ///
    /// # Errors
    /// When the client may not start runs here, the input is refused, or there is no room.
    pub(super) async fn answer(
        self,
        request: Request<Body>,
        caller: Caller,
        mut context: ServiceContext,
        reading_thread: impl FnOnce(&[u8]) -> Result<ReadingThread, Problem>,
        make_work: impl FnOnce(Request<Bytes>) -> Result<(RunWork, u64), Problem> + Send + 'static,
    ) -> Result<Answer, Problem> {
        self.check(caller)?;
        origin::refuse_unnamed(request.headers().into())?;
        let key = key(None, request.headers())?;
        let way_up = way_up(request.uri().path())?;
        let own = if self.is_run_service {
            OwnParameters::of(request.uri().query())?
        } else {
            OwnParameters::default()
        };
        let (head, body) = copy_head(request);
        let mut request = Request::new(body);
        *request.headers_mut() = head.headers().clone();
        let body =
            receive(request, self.starter.body, &context.memory, context.stop.clone()).await?;
        let thread = reading_thread(body.as_ref())?;
        let turn = tokio::select! {
            biased;
            turn = self.starter.turn(thread, caller.client().waiter_for_runs()) => turn?,
            () = context.gone() => return Err(Problem::client_gone(context.write_timeout)),
        };
        // A copy, since the hub counts what waits with a run. Those who wait for their turn have none yet.
        let request = head.map(|()| Bytes::copy_from_slice(body.as_ref()));
        let key = key.map(|key| (key, digest(&request)));
        let shown = if self.is_run_service { input(&request) } else { whole_input(&request) };
        let (work, held_bytes) = turn.read(move || make_work(request)).await?;
        drop(body);
        let start = StartRun {
            owner: Some(caller.client().owner()),
            is_exempt: caller.client().is_exempt(),
            is_timed: caller.client().check_local().is_err(),
            is_attached: self.reply == StartReply::Events { is_attached: true },
            key,
            held_bytes,
            name: own.name,
            input: Some(ShownInput::of(&shown)),
            ..StartRun::new(self.path, work)
        };
        let Started { run, is_replayed, attachment } = self.starter.runs.start(start)?;
        let mut fields = HeaderMap::new();
        if is_replayed {
            fields.insert("idempotent-replayed", HeaderValue::from_static("true"));
        }
        let location = format!("{way_up}{}/{}", OwnPath::RUNS.name(), run.key());
        // Plain characters are always a field's value.
        if let Ok(location) = HeaderValue::try_from(location) {
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
        if self.start_right == StartRight::Anyone {
            return Ok(());
        }
        caller.client().check_local().map_err(|foreign| {
            let detail =
                format!("only clients on the server's own machine may start runs here; {foreign}");
            Problem::new(Kind::StartRefused, detail)
        })
    }
}

/// Returns the input for a run service: the request without what is for the server alone.
pub(super) fn input(request: &Request<Bytes>) -> RunInput {
    let others =
        parameters(request.uri().query()).filter(|parameter| own_value(parameter).is_none());
    let query = others.collect::<Vec<_>>().join("&");
    RunInput { query: (!query.is_empty()).then_some(query), ..whole_input(request) }
}

/// Returns the input for another service, which gets all of the query.
fn whole_input(request: &Request<Bytes>) -> RunInput {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
    RunInput {
        path: request.uri().path().to_owned(),
        query: request.uri().query().map(str::to_owned),
        content_type: content_type.map(Into::into),
        body: request.body().clone(),
    }
}

/// Returns the digest of a request, which tells a repeat from another start. All of the query counts: a run that belongs to
/// its reply is not what another client waits for.
fn digest(request: &Request<Bytes>) -> InputDigest {
    whole_input(request).digest()
}

fn parameters(query: Option<&str>) -> impl Iterator<Item = &str> {
    query.into_iter().flat_map(|query| query.split('&'))
}

/// A parameter of the query that is for the server alone. Every run service takes them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OwnParameter {
    /// The run belongs to the reply.
    Attach,
    Name,
}

/// Returns a parameter that is for the server alone, with its value; `None` for another parameter.
fn own_value(parameter: &str) -> Option<(OwnParameter, Cow<'_, str>)> {
    let (name, value) = form_urlencoded::parse(parameter.as_bytes()).next()?;
    let own = match &*name {
        "attach" => OwnParameter::Attach,
        "name" => OwnParameter::Name,
        _ => return None,
    };
    Some((own, value))
}

/// The parameters of a start that are for the server alone.
#[derive(Debug, Default)]
struct OwnParameters {
    /// True if the run is to belong to the reply.
    is_attached: bool,
    name: Option<RunName>,
}

impl OwnParameters {
    fn of(query: Option<&str>) -> Result<Self, Problem> {
        let mut own = Self::default();
        for (parameter, value) in parameters(query).filter_map(own_value) {
            match parameter {
                OwnParameter::Attach if own.is_attached => {
                    return Err(bad("attach", "is given twice"));
                }
                OwnParameter::Attach if !value.is_empty() => {
                    return Err(bad("attach", "takes no value"));
                }
                OwnParameter::Attach => own.is_attached = true,
                OwnParameter::Name if own.name.is_some() => {
                    return Err(bad("name", "is given twice"));
                }
                OwnParameter::Name => {
                    let name = value
                        .parse()
                        .map_err(|error: RunNameError| bad("name", &error.to_string()))?;
                    own.name = Some(name);
                }
            }
        }
        Ok(own)
    }
}

/// The most segments of a path that starts a run, which bounds the path of the run relative to it.
const SEGMENTS_MAX: usize = 100;

/// Returns the way from the path of a request to the root, to which its clients resolve it (RFC 3986 section 5.2.4).
///
/// # Errors
/// When the path has too many segments.
fn way_up(path: &str) -> Result<String, Problem> {
    let mut segments: Vec<&str> = path.split('/').skip(1).collect();
    if segments.len() > SEGMENTS_MAX {
        let count = segments.len();
        let detail =
            format!("the path of a start has {count} segments, at most {SEGMENTS_MAX} allowed");
        return Err(Problem::new(Kind::BadName, detail));
    }
    // The last one is no folder.
    segments.pop();
    let levels = segments.into_iter().fold(0_usize, |levels, segment| match segment {
        "." => levels,
        ".." => levels.saturating_sub(1),
        _ => levels + 1,
    });
    Ok("../".repeat(levels))
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
            (true, "POST", "/a?b=1&%61ttach", "", events(true)),
            (true, "POST", "/a?attached", "", events(false)),
            (false, "POST", "/a?attach=1", "respond-async", Some(StartReply::State)),
        ] {
            let reply = StartReply::of(is_run_service, &request(method, target, prefer));
            assert_eq!(reply, Ok(expected), "{method} {target} {prefer}");
        }
        let refused = StartReply::of(true, &request("GET", "/a", "")).unwrap_err();
        assert_eq!(refused.kind(), Kind::MethodNotAllowed);
    }

    #[test]
    fn a_run_that_cannot_be_attached_as_asked_is_refused() {
        for (target, prefer, part) in [
            ("/a?attach", "respond-async", "attach takes no Prefer: respond-async"),
            ("/a?attach=1", "", "attach takes no value"),
            ("/a?attach=false", "respond-async", "attach takes no value"),
            ("/a?attach&b&attach", "", "attach is given twice"),
        ] {
            let problem = StartReply::of(true, &request("POST", target, prefer)).unwrap_err();
            assert_eq!(problem.kind(), Kind::BadParameter, "{target}");
            assert!(problem.detail().starts_with(part), "{}", problem.detail());
        }
    }

    #[test]
    fn a_name_is_taken_if_it_can_be_shown() {
        let name = |query| {
            let own = OwnParameters::of(Some(query));
            own.map(|own| own.name.map(|name| name.as_str().to_owned()))
        };
        let named = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(name("b=1&name=up+to%20a%20million"), named("up to a million"));
        assert_eq!(name("n%61me=%C3%A9&attach"), named("\u{e9}"));
        assert_eq!((name("b=name"), name("")), (Ok(None), Ok(None)));
        for (query, part) in [
            ("name", "name is empty"),
            ("name=%0a", "name is empty"),
            ("name=a%1b[2J", "name has characters that cannot be shown"),
            ("name=a&name=a", "name is given twice"),
        ] {
            let problem = name(query).unwrap_err();
            assert_eq!(problem.kind(), Kind::BadParameter, "{query}");
            assert!(problem.detail().starts_with(part), "{}", problem.detail());
        }
    }

    #[test]
    fn a_repeat_has_the_same_path_query_and_body() {
        let of = |target, body| digest(&request("POST", target, "").map(|()| Bytes::from(body)));
        let first = of("/a?b&attach", "x");
        assert_eq!(of("/a?b&attach", "x"), first);
        for (target, body) in [("/a?b", "x"), ("/a?b&attach", "y"), ("/c?b&attach", "x")] {
            assert_ne!(of(target, body), first, "{target}");
        }
    }

    #[test]
    fn a_run_is_found_from_any_path_and_the_way_there_is_bounded() {
        for (path, levels) in [
            ("/a", 0),
            ("/a/", 1),
            ("/math/a", 1),
            ("/a/////", 5),
            ("/a/./b/../c", 1),
            ("/../../a/b", 1),
            ("/a/..", 1),
            ("/a/...", 1),
        ] {
            assert_eq!(way_up(path).unwrap(), "../".repeat(levels), "{path}");
        }
        let path = |segments| "/a".repeat(segments);
        let longest = way_up(&path(SEGMENTS_MAX)).unwrap();
        assert_eq!(longest, "../".repeat(SEGMENTS_MAX - 1));
        // Each segment counts, also a dot segment and an empty one.
        for path in
            [path(SEGMENTS_MAX + 1), path(SEGMENTS_MAX) + "/", "/.".repeat(SEGMENTS_MAX + 1)]
        {
            let problem = way_up(&path).unwrap_err();
            assert_eq!(problem.kind(), Kind::BadName);
            assert!(problem.detail().contains("101 segments, at most 100"), "{}", problem.detail());
        }
    }

    #[test]
    fn what_is_for_the_server_alone_is_no_input() {
        let of = |target| input(&request("POST", target, "").map(|()| Bytes::from("x"))).query;
        for (target, query) in [
            ("/a", None),
            ("/a?attach", None),
            ("/a?b=%20&attach&c", Some("b=%20&c")),
            ("/a?%61ttach=", None),
            ("/a?attachment=1", Some("attachment=1")),
            ("/a?name=x%20y&b", Some("b")),
            ("/a?n%61me=x&names=1", Some("names=1")),
        ] {
            assert_eq!(of(target).as_deref(), query, "{target}");
        }
    }
}
