//! Pages: poll and long poll.

use std::io::BufReader;
use std::num::NonZero;
use std::time::{Duration, Instant};

use anemone_hub::Retention;
use anemone_testing::{Fixture, Reply, send};

#[test]
fn a_bare_get_gives_the_newest_event_and_where_to_go_on() {
    let fixture = Fixture::start();
    let empty = fixture.get("/topics/wind", &[]);
    assert_eq!((empty.status, empty.numbers()), (200, vec![]));
    fixture.publish(1..=3);
    let reply = fixture.get("/topics/wind", &[]);
    assert_eq!(reply.numbers(), [3]);
    assert_eq!(reply.field("content-type"), Some("application/json"));
    assert_eq!(reply.field("cache-control"), Some("no-cache"));
    let page = reply.json();
    assert_eq!((&page["first"], &page["epoch"]), (&1.into(), &"ya".into()));
    assert_eq!(page["next"], "ya-3");
    assert_eq!(page["events"][0]["offset"], 3);
    assert!(page["events"][0]["time"].as_f64().unwrap() > 1.7e12);
}

#[test]
fn polls_follow_their_positions_without_loss_or_repetition() {
    let fixture = Fixture::start();
    let mut next = fixture.get("/topics/wind", &[]).next();
    let mut seen = Vec::new();
    for round in 0..10 {
        fixture.publish(round * 3 + 1..=round * 3 + 3);
        let reply = fixture.get(&format!("/topics/wind?after={next}&limit=2"), &[]);
        seen.extend(reply.numbers());
        next = reply.next();
        let link = format!("<?after={next}>; rel=\"next\"");
        assert_eq!(reply.field("link"), Some(&*link));
    }
    seen.extend(fixture.get(&format!("/topics/wind?after={next}"), &[]).numbers());
    assert_eq!(seen, (1..=30).collect::<Vec<_>>());
}

#[test]
fn earliest_and_latest_mean_all_and_nothing_yet() {
    let fixture = Fixture::start();
    fixture.publish(1..=3);
    assert_eq!(fixture.get("/topics/wind?after=earliest", &[]).numbers(), [1, 2, 3]);
    let latest = fixture.get("/topics/wind?after=latest", &[]);
    assert_eq!((latest.numbers(), latest.next()), (vec![], "ya-3".into()));
}

#[test]
fn a_long_poll_is_answered_at_once_when_there_is_something() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let reply = fixture.get("/topics/wind?after=earliest", &[("Prefer", "wait=100")]);
    assert_eq!(reply.numbers(), [1]);
    assert_eq!(reply.field("preference-applied"), Some("wait=100"));
}

#[test]
fn a_long_poll_waits_for_the_next_event() {
    let fixture = Fixture::start();
    let mut stream = fixture.connect();
    let first = fixture.get("/topics/wind", &[]);
    send(&mut stream, "GET", &format!("/topics/wind?after={}&wait=100", first.next()), &[]);
    // The request is being waited on, or will find the event: either way it gets it.
    fixture.publish(1..=1);
    let mut reader = BufReader::new(stream);
    assert_eq!(Reply::read(&mut reader, "GET").numbers(), [1]);
}

#[test]
fn a_long_poll_is_answered_with_an_empty_page_when_the_time_is_up() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let begun = Instant::now();
    let reply = fixture.get("/topics/wind?after=latest&wait=0.3", &[]);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!((reply.status, reply.numbers(), reply.next()), (200, vec![], "ya-2".into()));
}

#[test]
fn requests_share_a_connection() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let mut reader = BufReader::new(fixture.connect());
    for target in
        ["/topics/wind", "/topics/wind?after=latest&wait=0.01", "/topics/nothing", "/topics/wind"]
    {
        send(reader.get_mut(), "GET", target, &[]);
        let reply = Reply::read(&mut reader, "GET");
        assert!(matches!(reply.status, 200 | 404), "{reply:?}");
    }
}

#[test]
fn topics_are_listed() {
    let fixture = Fixture::start();
    fixture.publish(1..=2);
    let list = fixture.get("/topics", &[]).json();
    assert_eq!(list["topics"][0]["name"], "wind");
    assert_eq!(list["topics"][0]["next"], "ya-2");
    assert_eq!(list["topics"][0]["url"], "topics/wind");
}

#[test]
fn topics_are_listed_in_pages_and_each_says_where_the_next_begins() {
    let fixture = Fixture::start();
    for name in ["c", "a", "b", "d"] {
        fixture.hub.create(name.parse().unwrap(), Retention::default()).unwrap();
    }
    let page = |target: &str| {
        let reply = fixture.get(target, &[]);
        let list = reply.json();
        let topics = list["topics"].as_array().unwrap().iter();
        let names = topics.map(|topic| topic["name"].as_str().unwrap().to_owned());
        let link = reply.field("link").map(str::to_owned);
        (names.collect::<Vec<_>>(), list["next"].as_str().map(str::to_owned), link)
    };
    for (target, names, next) in [
        ("/topics", &["a", "b", "c", "d", "wind"][..], None),
        ("/topics?limit=5", &["a", "b", "c", "d", "wind"], None),
        ("/topics?limit=2", &["a", "b"], Some("b")),
        ("/topics?limit=2&after=b", &["c", "d"], Some("d")),
        ("/topics?limit=2&after=d", &["wind"], None),
        ("/topics?limit=2&after=nothing", &["wind"], None),
        ("/topics?after=wind", &[], None),
    ] {
        let link = next.map(|next| format!("<?after={next}&limit=2>; rel=\"next\""));
        let names = names.iter().copied().map(str::to_owned).collect();
        assert_eq!(page(target), (names, next.map(str::to_owned), link), "{target}");
    }
    for query in ["limit=0", "limit=1001", "after=", "after=%00", "wait=1"] {
        fixture.get(&format!("/topics?{query}"), &[]).problem(400, "bad-parameter");
    }
}

