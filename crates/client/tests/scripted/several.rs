//! Several topics on one stream: no event is lost, and none comes twice, wherever a connection breaks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anemone_client::{Error, Item, Subscribe, Subscription, Timeouts, Token, UrlError, Via};

use crate::SOON;
use crate::fake::{Conn, Fake, Request, data};

/// The ways to read several topics.
const WAYS: [Via; 4] = [Via::Ndjson, Via::Sse, Via::LongPoll, Via::Poll];
/// The events of each topic. `b2` joins after the first events of the others.
const EVENTS: u64 = 3;
const BEGIN: &str = "$topics:e-2,a:0,b1:0";

fn token(text: &str) -> Token {
    text.parse().unwrap()
}

fn place(token: &Token, topic: &str) -> Option<u64> {
    token.get(topic)?.position().map(|position| position.offset)
}

/// Returns the objects that the server sends to a reader at these places, each with the token after it.
fn objects(after: &Token) -> Vec<(String, Token)> {
    let mut token = after.clone();
    let mut objects = Vec::new();
    for offset in 1..=EVENTS {
        for topic in ["a", "b1", "b2"] {
            if topic == "b2" && place(&token, topic).is_none() {
                token.set("$topics", "e-3".parse().unwrap());
                token.set("b2", "e-0".parse().unwrap());
                objects.push((format!(r#"{{"position":"{token}"}}"#), token.clone()));
            }
            if place(&token, topic).is_some_and(|place| place < offset) {
                token.set(topic, format!("e-{offset}").parse().unwrap());
                let data = data(offset);
                let event =
                    format!(r#"{{"topic":"{topic}","position":"e-{offset}","data":{data}}}"#);
                objects.push((event, token.clone()));
            }
        }
    }
    objects
}

/// Serves requests over this way until the client has gone.
fn serve(via: Via, conn: &mut Conn) -> io::Result<()> {
    loop {
        let request = conn.request()?;
        assert!(
            request.target.starts_with("/topics?topic=a&topic=b*&after="),
            "{}",
            request.target
        );
        let after = match request.parameter("after") {
            Some("earliest") => token(BEGIN),
            Some(after) => token(after),
            None => panic!("{}", request.target),
        };
        let objects = objects(&after);
        match via {
            Via::Ndjson | Via::Sse => return stream(via, conn, &after, &objects),
            _ if request.parameter("wait").is_some() && objects.is_empty() => return conn.wait(),
            // Pages are short.
            _ => page(conn, &after, &objects[..objects.len().min(4)])?,
        }
    }
}

fn stream(via: Via, conn: &mut Conn, after: &Token, objects: &[(String, Token)]) -> io::Result<()> {
    let types = ["text/event-stream", "application/x-ndjson"];
    let content_type = types[usize::from(via == Via::Ndjson)];
    conn.write(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    ))?;
    conn.chunk(&match via {
        Via::Sse => format!("retry: 1000\nid: {after}\n\n"),
        _ => format!("{{\"position\":\"{after}\"}}\n"),
    })?;
    for (object, token) in objects {
        conn.chunk(&match via {
            Via::Sse if object.starts_with(r#"{"position""#) => format!("id: {token}\n\n"),
            Via::Sse => format!("id: {token}\ndata: {object}\n\n"),
            _ => format!("{object}\n"),
        })?;
    }
    conn.wait()
}

fn page(conn: &mut Conn, after: &Token, objects: &[(String, Token)]) -> io::Result<()> {
    let next = objects.last().map_or(after, |(_, token)| token);
    let events = objects.iter().map(|(object, _)| object.as_str());
    let events: Vec<_> = events.filter(|object| object.starts_with(r#"{"topic""#)).collect();
    let page = format!(r#"{{"next":"{next}","events":[{}]}}"#, events.join(","));
    conn.answer("200 OK", "content-type: application/json\r\n", &page)
}

fn subscribe(fake: &Fake) -> Subscribe {
    let timeouts = Timeouts { poll_interval: Duration::from_millis(1), ..Timeouts::default() };
    let url = format!("http://{}/topics?topic=a&after=earliest", fake.address());
    Subscribe::new(url).topic("b*").retry(SOON).timeouts(timeouts)
}

/// Reads until all events have come: those of each topic in order, and the token after them.
async fn read(subscription: &mut Subscription) -> (Vec<String>, Token) {
    let (mut told, mut token) = (Vec::new(), Token::default());
    while told.len() < 3 * EVENTS as usize {
        match subscription.next().await.unwrap().unwrap() {
            Item::Token(place) => token = place,
            Item::Of { topic, item } => {
                let Item::Event { position, .. } = *item else { panic!("{item:?}") };
                token.set(&topic, anemone_client::After::Position(position));
                told.push(format!("{topic} {position}"));
            }
            _ => {}
        }
    }
    told.sort();
    (told, token)
}

fn expected() -> Vec<String> {
    let of = |topic| (1..=EVENTS).map(move |offset| format!("{topic} e-{offset}"));
    ["a", "b1", "b2"].into_iter().flat_map(of).collect()
}

#[tokio::test]
async fn a_connection_cut_at_any_byte_costs_nothing_in_any_topic() {
    for via in WAYS {
        let cut = Arc::new(AtomicUsize::new(usize::MAX));
        let next = Arc::clone(&cut);
        let fake = Fake::start(move |_, conn| {
            let cut = next.swap(usize::MAX, Ordering::SeqCst);
            serve(via, &mut conn.cut_after(cut))
        });
        let mut was_whole = false;
        for at in (0..5000).step_by(7) {
            cut.store(at, Ordering::SeqCst);
            let before = fake.connections();
            let mut subscription = subscribe(&fake).via(via).start().unwrap();
            let (told, end) = read(&mut subscription).await;
            assert_eq!(told, expected(), "{via} cut at {at}");
            assert_eq!(end.to_string(), "$topics:e-3,a:3,b1:3,b2:3", "{via} cut at {at}");
            was_whole = fake.connections() == before + 1;
            if was_whole {
                break;
            }
        }
        assert!(was_whole, "{via}");
    }
}

#[tokio::test]
async fn many_cuts_in_a_row_cost_nothing_in_any_topic() {
    for via in WAYS {
        let fake =
            Fake::start(move |number, conn| serve(via, &mut conn.cut_after(250 + 90 * number)));
        let mut subscription = subscribe(&fake).via(via).start().unwrap();
        assert_eq!(read(&mut subscription).await.0, expected(), "{via}");
        assert!(fake.connections() > 2, "{via}");
    }
}

#[tokio::test]
async fn a_later_subscription_goes_on_after_a_token() {
    for via in WAYS {
        let fake = Fake::start(move |_, mut conn| serve(via, &mut conn));
        let begin = token("$topics:e-3,a:2,b1:3,b2:1");
        let mut subscription = subscribe(&fake).via(via).resume(begin).start().unwrap();
        let mut told = Vec::new();
        while told.len() < 3 {
            let item = subscription.next().await.unwrap().unwrap();
            told.extend(item.to_json().filter(|json| json.starts_with(r#"{"topic""#)));
        }
        told.sort();
        let event = |topic, offset| {
            format!(r#"{{"topic":"{topic}","position":"e-{offset}","data":{}}}"#, data(offset))
        };
        assert_eq!(told, [event("a", 3), event("b2", 2), event("b2", 3)], "{via}");
    }
}

#[tokio::test]
async fn a_proxy_that_holds_streams_back_leaves_the_long_poll_and_nothing_is_lost() {
    // The first stream breaks in the middle of its events; later ones are held back.
    let is_held = |request: &Request| request.field("accept") != Some("application/json");
    let fake = Fake::start(move |number, mut conn| {
        if number == 0 {
            return serve(Via::Ndjson, &mut conn.cut_after(400));
        }
        loop {
            let request = conn.request()?;
            if is_held(&request) {
                return conn.answer("403 Forbidden", "content-type: text/html\r\n", "<html>");
            }
            let after = token(request.parameter("after").unwrap());
            let objects = objects(&after);
            match request.parameter("wait").is_some() && objects.is_empty() {
                true => return conn.wait(),
                false => page(&mut conn, &after, &objects)?,
            }
        }
    });
    let mut subscription = subscribe(&fake).start().unwrap();
    let mut vias = Vec::new();
    let mut told = Vec::new();
    while told.len() < 3 * EVENTS as usize {
        match subscription.next().await.unwrap().unwrap() {
            Item::Connected { via } => vias.push(via),
            Item::Of { topic, item } => {
                let Item::Event { position, .. } = *item else { panic!("{item:?}") };
                told.push(format!("{topic} {position}"));
            }
            _ => {}
        }
    }
    told.sort();
    assert_eq!((told, vias), (expected(), vec![Via::Ndjson, Via::LongPoll]));
}

#[tokio::test]
async fn a_token_that_is_too_long_ends_it_and_says_so() {
    let problem = r#"{"type":"/problems/token-too-long","title":"Too long","status":400}"#;
    for is_stream in [true, false] {
        let fake = Fake::start(move |_, mut conn| {
            conn.request()?;
            if !is_stream {
                return conn.problem("400 Bad Request", "", "token-too-long");
            }
            let end = format!(r#"{{"end":{{"reason":"failed","problem":{problem}}}}}"#);
            let lines = format!("{{\"position\":\"{BEGIN}\"}}\n{end}\n");
            conn.answer("200 OK", "content-type: application/x-ndjson\r\n", &lines)
        });
        let mut subscription = subscribe(&fake).start().unwrap();
        let error = loop {
            match subscription.next().await {
                Ok(item) => assert!(item.is_some()),
                Err(error) => break error,
            }
        };
        let Error::Refused(refused) = error else { panic!("{error:?}") };
        assert_eq!((refused.status(), refused.problem()), (400, Some("token-too-long")));
        assert_eq!(fake.connections(), 1);
    }
}

#[test]
fn what_several_topics_cannot_do_is_said_at_once() {
    let several = || Subscribe::new("http://a/topics/wind").topic("cpu*");
    assert!(several().start().is_ok());
    for via in [Via::WebSocket, Via::Mux] {
        let refused = several().via(via).start().unwrap_err();
        assert!(matches!(refused, Error::Url(UrlError::ViaOfOne { .. })), "{refused:?}");
    }
    let tcp = Subscribe::new("tcp://a:1/topics/wind").topic("cpu*").start().unwrap_err();
    assert!(matches!(tcp, Error::Url(UrlError::ViaOfOne { .. })), "{tcp:?}");
    let one = Subscribe::new("http://a/topics/wind").resume(token("wind:e-1")).start().unwrap_err();
    assert!(matches!(one, Error::Url(UrlError::TokenOfOne)), "{one:?}");
    let bad = Subscribe::new("http://a/topics?topic=a&after=nonsense").start().unwrap_err();
    assert!(matches!(bad, Error::Url(UrlError::Token(_))), "{bad:?}");
}
