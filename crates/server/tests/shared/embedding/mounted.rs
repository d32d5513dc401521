//! Routes beside the topics, and clients that leave them waiting.

use std::future::pending;
use std::io::{self, Read};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anemone_server::{AccessLog, Limits};
use anemone_testing::secure::Secure;
use anemone_testing::{Log, send};
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path};
use futures_util::{StreamExt, stream};
use http::StatusCode;
use rustix::net::sockopt::set_socket_linger;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use super::*;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// The number of handlers, and of bodies of their replies, that are still there.
#[derive(Clone, Default)]
struct Open(Arc<AtomicUsize>);

struct OneOpen(Arc<AtomicUsize>);

impl Open {
    fn one(&self) -> OneOpen {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneOpen(Arc::clone(&self.0))
    }

    fn wait(&self, count: usize) {
        let is_reached = || self.0.load(Ordering::Relaxed) == count;
        wait_until(&format!("there are not {count} handlers"), is_reached);
    }
}

impl Drop for OneOpen {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `/never` has no answer, `/silent` one that never ends, and `/slow` one in three parts, each once it is let go.
fn routes(open: &Open, go: &Arc<Semaphore>) -> Router {
    let open = || open.clone();
    let never = |open: Open| {
        async move || {
            let _open = open.one();
            pending::<()>().await;
        }
    };
    let silent = |open: Open| {
        async move || {
            let open = open.one();
            let rest = stream::once(async move {
                let _open = open;
                pending().await
            });
            let first = stream::iter([Ok::<_, io::Error>("first")]);
            Body::from_stream(first.chain(rest))
        }
    };
    let slow = |open: Open, go: Arc<Semaphore>| {
        async move || {
            let _open = open.one();
            go.acquire().await.unwrap().forget();
            Body::from_stream(stream::iter(["one", "two", "three"]).then(move |part| {
                let go = Arc::clone(&go);
                async move {
                    go.acquire().await.unwrap().forget();
                    Ok::<_, io::Error>(part)
                }
            }))
        }
    };
    Router::new()
        .route("/never", get(never(open())).post(never(open())))
        .route("/silent", get(silent(open())))
        .route("/slow", get(slow(open(), Arc::clone(go))))
}

/// Lets nothing go.
fn no() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

fn beside(routes: Router, limit: impl FnOnce(&mut Limits)) -> Program {
    Program::beside(routes, |builder| builder.with(|options| limit(&mut options.limits)))
}

#[test]
fn a_client_that_resets_its_connection_takes_its_handler_with_it_at_once() {
    let open = Open::default();
    let program = beside(routes(&open, &no()), |limits| limits.write_timeout = NEVER);
    for target in ["/never", "/silent"] {
        let mut stream = program.connect();
        send(&mut stream, "GET", target, &[]);
        open.wait(1);
        set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        drop(stream);
        open.wait(0);
    }
}

#[test]
fn a_client_that_ends_its_side_is_waited_for_no_longer_than_one_that_does_not_read() {
    let open = Open::default();
    let limit = |limits: &mut Limits| limits.write_timeout = Duration::from_secs(1);
    let program = beside(routes(&open, &no()), limit);
    let (get, post) = (("GET", "0"), ("POST", "100000"));
    for ((method, len), target, behind) in [
        (get, "/never", 0),
        (get, "/silent", 0),
        (get, "/never", 48 << 10),
        (post, "/never", 48 << 10),
    ] {
        let mut stream = program.connect();
        send(&mut stream, method, target, &[("Content-Length", len)]);
        open.wait(1);
        // More requests, or more of the body, than the server reads ahead.
        stream.write_all(&vec![b'\n'; behind]).unwrap();
        drop(stream);
        open.wait(0);
    }
    let mut stream = program.connect();
    send(&mut stream, "GET", "/never", &[]);
    stream.shutdown(Shutdown::Write).unwrap();
    reply(stream, "GET").problem(504, "internal");
}

#[test]
fn over_tls_and_http_2_a_client_that_leaves_takes_its_handler_with_it_too() {
    let open = Open::default();
    let routes = routes(&open, &no()).route("/101", get(async || StatusCode::SWITCHING_PROTOCOLS));
    let secure = Secure::with(|options| {
        options.mounts = vec![at_root(routes)];
        options.limits.write_timeout = Duration::from_secs(1);
    });
    let runtime = Runtime::new().unwrap();
    for behind in [0, 48 << 10] {
        let head = request(secure.fixture.address, "GET", "/never", &[]);
        let stream = runtime.block_on(async {
            let mut stream = secure.connect(&[]).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&vec![b'\n'; behind]).await.unwrap();
            stream.flush().await.unwrap();
            stream
        });
        open.wait(1);
        drop(stream);
        open.wait(0);
    }
    runtime.block_on(async {
        let stream = secure.connect(&["h2"]).await.unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut ask = |target: &str| {
            let request = Request::get(format!("https://localhost{target}")).body(()).unwrap();
            client.send_request(request, true).unwrap().0
        };
        assert_eq!(ask("/101").await.unwrap().status(), 500);
        let _reply = ask("/never");
        open.wait(1);
        connection.abort();
    });
    open.wait(0);
}

