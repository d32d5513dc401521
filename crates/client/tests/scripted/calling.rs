//! A call is made again only where that is safe, and its caller learns what is known of it.

use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use anemone_client::{Client, Error, Limits, Malformed, Retry, Timeouts};

use crate::SOON;
use crate::fake::{Conn, Fake};

const JSON: &str = "content-type: application/json\r\n";
const NDJSON: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";

fn client(fake: &Fake) -> Client {
    let client = Client::new(&format!("http://{}/live/", fake.address())).unwrap();
    client.retry(Retry { failures_max: Some(5), ..SOON })
}

/// The requests that a server got.
type Seen = Arc<Mutex<Vec<String>>>;

/// Notes each request, and answers it with this script.
fn noting(
    script: impl Fn(usize, &mut Conn) -> io::Result<()> + Send + Sync + 'static,
) -> (Fake, Seen) {
    let seen = Seen::default();
    let notes = Arc::clone(&seen);
    let fake = Fake::start(move |number, mut conn| {
        loop {
            let request = conn.request()?;
            let key = request.field("idempotency-key").unwrap_or("-").to_owned();
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let note = format!("{} {} {body} {key}", request.method, request.target);
            notes.lock().unwrap().push(note);
            script(number, &mut conn)?;
        }
    });
    (fake, seen)
}

#[tokio::test]
async fn a_call_has_its_path_fields_and_body_and_its_reply_has_them_too() {
    let fake = Fake::start(|_, mut conn| {
        for _ in 0..2 {
            let request = conn.request()?;
            assert_eq!(
                (&*request.method, &*request.target),
                ("PATCH", "/live/a/1?$limit=2&after=x")
            );
            assert_eq!(request.field("if-match"), Some("\"3\""));
            assert_eq!(request.field("x-who"), Some("me"));
            assert_eq!(request.field("content-type"), Some("application/json"));
            assert_eq!(request.body, b"{\"n\":1}");
            conn.answer("200 OK", &format!("{JSON}etag: \"4\"\r\n"), "{\"n\":1}")?;
        }
        Ok(())
    });
    let client = client(&fake).header("X-Who", "me");
    for _ in 0..2 {
        let call = client.call("PATCH", "/a/1?$limit=2&after=x").header("If-Match", "\"3\"");
        let reply = call.json("{\"n\":1}").send().await.unwrap();
        assert_eq!((reply.status(), reply.field("ETag")), (200, Some("\"4\"")));
        assert_eq!(reply.json::<serde_json::Value>().unwrap()["n"], 1);
    }
    assert_eq!(fake.connections(), 1, "the connection is used again");
}

#[tokio::test]
async fn what_is_safe_is_made_again_after_a_cut_in_the_middle_of_its_reply() {
    for method in ["GET", "PUT", "DELETE"] {
        let (fake, seen) = noting(|number, conn| match number {
            0 => Err(io::ErrorKind::Other.into()),
            1 => {
                conn.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"n\"")?;
                Err(io::ErrorKind::Other.into())
            }
            _ => conn.answer("200 OK", JSON, "{\"n\":1}"),
        });
        let reply = client(&fake).call(method, "/a").send().await.unwrap();
        assert_eq!(&reply.body()[..], b"{\"n\":1}");
        assert_eq!(*seen.lock().unwrap(), [(); 3].map(|()| format!("{method} /live/a  -")));
    }
}

#[tokio::test]
async fn what_is_not_safe_is_made_once_and_may_have_been_carried_out() {
    for (method, cut) in [("POST", false), ("PATCH", true)] {
        let (fake, seen) = noting(move |_, conn| {
            if cut {
                conn.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"n\"")?;
            }
            Err(io::ErrorKind::Other.into())
        });
        let error = client(&fake).call(method, "/a").json("1").send().await.unwrap_err();
        assert!(matches!(error, Error::Uncertain(_)), "{error:?}");
        assert_eq!(error.to_string(), "the request may or may not have been carried out");
        assert_eq!(*seen.lock().unwrap(), [format!("{method} /live/a 1 -")]);
    }
}

