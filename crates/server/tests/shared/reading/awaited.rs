//! Readers that come before the topic, over every transport and in any order.

use std::sync::Barrier;
use std::thread;

use anemone_hub::{DataDir, DataOptions, Epoch, Hub, Retention};
use anemone_server::{Limits, Options, PublishRight, TopicRule, TopicRules};
use anemone_testing::multiplexed::{Carrier, Client};
use anemone_testing::ways::{ALL, Follower, Kind, Reading, STREAMS, Told, Way, each, each_of};
use anemone_testing::{Fixture, HANDSHAKE, wait_until};
use anemone_ws::proto::Message;
use serde_json::json;
use tempfile::TempDir;

fn start() -> Fixture {
    start_of(Hub::new(Epoch::from_bits(1234)), |_| {})
}

/// Starts a server with topics that anyone, only this machine, and no one may create.
fn start_of(hub: Hub, change: impl FnOnce(&mut Limits)) -> Fixture {
    let rule =
        |topics: &str, publish| TopicRule { publish, ..TopicRule::new(topics.parse().unwrap()) };
    let rules = [
        rule("open-*", PublishRight::Anyone),
        rule("scratch-*", PublishRight::Loopback),
        rule("nobody-*", PublishRight::Nobody),
        TopicRule { topics_max: 1, ..rule("few-*", PublishRight::Anyone) },
    ];
    let change = |options: &mut Options| {
        options.topics = TopicRules::new(rules).unwrap();
        change(&mut options.limits);
    };
    Fixture::of(hub, change, Retention::default())
}

fn on_disk(folder: &TempDir) -> Fixture {
    let data = DataDir::open(folder.path(), DataOptions::default()).unwrap();
    start_of(Hub::with_data(Epoch::from_bits(1234), data).unwrap(), |_| {})
}

/// Publishes `{"n":…}` over a multiplexed connection of its own.
fn publish(fixture: &Fixture, topic: &str, numbers: impl IntoIterator<Item = u64>) {
    let mut client = Client::open(Carrier::Tcp, fixture);
    for number in numbers {
        let reply = client.ask(&format!("POST p /topics/{topic}\n{{\"n\":{number}}}"));
        assert_eq!(reply.status, 201, "{reply:?}");
    }
}

fn read(fixture: &Fixture, way: &Way, topic: &str, query: &str) -> Box<dyn Reading> {
    way.read(way.connect(fixture), topic, query).unwrap()
}

/// The same, which the server knows of.
fn waits(fixture: &Fixture, way: &Way, topic: &str) -> Box<dyn Reading> {
    let mut reader = read(fixture, way, topic, "");
    if way.kind != Kind::Plain {
        assert_eq!(reader.next(), Told::Position("ya-0".to_owned()));
    }
    reader
}

fn name(way: &Way, prefix: &str) -> String {
    format!("{prefix}{}", way.name.replace([' ', ',', '-'], "."))
}

#[test]
fn a_topic_is_read_before_its_first_event_and_nothing_of_it_is_missed() {
    let folder = TempDir::new().unwrap();
    for fixture in [start(), on_disk(&folder)] {
        each(|way| {
            for (number, query) in
                ["", "after=latest", "after=earliest", "after=-3", "since=1h", "after=ya-0"]
                    .into_iter()
                    .enumerate()
            {
                let topic = format!("{}{number}", name(way, "open-"));
                let mut reader = read(&fixture, way, &topic, query);
                let mut follower = Follower::new(0);
                if way.kind != Kind::Plain {
                    assert_eq!(reader.next(), Told::Position("ya-0".to_owned()), "{query}");
                }
                reader.wait();
                publish(&fixture, &topic, 1..=3);
                while follower.events < 3 {
                    follower.follow(reader.next());
                }
            }
        });
    }
}

#[test]
fn readers_who_come_with_the_first_event_miss_none_of_it_whoever_is_first() {
    const ROUNDS: u64 = 40;
    let folder = TempDir::new().unwrap();
    for fixture in [start(), on_disk(&folder)] {
        for round in 0..ROUNDS {
            let topic = format!("open-{round}");
            let both = Barrier::new(ALL.len() + 2);
            thread::scope(|scope| {
                // Two who publish the first event, too.
                for own in [0, 1] {
                    let (fixture, topic, both) = (&fixture, &topic, &both);
                    scope.spawn(move || {
                        let mut client = Client::open(Carrier::Tcp, fixture);
                        both.wait();
                        for number in 0..5 {
                            let number = own * 100 + number;
                            let reply = client.ask(&format!("POST p /topics/{topic}\n{number}"));
                            assert_eq!(reply.status, 201, "{reply:?}");
                        }
                    });
                }
                each(|way| {
                    let wire = way.connect(&fixture);
                    both.wait();
                    let mut reader = way.read(wire, &topic, "after=earliest").unwrap();
                    let mut seen = Vec::new();
                    while seen.len() < 10 {
                        match reader.next() {
                            Told::Event { position, data } => {
                                let expected = format!("ya-{}", seen.len() + 1);
                                assert!(position.is_none_or(|position| position == expected));
                                seen.push(data.as_u64().unwrap());
                            }
                            Told::Position(position) => assert_eq!(position, "ya-0"),
                            other => panic!("{other:?}"),
                        }
                    }
                    for own in [0, 100] {
                        let own = seen.iter().copied().filter(|number| number / 100 == own / 100);
                        assert!(own.is_sorted(), "{seen:?}");
                    }
                    seen.sort_unstable();
                    assert_eq!(seen, [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]);
                });
            });
        }
    }
}

