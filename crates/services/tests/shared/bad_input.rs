//! Bad input gets the same problem over every transport: to resources, services and runs.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::future::{Pending, pending};
use std::task::{Context, Poll};
use std::time::Duration;

use anemone_hub::run::{RunWork, Runs, StartRun};
use anemone_hub::{Epoch, Hub, Retention};
use anemone_server::{Body, Mount, Options};
use anemone_services::{
    Collection, CollectionOptions, Computations, Field, Propagation, ResourceService, Schema,
};
use anemone_testing::calls::Call;
use anemone_testing::multiplexed::{Carrier, Client};
use anemone_testing::secure::Secure;
use anemone_testing::{Fixture, Message, run, wait_until};
use http::{Request, Response};
use tower_service::Service;

#[derive(Clone)]
struct Never;

impl Service<Request<Body>> for Never {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pending<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        pending()
    }
}

/// Mounts the resource `tasks`, which has the record `a`, and a service that never answers.
fn prepare(options: &mut Options) {
    let hub = Hub::new(Epoch::from_bits(7));
    let schema = Schema::new("Task")
        .field(Field::text("title", 1..=80).required())
        .field(Field::boolean("done"));
    let name = "tasks".parse().unwrap();
    let tasks = Collection::open(&hub, name, schema, CollectionOptions::default()).unwrap();
    options.mounts.push(Mount::new("/tasks", ResourceService::new("/tasks", tasks)).unwrap());
    // This mount alone has a short time: the others may take as long as this machine needs.
    let never = Mount::new("/never", Never).unwrap().timeout(Duration::from_millis(200));
    options.mounts.push(never);
    options.mounts.push(Mount::run("/computations", Computations).unwrap());
    options.mounts.push(Mount::run("/propagation", Propagation::with_helpers(0)).unwrap());
}

fn ended_run(runs: &Runs) -> String {
    let run = runs.start(StartRun::new("/work", RunWork::new(|_| Ok(None)))).unwrap().run;
    wait_until("the run has not ended", || run.has_ended());
    format!("/runs/{}", run.key())
}

/// A call with bad input, with the problem, and words of its detail or pointer.
struct Case<'a> {
    call: Call<'a>,
    status: u16,
    kind: &'a str,
    words: &'a str,
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const STALE: &[(&str, &str)] = &[("content-type", "application/json"), ("if-match", "\"1-1\"")];
const CYCLE: &str = r#"{"actions":[{"id":"a","do":"sort","after":"a","algorithm":"quick"}]}"#;
const HUGE: &str = r#"{"actions":[{"id":"a","do":"list","size":100001}]}"#;
const TWICE: &str = r#"{"actions":[{"id":"a","do":"list","size":0,"size":4}]}"#;
/// Documents for coverages: a good one, in which some are wrong.
mod coverage {
    macro_rules! document {
        ($transmitter:literal, $more:literal) => {
            concat!(
                r#"{"area":{"width_m":1000,"height_m":1000},"step_m":100,"model":"free-space","transmitters":[{"#,
                $transmitter,
                r#","power_dbm":43}]"#,
                $more,
                "}"
            )
        };
    }

