//! `/connections`: who is connected, who was, and what the threads have done.
#![allow(clippy::unwrap_used)]

use std::any::Any;
use std::io::{Read, Write};
use std::net::TcpStream;

use anemone_hub::Retention;
use anemone_server::{Options, ViewRight};
use anemone_testing::multiplexed::{BOTH, Carrier, Client};
use anemone_testing::secure::Secure;
use anemone_testing::{Endpoint, Fixture, HANDSHAKE, request, send, wait_for};
use anemone_ws::proto::{CloseCode, CloseFrame, Message};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

/// A field that a proxy adds, so that its client is none of this machine.
const FOREIGN: [(&str, &str); 1] = [("Via", "1.1 proxy.example")];

fn start() -> Fixture {
    let change = |options: &mut Options| {
        options.tcp = Some("127.0.0.1:0".parse().unwrap());
        options.tcp_echo = Some("127.0.0.1:0".parse().unwrap());
    };
    Fixture::with(change, Retention { bytes_max: 64 << 20, ..Retention::default() })
}

fn get(server: &Endpoint, target: &str) -> Value {
    let reply = server.get(target, &[]);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

/// Returns true for a connection that may be that of a question.
fn asks(one: &Value) -> bool {
    one["transport"] == "http" || one["transport"] == "undecided"
}

/// All connections that are not those that ask, once there are so many.
fn all(server: &Endpoint, count: usize) -> Vec<Value> {
    wait_for(&format!("not {count} connections"), || {
        let list = get(server, "/connections?limit=1000");
        let all = list["connections"].as_array().unwrap().clone();
        let others: Vec<_> = all.into_iter().filter(|one| !asks(one)).collect();
        (others.len() == count).then_some(others)
    })
}

/// The only connection that does not ask, once it is so.
fn only(server: &Endpoint, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_for("no such connection", || {
        let one = all(server, 1).remove(0);
        is_so(&one).then_some(one)
    })
}

/// The newest of the closed, once it is so.
fn closed(server: &Endpoint, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_for("nothing was closed like that", || {
        let list = get(server, "/connections/closed?limit=1");
        let newest = list["closed"][0].clone();
        is_so(&newest).then_some(newest)
    })
}

fn asked(server: &Endpoint, target: &str, accept: &str) -> TcpStream {
    let mut stream = server.connect();
    let frame = [("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Site", "same-origin")];
    send(&mut stream, "GET", target, &[&[("Accept", accept)], &frame[..]].concat());
    stream
}

type Open = Box<dyn Any>;

#[test]
fn each_connection_says_its_transport_and_what_it_reads_while_it_is_open() {
    let fixture = start();
    fixture.publish(1..=3);
    let ask = |carrier| {
        let mut client = Client::open(carrier, &fixture);
        client.ask("GET r /topics/wind?after=earliest");
        Box::new(client) as Open
    };
    type Way<'a> = (&'a str, Value, &'a dyn Fn() -> Open);
    let wind = json!("/topics/wind");
    let ways: [Way<'_>; 9] = [
        ("websocket", wind.clone(), &|| Box::new(fixture.websocket("/topics/wind", &[], &[]))),
        ("sse", wind.clone(), &|| Box::new(asked(&fixture, "/topics/wind", "text/event-stream"))),
        ("ndjson", wind.clone(), &|| {
            Box::new(asked(&fixture, "/topics/wind", "application/x-ndjson"))
        }),
        ("forever-frame", wind.clone(), &|| {
            Box::new(asked(&fixture, "/topics/wind?frame=f", "text/html"))
        }),
        ("long-poll", wind.clone(), &|| {
            Box::new(asked(&fixture, "/topics/wind?after=latest&wait=100", "*/*"))
        }),
        ("sse", json!("/topics"), &|| {
            Box::new(asked(&fixture, "/topics?topic=wind", "text/event-stream"))
        }),
        ("multiplexed", json!("/ws"), &|| ask(Carrier::WebSocket)),
        ("tcp", Value::Null, &|| ask(Carrier::Tcp)),
        ("tcp-echo", Value::Null, &|| {
            let mut stream = TcpStream::connect(fixture.tcp_echo()).unwrap();
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            Box::new(stream)
        }),
    ];
    for (transport, path, open) in ways {
        let connection = open();
        let is_reader = transport != "tcp-echo";
        let listed = only(&fixture, |one| {
            one["transport"] == transport && (one["lag"]["events"] == 0 || !is_reader)
        });
        assert_eq!(listed["path"], path, "{transport}");
        assert_eq!(listed["readers"], usize::from(is_reader), "{listed}");
        if is_reader {
            assert_eq!(listed["position"], "ya-3", "{listed}");
            assert_eq!(listed["reads"][0]["path"], "/topics/wind");
        }
        let client = listed["client"].as_str().unwrap();
        assert!(client.starts_with("127.0.0.1:"), "{listed}");
        assert!(listed["why"].is_string() && listed["age"].as_u64().unwrap() < 3600, "{listed}");
        drop(connection);
        assert_eq!(all(&fixture, 0), Vec::<Value>::new());
    }
}

#[test]
fn one_that_does_not_read_is_behind_in_events_and_bytes_and_its_output_waits() {
    let fixture = start();
    let slow = asked(&fixture, "/topics/wind", "text/event-stream");
    only(&fixture, |one| one["transport"] == "sse");
    // More than the system takes for it.
    let data = anemone_hub::Data::json(&"x".repeat(1 << 20)).unwrap();
    for _ in 0..32 {
        fixture.wind.publish(std::time::SystemTime::now().into(), data.clone()).unwrap();
    }
    let behind = |one: &Value| {
        let (events, bytes) = (one["lag"]["events"].as_u64(), one["lag"]["bytes"].as_u64());
        events > Some(0) && bytes > Some(1 << 20) && one["queued_bytes"].as_u64() > Some(0)
    };
    let (_, sent) = bytes(&only(&fixture, behind));
    assert!(sent < 32 << 20, "what waits is not sent: {sent}");
    drop(slow);
}

/// The bytes that a connection has received and sent.
fn bytes(one: &Value) -> (u64, u64) {
    (one["received_bytes"].as_u64().unwrap(), one["sent_bytes"].as_u64().unwrap())
}

#[test]
fn the_bytes_of_a_web_socket_are_those_of_its_frames() {
    let fixture = start();
    let mut socket = fixture.websocket("/echo", &[], &[]);
    let (received, sent) = bytes(&only(&fixture, |one| one["transport"] == "websocket"));
    assert!(received > 100 && sent > 100, "the handshake: {received} {sent}");
    socket.send(Message::Text(&"x".repeat(5000)));
    assert_eq!(socket.next().len(), 5000);
    // Each has two bytes and a length of two more; that of a client has a mask of four.
    let expected = (received + 5008, sent + 5004);
    only(&fixture, |one| bytes(one) == expected);
}

#[test]
fn the_bytes_of_requests_and_replies_count_in_the_loop_and_in_the_http_server() {
    let fixture = start();
    for (target, accept) in
        [("/topics/wind", "application/x-ndjson"), ("/topics/wind?after=latest&wait=100", "*/*")]
    {
        let request = request(fixture.address, "GET", target, &[("Accept", accept)]);
        let mut stream = fixture.connect();
        stream.write_all(request.as_bytes()).unwrap();
        only(&fixture, |one| bytes(one).0 == request.len() as u64 && one["readers"] == 1);
        fixture.publish(1..=1);
        let mut reply = Vec::new();
        while !reply.ends_with(b"{\"n\":1}") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            reply.push(byte[0]);
        }
        // The event is written with the end of its line or its page.
        let told = only(&fixture, |one| bytes(one).1 > reply.len() as u64);
        assert_eq!(bytes(&told).0, request.len() as u64, "{target}");
        reply.resize(usize::try_from(bytes(&told).1).unwrap(), 0);
        let begin = reply.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        stream.read_exact(&mut reply[begin..]).unwrap();
        assert!(reply.ends_with(b"\n"), "{}", String::from_utf8_lossy(&reply));
        stream.set_nonblocking(true).unwrap();
        let nothing = stream.read(&mut [0]).unwrap_err();
        assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
        drop(stream);
        all(&fixture, 0);
    }
}