#[test]
fn a_position_stays_good_though_nobody_waited_meanwhile() {
    let folder = TempDir::new().unwrap();
    for fixture in [start(), on_disk(&folder)] {
        each(|way| {
            let topic = name(way, "open-");
            let page = fixture.get(&format!("/topics/{topic}"), &[]);
            assert_eq!(
                (page.status, page.numbers(), page.next()),
                (200, vec![], "ya-0".to_owned())
            );
            drop(read(&fixture, way, &topic, "after=latest"));
            publish(&fixture, &topic, 1..=2);
            let mut reader = read(&fixture, way, &topic, "after=ya-0");
            let mut follower = Follower::new(0);
            while follower.events < 2 {
                follower.follow(reader.next());
            }
        });
    }
}

#[test]
fn who_waits_goes_on_after_a_restart_and_has_the_first_event() {
    let folder = TempDir::new().unwrap();
    let mut fixture = on_disk(&folder);
    let position = fixture.get("/topics/open-a", &[]).next();
    let waiting = STREAMS.map(|way| waits(&fixture, way, "open-a"));
    fixture.stop_while(|| {
        for (way, mut reader) in STREAMS.iter().zip(waiting) {
            assert_eq!(reader.next(), way.stopped(), "{}", way.name);
        }
    });
    fixture.hub.close().unwrap();
    drop(fixture);
    let data = DataDir::open(folder.path(), DataOptions::default()).unwrap();
    let fixture = start_of(Hub::with_data(Epoch::from_bits(77), data).unwrap(), |_| {});
    let query = format!("after={position}");
    each(|way| {
        let topic = name(way, "open-a");
        let mut reader = read(&fixture, way, &topic, &query);
        if way.kind != Kind::Plain {
            assert_eq!(reader.next(), Told::Position(position.clone()));
        }
        reader.wait();
        publish(&fixture, &topic, 1..=2);
        let mut follower = Follower::new(0);
        while follower.events < 2 {
            follower.follow(reader.next());
        }
    });
}

