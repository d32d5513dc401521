//! The log of refusals: each names the refused request, the client, and the setting that would allow it.

use anemone_hub::run::RunInput;
use anemone_server::Mount;
use anemone_testing::logged;
use anemone_testing::multiplexed::Carrier;
use axum::Router;

use super::*;

/// Topics that keep no more together than an event takes.
fn for_one(topics: &str) -> TopicRule {
    TopicRule {
        publish: PublishRight::Anyone,
        event_bytes_max: 100,
        bytes_total_max: Some(400),
        retention: Retention { bytes_max: 400, ..Retention::default() },
        ..TopicRule::new(topics.parse().unwrap())
    }
}

#[test]
fn what_a_limit_refuses_of_a_websocket_is_told_with_the_limit() {
    let fixture = start(AccessLog::Off, |options| {
        options.topics = TopicRules::new([for_one("full-*")]).unwrap();
        let config = Config { message_bytes_max: 200, ..Config::default() };
        options.limits.websocket = Arc::new(config.clone());
        options.limits.echo = Arc::new(config);
    });
    let mut first = fixture.websocket("/topics/full-0", &[], &[]);
    first.send(Message::Text(&"7".repeat(90)));
    assert_eq!(first.next(), "7".repeat(90));
    for (path, message, code, words) in [
        (
            "/topics/full-2",
            "x".repeat(101),
            "1009",
            "413 event-too-big: the event has 103 bytes as JSON, at most 100 are allowed; event_bytes_max in \
             the topic's [[topic]] sets the limit",
        ),
        (
            "/echo",
            "x".repeat(201),
            "1009",
            "closed with 1009: message needs 201 bytes, limit is 200; message_bytes_max in [limits.echo] sets the limit",
        ),
        ("/topics/full-1", "1".to_owned(), "1013", "507 storage-full: "),
    ] {
        let mut socket = fixture.websocket(path, &[], &[]);
        socket.send(Message::Text(&message));
        let end = socket.next();
        assert!(end.starts_with(&format!("close {code}")), "{end}");
        let told = logged::refusal(&format!("a message to {path}"), code_or_status(words));
        assert!(told.starts_with(words), "{told}");
    }
}

/// The first words of why something is refused, as `closed with 1009` or `507 storage-full`.
fn code_or_status(words: &str) -> &str {
    words.split(':').next().unwrap()
}

#[test]
fn each_kind_of_websocket_has_the_limits_of_its_own_table() {
    for (path, subprotocols, table) in [
        ("/topics/wind", &[][..], "websocket"),
        ("/broadcast", &[], "websocket"),
        ("/ws", &["anemone.v1"], "multiplexed"),
    ] {
        // Each cause is logged once a minute.
        let fixture = start(AccessLog::Off, |options| {
            let config = |bytes| Arc::new(Config { message_bytes_max: bytes, ..Config::default() });
            options.limits.websocket = config(300);
            options.limits.multiplexed = config(400);
        });
        let limit = if table == "multiplexed" { 400 } else { 300 };
        let mut socket = fixture.websocket(path, subprotocols, &[]);
        socket.send(Message::Text(&"x".repeat(limit + 1)));
        let end = socket.next();
        assert!(end.starts_with("close 1009"), "{end}");
        assert_eq!(
            logged::refusal(&format!("a message to {path}"), "closed with 1009"),
            format!(
                "closed with 1009: message needs {} bytes, limit is {limit}; message_bytes_max in [limits.{table}] sets the limit",
                limit + 1
            )
        );
    }
}

#[test]
fn a_multiplexed_request_that_is_refused_when_it_was_handed_in_is_told() {
    let fixture = start(AccessLog::Off, |options| {
        options.topics = TopicRules::new([for_one("brim-*")]).unwrap();
    });
    let mut client = Client::open(Carrier::WebSocket, &fixture);
    let long = "7".repeat(90);
    assert!(told(&mut client, &format!("POST a /topics/brim-0\n{long}")).starts_with("201 a"));
    assert!(told(&mut client, "POST a /topics/brim-1\n1").starts_with("507 a"));
    logged::refusal("POST /topics/brim-1", "507 storage-full: ");
}

