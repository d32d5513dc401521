//! Calls over HTTP/1.1 that are answered in the thread's loop, beside the same calls through the HTTP server.

use std::io::BufRead;
use std::time::Duration;

use proptest::prelude::*;
use tokio::task::yield_now;

use super::*;

/// The server answers nothing in the loop if these differ.
fn through_http_server(limits: &mut Limits) {
    limits.write_timeout = limits.header_timeout + Duration::from_secs(1);
}

/// A connection of the HTTP server holds at least so much.
const HTTP_SERVER_BYTES: usize = 12 << 10;

fn is_in_loop(fixture: &Fixture) -> bool {
    fixture.held_bytes() < HTTP_SERVER_BYTES
}

fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

const LAST: &str = "GET /svc/hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Sends these bytes in pieces, and returns all replies without their dates.
fn replies(endpoint: &Endpoint, bytes: &[u8], piece: usize) -> String {
    let mut stream = endpoint.connect();
    let mut writer = stream.try_clone().unwrap();
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || {
        for piece in bytes.chunks(piece) {
            // A connection with a malformed request ends before all is sent.
            if writer.write_all(piece).is_err() {
                return;
            }
            std::thread::yield_now();
        }
    });
    let mut all = Vec::new();
    // What came before a reset counts, too.
    let _ = stream.read_to_end(&mut all);
    writing.join().unwrap();
    let all = String::from_utf8_lossy(&all);
    let lines = all.split_inclusive('\n').filter(|line| !line.starts_with("date: "));
    lines.collect()
}

/// Requests that leave the connection open, and whether the loop answers them.
fn requests() -> Vec<(String, bool)> {
    let near = |target| (get(target, ""), true);
    let far = |target| (get(target, ""), false);
    let with = |fields, is_near| (get("/svc/hello", fields), is_near);
    vec![
        near("/svc/hello"),
        near("/svc/seen?a=1&b"),
        near("/svc/seen?"),
        near("/svc/who"),
        near("/svc/bytes"),
        near("/svc/teapot"),
        near("/svc/conflict"),
        near("/svc/panic"),
        near("/svc/nothing"),
        near("//svc/hello/../x"),
        (get("/svc/seen", "X-Own: 7\r\ncontent-type:text/plain\r\n"), true),
        with("Connection: Keep-Alive\r\n", true),
        with("Accept: text/event-stream\r\n", true),
        with("Prefer: respond-async\r\n", true),
        with("Cookie: a\r\nCookie: b\r\n", true),
        far("/svc/%73een"),
        far("/svc/seen#part"),
        far("/svc/seen?a#part"),
        far("/svc/se\u{e9}n"),
        far("/svc/empty"),
        far("/svc/big"),
        far("/svc/count/3"),
        far("/problems/not-found"),
        far("http://localhost/svc/seen"),
        with("Connection: keep-alive, x\r\n", false),
        with("Connection: upgrade\r\nUpgrade: h2c\r\n", false),
        with("Upgrade: h2c\r\n", false),
        with("Content-Length: 0\r\n", false),
        with("Transfer-Encoding: chunked\r\n\r\n0\r\n", false),
        with("Expect: nothing\r\n", false),
        with("X-Own: \u{e9}\r\n", false),
        with("Host: localhost\r\n", false),
        with("Origin: https://other.example\r\n", false),
        with("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", false),
        (get("/svc/hello", "").replace("localhost", "other.example"), false),
        (get("/svc/hello", "").replace("GET", "HEAD"), false),
        (get("/svc/hello", "").replace("GET", "OPTIONS"), false),
        (get("/svc/hello", "Content-Length: 3\r\n").replace("GET", "POST") + "you", false),
        (get("/svc/hello", "").replace("Host: localhost\r\n", ""), false),
        (get("*", "").replace("GET", "OPTIONS"), false),
    ]
}

fn last_requests() -> Vec<String> {
    vec![
        LAST.to_owned(),
        get("/svc/hello", "").replace("1.1", "1.0"),
        get("/svc/hello", "A: b\r\n c\r\n"),
        get("/svc/hello", "A b: c\r\n"),
        get("/svc/hello", "Content-Length: 1\r\nContent-Length: 2\r\n"),
        "GET  /svc/hello HTTP/1.1\r\n\r\n".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
    ]
}

#[test]
fn a_call_is_answered_in_the_loop_only_if_nothing_about_it_is_doubtful() {
    let fixture = start(&Open::default(), |_| {});
    for (request, is_near) in requests() {
        wait_until("a connection is left", || is_in_loop(&fixture));
        let mut stream = fixture.connect();
        stream.write_all(request.as_bytes()).unwrap();
        Reply::read_head(&mut BufReader::new(&stream));
        assert_eq!(is_in_loop(&fixture), is_near, "{request}");
    }
}

