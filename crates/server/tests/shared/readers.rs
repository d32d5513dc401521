//! `/topics/NAME/readers`: the readers, with their positions and the numbers of events that they are behind.
#![allow(clippy::unwrap_used)]

use std::net::TcpStream;
use std::time::SystemTime;

use anemone_hub::{Data, Retention};
use anemone_testing::multiplexed::{self, BOTH, Carrier, Client};
use anemone_testing::{Fixture, send, wait_for};
use serde_json::{Value, json};

fn start() -> Fixture {
    let change = |options: &mut anemone_server::Options| {
        options.tcp = Some("127.0.0.1:0".parse().unwrap());
    };
    Fixture::with(change, Retention { bytes_max: 64 << 20, ..Retention::default() })
}

fn readers(fixture: &Fixture) -> Value {
    let reply = fixture.get("/topics/wind/readers", &[]);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

/// The list, once it is so.
fn wait_until(fixture: &Fixture, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_for("no such list", || Some(readers(fixture)).filter(&is_so))
}

fn request(fixture: &Fixture, target: &str, accept: &str) -> TcpStream {
    let mut stream = fixture.connect();
    let frame = [("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Site", "same-origin")];
    send(&mut stream, "GET", target, &[&[("Accept", accept)], &frame[..]].concat());
    stream
}

#[test]
fn each_reader_is_there_with_its_transport_as_long_as_it_stays() {
    let fixture = start();
    fixture.publish(1..=3);
    assert_eq!(
        readers(&fixture),
        json!({
            "next": "ya-3", "count": 0, "lag_max": { "events": 0, "bytes": 0 }, "readers": [],
        })
    );
    type Open = fn(&Fixture) -> Box<dyn std::any::Any>;
    let multiplexed = |carrier| {
        move |fixture: &Fixture| {
            let mut client = Client::open(carrier, fixture);
            client.ask("GET r /topics/wind?mode=latest");
            Box::new(client) as Box<dyn std::any::Any>
        }
    };
    let by_web_socket = multiplexed(Carrier::WebSocket);
    let by_tcp = multiplexed(Carrier::Tcp);
    let streams: [(&str, Open); 5] = [
        ("websocket", |fixture| Box::new(fixture.websocket("/topics/wind?mode=latest", &[], &[]))),
        ("sse", |fixture| {
            Box::new(request(fixture, "/topics/wind?mode=latest", "text/event-stream"))
        }),
        ("ndjson", |fixture| {
            Box::new(request(fixture, "/topics/wind?mode=latest", "application/x-ndjson"))
        }),
        ("forever-frame", |fixture| {
            Box::new(request(fixture, "/topics/wind?mode=latest&frame=f", "text/html"))
        }),
        ("long-poll", |fixture| {
            Box::new(request(fixture, "/topics/wind?mode=latest&after=latest&wait=100", "*/*"))
        }),
    ];
    type Opening<'a> = (&'a str, &'a dyn Fn(&Fixture) -> Box<dyn std::any::Any>);
    let mut ways: Vec<Opening<'_>> =
        streams.iter().map(|(name, open)| (*name, open as _)).collect();
    ways.push(("multiplexed", &by_web_socket));
    ways.push(("tcp", &by_tcp));
    for (transport, open) in ways {
        let reader = open(&fixture);
        let list = wait_until(&fixture, |list| list["count"] == 1);
        let listed = &list["readers"][0];
        assert_eq!(listed["transport"], transport, "{listed}");
        assert_eq!((&listed["mode"], &listed["position"]), (&json!("latest"), &json!("ya-3")));
        assert_eq!(listed["lag"], json!({ "events": 0, "bytes": 0 }));
        assert!(listed["client"].as_str().unwrap().starts_with("127.0.0.1:"), "{listed}");
        assert!(listed["since"].as_f64().unwrap() > 1.7e12, "{listed}");
        drop(reader);
        wait_until(&fixture, |list| list["count"] == 0);
    }
}

#[test]
fn who_does_not_read_falls_behind_and_catches_up_by_reading() {
    const EVENTS: u64 = 250;
    let fixture = start();
    let mut stuck = fixture.websocket("/topics/wind", &[], &[]);
    let mut fast = fixture.websocket("/topics/wind", &[], &[]);
    // 25 MB, which is more than sockets hold.
    let text = "x".repeat(100_000);
    for number in 1..=EVENTS {
        let data = Data::json(&json!({ "n": number, "text": text })).unwrap();
        fixture.wind.publish(SystemTime::now().into(), data).unwrap();
        assert_eq!(fast.json()["n"], number);
    }
    let list = wait_until(&fixture, |list| list["readers"][1]["lag"]["events"] == 0);
    assert_eq!(list["count"], 2);
    let (slow, lag) = (&list["readers"][0], &list["readers"][0]["lag"]);
    let (events, bytes) = (lag["events"].as_u64().unwrap(), lag["bytes"].as_u64().unwrap());
    assert!(events > 0 && bytes / events > 100_000 && bytes / events < 101_000, "{list}");
    assert_eq!(slow["position"], format!("ya-{}", EVENTS - events));
    assert_eq!(list["lag_max"], *lag);
    for number in 1..=EVENTS {
        assert_eq!(stuck.json()["n"], number);
    }
    wait_until(&fixture, |list| list["lag_max"]["events"] == 0);
}

#[test]
fn the_list_is_as_long_as_it_may_be_and_says_how_many_there_are() {
    let fixture = start();
    for carrier in BOTH {
        let mut client = Client::open(carrier, &fixture);
        let requests: Vec<String> = (1..=101).map(|n| format!("GET r{n} /topics/wind")).collect();
        client.send_all(&requests);
        for _ in 1..=101 {
            assert_eq!(client.next().status, 100);
        }
        for (query, listed) in [("", 100), ("?limit=1", 1), ("?limit=1000", 101)] {
            let target = format!("/topics/wind/readers{query}");
            let list = fixture.get(&target, &[]).json();
            assert_eq!(list["count"], 101);
            assert_eq!(list["readers"].as_array().unwrap().len(), listed, "{query}");
            let multiplexed = client.ask(&format!("GET list {target}"));
            assert_eq!((multiplexed.status, multiplexed.json()), (200, list));
        }
        for query in ["?limit=0", "?limit=1001", "?limit=1&limit=1", "?mode=all"] {
            let target = format!("/topics/wind/readers{query}");
            fixture.get(&target, &[]).problem(400, "bad-parameter");
            client.ask(&format!("GET list {target}")).problem(400, "list", "bad-parameter");
        }
        client.send("CANCEL r1");
        client.next().is_line(204, "r1", "");
        wait_until(&fixture, |list| list["count"] == 100);
        drop(client);
        wait_until(&fixture, |list| list["count"] == 0);
    }
}

#[test]
fn only_clients_on_this_machine_are_told() {
    let fixture = start();
    let proxied = [("Via", "1.1 proxy")];
    fixture.get("/topics/wind/readers", &proxied).problem(403, "local-only");
    let mut socket = fixture.websocket("/ws", &["anemone.v1"], &proxied);
    socket.send(anemone_ws::proto::Message::Text("GET r /topics/wind/readers"));
    let reply = multiplexed::Reply::parse(&socket.next());
    reply.problem(403, "r", "local-only");
    fixture.get("/topics/nothing/readers", &[]).problem(404, "unknown-topic");
    fixture.request("POST", "/topics/wind/readers", &[]).problem(405, "method-not-allowed");
    assert_eq!(fixture.request("HEAD", "/topics/wind/readers", &[]).status, 200);
}