#[test]
fn a_client_that_ends_its_side_gets_the_answer_of_a_handler_that_goes_on() {
    let (open, go) = (Open::default(), no());
    let program = beside(routes(&open, &go), |limits| limits.write_timeout = NEVER);
    let mut stream = program.connect();
    send(&mut stream, "GET", "/slow", &[]);
    open.wait(1);
    stream.shutdown(Shutdown::Write).unwrap();
    go.add_permits(4);
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    assert!(reply.ends_with("\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n"), "{reply}");
}

/// A body is collected by `/post`, which says how long it is; `/big` is a reply of 32 MiB.
fn bodies() -> Router {
    let post = async |body: Bytes| body.len().to_string();
    let disabled = DefaultBodyLimit::disable();
    let big = async || vec![b'x'; BIG];
    Router::new().route("/post", axum::routing::post(post).layer(disabled)).route("/big", get(big))
}

const BIG: usize = 32 << 20;

/// Sends `sent` bytes of a body of `len`, or as many as the server takes before it answers.
fn upload(program: &Program, sent: usize, len: usize) -> TcpStream {
    let mut stream = program.connect();
    send(&mut stream, "POST", "/post", &[("Content-Length", &len.to_string())]);
    let _ = stream.write_all(&vec![b'x'; sent]);
    stream
}

fn reply(stream: TcpStream, method: &str) -> Reply {
    Reply::read(&mut BufReader::new(stream), method)
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    // Long enough that no machine is late with a body.
    let limit = |limits: &mut Limits| limits.body_timeout = Duration::from_secs(2);
    let program = beside(bodies(), limit);
    let said = reply(upload(&program, 1, 10), "POST").problem(408, "body-timeout");
    assert_eq!(said, "nothing of the body came for 2s");
    assert_eq!(reply(upload(&program, 10, 10), "POST").body, "10");
}

#[test]
fn a_body_counts_as_it_comes_and_is_refused_above_the_limit() {
    let program = beside(bodies(), |limits| limits.memory_max = Some(4 << 20));
    let held_bytes = || program.running.as_ref().unwrap().held_bytes();
    let unfinished = upload(&program, 1 << 20, 2 << 20);
    wait_until("the body does not count", || held_bytes() > 1 << 20);
    drop(unfinished);
    wait_until("the body counts for ever", || held_bytes() < 1 << 19);
    let said = reply(upload(&program, 5 << 20, 6 << 20), "POST").problem(503, "overloaded");
    assert_eq!(said, "the server has reached its limit on memory held for clients");
    wait_until("the body counts for ever", || held_bytes() < 1 << 19);
}

