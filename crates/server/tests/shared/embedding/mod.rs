//! The server as a part of another program: below a path of axum, and with axum's routes beside the topics.
#![allow(clippy::unwrap_used)]

mod examples;
mod mounted;
mod refused;
mod stopping;
mod unread;

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::ops::Deref;
use std::sync::Arc;

use anemone_hub::{Data, Epoch, Hub, Retention, Topic, UnixTime};
use anemone_server::{
    Body, Builder, ConnectionEnds, Mount, Options, Running, Server, Service, full,
};
use anemone_testing::{Endpoint, Reply, request, wait_until};
use anemone_ws::proto::Message;
use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::{Request, Response, Version};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower_service::Service as _;

struct Program {
    wind: Arc<Topic>,
    endpoint: Endpoint,
    running: Option<Running>,
    runtime: Runtime,
}

fn at_root(routes: Router) -> Mount {
    Mount::new("/", routes).unwrap()
}

fn builder() -> (Builder, Arc<Topic>) {
    let hub = Hub::new(Epoch::from_bits(1234));
    let wind = hub.ensure("wind".parse().unwrap(), Retention::default()).unwrap();
    (Server::builder(hub).threads(NonZero::new(2).unwrap()), wind)
}

impl Program {
    /// Its listener is axum's, which answers for `/own`, and below `/live` leaves the answer to us.
    fn nested(prepare: impl FnOnce(Service, &TcpListener) -> Service) -> Self {
        let runtime = Runtime::new().unwrap();
        let (builder, wind) = builder();
        let running = builder.bind().unwrap().start().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let service = prepare(running.service(), &listener);
        let router =
            Router::new().route("/own", get(async || "own")).nest_service("/live", service);
        let router = router.into_make_service_with_connect_info::<SocketAddr>();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { wind, endpoint: Endpoint { address }, running: Some(running), runtime }
    }

    /// The same, with axum's address of the peer.
    fn with_peers() -> Self {
        Self::nested(|service, listener| {
            service
                .behind(listener)
                .unwrap()
                .peer_from(|found| found.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.into()))
        })
    }

    /// The listener is ours, and these routes are beside the topics.
    fn beside(routes: Router, prepare: impl FnOnce(Builder) -> Builder) -> Self {
        let (builder, wind) = builder();
        let builder = prepare(builder.listen(([127, 0, 0, 1], 0).into()).mount(at_root(routes)));
        let running = builder.bind().unwrap().start().unwrap();
        let (address, runtime) = (running.local_addr().unwrap(), Runtime::new().unwrap());
        Self { wind, endpoint: Endpoint { address }, running: Some(running), runtime }
    }

    fn publish(&self, number: u64) {
        let data = Data::json(&serde_json::json!({ "n": number })).unwrap();
        self.wind.publish(UnixTime::now(), data).unwrap();
    }
}

/// A server that listens nowhere.
struct Alone {
    running: Running,
    runtime: Runtime,
}

impl Alone {
    fn start((builder, _): (Builder, Arc<Topic>), change: impl FnOnce(&mut Options)) -> Self {
        let running = builder.with(change).bind().unwrap().start().unwrap();
        Self { running, runtime: Runtime::new().unwrap() }
    }

    /// The reply of the service to a request, which `change` may change.
    fn ask(&self, target: &str, change: impl FnOnce(&mut Request<Body>)) -> Response<Body> {
        let mut request = asked(target);
        change(&mut request);
        self.call(self.running.service(), request)
    }

    fn call(&self, mut service: Service, request: Request<Body>) -> Response<Body> {
        self.runtime.block_on(service.call(request)).unwrap()
    }
}

fn asked(target: &str) -> Request<Body> {
    Request::get(target).header("host", "localhost").body(full("")).unwrap()
}