#[test]
fn each_is_on_one_page_whatever_the_length_of_a_page() {
    let fixture = start();
    let open: Vec<_> = (0..7)
        .flat_map(|_| {
            let sse = asked(&fixture, "/topics/wind", "text/event-stream");
            let poll = asked(&fixture, "/topics/wind?after=latest&wait=100", "*/*");
            [sse, poll]
        })
        .collect();
    let ids = |all: &[Value]| -> Vec<String> {
        all.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let wanted = ids(&all(&fixture, open.len()));
    for limit in [1, 3, 14, 15] {
        let (mut paged, mut after) = (Vec::new(), String::new());
        loop {
            let reply = fixture.get(&format!("/connections?limit={limit}{after}"), &[]);
            let list = reply.json();
            let page = list["connections"].as_array().unwrap();
            assert!(page.len() <= limit);
            paged.extend(page.iter().filter(|one| !asks(one)).cloned());
            let Some(next) = list["next"].as_str() else { break };
            let link = format!("<?after={next}&limit={limit}>; rel=\"next\"");
            assert_eq!(reply.field("link"), Some(&*link));
            after = format!("&after={next}");
        }
        assert_eq!(ids(&paged), wanted, "in pages of {limit}");
    }
}

#[test]
fn only_clients_of_this_machine_see_the_connections_unless_everyone_may() {
    let paths =
        ["/connections", "/connections/closed", "/connections/threads", "/topics/wind/readers"];
    let fixture = start();
    for path in paths {
        assert_eq!(fixture.get(path, &[]).status, 200, "{path}");
        let refused = fixture.get(path, &FOREIGN);
        assert_eq!(refused.status, 403, "{path}");
        assert_eq!(refused.field("content-type"), Some("application/problem+json"));
        assert_eq!(refused.json()["type"], "/problems/local-only");
        assert_eq!(fixture.request("POST", path, &[]).status, 405, "{path}");
    }
    let open = |options: &mut Options| options.connections_to = ViewRight::Anyone;
    let fixture = Fixture::with(open, Retention::default());
    for path in paths {
        assert_eq!(fixture.get(path, &FOREIGN).status, 200, "{path}");
    }
}

#[test]
fn a_wrong_parameter_is_named() {
    let fixture = start();
    for (target, name) in [
        ("/connections?after=nonsense", "after"),
        ("/connections?limit=0", "limit"),
        ("/connections?limit=1001", "limit"),
        ("/connections?sort=age", "sort"),
        ("/connections/closed?limit=1001", "limit"),
        ("/connections/closed?after=0-0", "after"),
        ("/connections/threads?limit=1", "limit"),
    ] {
        let reply = fixture.get(target, &[]);
        assert_eq!(reply.status, 400, "{target}");
        assert!(reply.json()["detail"].as_str().unwrap().starts_with(name), "{}", reply.body);
    }
    assert_eq!(fixture.get("/connections/nothing", &[]).status, 404);
}

#[test]
fn a_multiplexed_client_gets_the_same_answers() {
    let fixture = start();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        for (path, member) in [
            ("/connections", "connections"),
            ("/connections/closed", "closed"),
            ("/connections/threads", "threads"),
        ] {
            let reply = client.ask(&format!("GET a {path}"));
            assert_eq!(reply.status, 200, "{reply:?}");
            let json: Value = serde_json::from_str(&reply.payload).unwrap();
            assert!(json[member].is_array(), "{json}");
        }
        let list: Value = serde_json::from_str(&client.ask("GET a /connections").payload).unwrap();
        let mut own = list["connections"].as_array().unwrap().iter().filter(|one| !asks(one));
        assert_eq!(own.next().unwrap()["requests"], 1, "the question itself: {list}");
        let reply = client.ask("HEAD a /connections");
        assert_eq!((reply.status, &*reply.payload), (200, ""));
        assert_eq!(client.ask("POST a /connections").status, 405);
        drop(client);
        all(&fixture, 0);
    }
}