    pub(super) const NO_FREQUENCY: &str =
        document!(r#""x_m":1,"y_m":1,"height_m":30,"frequency_mhz":0"#, "");
    pub(super) const TWICE: &str =
        document!(r#""x_m":1,"y_m":1,"height_m":30,"frequency_mhz":900,"frequency_mhz":900"#, "");
    pub(super) const NEGATIVE: &str =
        document!(r#""x_m":1,"y_m":1,"height_m":-30,"frequency_mhz":900"#, "");
    pub(super) const OUTSIDE: &str =
        document!(r#""x_m":1001,"y_m":1,"height_m":30,"frequency_mhz":900"#, "");
    pub(super) const NOT_A_NUMBER: &str =
        document!(r#""x_m":NaN,"y_m":1,"height_m":30,"frequency_mhz":900"#, "");
    pub(super) const INFINITE: &str =
        document!(r#""x_m":1e999,"y_m":1,"height_m":30,"frequency_mhz":900"#, "");

    macro_rules! terrain {
        ($terrain:literal) => {
            document!(r#""x_m":1,"y_m":1,"height_m":30,"frequency_mhz":900"#, $terrain)
        };
    }

    pub(super) const HOLE: &str = terrain!(
        r#","terrain":{"type":"esri-ascii","text":"ncols 2 nrows 2 xllcorner 0 yllcorner 0 cellsize 500 1 hole 3 4"}"#
    );
    pub(super) const LIE: &str = terrain!(
        r#","terrain":{"type":"esri-ascii","text":"ncols 500000 nrows 2 xllcorner 0 yllcorner 0 cellsize 500 1 2 3 4"}"#
    );
    pub(super) const HUGE: &str = terrain!(
        r#","terrain":{"type":"esri-ascii","text":"ncols 4294967295 nrows 4294967295 xllcorner 0 yllcorner 0 cellsize 500"}"#
    );
    pub(super) const FAR: &str = terrain!(
        r#","terrain":{"type":"esri-ascii","text":"ncols 2 nrows 2 xllcorner 1e308 yllcorner 0 cellsize 500 1 2 3 4"}"#
    );
    pub(super) const NO_TIFF: &str = terrain!(r#","terrain":{"type":"geotiff","data":"R0lGODlh"}"#);
    pub(super) const CUT_TIFF: &str =
        terrain!(r#","terrain":{"type":"geotiff","data":"SUkqAAgAAAA="}"#);
    pub(super) const FAR_BUILDING: &str = terrain!(
        r#","buildings":{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"height":9},"geometry":{"type":"Polygon","coordinates":[[[0,0],[1e308,0],[1,1],[0,0]]]}}]}"#
    );
    pub(super) const MANY_POINTS: &str =
        r#"{"area":{"width_m":200000,"height_m":200000},"step_m":0.1}"#;
}

const UNKNOWN_RUN: &str = "/runs/00000000000000000000000000000000";

const fn case<'a>(
    (method, target, body): (&'a str, &'a str, &'a str),
    (status, kind, words): (u16, &'a str, &'a str),
) -> Case<'a> {
    let fields = if body.is_empty() { &[] } else { JSON };
    Case { call: Call { method, target, fields, body }, status, kind, words }
}

const fn with<'a>(fields: &'a [(&'a str, &'a str)], case: Case<'a>) -> Case<'a> {
    Case { call: Call { fields, ..case.call }, ..case }
}

/// The cases; `long` is a body that is too long, `deep` one that is nested too deeply, and `ended` the path of a run
/// that has ended.
fn cases<'a>(long: &'a str, deep: &'a str, ended: &'a str) -> Vec<Case<'a>> {
    vec![
        case(("POST", "/tasks", long), (413, "body-too-big", "65536")),
        with(
            &[("content-type", "text/plain")],
            case(("POST", "/tasks", "sweep"), (415, "unsupported-type", "application/json")),
        ),
        case(("POST", "/tasks", "{\"title\":\n nope}"), (400, "bad-body", "line 2")),
        case(("POST", "/tasks", deep), (400, "bad-body", "deeper than 100")),
        case(("POST", "/tasks", &deep[5..deep.len() - 1]), (422, "unprocessable", "")),
        case(("POST", "/tasks", r#"{"title":""}"#), (422, "unprocessable", "/title")),
        case(("POST", "/tasks", r#"{"id":"a","title":"x"}"#), (409, "conflict", "a")),
        case(("GET", "/tasks?$nope=1", ""), (400, "bad-parameter", "$nope")),
        case(("GET", "/tasks?title[$like]=x", ""), (400, "bad-parameter", "$like")),
        case(("GET", "/tasks?color=red", ""), (422, "unprocessable", "color")),
        case(("GET", "/tasks/none", ""), (404, "unknown-record", "none")),
        with(
            STALE,
            case(("PUT", "/tasks/a", r#"{"title":"x"}"#), (412, "precondition-failed", "")),
        ),
        case(("DELETE", "/tasks", ""), (405, "method-not-allowed", "GET, HEAD, POST")),
        case(("GET", "/never", ""), (504, "service-timeout", "200ms")),
        case(("GET", UNKNOWN_RUN, ""), (404, "unknown-run", "")),
        case(("DELETE", UNKNOWN_RUN, ""), (404, "unknown-run", "")),
        case(("GET", "/runs/wind", ""), (404, "unknown-run", "")),
        case(("DELETE", ended, ""), (409, "run-ended", "")),
        case(("POST", "/computations", "{\"actions\":\n nope}"), (400, "bad-body", "line 2")),
        case(("POST", "/computations?states=every:0", "{}"), (400, "bad-parameter", "1 to")),
        case(("POST", "/computations", "{}"), (422, "unprocessable", "/actions")),
        case(("POST", "/computations", CYCLE), (422, "unprocessable", "/actions/0/after")),
        case(("POST", "/computations", HUGE), (422, "unprocessable", "1 to 100000")),
        case(("POST", "/computations", TWICE), (422, "unprocessable", "/actions/0/size")),
        case(("POST", "/propagation", deep), (422, "unprocessable", "/a")),
        case(
            ("POST", "/propagation", coverage::TWICE),
            (422, "unprocessable", "/transmitters/0/frequency_mhz"),
        ),
        case(("POST", "/propagation", coverage::NOT_A_NUMBER), (400, "bad-body", "line 1 column")),
        case(("POST", "/propagation", coverage::INFINITE), (400, "bad-body", "out of range")),
        case(("POST", "/propagation?attach&a=1", "{}"), (400, "bad-parameter", "a=1")),
        case(("POST", "/propagation", "{}"), (422, "unprocessable", "/area")),
        case(("POST", "/propagation", coverage::MANY_POINTS), (422, "unprocessable", "/step_m")),
        case(
            ("POST", "/propagation", coverage::NO_FREQUENCY),
            (422, "unprocessable", "/transmitters/0/frequency_mhz"),
        ),
        case(
            ("POST", "/propagation", coverage::NEGATIVE),
            (422, "unprocessable", "/transmitters/0/height_m"),
        ),
        case(
            ("POST", "/propagation", coverage::OUTSIDE),
            (422, "unprocessable", "/transmitters/0/x_m"),
        ),
        case(("POST", "/propagation", coverage::HOLE), (422, "unprocessable", "row 1, column 2")),
        case(("POST", "/propagation", coverage::LIE), (422, "unprocessable", "/terrain/text")),
        case(("POST", "/propagation", coverage::HUGE), (422, "unprocessable", "/terrain/text")),
        case(("POST", "/propagation", coverage::FAR), (422, "unprocessable", "/terrain/text")),
        case(("POST", "/propagation", coverage::NO_TIFF), (422, "unprocessable", "/terrain/data")),
        case(("POST", "/propagation", coverage::CUT_TIFF), (422, "unprocessable", "/terrain/data")),
        case(
            ("POST", "/propagation", coverage::FAR_BUILDING),
            (422, "unprocessable", "/buildings/features"),
        ),
    ]
}

const RECORD: Call<'_> =
    Call { method: "POST", target: "/tasks", fields: JSON, body: r#"{"id":"a","title":"sweep"}"# };

fn long_body() -> String {
    format!(r#"{{"title":"{}"}}"#, "x".repeat(64 << 10))
}

/// A body with 101 levels. Without its first 5 bytes and its last, it has 100.
fn deep_body() -> String {
    "{\"a\":".repeat(101) + "1" + &"}".repeat(101)
}

fn server() -> Fixture {
    let fixture = Fixture::of(Hub::new(Epoch::from_bits(8)), prepare, Retention::default());
    assert_eq!(RECORD.over_http1(&fixture).status, 201);
    fixture
}

#[test]
fn bad_input_gets_the_same_problem_over_http_1_and_multiplexed() {
    let fixture = server();
    let (long, deep, ended) = (long_body(), deep_body(), ended_run(&fixture.runs));
    let mut socket = Client::open(Carrier::WebSocket, &fixture);
    let mut tcp = Client::open(Carrier::Tcp, &fixture);
    for Case { call, status, kind, words } in cases(&long, &deep, &ended) {
        let answers = [
            call.over_http1(&fixture),
            call.multiplexed(&mut socket, false),
            call.multiplexed(&mut tcp, false),
        ];
        for (answer, transport) in answers.iter().zip(["HTTP/1.1", "/ws", "TCP"]) {
            let said = answer.problem(status, kind);
            let told = format!("{transport}: {} {}: {said}", call.method, call.target);
            assert!(said.contains(words), "{told}");
            assert_eq!(answer.allow.is_some(), status == 405, "{told}");
        }
    }
}

#[test]
fn bad_input_gets_the_same_problem_over_http_2() {
    let secure = Secure::with(prepare);
    let (long, deep) = (long_body(), deep_body());
    let ended = ended_run(&secure.fixture.runs);
    run(async {
        let stream = secure.connect(&["h2"]).await.unwrap();
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        assert_eq!(RECORD.over_http2(client.clone()).await.status, 201);
        for Case { call, status, kind, words } in cases(&long, &deep, &ended) {
            let said = call.over_http2(client.clone()).await.problem(status, kind);
            assert!(said.contains(words), "{} {}: {said}", call.method, call.target);
        }
        drop(client);
        connection.await.unwrap().unwrap();
    });
}

/// A plain WebSocket has no fields: its first message is a `POST` of JSON, or a `GET` if it is empty.
#[test]
fn bad_input_closes_a_plain_websocket_with_its_status() {
    let fixture = server();
    let (long, deep) = (long_body(), deep_body());
    let can_be_said = |case: &Case<'_>| {
        let Call { method, target, fields, .. } = case.call;
        let is_plain = method == "GET" && fields.is_empty() || method == "POST" && fields == JSON;
        is_plain && !target.starts_with("/runs/")
    };
    for Case { call, status, kind, words } in
        cases(&long, &deep, "").into_iter().filter(can_be_said)
    {
        let mut socket = fixture.websocket(call.target, &[], &[]);
        socket.send(Message::Text(call.body));
        let problem: serde_json::Value = serde_json::from_str(&socket.next()).unwrap();
        assert_eq!(problem["type"], format!("/problems/{kind}"), "{problem}");
        assert!(problem.to_string().contains(words), "{problem}");
        let close = socket.next();
        assert!(close.starts_with(&format!("close {}", 4000 + status)), "{close}");
    }
}