impl Deref for Program {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

#[test]
fn below_a_path_of_axum_everything_is_answered_and_the_rest_is_axums() {
    let program = Program::with_peers();
    program.publish(1);
    assert_eq!(program.get("/own", &[]).body, "own");
    assert_eq!(program.get("/live/topics/wind?after=earliest", &[]).numbers(), [1]);
    assert_eq!(program.request("HEAD", "/live/topics/wind", &[]).status, 200);
    assert_eq!(
        program.get("/live/topics/none", &[]).problem(404, "unknown-topic"),
        "there is no topic \"none\""
    );
    assert_eq!(program.get("/live/", &[]).problem(404, "unknown-path"), "there is nothing at /");
    assert_eq!(program.get("/topics/wind", &[]).status, 404, "that is axum's");
    let list = program.get("/live/topics", &[]).json();
    assert_eq!(list["topics"][0]["url"], "topics/wind", "relative to /live/topics");
    let waited = program.get("/live/topics/wind?after=earliest&wait=20", &[]);
    assert_eq!(waited.numbers(), [1]);
    let mut events = program.events("/live/topics/wind?after=earliest", &[]);
    events.block().unwrap();
    assert!(events.event().ends_with("data: {\"n\":1}\n"));
    let elsewhere = [("Origin", "http://evil.example")];
    program.request("GET", "/live/clock", &elsewhere).problem(403, "origin-refused");
    for (target, status) in [("/live/echo", 404), ("/live/broadcast", 404), ("/live/health", 200)] {
        assert_eq!(program.get(target, &[]).status, status, "{target}");
    }
    let mut stream = program.connect();
    stream.write_all(b"GET /live/clock HTTP/1.1\r\nHost: evil.example\r\n\r\n").unwrap();
    Reply::read(&mut BufReader::new(stream), "GET").problem(421, "misdirected");
}

#[test]
fn a_handshake_under_axum_becomes_a_websocket_plain_and_multiplexed() {
    let program = Program::with_peers();
    program.publish(1);
    let mut plain = program.websocket("/live/topics/wind?after=earliest", &[], &[]);
    assert_eq!(plain.next(), "{\"n\":1}");
    program.publish(2);
    assert_eq!(plain.next(), "{\"n\":2}");
    let mut multiplexed = program.websocket("/live/ws", &["anemone.v1"], &[]);
    multiplexed.send(Message::Text("GET a /topics/wind?after=earliest"));
    assert_eq!(multiplexed.next(), "100 a ya-0");
    let first = multiplexed.next();
    assert!(first.starts_with("206 a ya-1 "), "{first}");
    program.request("GET", "/live/ws", &[]).problem(426, "bad-handshake");
}

#[test]
fn a_client_whose_address_nobody_tells_is_none_of_this_machine() {
    let program = Program::nested(|service, _| service);
    program.get("/live/topics/wind/readers", &[]).problem(403, "local-only");
    let program = Program::with_peers();
    assert_eq!(program.get("/live/topics/wind/readers", &[]).json()["count"], 0);
}

#[test]
fn a_request_that_is_dropped_ends_its_reader() {
    let program = Program::with_peers();
    let readers =
        || program.get("/live/topics/wind/readers", &[]).json()["count"].as_u64().unwrap();
    let until = |count: u64| {
        wait_until("no such number of readers", || readers() == count);
    };
    let mut events = program.events("/live/topics/wind", &[]);
    events.block().unwrap();
    until(1);
    drop(events);
    until(0);
    let mut service = program.running.as_ref().unwrap().service();
    let polled = Request::get("/topics/wind?after=latest&wait=50").header("host", "localhost");
    let waiting = service.call(polled.body(anemone_server::full("")).unwrap());
    let waiting = program.runtime.spawn(waiting);
    until(1);
    waiting.abort();
    until(0);
}

#[test]
fn routes_beside_the_topics_get_what_is_not_ours_and_nothing_else() {
    let routes = Router::new()
        .route("/", get(async || "page"))
        .route("/own/{name}", get(async || "own").post(async |body: String| body))
        .route("/topics/wind", get(async || "shadow"))
        .route("/echo", get(async || "shadow"))
        .fallback(async || "anything else");
    let program = Program::beside(routes, |builder| builder);
    program.publish(1);
    for (target, body) in [("/", "page"), ("/own/a?b=c", "own"), ("/none", "anything else")] {
        let reply = program.get(target, &[]);
        assert_eq!((reply.status, &*reply.body), (200, body), "{target}");
        assert_eq!(reply.field("x-content-type-options"), Some("nosniff"), "{target}");
    }
    assert_eq!(program.get("/topics/wind?after=earliest", &[]).numbers(), [1]);
    program.get("/echo", &[]).problem(404, "unknown-path");
    program.get("/%65cho", &[]).problem(404, "unknown-path");
    let mut stream = program.connect();
    let fields = [("Content-Length", "2"), ("Connection", "close")];
    let head = request(program.address, "POST", "/own/a", &fields);
    stream.write_all((head + "hi").as_bytes()).unwrap();
    assert_eq!(Reply::read(&mut BufReader::new(stream), "POST").body, "hi");
    let foreign = [("Origin", "http://evil.example")];
    program.request("GET", "/own/a", &foreign).problem(403, "origin-refused");
    assert_eq!(
        program.request("DELETE", "/own/a", &[]).status,
        405,
        "axum knows which methods it has"
    );
}