#[test]
fn who_ended_a_connection_and_why_is_told_in_the_words_of_the_protocol() {
    let fixture = start();
    fixture.publish(1..=2);
    let before = get(&fixture, "/connections/closed")["count"].as_u64().unwrap();

    let mut socket = fixture.websocket("/topics/wind", &[], &[]);
    let frame = CloseFrame::new(CloseCode::new(4001).unwrap(), "had enough");
    socket.connection.sender().close(Some(&frame)).unwrap();
    socket.flush();
    let told = closed(&fixture, |one| one["by"] == "client");
    assert_eq!((&told["code"], &told["reason"]), (&json!(4001), &json!("had enough")));
    assert_eq!(told["left"], false, "the client says why");
    assert_eq!((&told["transport"], &told["path"]), (&json!("websocket"), &json!("/topics/wind")));
    assert_eq!(told["position"], "ya-2");
    assert!(told["since"].as_f64() <= told["time"].as_f64());

    let mut socket = fixture.websocket("/topics/wind", &[], &[]);
    socket.send(Message::Text("nobody may publish here"));
    assert!(socket.next().starts_with("close 1008"));
    let told = closed(&fixture, |one| one["by"] == "server");
    assert_eq!(told["code"], 1008, "{told}");
    assert!(told["reason"].as_str().unwrap().contains("accepts no messages"), "{told}");

    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.stream.write_all(&[0xFF; 8]).unwrap();
    let told = closed(&fixture, |one| one["code"] == 1002);
    assert_eq!((&told["by"], &told["path"]), (&json!("server"), &json!("/echo")));

    drop(fixture.websocket("/broadcast", &[], &[]));
    let told = closed(&fixture, |one| one["path"] == "/broadcast");
    assert_eq!((&told["by"], &told["left"]), (&json!("client"), &json!(true)), "{told}");

    drop(asked(&fixture, "/topics/wind", "application/x-ndjson"));
    let told = closed(&fixture, |one| one["transport"] == "ndjson");
    assert_eq!((&told["by"], &told["reason"]), (&json!("client"), &json!("client gone")));
    assert_eq!(told["left"], true);

    // The frame does not fit the loop: a task of the HTTP server carries it.
    drop(asked(&fixture, "/topics/wind?frame=f", "text/html"));
    let told = closed(&fixture, |one| one["transport"] == "forever-frame");
    assert_eq!((&told["by"], &told["protocol"]), (&json!("client"), &json!("http/1.1")));

    let mut tcp = TcpStream::connect(fixture.tcp()).unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let told = closed(&fixture, |one| one["transport"] == "tcp");
    assert_eq!(told["by"], "server", "{told}");

    // A page that its browser leaves.
    let mut socket = fixture.websocket("/topics/wind", &["anemone.events"], &[]);
    let frame = CloseFrame::new(CloseCode::GOING_AWAY, "");
    socket.connection.sender().close(Some(&frame)).unwrap();
    socket.flush();
    let told = closed(&fixture, |one| one["code"] == 1001);
    assert_eq!((&told["left"], &told["reason"]), (&json!(true), &json!("the page was left")));

    assert_eq!(get(&fixture, "/connections/closed")["count"], before + 8);
}

