//! A server with services that requests start as runs.

use std::convert::Infallible;
use std::io::{BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anemone_hub::Data;
use anemone_hub::run::{RunContext, RunInput, RunOutcome, RunRefusal, RunService, RunWork};
use anemone_server::{Caller, Limits, Mount, Options, StartRight};
use anemone_testing::ways::Way;
use anemone_testing::{Endpoint, Fixture, Reply, request, wait_until};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use futures_util::stream;
use serde_json::Value;

use crate::runs::driven::rest;

pub(crate) const ASYNC: (&str, &str) = ("Prefer", "respond-async");

/// Counts to the number in the body. Above a thousand it waits until it is stopped, and says when that was.
struct Counting {
    stopped: Arc<AtomicU64>,
    begun: Instant,
}

impl RunService for Counting {
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal> {
        if input.content_type.as_deref() == Some("text/plain") {
            return Err(RunRefusal::UnsupportedType("expected application/json".to_owned()));
        }
        if input.query.is_some() {
            return Err(RunRefusal::BadParameter("there are no parameters".to_owned()));
        }
        let last: u64 = serde_json::from_slice(&input.body)
            .map_err(|error| RunRefusal::BadBody(error.to_string()))?;
        if last == 0 {
            let (pointer, detail) = (Some("/last".to_owned()), "must be 1 or more".to_owned());
            return Err(RunRefusal::Unprocessable { pointer, detail });
        }
        let (stopped, begun) = (Arc::clone(&self.stopped), self.begun);
        Ok(RunWork::new(move |run| {
            count(run, last).inspect_err(|_| {
                let millis = begun.elapsed().as_millis() as u64;
                stopped.store(millis, Ordering::SeqCst);
            })
        }))
    }
}

fn count(run: &RunContext, last: u64) -> RunOutcome {
    let data = |value: Value| Data::json(&value).unwrap();
    for number in 1..=last.min(1_000) {
        run.partial(&data(number.into()))?;
    }
    if last > 1_000 {
        loop {
            run.sleep(Duration::from_millis(5))?;
        }
    }
    Ok(Some(data("counted".into())))
}

/// Counts the bytes of the body, if there is no word about its type.
struct CountingBytes;

impl RunService for CountingBytes {
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal> {
        assert_eq!(input.content_type, None);
        let len = Data::json(&input.body.len()).unwrap();
        Ok(RunWork::new(move |_| Ok(Some(len))))
    }
}

/// A server with a run service, which everybody may use, and one that only streams.
pub(crate) struct Served {
    pub(crate) fixture: Fixture,
    /// The time at which a work was stopped, in milliseconds.
    pub(crate) stopped: Arc<AtomicU64>,
    pub(crate) begun: Instant,
}

impl Served {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Limits)) -> Self {
        Self::of(|options| change(&mut options.limits))
    }

    pub(crate) fn of(change: impl FnOnce(&mut Options)) -> Self {
        let (stopped, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let counting = Counting { stopped: Arc::clone(&stopped), begun };
        let fixture = Fixture::with(
            |options| {
                let run =
                    Mount::run("/math/count", counting).unwrap().start_right(StartRight::Anyone);
                options.mounts.push(run);
                options.mounts.push(Mount::run("/bytes", CountingBytes).unwrap());
                options.mounts.push(Mount::new("/plain", routes()).unwrap());
                change(options);
            },
            Default::default(),
        );
        Self { fixture, stopped, begun }
    }

    pub(crate) fn post(&self, target: &str, fields: &[(&str, &str)], body: &str) -> Reply {
        post_to(&self.fixture, target, fields, body)
    }

    pub(crate) fn run(&self, body: &str) -> String {
        let reply = self.post("/math/count", &[ASYNC], body);
        assert_eq!(reply.status, 202, "{reply:?}");
        run_of(&reply)
    }

    /// The path of the run that was started last.
    pub(crate) fn newest(&self) -> String {
        let list = self.fixture.get("/runs?limit=1", &[]).json();
        format!("/runs/{}", list["runs"][0]["key"].as_str().unwrap())
    }

    pub(crate) fn state(&self, run: &str) -> Value {
        self.fixture.get(&format!("{run}?state"), &[]).json()
    }

    pub(crate) fn watch(&self, way: &Way, run: &str) -> Vec<Value> {
        rest(&mut *way.read_path(way.connect(&self.fixture), run, "").unwrap())
    }

    pub(crate) fn until(&self, run: &str, state: &str) {
        wait_until("it is so", || self.state(run)["state"] == state);
    }
}

/// The path of the run that a reply says was started.
pub(crate) fn run_of(reply: &Reply) -> String {
    reply.field("location").unwrap().strip_prefix("..").unwrap().to_owned()
}

pub(crate) fn post_to(
    endpoint: &Endpoint,
    target: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut stream = endpoint.connect();
    let len = body.len().to_string();
    let fields = [&[("Content-Length", &*len)], fields].concat();
    stream
        .write_all((request(endpoint.address, "POST", target, &fields) + body).as_bytes())
        .unwrap();
    Reply::read(&mut BufReader::new(stream), "POST")
}

fn routes() -> Router {
    let lines = |lines: &'static [&'static str]| {
        let lines = stream::iter(lines.iter().map(|line| Ok::<_, Infallible>(format!("{line}\n"))));
        ([("content-type", "application/x-ndjson")], Body::from_stream(lines)).into_response()
    };
    let items = move || async move {
        lines(&["1", "progress 0.25 a quarter", "", "{\"progress\":0.5}", "words", "{\"n\": 2.50}"])
    };
    let refused = async || (axum::http::StatusCode::CONFLICT, "already there");
    let problem = async || -> Response {
        let problem = anemone_server::Problem::new(anemone_server::Kind::Conflict, "it exists");
        problem.into_response().into_response()
    };
    let own = async || {
        let fields = [("content-type", "application/problem+json")];
        let problem = r#"{"type":"/problems/own","detail":"an own problem"}"#;
        (axum::http::StatusCode::FORBIDDEN, fields, problem)
    };
    Router::new()
        .route("/plain/items", post(items))
        .route("/plain/own", post(own))
        .route("/plain/read", get(async || "read"))
        .route(
            "/plain/json",
            post(async || ([("content-type", "application/json")], "{\"a\": [1]}")),
        )
        .route("/plain/text", post(async |body: String| format!("you said {body}")))
        .route("/plain/bytes", post(async || vec![0_u8, 255]))
        .route("/plain/refused", post(refused))
        .route("/plain/problem", post(problem))
        .route("/plain/panics", post(async || -> String { panic!("ouch") }))
        .route(
            "/plain/who",
            post(async |Extension(caller): Extension<Caller>| {
                format!("{} {:?}", caller.transport(), caller.identity())
            }),
        )
        .route("/plain/never", any(async || std::future::pending::<String>().await))
}