#[test]
fn who_is_not_there_yet_is_in_no_list_and_on_no_disk() {
    let folder = TempDir::new().unwrap();
    let fixture = on_disk(&folder);
    let mut stream = fixture.events("/topics/open-a", &[]);
    assert_eq!(stream.block().unwrap(), "retry: 1000\nid: ya-0\n");
    let list = fixture.get("/topics", &[]).json();
    assert_eq!(list["topics"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(fixture.get("/health", &[]).json()["topics"], 1);
    assert_eq!(std::fs::read_dir(folder.path().join("topics")).unwrap().count(), 1);
    let readers = fixture.get("/topics/open-a/readers", &[]).json();
    assert_eq!((&readers["next"], &readers["count"]), (&json!("ya-0"), &json!(1)));
    assert_eq!(readers["readers"][0]["position"], "ya-0");
    publish(&fixture, "open-a", [1]);
    assert_eq!(stream.event(), "id: ya-1\ndata: {\"n\":1}\n");
    assert_eq!(fixture.get("/topics", &[]).json()["topics"][0]["name"], "open-a");
    let readers = fixture.get("/topics/open-a/readers", &[]).json();
    assert_eq!(readers["readers"][0]["position"], "ya-1", "{readers}");
}

#[test]
fn names_that_no_pattern_lets_come_are_404() {
    let fixture = start();
    each(|way| {
        for topic in ["other", "nobody-a", "open-", "few"] {
            let target = format!("/topics/{topic}?after=latest{}", way.query);
            let detail = way.problem(&fixture, &target, 404, "unknown-topic");
            assert_eq!(detail, format!("there is no topic {topic:?}"));
        }
        let target = format!("/topics/open-a?after=ya-1{}", way.query);
        let detail = way.problem(&fixture, &target, 400, "position-ahead");
        assert_eq!(detail, "position ya-1 is ahead of the topic, which is at ya-0");
    });
    fixture.request("DELETE", "/topics/open-a", &[]).problem(404, "unknown-topic");
    let reply = fixture.request("PUT", "/topics/open-a", &[]);
    reply.problem(405, "method-not-allowed");
    assert_eq!(reply.field("allow"), Some("GET, HEAD, POST, DELETE"));
}

#[test]
fn a_topic_that_was_deleted_is_one_that_may_come_again() {
    let fixture = start();
    each_of(&STREAMS, |way| {
        let topic = name(way, "open-");
        publish(&fixture, &topic, 1..=2);
        let mut reader = read(&fixture, way, &topic, "after=latest");
        if way.kind != Kind::Plain {
            assert_eq!(reader.next(), Told::Position("ya-2".to_owned()));
        }
        let reply = Client::open(Carrier::Tcp, &fixture).ask(&format!("DELETE d /topics/{topic}"));
        assert_eq!(reply.status, 204);
        assert_eq!(reader.next(), Told::Deleted);
        for way in ALL {
            for position in ["ya-0", "ya-1", "ya-2"] {
                let target = format!("/topics/{topic}?after={position}{}", way.query);
                way.problem(&fixture, &target, 410, "topic-deleted");
            }
        }
        let page = fixture.get(&format!("/topics/{topic}?after=zz-2"), &[]).json();
        assert_eq!(
            (&page["gap"]["reason"], &page["gap"]["missed"]),
            (&json!("epoch"), &json!(null))
        );
        let begin = page["next"].as_str().unwrap().to_owned();
        assert!(begin.ends_with("-0") && begin != "ya-0", "{begin}");
        let mut reader = read(&fixture, way, &topic, &format!("after={begin}"));
        if way.kind != Kind::Plain {
            assert_eq!(reader.next(), Told::Position(begin.clone()));
        }
        publish(&fixture, &topic, [3]);
        assert!(matches!(reader.next(), Told::Event { data, .. } if data == json!({ "n": 3 })));
    });
}

#[test]
fn as_many_are_waited_for_as_the_limit_says_and_a_poll_is_always_answered() {
    let limits = |limits: &mut Limits| limits.awaited_topics_max = 2;
    let start = || start_of(Hub::new(Epoch::from_bits(1234)), limits);
    let detail =
        "clients already wait for 2 topics that have no event yet, the most that all of them may";
    for way in STREAMS {
        let fixture = start();
        let waiting = ["open-a", "open-b", "open-b"].map(|topic| waits(&fixture, way, topic));
        for refused in STREAMS {
            let target = format!("/topics/open-c?{}", refused.query);
            let told = refused.problem(&fixture, &target, 503, "too-many-awaited");
            assert_eq!(told, detail);
        }
        let reply = fixture.get("/topics/open-c?wait=100", &[]);
        assert_eq!(reply.problem(503, "too-many-awaited"), detail);
        assert_eq!(reply.field("retry-after"), Some("10"));
        fixture.get("/topics/open-c", &HANDSHAKE).problem(503, "too-many-awaited");
        assert_eq!(fixture.get("/topics/open-c", &[]).next(), "ya-0");
        // Topics that are not awaited any more do not count.
        drop(waiting);
        wait_until(&format!("after {}", way.name), || {
            let mut client = Client::open(Carrier::Tcp, &fixture);
            let mut wait = |id| client.ask(&format!("GET {id} /topics/open-{id}")).status;
            [wait("c"), wait("d")] == [100, 100]
        });
    }
    let fixture = start();
    // Nor does one that is there by now.
    let [first, second] = ["open-x", "open-y"].map(|topic| waits(&fixture, STREAMS[0], topic));
    publish(&fixture, "open-x", [1]);
    let third = waits(&fixture, STREAMS[0], "open-z");
    drop((first, second, third));
}

#[test]
fn a_pattern_that_is_full_is_waited_for_and_refuses_the_event() {
    let fixture = start();
    publish(&fixture, "few-a", [1]);
    let mut stream = fixture.events("/topics/few-b", &[]);
    stream.block().unwrap();
    let mut client = Client::open(Carrier::Tcp, &fixture);
    client.ask("POST p /topics/few-b\n1").problem(507, "p", "too-many-topics");
    client.ask("DELETE d /topics/few-a").is_line(204, "d", "");
    assert_eq!(client.ask("POST p /topics/few-b\n2").status, 201);
    assert_eq!(stream.event(), "id: ya-1\ndata: 2\n");
}

#[test]
fn who_waits_on_a_plain_websocket_may_publish_the_first_event_itself() {
    let folder = TempDir::new().unwrap();
    for fixture in [start(), on_disk(&folder)] {
        for round in 0..10 {
            let target = format!("/topics/scratch-{round}");
            let mut socket = fixture.websocket(&target, &[], &[]);
            let mut other = fixture.websocket(&target, &[], &[]);
            for number in 0..100 {
                socket.connection.sender().send(Message::Text(&number.to_string())).unwrap();
            }
            socket.flush();
            for number in 0..100 {
                assert_eq!(socket.next(), number.to_string());
                assert_eq!(other.next(), number.to_string());
            }
        }
    }
    let fixture = start();
    let mut socket = fixture.websocket("/topics/scratch-a", &[], &[("Via", "1.1 proxy")]);
    socket.send(Message::Text("1"));
    let reason = "only clients on the server's own machine may publish to this topic; this one has a field of a proxy";
    assert_eq!(socket.next(), format!("close 1008 {reason}"));
    publish(&fixture, "few-a", [1]);
    let mut socket = fixture.websocket("/topics/few-b", &[], &[]);
    socket.send(Message::Text("1"));
    assert_eq!(
        socket.next(),
        "close 1008 there already are 1 topics few-*, the most that are allowed"
    );
    assert!(fixture.hub.topic(&"few-b".parse().unwrap()).is_none());
}