#[test]
fn threads_say_what_they_have_done() {
    let fixture = start();
    let before = get(&fixture, "/connections/threads");
    let threads = before["threads"].as_array().unwrap();
    assert_eq!(
        threads.iter().map(|one| one["thread"].as_u64().unwrap()).collect::<Vec<_>>(),
        [0, 1]
    );
    let sum = |value: &Value, name: &str| -> u64 {
        value["threads"].as_array().unwrap().iter().map(|one| one[name].as_u64().unwrap()).sum()
    };
    let mut socket = fixture.websocket("/echo", &[], &[]);
    socket.send(Message::Text(&"x".repeat(5000)));
    assert_eq!(socket.next().len(), 5000);
    let after = wait_for("the bytes do not count", || {
        let after = get(&fixture, "/connections/threads");
        (sum(&after, "sent_bytes") >= sum(&before, "sent_bytes") + 5000).then_some(after)
    });
    assert!(sum(&after, "received_bytes") >= sum(&before, "received_bytes") + 5000);
    assert!(sum(&after, "turns") > sum(&before, "turns"));
    assert!(sum(&after, "events") > sum(&before, "events"));
    assert!(sum(&after, "connections") >= 1 && sum(&after, "http_connections") >= 1);
    assert!(after["held_bytes"].as_u64() > Some(0) && after["held_bytes_max"].is_u64());
    assert!(after["open"].as_u64() > Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_tasks_are_there_too() {
    let secure = Secure::start();
    secure.fixture.publish(1..=2);
    let host = secure.fixture.address;
    let mut open = Vec::new();
    for (target, fields) in [
        ("/topics/wind", &[("Accept", "text/event-stream")][..]),
        ("/topics/wind", &HANDSHAKE),
        ("/topics/wind?after=latest&wait=100", &[]),
    ] {
        let mut stream = secure.connect(&["http/1.1"]).await.unwrap();
        let request = request(host, "GET", target, fields);
        stream.write_all(request.as_bytes()).await.unwrap();
        open.push(stream);
    }
    let list = wait_for_secure(&secure, 3).await;
    let mut transports: Vec<_> = list
        .iter()
        .map(|one| {
            assert_eq!((&one["tls"], &one["protocol"]), (&json!(true), &json!("http/1.1")));
            assert_eq!((&one["position"], &one["lag"]["events"]), (&json!("ya-2"), &json!(0)));
            let (received, sent) = bytes(one);
            match one["transport"].as_str().unwrap() {
                "sse" => assert!(received > 50 && sent > 100, "{one}"),
                "long-poll" => assert!(received > 50 && sent == 0, "it waits: {one}"),
                _ => assert_eq!((received, sent), (0, 0), "the handshake was a request"),
            }
            one["transport"].as_str().unwrap().to_owned()
        })
        .collect();
    transports.sort();
    assert_eq!(transports, ["long-poll", "sse", "websocket"]);
    drop(open);
    assert_eq!(wait_for_secure(&secure, 0).await, Vec::<Value>::new());
}

/// All connections that are not those that ask, once there are so many.
async fn wait_for_secure(secure: &Secure, count: usize) -> Vec<Value> {
    use tokio::io::AsyncReadExt as _;
    let begun = std::time::Instant::now();
    loop {
        let mut stream = secure.connect(&["http/1.1"]).await.unwrap();
        let fields = [("Connection", "close")];
        let request = request(secure.fixture.address, "GET", "/connections", &fields);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        // The end of a connection that was closed may be missing.
        let _ = stream.read_to_end(&mut reply).await;
        let list = anemone_testing::Reply::read(&mut &*reply, "GET").json();
        let all = list["connections"].as_array().unwrap().clone();
        let others: Vec<_> = all.into_iter().filter(|one| !asks(one)).collect();
        if others.len() == count {
            return others;
        }
        assert!(begun.elapsed() < anemone_testing::PATIENCE, "not {count}: {others:?}");
    }
}