#[test]
fn a_reply_counts_until_it_is_taken_and_is_given_up_above_the_limit() {
    for (memory_max, is_taken) in [(4 * BIG, true), (BIG / 4, false)] {
        let program = beside(bodies(), |limits| {
            (limits.memory_max, limits.write_timeout) = (Some(memory_max), NEVER);
        });
        let held_bytes = || program.running.as_ref().unwrap().held_bytes();
        let mut stream = program.connect();
        send(&mut stream, "GET", "/big", &[("Connection", "close")]);
        if is_taken {
            wait_until("the reply does not count", || held_bytes() > BIG);
        } else {
            stream.peek(&mut [0]).unwrap();
            wait_until("the reply is held for ever", || held_bytes() < BIG / 8);
        }
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        assert_eq!(all.len() > BIG, is_taken, "{} bytes", all.len());
        wait_until("the reply counts for ever", || held_bytes() < BIG / 8);
    }
}

/// Answers these `GET` requests with a server that has these routes. Returns the log and the replies.
fn logged(routes: Router, targets: &[&str]) -> (Vec<String>, Vec<io::Result<Reply>>) {
    let log = Log::keep();
    let (builder, _) = builder();
    let builder = builder.listen(([127, 0, 0, 1], 0).into()).mount(at_root(routes));
    let server = builder.with(|options| options.access_log = AccessLog::All).bind().unwrap();
    let endpoint = Endpoint { address: server.local_addr().unwrap() };
    let (done, asked) = tokio::sync::oneshot::channel::<()>();
    let replies = std::thread::scope(|scope| {
        let client = scope.spawn(move || {
            let ask = |target: &&str| {
                let mut stream = endpoint.connect();
                send(&mut stream, "GET", target, &[("Connection", "close")]);
                Reply::try_read(&mut BufReader::new(stream), "GET")
            };
            let replies = targets.iter().map(ask).collect::<Vec<_>>();
            drop(done);
            replies
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(server.serve(async { drop(asked.await) })).unwrap();
        client.join().unwrap()
    });
    (log.lines(), replies)
}

fn has(lines: &[String], words: &[&str]) {
    let is_there = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(is_there, "{words:?} is not in {lines:#?}");
}

#[test]
fn a_handler_that_panics_is_answered_500_and_the_log_blames_it() {
    let routes = Router::new().route("/panic", get(async || -> &str { panic!("a bug") }));
    let (lines, replies) = logged(routes, &["/panic"]);
    let said = replies[0].as_ref().unwrap().problem(500, "internal");
    assert_eq!(said, "the service at this path failed");
    has(&lines, &["ERROR a service failed", "it panicked"]);
    has(&lines, &["INFO request", "/panic", "status=500"]);
}

#[test]
fn a_reply_that_fails_midway_is_in_the_log() {
    let broken = async || {
        let parts = stream::iter([Ok("one"), Err(io::Error::other("a bug"))]);
        ([("content-length", "10")], Body::from_stream(parts))
    };
    let panicking = async || {
        let parts = stream::iter([0, 1]).map(|part| match part {
            0 => Ok::<_, io::Error>("one"),
            _ => panic!("another bug"),
        });
        ([("content-length", "10")], Body::from_stream(parts))
    };
    let routes = Router::new().route("/broken", get(broken)).route("/panic", get(panicking));
    let (lines, replies) = logged(routes, &["/broken", "/panic"]);
    assert!(replies.iter().all(Result::is_err), "{replies:?}");
    has(&lines, &["WARN a reply of a service failed midway", "a bug"]);
    has(&lines, &["WARN a reply of a service failed midway", "it panicked"]);
    has(&lines, &["INFO request", "/broken", "broken off: a bug"]);
}

#[test]
fn an_informational_status_of_a_handler_is_answered_500() {
    let status = async |Path(status): Path<u16>| StatusCode::from_u16(status).unwrap();
    let program = beside(Router::new().route("/{status}", get(status)), |_| {});
    for status in [100, 101, 103, 199] {
        program.get(&format!("/{status}"), &[]).problem(500, "internal");
    }
}
