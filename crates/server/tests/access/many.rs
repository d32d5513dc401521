//! Lines of requests that read several topics.

use super::*;

fn two_topics(which: AccessLog) -> Fixture {
    let fixture = start(which, |_| {});
    fixture.hub.ensure("cpu0".parse().unwrap(), Retention::default()).unwrap();
    fixture
}

#[test]
fn a_line_names_the_topics_that_were_read_and_the_place_in_each() {
    let fixture = two_topics(AccessLog::All);
    let target = "/topics?topic=wind&topic=cpu*&after=earliest";
    let read = "topics=wind,cpu*";
    let token = "position=$topics:ya-3,cpu0:0,wind:3";
    for (target, expected) in [
        (target.to_owned(), format!("GET /topics 200 poll {read} {token}")),
        (format!("{target}&wait=1"), format!("GET /topics 200 long-poll {read} {token}")),
        (format!("{target}&topic=nix"), "GET /topics 404 poll topics=wind,nix,cpu*".to_owned()),
        ("/topics?topic=a%20b".to_owned(), "GET /topics 400 http".to_owned()),
    ] {
        assert_eq!(line_of(&fixture, "GET", &target, &[]), expected);
    }
    for (accept, transport) in [("text/event-stream", "sse"), ("application/x-ndjson", "ndjson")] {
        let mut stream = fixture.connect();
        let client = stream.local_addr().unwrap();
        send(&mut stream, "GET", target, &[("Accept", accept)]);
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while !line.contains(r#""position":"ya-3""#) {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        drop(reader);
        let line = logged::requests(client, 1).remove(0);
        let begin = format!("GET /topics 200 {transport} {read} bytes=");
        assert!(line.starts_with(&begin), "{line}");
        assert!(line.ends_with(&format!(" {token} end=client gone")), "{line}");
    }
}

#[test]
fn long_lists_of_topics_and_places_are_cut() {
    let fixture = two_topics(AccessLog::All);
    let names: Vec<_> = (0..50).map(|number| format!("topic-{number:02}")).collect();
    for name in &names {
        fixture.hub.ensure(name.parse().unwrap(), Retention::default()).unwrap();
    }
    let line = line_of(&fixture, "GET", &format!("/topics?topic={}", names.join("&topic=")), &[]);
    let (topics, position) = line.split_once(" position=").unwrap();
    let topics = topics.strip_prefix("GET /topics 200 poll topics=topic-00,topic-01,").unwrap();
    for cut in [topics, position] {
        assert!(cut.ends_with('…') && cut.chars().count() <= 257, "{cut}");
    }
}

#[test]
fn polls_of_other_topics_have_a_line_of_their_own() {
    let fixture = two_topics(AccessLog::Sampled);
    let mut stream = fixture.connect();
    let client = stream.local_addr().unwrap();
    for topics in ["wind", "cpu*", "wind", "cpu*"] {
        let target = format!("/topics?topic={topics}&after=earliest");
        send(&mut stream, "GET", &target, &[]);
        let reply = Reply::read(&mut BufReader::new(&stream), "GET");
        assert_eq!(reply.status, 200);
    }
    drop(fixture);
    let lines = logged::requests(client, 4);
    let read = lines.iter().map(|line| line.split(' ').nth(4).unwrap().to_owned());
    assert_eq!(
        read.collect::<Vec<_>>(),
        ["topics=wind", "topics=cpu*", "topics=wind", "topics=cpu*"]
    );
}
