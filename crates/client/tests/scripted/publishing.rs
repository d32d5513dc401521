//! A batch is repeated with the same key until the server returns its position.

use std::sync::{Arc, Mutex};

use anemone_client::{Content, Error, Publisher, Retry, Via};

use crate::SOON;
use crate::fake::{Fake, problem};

const CREATED: &str = r#"{"position":"e-4","first":"e-3","count":2}"#;

fn publisher(fake: &Fake) -> Publisher {
    Publisher::new(&fake.url(Via::Poll)).unwrap().retry(Retry { failures_max: Some(5), ..SOON })
}

#[tokio::test]
async fn a_batch_without_an_answer_is_sent_again_under_the_same_key() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let fake = Fake::start(move |number, mut conn| {
        loop {
            let request = conn.request()?;
            assert_eq!((&*request.method, &*request.target), ("POST", "/topics/x"));
            assert_eq!(request.field("content-type"), Some("application/x-ndjson"));
            assert_eq!(request.body, b"1\n2\n");
            let key = request.field("idempotency-key").unwrap().to_owned();
            seen.lock().unwrap().push(key);
            match number {
                0 => return Ok(()),
                1 => conn.answer("503 Service Unavailable", "", "")?,
                _ => conn.answer("201 Created", "content-type: application/json\r\n", CREATED)?,
            }
            if number == 1 {
                return Ok(());
            }
        }
    });
    let mut publisher = publisher(&fake);
    for _ in 0..2 {
        let published = publisher.publish(Content::Lines, "1\n2\n").await.unwrap();
        assert_eq!(
            (published.first.offset, published.position.offset, published.count()),
            (3, 4, 2)
        );
    }
    // The connection that worked is used again.
    assert_eq!(fake.connections(), 3);
    let keys = keys.lock().unwrap();
    let [first, second, third, other] = &keys[..] else { panic!("{keys:?}") };
    assert!(first == second && second == third && third != other, "{keys:?}");
    assert_eq!(first.len(), 32);
}

#[tokio::test]
async fn what_is_refused_for_good_is_sent_once() {
    let fake = Fake::start(|_, mut conn| {
        conn.request()?;
        conn.problem("422 Unprocessable Content", "", "key-reused")
    });
    let error = publisher(&fake).publish_with_key(Content::Json, "1", "k").await.unwrap_err();
    let Error::Refused(refused) = error else { panic!("{error}") };
    assert_eq!((refused.problem(), fake.connections()), (Some("key-reused"), 1));
    let bad = publisher(&fake).publish_with_key(Content::Json, "1", "a b").await;
    assert!(matches!(bad, Err(Error::KeyInvalid)));
}

#[tokio::test]
async fn an_event_is_published_multiplexed_on_one_connection() {
    let fake = Fake::start(|number, mut conn| {
        let request = conn.request()?;
        assert_eq!(request.target, "/ws");
        conn.upgrade(&request)?;
        for id in 1.. {
            let message = conn.receive()?;
            let (line, payload) = message.split_once('\n').unwrap();
            assert_eq!((line, payload), (&*format!("POST {id} /topics/x?key=a%2Fb"), "\"hi\""));
            if number == 0 {
                return Ok(());
            }
            conn.message("100 9 e-1")?;
            conn.message(&format!("201 {id} e-4\n{CREATED}"))?;
        }
        Ok(())
    });
    let mut publisher = publisher(&fake).multiplexed();
    for _ in 0..3 {
        let published = publisher.publish_with_key(Content::Text, "hi", "a/b").await.unwrap();
        assert_eq!(published.position.to_string(), "e-4");
    }
    assert_eq!(fake.connections(), 2);
    let not_text = publisher.publish(Content::Text, &b"\xff"[..]).await;
    assert!(matches!(not_text, Err(Error::NotText)));
}

#[tokio::test]
async fn a_batch_is_published_multiplexed_with_its_type() {
    let fake = Fake::start(|_, mut conn| {
        let request = conn.request()?;
        conn.upgrade(&request)?;
        for (id, kind, payload) in [(1, "ndjson", "1\n2\n"), (2, "binary", "\0a")] {
            let message = conn.receive()?;
            let expected = format!("POST {id} /topics/x?key=k&type={kind}\n{payload}");
            assert_eq!(message, expected);
            conn.message(&format!("201 {id} e-4\n{CREATED}"))?;
        }
        conn.wait()
    });
    let mut publisher = publisher(&fake).multiplexed();
    for (content, body) in [(Content::Lines, "1\n2\n"), (Content::Binary, "\0a")] {
        let published = publisher.publish_with_key(content, body, "k").await.unwrap();
        assert_eq!(published.position.to_string(), "e-4");
    }
}

#[tokio::test]
async fn a_multiplexed_refusal_is_told() {
    let fake = Fake::start(|_, mut conn| {
        let request = conn.request()?;
        conn.upgrade(&request)?;
        conn.receive()?;
        conn.message(&format!("404 1\n{}", problem("unknown-topic")))?;
        conn.wait()
    });
    let error = publisher(&fake).multiplexed().publish(Content::Json, "1").await.unwrap_err();
    let Error::Refused(refused) = error else { panic!("{error}") };
    assert_eq!(refused.status(), 404);
}

#[tokio::test]
async fn a_body_that_was_cut_on_its_way_is_sent_again_under_the_same_key() {
    for (status, name) in [
        ("400 Bad Request", "bad-body"),
        ("408 Request Timeout", "body-timeout"),
        ("429 Too Many Requests", "too-many-requests"),
        ("503 Service Unavailable", "storage-failed"),
    ] {
        let fake = Fake::start(move |number, mut conn| {
            let request = conn.request()?;
            assert_eq!(
                (request.field("idempotency-key"), &request.body[..]),
                (Some("k"), &b"1"[..])
            );
            match number {
                0 => conn.problem(status, "retry-after: 0\r\n", name),
                _ => conn.answer("201 Created", "content-type: application/json\r\n", CREATED),
            }
        });
        let published = publisher(&fake).publish_with_key(Content::Json, "1", "k").await;
        assert_eq!(published.unwrap().count(), 2, "{name}");
        assert_eq!(fake.connections(), 2, "{name}");
    }
    // An event does not change on its way.
    let fake = Fake::start(|_, mut conn| {
        conn.request()?;
        conn.problem("400 Bad Request", "", "bad-event")
    });
    assert!(publisher(&fake).publish(Content::Json, "{").await.unwrap_err().is_permanent());
    assert_eq!(fake.connections(), 1);
}
