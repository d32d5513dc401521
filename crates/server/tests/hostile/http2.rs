//! Streams of an HTTP/2 connection whose replies are not read, while the connection itself works.

use std::time::Duration;

use anemone_testing::secure::Secure;
use anemone_testing::{resident_bytes, run};
use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;

#[test]
fn a_reply_that_nobody_takes_is_given_up_and_no_other() {
    let secure = Secure::with(|options| {
        // So long that no machine is late to take what it reads.
        options.limits.write_timeout = Duration::from_secs(2);
    });
    secure.fixture.publish(1..=10_000);
    let test = async {
        let stream = secure.connect(&["h2"]).await.unwrap();
        let (client, connection) = h2::client::Builder::new()
            .initial_window_size(1000)
            .handshake::<_, Bytes>(stream)
            .await
            .unwrap();
        let connection = tokio::spawn(connection);
        let mut client = client.ready().await.unwrap();
        let page = "/topics/wind?after=earliest&limit=1000";
        for (target, accept) in [
            (page, "application/json"),
            ("/topics/wind?after=earliest", "text/event-stream"),
            ("/", "text/html"),
        ] {
            let mut reply = get(&mut client, target, accept).await;
            // As much as there is room for comes, and then the server gives it up.
            let ended = loop {
                match reply.data().await.unwrap() {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert!(ended.is_reset() && ended.is_remote(), "{target}: {ended}");
        }
        // A stream that is read is complete, and a silent stream remains.
        let mut quiet = get(&mut client, "/topics/wind", "text/event-stream").await;
        assert!(quiet.data().await.unwrap().unwrap().starts_with(b"retry: "));
        let mut taken = get(&mut client, page, "application/json").await;
        let mut bytes = 0;
        while let Some(data) = taken.data().await {
            let len = data.unwrap().len();
            bytes += len;
            taken.flow_control().release_capacity(len).unwrap();
        }
        assert!(bytes > 10_000, "{bytes}");
        secure.fixture.publish(1..=1);
        assert!(quiet.data().await.unwrap().unwrap().ends_with(b"\n\n"));
        drop((client, quiet, taken));
        connection.await.unwrap().unwrap();
    };
    run(test);
}

async fn get(client: &mut SendRequest<Bytes>, target: &str, accept: &str) -> h2::RecvStream {
    let uri = format!("https://localhost{target}");
    let request = Request::builder().uri(uri).header("accept", accept).body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    response.into_body()
}

#[test]
fn a_window_that_stays_shut_is_worth_no_pages() {
    let secure = Secure::start();
    // 1 MiB of events, as much as a page has.
    let event = serde_json::json!({ "n": "x".repeat(10_000) });
    for _ in 0..110 {
        let data = anemone_hub::Data::json(&event).unwrap();
        secure.fixture.wind.publish(std::time::SystemTime::now().into(), data).unwrap();
    }
    let test = async {
        let (mut shut, mut open) = (secure.http2(0).await, secure.http2(1 << 20).await);
        let page = "/topics/wind?after=earliest&limit=1000";
        let before = resident_bytes();
        let uri = format!("https://localhost{page}");
        let request = || Request::builder().uri(&uri).body(()).unwrap();
        let mut replies = Vec::new();
        for _ in 0..100 {
            shut = shut.ready().await.unwrap();
            replies.push(shut.send_request(request(), true).unwrap().0);
        }
        // The first is there, and others are served meanwhile.
        let first = replies.remove(0).await.unwrap().into_body();
        for _ in 0..20 {
            let mut taken = get(&mut open, page, "application/json").await;
            let mut bytes = 0;
            while let Some(data) = taken.data().await {
                let len = data.unwrap().len();
                bytes += len;
                taken.flow_control().release_capacity(len).unwrap();
            }
            assert!(bytes > 1_000_000, "{bytes}");
        }
        let held = resident_bytes().saturating_sub(before);
        // A page for each would be 100 MiB; the other tests of this process take some, too.
        assert!(held < 50 << 20, "{} KiB", held >> 10);
        // Those that wait have their turn once the one before them is gone.
        drop(first);
        let second = replies.remove(0).await.unwrap();
        assert_eq!(second.status().as_u16(), 200);
    };
    run(test);
}

pub(crate) trait Http2 {
    /// A connection whose streams have windows of so many bytes.
    async fn http2(&self, window_bytes: u32) -> SendRequest<Bytes>;
}

impl Http2 for Secure {
    async fn http2(&self, window_bytes: u32) -> SendRequest<Bytes> {
        let stream = self.connect(&["h2"]).await.unwrap();
        let (client, connection) = h2::client::Builder::new()
            .initial_window_size(window_bytes)
            .initial_max_send_streams(100)
            .handshake::<_, Bytes>(stream)
            .await
            .unwrap();
        tokio::spawn(connection);
        client.ready().await.unwrap()
    }
}

/// Most clients that it takes until memory is short and a hundred requests are refused.
const CLIENTS_MAX: usize = 40;

/// The words of a refusal would wait until the client opens their stream's window.
#[test]
fn who_is_refused_for_want_of_memory_is_told_without_a_window() {
    let secure = Secure::with(|options| options.limits.memory_max = Some(2 << 20));
    let test = async {
        let (mut clients, mut refused) = (Vec::new(), 0);
        // The connections that hold most are let go meanwhile, some before their refusals are sent.
        while refused <= 100 {
            assert!(clients.len() < CLIENTS_MAX, "{refused} of all requests were refused");
            let mut client = secure.http2(0).await;
            let mut replies = Vec::new();
            for _ in 0..100 {
                let Ok(ready) = client.clone().ready().await else { break };
                client = ready;
                let request = Request::builder().uri("https://localhost/clock").body(()).unwrap();
                replies.push(client.send_request(request, true).unwrap().0);
            }
            clients.push(client);
            for reply in replies {
                let Ok(response) = reply.await else { continue };
                if response.status() == 503 {
                    assert_eq!(response.headers()["retry-after"], "1");
                    assert!(response.body().is_end_stream(), "its words wait");
                    refused += 1;
                }
            }
        }
    };
    run(test);
}

/// A byte of a header block may stand for any field that came before (RFC 7541 section 6.1), so few bytes are many fields.
#[test]
fn a_request_with_too_many_fields_is_refused_and_the_connection_goes_on() {
    let secure = Secure::start();
    let test = async {
        let mut client = secure.http2(1 << 16).await;
        for (name, count, status) in [
            ("x-again", 90, 200),
            ("x-again", 101, 431),
            ("x-again", 400, 431),
            // A client may send a cookie in pieces, to have them remembered (RFC 9113 section 8.2.3).
            ("cookie", 300, 200),
            ("x-again", 1, 200),
        ] {
            let request = Request::builder().uri("https://localhost/clock");
            let request = (0..count).fold(request, |request, _| request.header(name, "a=b"));
            client = client.ready().await.unwrap();
            let (reply, _) = client.send_request(request.body(()).unwrap(), true).unwrap();
            assert_eq!(reply.await.unwrap().status().as_u16(), status, "{count} times {name}");
        }
    };
    run(test);
}