#[tokio::test]
async fn with_a_key_a_post_is_made_again_under_the_same_key() {
    let (fake, seen) = noting(|number, conn| match number {
        0 => Err(io::ErrorKind::Other.into()),
        1 => conn.problem("503 Service Unavailable", "retry-after: 0\r\n", "storage-failed"),
        _ => conn.answer("201 Created", JSON, "{}"),
    });
    // A server may refuse on the connection that is kept; here it ends with each number.
    let client = client(&fake);
    let call = client.call("POST", "/a").json("1");
    let calling = call.clone().retrying().send();
    let reply = tokio::time::timeout(Duration::from_secs(20), calling).await;
    // The second connection answers 503 for ever: it is never the third.
    assert!(matches!(reply, Ok(Err(Error::Refused(_)))), "{reply:?}");
    let notes = seen.lock().unwrap().clone();
    assert!(notes.len() == 6 && notes.iter().all(|note| *note == notes[0]), "{notes:?}");
    assert_eq!(notes[0].rsplit(' ').next().unwrap().len(), 32);
    let own = call.header("Idempotency-Key", "mine").send().await.unwrap_err();
    assert!(matches!(own, Error::Refused(_)));
    assert!(seen.lock().unwrap().last().unwrap().ends_with(" mine"));
}

#[tokio::test]
async fn what_never_left_is_made_again_and_was_surely_not_carried_out() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::new(&format!("http://{nobody}")).unwrap();
    let client = client.retry(Retry { failures_max: Some(3), ..SOON });
    let error = client.call("POST", "/a").send().await.unwrap_err();
    assert!(matches!(error, Error::Connect(_)), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced_even_for_a_post() {
    let (closed, is_closed) = mpsc::channel();
    let fake = Fake::start(move |_, mut conn| {
        conn.request()?;
        conn.answer("200 OK", JSON, "1")?;
        drop(conn);
        closed.send(()).map_err(io::Error::other)
    });
    let client = client(&fake);
    for _ in 0..3 {
        client.call("POST", "/a").json("1").send().await.unwrap();
        // Nobody waits for the end of the connection.
        is_closed.recv().unwrap();
    }
    assert_eq!(fake.connections(), 3);
}

#[tokio::test]
async fn a_server_is_given_the_time_that_it_asks_for() {
    let (fake, _) = noting(|number, conn| match number {
        0 => {
            conn.problem("503 Service Unavailable", "retry-after: 1\r\n", "overloaded")?;
            Err(io::ErrorKind::Other.into())
        }
        _ => conn.answer("200 OK", JSON, "1"),
    });
    let begun = Instant::now();
    // The server has not begun it, so it is safe to make again.
    client(&fake).call("POST", "/a").send().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_refusal_is_a_problem_with_its_words_and_any_other_body_is_there_as_it_is() {
    let (fake, seen) = noting(|_, conn| conn.problem("404 Not Found", "", "unknown-record"));
    let error = client(&fake).call("GET", "/a").send().await.unwrap_err();
    let Error::Refused(refused) = error else { panic!("{error:?}") };
    assert_eq!((refused.status(), refused.problem()), (404, Some("unknown-record")));
    assert_eq!(seen.lock().unwrap().len(), 1);

    let (fake, _) = noting(|_, conn| conn.answer("409 Conflict", JSON, "{\"own\":1}"));
    let error = client(&fake).call("POST", "/a").send().await.unwrap_err();
    let Error::Refused(refused) = error else { panic!("{error:?}") };
    assert_eq!((refused.problem(), &refused.body()[..]), (None, &b"{\"own\":1}"[..]));
    assert_eq!(refused.content_type(), Some("application/json"));
}

#[tokio::test]
async fn a_stream_comes_item_by_item_and_may_have_no_end() {
    let (fake, _) = noting(|_, conn| {
        conn.write(NDJSON)?;
        for number in 0.. {
            conn.chunk(&format!("{number}\n\n{{\"n\":"))?;
            conn.chunk(&format!("{number}}}\r\n"))?;
        }
        Ok(())
    });
    let mut stream = client(&fake).call("POST", "/a").json("1").stream().await.unwrap();
    assert!(stream.is_stream() && stream.status() == 200);
    for number in 0..1000 {
        assert_eq!(stream.next().await.unwrap().unwrap(), number.to_string());
        assert_eq!(stream.next().await.unwrap().unwrap(), format!("{{\"n\":{number}}}"));
    }
    // Nothing without an end is collected.
    let limits = Limits { reply_bytes_max: 10_000, ..Limits::default() };
    let error = client(&fake).limits(limits).call("GET", "/a").send().await.unwrap_err();
    assert!(matches!(error, Error::Malformed(Malformed::TooLong { limit: 10_000 })), "{error:?}");
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_whole_stream() {
    let (fake, seen) = noting(|_, conn| {
        conn.write(NDJSON)?;
        conn.chunk("1\n2")?;
        Err(io::ErrorKind::Other.into())
    });
    let mut stream = client(&fake).call("GET", "/a").stream().await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "1");
    assert!(matches!(stream.next().await, Err(Error::Http(_))));
    assert_eq!(seen.lock().unwrap().len(), 1, "a stream that has begun is not begun anew");
}

#[tokio::test]
async fn an_item_without_an_end_is_refused() {
    let (fake, _) = noting(|_, conn| {
        conn.write(NDJSON)?;
        loop {
            conn.chunk(&"x".repeat(60))?;
        }
    });
    let limits = Limits { event_bytes_max: 100, ..Limits::default() };
    let mut stream = client(&fake).limits(limits).call("GET", "/a").stream().await.unwrap();
    let error = stream.next().await.unwrap_err();
    assert!(matches!(error, Error::Malformed(Malformed::TooLong { limit: 100 })), "{error:?}");
}

#[tokio::test]
async fn more_calls_than_the_limit_wait_for_their_turn() {
    let (fake, _) = noting(|_, conn| conn.answer("200 OK", JSON, "1"));
    let client = client(&fake).limits(Limits { calls_max: 2, ..Limits::default() });
    let calls = (0..20).map(|_| tokio::spawn(client.call("GET", "/a").send()));
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert!(fake.connections() <= 2, "{}", fake.connections());
}

#[tokio::test]
async fn silence_is_not_waited_for_for_ever() {
    let (fake, seen) = noting(|_, conn| conn.wait());
    // Long enough that no machine is late to take the request.
    let timeouts =
        Timeouts { connect: Duration::from_secs(2), answer: Duration::ZERO, ..Timeouts::default() };
    let silent = client(&fake).timeouts(timeouts);
    let error = silent.call("POST", "/a").send().await.unwrap_err();
    let Error::Uncertain(source) = error else { panic!("{error:?}") };
    assert!(matches!(*source, Error::Unanswered { .. }), "{source:?}");
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_no_call_is_refused_here() {
    let client = Client::new("http://127.0.0.1:1").unwrap();
    for (method, target) in [("get", "/a"), ("", "/a"), ("GET /", "/a"), ("ABCDEFGHIJKLMNOPQ", "/")]
    {
        let error = client.call(method, target).send().await.unwrap_err();
        assert!(matches!(error, Error::MethodInvalid), "{method}: {error:?}");
    }
    for target in ["", "a", "/a b", "/é", "/a\r\nHost: x", "http://a/"] {
        let error = client.call("GET", target).send().await.unwrap_err();
        assert!(matches!(error, Error::Url(_)), "{target}: {error:?}");
    }
    for (name, value) in [("a b", "c"), ("a", "b\nc"), ("Host", "x"), ("Content-Length", "7")] {
        let error = client.call("GET", "/").header(name, value).send().await.unwrap_err();
        let is_field = matches!(error, Error::HeaderInvalid { .. } | Error::HeaderReserved { .. });
        assert!(is_field, "{name}: {error:?}");
    }
}

#[tokio::test]
async fn a_reply_is_returned_whole_up_to_the_limit_and_not_beyond() {
    let limits = Limits { reply_bytes_max: 8, ..Limits::default() };
    for (content_type, body, is_refused) in [
        ("text/plain", "12345678", false),
        ("text/plain", "123456789", true),
        // Each item of a stream has a line feed.
        ("application/x-ndjson", "123\n456\n", false),
        ("application/x-ndjson", "123\n4567\n", true),
    ] {
        let fake = Fake::start(move |_, mut conn| {
            conn.request()?;
            conn.answer("200 OK", &format!("content-type: {content_type}\r\n"), body)
        });
        let got = client(&fake).limits(limits).call("GET", "/a").send().await;
        match got {
            Ok(reply) => assert_eq!((reply.body().as_ref(), is_refused), (body.as_bytes(), false)),
            Err(error) => {
                let is_so = matches!(error, Error::Malformed(Malformed::TooLong { limit: 8 }));
                assert!(is_so && is_refused, "{body}: {error:?}");
            }
        }
    }
}
