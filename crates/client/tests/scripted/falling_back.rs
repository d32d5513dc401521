//! A client that may use any transport leaves one that does not work for one that does.

use std::time::Duration;

use anemone_client::{After, Error, Item, Subscribe, Subscription, Timeouts, Via};

use crate::fake::{Conn, Fake, Log, Request};
use crate::{SOON, events, told};

fn auto(fake: &Fake) -> Subscription {
    let subscribe = Subscribe::new(fake.url(Via::Sse)).after(After::Earliest).retry(SOON);
    subscribe.start().unwrap()
}

/// Returns the transports of the connections until this number of events was received.
async fn vias(subscription: &mut Subscription, events: usize) -> Vec<Via> {
    let (mut vias, mut count) = (Vec::new(), 0);
    while count < events {
        match subscription.next().await.unwrap().unwrap() {
            Item::Connected { via } => vias.push(via),
            Item::Event { .. } => count += 1,
            _ => {}
        }
    }
    vias
}

fn is_web_socket(request: &Request) -> bool {
    request.field("upgrade").is_some()
}

/// A page, as for a long poll.
fn page(conn: &mut Conn) -> std::io::Result<()> {
    let data = crate::fake::data(1);
    let page = format!(
        r#"{{"epoch":"e","first":1,"next":"e-1","events":[{{"offset":1,"time":1,"data":{data}}}]}}"#
    );
    conn.answer("200 OK", "content-type: application/json\r\n", &page)
}

#[tokio::test]
async fn a_web_socket_is_what_is_tried_first() {
    let fake = Fake::start(|_, mut conn| Log::of(3).serve(Via::WebSocket, &mut conn));
    let mut subscription = auto(&fake);
    assert_eq!(vias(&mut subscription, 3).await, [Via::WebSocket]);
}

#[tokio::test]
async fn a_proxy_that_lets_no_web_socket_through_is_gone_around() {
    for refusal in ["403 Forbidden", "400 Bad Request", "502 Bad Gateway", "200 OK"] {
        let fake = Fake::start(move |number, mut conn| match number {
            0 => {
                assert!(is_web_socket(&conn.request()?));
                conn.answer(refusal, "content-type: text/html\r\n", "<html>")
            }
            _ => Log::of(3).serve(Via::Sse, &mut conn),
        });
        let mut subscription = auto(&fake);
        assert_eq!(vias(&mut subscription, 3).await, [Via::Sse], "{refusal}");
        assert_eq!(fake.connections(), 2);
    }
}

#[tokio::test]
async fn who_is_told_of_another_transport_is_told_of_both_and_of_the_cause() {
    let fake = Fake::start(move |number, mut conn| match number {
        0 => {
            conn.request()?;
            conn.answer("403 Forbidden", "content-type: text/html\r\n", "<html>")
        }
        _ => Log::of(3).serve(Via::Sse, &mut conn),
    });
    let item = auto(&fake).next().await.unwrap().unwrap();
    let Item::Disconnected { via, next, error, retry_in } = item else { panic!("{item:?}") };
    assert_eq!((via, next, retry_in), (Via::WebSocket, Via::Sse, Duration::ZERO));
    assert_eq!(error.to_string(), "server answered 403");
}

#[tokio::test]
async fn a_url_without_a_topic_is_told_once_when_every_transport_has_found_none() {
    let fake = Fake::start(|_, mut conn| {
        conn.request()?;
        conn.answer("200 OK", "content-type: text/html\r\n", "<html>")
    });
    let mut subscription = Subscribe::new(format!("http://{}/", fake.address())).start().unwrap();
    let told = subscription.next().await;
    assert!(matches!(told, Err(Error::NoTopic { .. })), "{told:?}");
    assert_eq!(
        fake.connections(),
        3,
        "a proxy may have a topic there, and let through what has an end"
    );
}

#[tokio::test]
async fn a_server_that_has_nothing_at_a_path_is_believed_at_once() {
    let problem = r#"{"type":"/problems/unknown-path","title":"Nothing here","status":404}"#;
    let fake = Fake::start(move |_, mut conn| {
        conn.request()?;
        conn.answer("404 Not Found", "content-type: application/problem+json\r\n", problem)
    });
    let mut subscription = Subscribe::new(format!("http://{}/x", fake.address())).start().unwrap();
    let told = subscription.next().await;
    assert!(matches!(told, Err(Error::NoTopic { .. })), "{told:?}");
    assert_eq!(fake.connections(), 1);
}

