//! Clients that end their side of the connection after their requests: complete requests are answered, then the
//! connection ends, and nothing waits for a client that may be gone.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anemone_hub::{DataDir, DataOptions, Epoch, Fsync, Hub, Retention};
use anemone_server::{Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::multiplexed::{self, framed};
use anemone_testing::secure::Secure;
use anemone_testing::{Fixture, Reply, connect, request, wait_until};
use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{Config, Connection, Event, MaskKey, Message, Time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Each way is tried so often: a race is not lost each time.
const ROUNDS: usize = 50;

/// The fields with which a browser requests a forever-frame.
const IN_AN_IFRAME: [(&str, &str); 2] =
    [("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Site", "same-origin")];

fn options(options: &mut Options) {
    let rule = |topics: &str| TopicRule {
        publish: PublishRight::Anyone,
        ..TopicRule::new(topics.parse().unwrap())
    };
    options.topics = TopicRules::new([rule("chat"), rule("scratch-*")]).unwrap();
}

fn start() -> Fixture {
    let fixture = Fixture::with(options, Retention::default());
    fixture.publish(1..=3);
    fixture
}

/// Topics on a disk that takes its time: each event is flushed before it is acknowledged.
fn on_disk(folder: &Path) -> Hub {
    let options = DataOptions { fsync: Fsync::Always, ..DataOptions::default() };
    Hub::with_data(Epoch::from_bits(1234), DataDir::open(folder, options).unwrap()).unwrap()
}

/// All that comes after these pieces and the end of the client's side. Between two pieces the server has time to
/// read the first.
fn ask(address: SocketAddr, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = connect(address);
    for piece in pieces {
        stream.write_all(piece).unwrap();
        std::thread::yield_now();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    // A connection that is reset has ended, too.
    let _ = stream.read_to_end(&mut all);
    all
}

/// Asserts that all rounds are answered, whichever was not.
fn each_round(name: &str, mut is_answered: impl FnMut(usize) -> bool) {
    let answered = (0..ROUNDS).filter(|round| is_answered(*round)).count();
    assert_eq!(answered, ROUNDS, "{name}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The replies of HTTP with a length that came one after the other.
fn replies(bytes: &[u8]) -> Vec<Reply> {
    let mut rest = bytes;
    let mut replies = Vec::new();
    while !rest.is_empty()
        && let Ok(reply) = Reply::try_read(&mut rest, "GET")
    {
        replies.push(reply);
    }
    replies
}

fn post(address: SocketAddr, target: &str, body: &str) -> String {
    let length = body.len().to_string();
    request(address, "POST", target, &[("Content-Length", &length)]) + body
}

#[test]
fn a_request_is_answered_by_http() {
    let fixture = start();
    let address = fixture.address;
    let get = |target: &str, fields: &[(&str, &str)]| request(address, "GET", target, fields);
    for (name, target) in [
        ("a poll", "/topics/wind?after=earliest"),
        ("a long poll for what is there", "/topics/wind?after=earliest&wait=100"),
    ] {
        let asked = get(target, &[]);
        each_round(name, |round| {
            let (head, rest) = asked.split_at([0, 9, asked.len() - 1][round % 3]);
            let replies = replies(&ask(address, &[head.as_bytes(), rest.as_bytes()]));
            replies.len() == 1 && replies[0].numbers() == [1, 2, 3]
        });
    }
    let begun = Instant::now();
    let asked = get("/topics/wind?after=ya-3&wait=100", &[]);
    each_round("a long poll for what is not there is answered at once", |_| {
        let replies = replies(&ask(address, &[asked.as_bytes()]));
        replies.len() == 1 && replies[0].next() == "ya-3" && replies[0].numbers().is_empty()
    });
    let many = get("/clock", &[]) + &get("/topics/wind", &[]) + &get("/nothing", &[]);
    each_round("requests in a row", |_| {
        let replies = replies(&ask(address, &[many.as_bytes()]));
        replies.iter().map(|reply| reply.status).collect::<Vec<_>>() == [200, 200, 404]
    });
    let waiting = get("/topics/wind?after=ya-3&wait=100", &[]) + &get("/clock", &[]);
    each_round("one behind a long poll", |_| {
        replies(&ask(address, &[waiting.as_bytes()])).len() == 2
    });
    assert!(begun.elapsed() < Duration::from_secs(90), "nobody has waited for an event");
}

#[test]
fn a_post_is_published_and_answered() {
    let folder = tempfile::tempdir().unwrap();
    for hub in [Hub::new(Epoch::from_bits(1234)), on_disk(folder.path())] {
        let fixture = Fixture::of(hub, options, Retention::default());
        let address = fixture.address;
        each_round("a POST", |round| {
            let asked = post(address, "/topics/chat", &format!("{{\"n\":{round}}}"));
            let (head, rest) = asked.split_at([0, 9, asked.len() - 1][round % 3]);
            let replies = replies(&ask(address, &[head.as_bytes(), rest.as_bytes()]));
            replies.len() == 1 && replies[0].status == 201
        });
        let next = fixture.get("/topics/chat", &[]).next();
        assert!(next.ends_with(&format!("-{ROUNDS}")), "{next}");
        // One that is cut off is not published.
        let asked = post(address, "/topics/chat", "{\"n\":17}");
        ask(address, &[&asked.as_bytes()[..asked.len() - 1]]);
        assert_eq!(fixture.get("/topics/chat", &[]).next(), next);
    }
}

#[test]
fn a_stream_tells_what_there_is_and_ends() {
    let fixture = start();
    let address = fixture.address;
    let begun = Instant::now();
    for (target, accept) in [
        ("/topics/wind?after=earliest", "text/event-stream"),
        ("/topics/wind?after=earliest&limit=1", "text/event-stream"),
        ("/topics/wind?after=earliest", "application/x-ndjson"),
        ("/topics/wind?after=earliest&frame=f", "text/html"),
    ] {
        // With a body it is the HTTP server's, not the loop's.
        for more in [&[][..], &[("Content-Length", "0")]] {
            let fields = [&[("Accept", accept)], &IN_AN_IFRAME[..], more].concat();
            let asked = request(address, "GET", target, &fields);
            each_round(accept, |_| {
                let told = text(&ask(address, &[asked.as_bytes()]));
                (1..=3).all(|n| told.contains(&format!("{{\"n\":{n}}}")))
                    && told.ends_with("\r\n0\r\n\r\n")
            });
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(90), "no stream has waited for an event");
}

/// Requests of a connection that ends its side after them, and the statuses that each must have.
const ASKED: [&str; 6] = [
    "POST p1 /topics/chat\n{\"n\":1}",
    "GET c /clock",
    "GET r /topics/wind?after=earliest",
    "POST p2 /topics/chat?type=text\n",
    "GET n /topics/nothing",
    "GET q /topics/wind",
];

fn is_answered(messages: &[String]) -> bool {
    let finals = |id: &str| {
        let replies = messages.iter().map(|message| multiplexed::Reply::parse(message));
        let own = replies.filter(|reply| reply.id == id).map(|reply| reply.status);
        own.filter(|status| *status >= 200 && *status != 206).collect::<Vec<_>>()
    };
    let events = messages.iter().filter(|message| message.starts_with("206 r ")).count();
    let expected = [("p1", 201), ("c", 200), ("r", 204), ("p2", 201), ("n", 404), ("q", 204)];
    events == 3 && expected.iter().all(|(id, status)| finals(id) == [*status])
}

/// The messages of a WebSocket's bytes, after the response to its handshake.
fn messages(bytes: &mut [u8]) -> Vec<String> {
    let end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(0, |at| at + 4);
    let mut rest = &mut bytes[end..];
    let keys = Box::new(|| MaskKey([1, 2, 3, 4]));
    let mut connection = Connection::client(Config::default().into(), Time::ZERO, keys);
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let received = connection.receive(Time::ZERO, rest);
        if let Some(Event::Message(Message::Text(text))) = received.event {
            messages.push(text.to_owned());
        }
        let consumed = received.consumed;
        rest = &mut rest[consumed..];
    }
    messages
}

/// A handshake, and messages right behind it.
fn handshake(target: &str, subprotocols: &[&str], messages: &[&str]) -> Vec<u8> {
    let handshake = ClientHandshake::new(Nonce([7; 16]), subprotocols);
    let mut bytes = handshake.request("localhost", target, &[]).into_bytes();
    let keys = Box::new(|| MaskKey([1, 2, 3, 4]));
    let mut connection = Connection::client(Config::default().into(), Time::ZERO, keys);
    for message in messages {
        connection.sender().send(Message::Text(message)).unwrap();
    }
    bytes.extend_from_slice(connection.sender().transmit());
    bytes
}

#[test]
fn multiplexed_requests_have_their_final_status() {
    let folder = tempfile::tempdir().unwrap();
    for hub in [Hub::new(Epoch::from_bits(1234)), on_disk(folder.path())] {
        let fixture = Fixture::of(hub, options, Retention::default());
        let last = fixture.publish(1..=3);
        wait_until("the disk takes too long", || fixture.get("/topics/wind", &[]).next() == last);
        let by_tcp: Vec<u8> = ASKED.iter().flat_map(|message| framed(message.as_bytes())).collect();
        each_round("TCP", |round| {
            let (first, rest) = by_tcp.split_at([0, 7, by_tcp.len() - 1][round % 3]);
            let all = ask(fixture.tcp(), &[first, rest]);
            let (mut rest, mut messages) = (&all[..], Vec::new());
            while let Some((length, after)) = rest.split_first_chunk::<4>() {
                let (message, after) = after.split_at(u32::from_be_bytes(*length) as usize);
                messages.push(text(message));
                rest = after;
            }
            is_answered(&messages)
        });
        let asked = handshake("/ws", &["anemone.v1"], &ASKED);
        each_round("/ws", |round| {
            let (first, rest) = asked.split_at([0, 7, asked.len() - 1][round % 3]);
            is_answered(&messages(&mut ask(fixture.address, &[first, rest])))
        });
    }
}

#[test]
fn what_came_whole_by_a_websocket_is_published() {
    let fixture = start();
    let asked = handshake("/topics/chat", &[], &["1", "2", "3"]);
    for _ in 0..ROUNDS {
        ask(fixture.address, &[&asked]);
    }
    assert_eq!(fixture.get("/topics/chat", &[]).next(), format!("ya-{}", 3 * ROUNDS));
}

#[test]
fn over_tls_it_is_the_same() {
    let secure = Secure::with(options);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    secure.fixture.publish(1..=3);
    // With TLS's own last word, and without one.
    for is_told in [true, false] {
        let ask = |bytes: &[u8]| {
            runtime.block_on(async {
                let mut stream = secure.connect(&["http/1.1"]).await.unwrap();
                stream.write_all(bytes).await.unwrap();
                stream.flush().await.unwrap();
                match is_told {
                    true => stream.shutdown().await.unwrap(),
                    false => stream.get_mut().0.shutdown().await.unwrap(),
                }
                let mut all = Vec::new();
                let _ = stream.read_to_end(&mut all).await;
                all
            })
        };
        let address = secure.fixture.address;
        let localhost = |text: String| text.replace(&address.to_string(), "localhost");
        let get = localhost(request(address, "GET", "/topics/wind?after=ya-3&wait=100", &[]));
        let posted = localhost(post(address, "/topics/chat", "17"));
        let mux = handshake("/ws", &["anemone.v1"], &ASKED);
        each_round("a long poll", |_| replies(&ask(get.as_bytes())).len() == 1);
        each_round("a POST", |_| replies(&ask(posted.as_bytes())).len() == 1);
        each_round("/ws", |_| is_answered(&messages(&mut ask(&mux))));
    }
}

#[test]
fn who_is_gone_holds_no_place() {
    let fixture = start();
    let count = || fixture.get("/topics/wind/readers", &[]).json()["count"].as_u64().unwrap();
    let gone: [(&str, &[(&str, &str)]); 4] = [
        ("/topics/wind?after=ya-3&wait=120", &[]),
        ("/topics/wind", &[("Accept", "text/event-stream")]),
        ("/topics/wind", &[("Accept", "text/event-stream"), ("Content-Length", "0")]),
        ("/topics/wind?frame=f", &[("Accept", "text/html"), IN_AN_IFRAME[0], IN_AN_IFRAME[1]]),
    ];
    for (target, fields) in gone {
        let mut stream = fixture.connect();
        stream.write_all(request(fixture.address, "GET", target, fields).as_bytes()).unwrap();
        wait_until(target, || count() > 0);
        drop(stream);
        wait_until("it is still there", || count() == 0);
    }
}