#[test]
fn each_reply_has_the_bytes_that_the_http_server_writes() {
    let near = start(&Open::default(), |_| {});
    let far = start(&Open::default(), through_http_server);
    let all = requests().into_iter().map(|(request, _)| request + LAST).chain(last_requests());
    for request in all {
        let expected = replies(&far, request.as_bytes(), usize::MAX);
        assert!(!expected.is_empty() || request.starts_with("nonsense"), "{request}");
        assert_eq!(replies(&near, request.as_bytes(), usize::MAX), expected, "{request}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Streams are left out, since the pieces of their bodies are a matter of time.
    #[test]
    fn any_requests_in_any_pieces_get_the_same_replies_both_ways(
        chosen in prop::collection::vec(0..60_usize, 1..6),
        last in 0..7_usize,
        piece in 1..400_usize,
    ) {
        thread_local! {
            static BOTH: [Fixture; 2] =
                [start(&Open::default(), |_| {}), start(&Open::default(), through_http_server)];
        }
        let requests = requests();
        // Most of them are answered in the loop.
        let chosen = chosen.iter().map(|index| &*requests[index % requests.len() % 25].0);
        let chosen: String = chosen.filter(|request| !request.contains("/count/")).collect();
        let all = chosen + &last_requests()[last];
        BOTH.with(|[near, far]| {
            let expected = replies(far, all.as_bytes(), usize::MAX);
            prop_assert_eq!(replies(near, all.as_bytes(), piece), expected);
            Ok(())
        })?;
    }
}

fn counted(calls: &Arc<AtomicUsize>) -> Router {
    let later = async |wait: Duration| {
        yield_now().await;
        tokio::time::sleep(wait).await;
        "later"
    };
    let pieces = || {
        let pieces = stream::iter(["a", "b"].map(Ok::<_, io::Error>));
        axum::body::Body::from_stream(pieces)
    };
    // More than a task may do in one turn of the runtime.
    let busy = async || {
        let free = tokio::sync::Semaphore::new(1);
        for _ in 0..1000 {
            drop(free.acquire().await.unwrap());
        }
        "busy"
    };
    let calls = Arc::clone(calls);
    let count = move |request: axum::extract::Request, next: axum::middleware::Next| {
        calls.fetch_add(1, Ordering::Relaxed);
        next.run(request)
    };
    Router::new()
        .route("/svc/hello", axum::routing::get(async || "hello"))
        .route("/svc/short", axum::routing::get(async || "x".repeat(16 << 10)))
        .route("/svc/long", axum::routing::get(async || "x".repeat((16 << 10) + 1)))
        .route("/svc/busy", axum::routing::get(busy))
        .route("/svc/yield", axum::routing::get(move || later(Duration::ZERO)))
        .route("/svc/sleep", axum::routing::get(move || later(Duration::from_millis(20))))
        .route("/svc/pieces", axum::routing::get(async move || pieces()))
        .route("/svc/panic", axum::routing::get(async || -> &str { panic!("a bug") }))
        .route(
            "/svc/late",
            axum::routing::get(async || -> &str {
                yield_now().await;
                panic!("a bug")
            }),
        )
        .layer(axum::middleware::from_fn(count))
}

#[test]
fn a_service_is_called_once_for_each_request_however_its_answer_comes() {
    let calls = Arc::new(AtomicUsize::new(0));
    for (target, status, len, is_near) in [
        ("/svc/hello", 200, 5, true),
        ("/svc/short", 200, 16 << 10, true),
        ("/svc/busy", 200, 4, true),
        ("/svc/long", 200, (16 << 10) + 1, false),
        ("/svc/yield", 200, 5, false),
        ("/svc/sleep", 200, 5, false),
        ("/svc/pieces", 200, 2, false),
        ("/svc/panic", 500, 0, true),
        ("/svc/late", 500, 0, false),
    ] {
        let fixture = with_mounts(vec![mount("/svc", counted(&calls))], |_| {});
        calls.store(0, Ordering::Relaxed);
        // The second is answered by the HTTP server if the first one was not answered in the loop.
        for done in 1..=2 {
            let requests = get(target, "").repeat(done);
            let mut stream = fixture.connect();
            stream.write_all(requests.as_bytes()).unwrap();
            let mut reader = BufReader::new(&stream);
            for _ in 0..done {
                let reply = Reply::read_head(&mut reader);
                assert_eq!(reply.status, status, "{target}");
                let len =
                    reply.field("content-length").map(|len| len.parse().unwrap()).unwrap_or(len);
                let chunks = if reply.field("transfer-encoding").is_some() { 17 } else { len };
                let mut body = vec![0; chunks];
                reader.read_exact(&mut body).unwrap();
            }
            assert_eq!(is_in_loop(&fixture), is_near, "{target}");
        }
        assert_eq!(calls.load(Ordering::Relaxed), 3, "{target}");
    }
}

#[test]
fn a_call_that_waits_ends_with_its_client_and_with_its_time() {
    let open = Open::default();
    let fixture = start(&open, |limits| limits.service_timeout = Duration::from_millis(100));
    let reply = fixture.get("/svc/never", &[]);
    reply.problem(504, "service-timeout");
    open.wait(0);
    let open = Open::default();
    // But long enough that no machine is late to ask.
    let short = Duration::from_secs(2);
    let fixture = start(&open, |limits| {
        (limits.header_timeout, limits.write_timeout) = (short, short);
    });
    let stream = connected(&fixture, "/svc/never");
    open.wait(1);
    drop(stream);
    open.wait(0);
}

#[test]
fn a_connection_with_no_further_request_is_closed_in_time() {
    // But long enough that no machine is late to ask.
    let short = Duration::from_secs(2);
    for rest in ["", "GET /svc/hello HTT"] {
        let fixture = start(&Open::default(), |limits| {
            (limits.header_timeout, limits.write_timeout) = (short, short);
        });
        let begun = std::time::Instant::now();
        let mut stream = fixture.connect();
        stream.write_all((get("/svc/hello", "") + rest).as_bytes()).unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        assert!(all.ends_with("\r\n\r\nhello"), "{all}");
        // The server counts whole milliseconds.
        assert!(begun.elapsed() + Duration::from_millis(1) >= short, "not before");
    }
}

#[test]
fn a_header_that_grows_too_long_is_refused_as_ever() {
    let fixture = start(&Open::default(), |_| {});
    let mut stream = fixture.connect();
    let header = get("/svc/hello", "") + "GET /svc/hello HTTP/1.1\r\nA: ";
    stream.write_all(header.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    assert_eq!(Reply::read(&mut reader, "GET").status, 200);
    let bytes_max = Limits::default().header_bytes_max;
    stream.write_all("a".repeat(bytes_max).as_bytes()).unwrap();
    assert_eq!(Reply::read(&mut reader, "GET").status, 431);
}

#[test]
fn replies_that_are_queued_when_the_server_stops_are_whole() {
    const COUNT: usize = 200;
    let calls = Arc::new(AtomicUsize::new(0));
    let mut fixture = with_mounts(vec![mount("/svc", counted(&calls))], |_| {});
    let mut stream = fixture.connect();
    stream.write_all(get("/svc/short", "").repeat(COUNT).as_bytes()).unwrap();
    wait_until("the service is called", || calls.load(Ordering::Relaxed) > 0);
    let reading = std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut count = 0;
        while !reader.fill_buf().unwrap().is_empty() {
            assert_eq!(Reply::read(&mut reader, "GET").body.len(), 16 << 10);
            count += 1;
        }
        count
    });
    fixture.stop();
    assert_eq!(reading.join().unwrap(), calls.load(Ordering::Relaxed), "one for each call");
}

#[test]
fn a_client_that_ends_its_side_gets_the_reply() {
    let fixture = start(&Open::default(), |_| {});
    let mut stream = connected(&fixture, "/svc/hello");
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert!(all.ends_with("hello"), "{all}");
}

#[test]
fn calls_with_lines_in_the_access_log_are_left_to_the_http_server() {
    let fixture = with_mounts(vec![mount("/svc", routes(&Open::default()))], |options| {
        options.access_log = anemone_server::AccessLog::All;
    });
    let stream = connected(&fixture, "/svc/hello");
    assert_eq!(Reply::read(&mut BufReader::new(&stream), "GET").body, "hello");
    assert!(!is_in_loop(&fixture));
}

#[test]
fn a_connection_of_calls_in_the_loop_is_listed_as_http_of_its_client() {
    let fixture = with_mounts(vec![mount("/svc", routes(&Open::default()))], |_| {});
    let mut caller = fixture.connect();
    let address = caller.local_addr().unwrap().to_string();
    let transport = || {
        let list = fixture.get("/connections", &[]).json();
        let one =
            list["connections"].as_array().unwrap().iter().find(|one| one["client"] == address)?;
        Some(one["transport"].as_str().unwrap().to_owned())
    };
    wait_until("the connection", || transport().as_deref() == Some("undecided"));
    caller.write_all(get("/svc/hello", "").as_bytes()).unwrap();
    wait_until("the call", || transport().as_deref() == Some("http"));
}