#[tokio::test]
async fn a_topic_of_any_url_is_found_and_what_found_none_there_is_told_then() {
    let fake = Fake::start(|number, mut conn| match number {
        0 => {
            conn.request()?;
            conn.answer("200 OK", "content-type: text/html\r\n", "<html>")
        }
        _ => Log::of(3).serve(Via::Sse, &mut conn),
    });
    let url = format!("http://{}/x", fake.address());
    let mut subscription = Subscribe::new(url).after(After::Earliest).start().unwrap();
    let told = subscription.next().await.unwrap().unwrap();
    let Item::Disconnected { via, next, error, .. } = told else { panic!("{told:?}") };
    assert_eq!((via, next), (Via::WebSocket, Via::Sse));
    assert!(matches!(*error, Error::NoTopic { .. }), "{error}");
    assert_eq!(vias(&mut subscription, 3).await, [Via::Sse]);
}

#[tokio::test]
async fn how_far_back_to_begin_is_asked_for_again_until_a_position_is_told() {
    let since = "2026-11-22T10:00:00+01:00";
    let last = |from: Subscribe| from.after(After::Last(10.try_into().unwrap()));
    let since = |from: Subscribe| from.since(since);
    for (begin, query) in [
        (&last as &dyn Fn(Subscribe) -> Subscribe, "after=-10"),
        (&since, "since=2026-11-22T10%3A00%3A00%2B01%3A00"),
    ] {
        let (sender, targets) = std::sync::mpsc::channel();
        let fake = Fake::start(move |number, mut conn| {
            for asked in 0.. {
                sender.send(conn.request()?.target).unwrap();
                match (number, asked) {
                    (0, _) => return Ok(()),
                    (_, 0) => page(&mut conn)?,
                    _ => return conn.wait(),
                }
            }
            Ok(())
        });
        let mut subscription = begin(crate::subscribe(&fake, Via::Poll)).start().unwrap();
        vias(&mut subscription, 1).await;
        // Nothing more comes, but it is asked for.
        let more = tokio::time::timeout(Duration::from_millis(50), subscription.next()).await;
        assert!(more.is_err(), "{more:?}");
        let asked = targets.try_iter().map(|target| target.split_once('?').unwrap().1.to_owned());
        let asked: Vec<_> = asked.collect();
        assert_eq!(asked[..2], [query, query]);
        assert!(asked[2..].iter().all(|query| query == "after=e-1"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_proxy_that_holds_everything_back_leaves_the_long_poll() {
    // A proxy that accepts everything, and forwards only replies that end.
    let fake = Fake::start(|_, mut conn| {
        let request = conn.request()?;
        if is_web_socket(&request) {
            conn.upgrade(&request)?;
            return conn.wait();
        }
        if request.field("accept") == Some("text/event-stream") {
            conn.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
            return conn.wait();
        }
        page(&mut conn)
    });
    // Long enough that no machine is late with a page.
    let timeouts = Timeouts {
        connect: Duration::from_secs(1),
        answer: Duration::from_secs(1),
        ..Timeouts::default()
    };
    let subscribe = Subscribe::new(fake.url(Via::Sse)).after(After::Earliest).retry(SOON);
    let mut subscription = subscribe.timeouts(timeouts).start().unwrap();
    assert_eq!(vias(&mut subscription, 1).await, [Via::LongPoll]);
}

#[tokio::test]
async fn connections_that_break_one_after_the_other_are_the_transports_fault() {
    let fake = Fake::start(|_, mut conn| {
        let request = conn.request()?;
        if is_web_socket(&request) {
            conn.upgrade(&request)?;
            return conn.message(r#"{"position":"e-0"}"#);
        }
        let data = crate::fake::data(1);
        conn.write(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: e-1\ndata: {data}\n\n"
        ))?;
        conn.wait()
    });
    let mut subscription = auto(&fake);
    let expected = [Via::WebSocket, Via::WebSocket, Via::WebSocket, Via::Sse];
    assert_eq!(vias(&mut subscription, 1).await[..], expected);
}

#[tokio::test]
async fn nothing_is_lost_between_two_transports() {
    let fake = Fake::start(|number, mut conn| match number {
        0 => Log::of(2).serve(Via::WebSocket, &mut conn.cut_after(330)),
        1 => {
            conn.request()?;
            conn.answer("403 Forbidden", "", "")
        }
        _ => Log::of(9).serve(Via::Sse, &mut conn),
    });
    let mut told = told(&mut auto(&fake), 9).await;
    told.retain(|item| !item.starts_with("at"));
    assert_eq!(told, events(1..=9));
}