#[test]
fn a_reader_that_is_too_slow_is_told_with_what_would_let_it_go_on() {
    let fixture = start(AccessLog::All, |options| {
        let retention = Retention { events_max: 2, ..Retention::default() };
        let slow_reader = SlowReader::Close;
        let brief = TopicRule {
            publish: PublishRight::Anyone,
            retention,
            slow_reader,
            ..TopicRule::new("brief".parse().unwrap())
        };
        options.topics = TopicRules::new([brief]).unwrap();
    });
    let mut client = Client::open(Carrier::WebSocket, &fixture);
    for id in 1..=9 {
        let published = told(&mut client, &format!("POST {id} /topics/brief\n{id}"));
        assert!(published.starts_with("201 "), "{published}");
    }
    let (reply, client) = ask(&fixture, "GET", "/topics/brief?after=ya-1", &[]);
    reply.problem(410, "too-slow");
    let line = format!("GET /topics/brief 410 poll bytes={} position=ya-1", reply.body.len());
    assert_eq!(logged::requests(client, 1), [line]);
    assert_eq!(
        logged::refusal("GET /topics/brief", "410"),
        "410 too-slow: too slow: 6 events after ya-1 are no longer retained; slow_reader = \"gap\" in the topic's [[topic]] lets \
         such readers continue, and larger events_max, bytes_max and age_max retain more"
    );
}

#[test]
fn a_connection_that_is_one_too_many_is_told() {
    let fixture = start(AccessLog::Off, |options| options.limits.connections_max = 1);
    let _first = fixture.events("/topics/wind", &[]);
    let mut reader = BufReader::new(fixture.connect());
    Reply::read(&mut reader, "GET").problem(503, "too-many-connections");
    assert_eq!(
        logged::refusal("a connection", "503"),
        "503 too-many-connections: the server has reached its limit on connections; limits.connections_max sets the limit"
    );
}

#[test]
fn a_503_that_is_given_before_a_request_is_looked_at_is_in_both_logs() {
    let fixture = start(AccessLog::All, |options| options.limits.memory_max = Some(12 << 10));
    let (reply, client) = ask(&fixture, "GET", "/topics/before-routing", &[]);
    reply.problem(503, "overloaded");
    let line = format!("GET /topics/before-routing 503 http bytes={}", reply.body.len());
    assert_eq!(logged::requests(client, 1), [line]);
    assert_eq!(
        logged::refusal("GET /topics/before-routing", "503"),
        "503 overloaded: the server has reached its limit on memory held for clients; memory_max sets the limit"
    );
}

#[test]
fn a_second_message_of_a_call_is_the_end_in_the_line() {
    let fixture = start(AccessLog::All, |options| {
        let silent = Router::new().fallback(async || std::future::pending::<String>().await);
        let endless = |_: RunInput| {
            Ok(RunWork::new(|run| {
                loop {
                    run.sleep(Duration::MAX)?
                }
            }))
        };
        options.mounts.push(Mount::new("/silent", silent).unwrap());
        options.mounts.push(Mount::run("/endless", endless).unwrap());
    });
    for path in ["/silent", "/endless"] {
        let mut socket = fixture.websocket(path, &[], &[]);
        socket.send(Message::Text("1"));
        socket.send(Message::Text("2"));
        while !socket.next().starts_with("close 1008 ") {}
        let line = logged::requests(socket.stream.local_addr().unwrap(), 1).remove(0);
        assert!(line.starts_with(&format!("GET {path} 101 websocket bytes=")), "{line}");
        let end = " end=server closed 1008: a call takes one message: open another WebSocket for the next call";
        assert!(line.ends_with(end), "{line}");
    }
}

#[test]
fn a_call_whose_message_comes_too_late_is_told_with_the_limit() {
    let fixture = start(AccessLog::All, |options| {
        options.limits.body_timeout = Duration::from_millis(100);
        options.mounts.push(Mount::new("/prompt", Router::new()).unwrap());
    });
    let mut socket = fixture.websocket("/prompt", &[], &[]);
    assert_eq!(socket.next(), "close 1008 no message came within 100ms");
    let line =
        "GET /prompt 101 websocket bytes=0 end=server closed 1008: no message came within 100ms";
    assert_eq!(logged::requests(socket.stream.local_addr().unwrap(), 1), [line]);
    assert_eq!(
        logged::refusal("a message to /prompt", "closed with 1008"),
        "closed with 1008: no message came within 100ms; limits.body_timeout sets the limit"
    );
}