#[test]
fn a_gap_is_told_at_once_by_a_long_poll() {
    let fixture = Fixture::start();
    let reply = fixture.get("/topics/wind?after=zz-7&wait=100", &[]);
    assert_eq!((&reply.json()["gap"]["reason"], reply.numbers()), (&"epoch".into(), vec![]));
}

#[test]
fn when_the_server_stops_a_long_poll_is_answered_and_an_idle_connection_ended() {
    let mut fixture =
        Fixture::with(|options| options.threads = NonZero::new(1), Retention::default());
    fixture.publish(1..=1);
    let mut connections = [(); 2].map(|()| BufReader::new(fixture.connect()));
    for connection in &mut connections {
        send(connection.get_mut(), "GET", "/topics/wind", &[]);
        Reply::read(connection, "GET");
    }
    let [mut long_poll, mut idle] = connections;
    send(long_poll.get_mut(), "GET", "/topics/wind?after=latest&wait=100", &[]);
    // The one thread there is has taken that up when it answers this.
    send(idle.get_mut(), "GET", "/topics/wind", &[]);
    Reply::read(&mut idle, "GET");
    fixture.stop();
    let reply = Reply::read(&mut long_poll, "GET");
    assert_eq!((reply.status, reply.numbers()), (200, vec![]));
    assert!(std::net::TcpStream::connect(fixture.address).is_err());
}

#[test]
fn a_page_that_the_client_has_is_not_sent_again() {
    // RFC 9110 section 13.1.2
    let fixture = Fixture::start();
    fixture.publish(1..=3);
    for target in ["/topics/wind", "/topics/wind?after=earliest", "/topics/wind?after=ya-3"] {
        let page = fixture.get(target, &[]);
        let tag = page.field("etag").unwrap();
        assert_eq!(tag, "\"1.ya-3\"", "{target}");
        let weak = format!("\"other\", W/{tag}");
        for known in [tag, &*weak, "*"] {
            for method in ["GET", "HEAD"] {
                let reply = fixture.request(method, target, &[("If-None-Match", known)]);
                assert_eq!((reply.status, &*reply.body), (304, ""), "{target} {known}");
                assert_eq!(reply.field("etag"), Some(tag));
                assert_eq!(reply.field("cache-control"), Some("no-cache"));
                assert_eq!(reply.field("vary"), Some("accept, sec-fetch-mode"));
            }
        }
        let reply = fixture.get(target, &[("If-None-Match", "\"1.ya-2\"")]);
        assert_eq!((reply.status, &reply.body), (200, &page.body));
    }
}

#[test]
fn a_page_that_is_another_one_has_another_tag() {
    let retention = Retention { events_max: 3, ..Retention::default() };
    let fixture = Fixture::with(|_| {}, retention);
    fixture.publish(1..=3);
    let tag = |target: &str| fixture.get(target, &[]).field("etag").unwrap().to_owned();
    let before = tag("/topics/wind?after=ya-0&limit=1");
    assert_eq!(before, "\"1.ya-1\"");
    fixture.publish(4..=4);
    let after = fixture.get("/topics/wind?after=ya-0&limit=1", &[("If-None-Match", &before)]);
    assert_eq!((after.status, after.numbers()), (200, vec![2]), "what is kept has changed");
    assert_eq!(after.field("etag"), Some("\"2.ya-2\""));
}

#[test]
fn a_long_poll_always_has_an_answer_of_its_own() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    let tag = fixture.get("/topics/wind?after=latest", &[]).field("etag").unwrap().to_owned();
    let target = "/topics/wind?after=latest&wait=0";
    let reply = fixture.get(target, &[("If-None-Match", &tag)]);
    assert_eq!((reply.status, reply.field("etag")), (200, None));
    let reply = fixture.get("/topics/wind?after=earliest&wait=100", &[("If-None-Match", "*")]);
    assert_eq!((reply.status, reply.numbers()), (200, vec![1]));
}

#[test]
fn who_waits_for_a_topic_that_is_deleted_is_told_that_it_is_gone() {
    let fixture = Fixture::start();
    fixture.publish(1..=1);
    // The first request shows that the second one on the connection waits, or is cancelled.
    let mut reader = BufReader::new(fixture.connect());
    send(reader.get_mut(), "GET", "/topics/wind", &[]);
    Reply::read(&mut reader, "GET");
    send(reader.get_mut(), "GET", "/topics/wind?after=ya-1&wait=100", &[]);
    fixture.hub.delete(&"wind".parse().unwrap()).unwrap();
    let reply = Reply::read(&mut reader, "GET");
    assert!(matches!(reply.status, 404 | 410), "{reply:?}");
    if reply.status == 410 {
        reply.problem(410, "topic-deleted");
    }
    fixture.get("/topics/wind", &[]).problem(404, "unknown-topic");
}
