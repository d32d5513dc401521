//! HTTP/2 over TLS, and the WebSockets of RFC 8441.

use super::*;

#[test]
fn a_long_poll_and_an_event_stream_share_an_http2_connection() {
    let secure = Secure::start();
    let position = secure.fixture.publish(1..=1);
    run(async {
        let mut http2 = secure.http2().await;
        let accept = [("accept", "text/event-stream")];
        let (mut stream, status) = http2.get("/topics/wind", &accept).await;
        assert_eq!(status, 200);
        let opening = stream.body_mut().data().await.unwrap().unwrap();
        assert!(opening.starts_with(b"retry: "), "{opening:?}");
        let poll = http2.request("GET", &format!("/topics/wind?after={position}&wait=30"), &[]);
        let (poll, _) = http2.client.send_request(poll, true).unwrap();
        secure.fixture.publish(2..=2);
        let page = text(poll.await.unwrap().body_mut()).await;
        assert!(page.contains(r#""n":2"#), "{page}");
        let event = stream.body_mut().data().await.unwrap().unwrap();
        assert!(event.ends_with(b"data: {\"n\":2}\n\n"), "{event:?}");
    });
}

#[test]
fn a_websocket_over_http2_echoes_everything_and_ends_cleanly() {
    // RFC 8441 section 5.
    let secure = Secure::start();
    run(async {
        let mut http2 = secure.http2().await;
        let (socket, fields) = http2.websocket("/echo", &[]).await;
        for field in ["sec-websocket-accept", "connection", "upgrade", "content-length"] {
            assert_eq!(fields.get(field), None, "{field}");
        }
        echoes_everything(socket).await;
        // The connection remains usable.
        assert_eq!(http2.get("/clock", &[]).await.1, 200);
    });
}

#[test]
fn a_broadcast_comes_to_everyone_over_tls_and_over_http2() {
    let secure = Secure::start();
    run(async {
        let mut http2 = secure.http2().await;
        let (mut one, _) = http2.websocket("/broadcast", &[]).await;
        let (mut other, _) = http2.websocket("/broadcast", &[]).await;
        let mut over_http1 = secure.websocket("/broadcast").await;
        // Whoever has had its own word back is among those who get the next.
        one.send(Message::Text("one")).await;
        assert_eq!(one.text().await, "one");
        other.send(Message::Text("other")).await;
        while other.text().await != "other" {}
        over_http1.send(Message::Text("third")).await;
        while over_http1.text().await != "third" {}
        assert_eq!([one.text().await, one.text().await], ["other", "third"]);
        assert_eq!(other.text().await, "third");
        for text in ["short", &"long ".repeat(12_000)] {
            one.send(Message::Text(text)).await;
            over_http1.send(Message::Text(text)).await;
            for _ in 0..2 {
                // At once: the two of HTTP/2 share a window, which what one does not read takes from the other.
                let read = tokio::join!(one.text(), other.text(), over_http1.text());
                assert_eq!(read, (text.to_owned(), text.to_owned(), text.to_owned()));
            }
        }
    });
}

#[test]
fn topics_are_read_by_many_websockets_of_one_http2_connection() {
    let secure = Secure::start();
    secure.fixture.publish(1..=1);
    run(async {
        let mut http2 = secure.http2().await;
        let offer = [("sec-websocket-protocol", "nonsense, anemone.events")];
        let (mut positioned, fields) = http2.websocket("/topics/wind", &offer).await;
        assert_eq!(fields["sec-websocket-protocol"], "anemone.events");
        assert_eq!(positioned.text().await, r#"{"position":"ya-1"}"#);
        let mut plain = Vec::new();
        for _ in 0..20 {
            plain.push(http2.websocket("/topics/wind?after=earliest", &[]).await.0);
        }
        let mut over_http1 = secure.websocket("/topics/wind?after=earliest").await;
        secure.fixture.publish(2..=500);
        let event = positioned.text().await;
        assert!(event.starts_with(r#"{"position":"ya-2","time":"#), "{event}");
        for socket in &mut plain {
            for number in 1..=500 {
                assert_eq!(socket.text().await, format!(r#"{{"n":{number}}}"#));
            }
        }
        for number in 1..=500 {
            assert_eq!(over_http1.text().await, format!(r#"{{"n":{number}}}"#));
        }
        // As over a plain socket, a topic takes no messages.
        plain[0].send(Message::Text("hello")).await;
        assert_eq!(plain[0].text().await, "close 1008");
    });
}

#[test]
fn many_requests_share_a_websocket_of_an_http2_connection() {
    let secure = Secure::with(|options| options.limits.heartbeat = Duration::from_millis(100));
    secure.fixture.publish(1..=1);
    run(async {
        let mut http2 = secure.http2().await;
        assert_eq!(http2.refused("/ws", &[("sec-websocket-version", "13")]).await.0, 400);
        let offer = [("sec-websocket-protocol", "anemone.v1")];
        let (mut socket, fields) = http2.websocket("/ws", &offer).await;
        assert_eq!(fields["sec-websocket-protocol"], "anemone.v1");
        for id in ["a", "b"] {
            socket.send(Message::Text(&format!("GET {id} /topics/wind"))).await;
            // A sign of life of the one before may come first.
            let begun = format!("100 {id} ya-1");
            loop {
                let text = socket.text().await;
                if text == begun {
                    break;
                }
                assert!(text.starts_with("100 a "), "{text}");
            }
        }
        secure.fixture.publish(2..=200);
        let mut told = [2, 2];
        while told != [201, 201] {
            let event = socket.text().await;
            let index = usize::from(event.starts_with("206 b"));
            let (number, id) = (told[index], ["a", "b"][index]);
            if !event.starts_with("100 ") {
                let (line, data) = event.split_once('\n').unwrap();
                assert_eq!(data, format!("{{\"n\":{number}}}"));
                assert!(line.starts_with(&format!("206 {id} ya-{number} 17")), "{line}");
                told[index] += 1;
            }
        }
        assert!(socket.text().await.starts_with("100 "), "a sign of life");
    });
}

#[test]
fn events_are_published_over_http2_by_post_and_by_websocket() {
    let secure = Secure::with(|options| {
        let rules = [PublishRight::Loopback, PublishRight::Nobody].map(|publish| {
            let topics = if publish == PublishRight::Nobody { "quiet" } else { "chat" };
            TopicRule { publish, ..TopicRule::new(topics.parse().unwrap()) }
        });
        options.topics = TopicRules::new(rules).unwrap();
    });
    run(async {
        let mut http2 = secure.http2().await;
        let own = format!("https://{}", http2.authority);
        let evil = "https://evil.example";
        let (mut socket, _) = http2.websocket("/topics/chat", &[("origin", &own)]).await;
        for (target, origin, status) in [
            ("/topics/chat", None, 201),
            ("/topics/chat", Some(&*own), 201),
            ("/topics/chat", Some(evil), 403),
            ("/topics/quiet", None, 405),
        ] {
            let fields: Vec<_> = origin.map(|origin| ("origin", origin)).into_iter().collect();
            let request = http2.request("POST", target, &fields);
            let (response, mut body) = http2.client.send_request(request, false).unwrap();
            // Without waiting for the answer, which may be a refusal that has no need of it.
            let _ = body.send_data(Bytes::from_static(b"{\"n\":1}"), true);
            assert_eq!(response.await.unwrap().status(), status, "{target} {origin:?}");
        }
        assert_eq!(
            (socket.text().await, socket.text().await),
            ("{\"n\":1}".into(), "{\"n\":1}".into())
        );
        socket.send(Message::Text("hello")).await;
        assert_eq!(socket.text().await, "\"hello\"");
        let (mut other, _) = http2.websocket("/topics/quiet", &[]).await;
        other.send(Message::Text("hello")).await;
        assert_eq!(other.text().await, "close 1008");

        let mut socket = secure.websocket("/topics/chat").await; // over HTTP/1.1
        socket.send(Message::Binary(&[1])).await;
        assert_eq!(socket.text().await, "{\"base64\":\"AQ==\"}");
    });
}

#[test]
fn what_is_no_websocket_handshake_over_http2_is_refused() {
    let secure = Secure::with(|options| {
        options.allowed_origins = vec!["https://friend.example".parse().unwrap()];
    });
    run(async {
        let mut http2 = secure.http2().await;
        let version = ("sec-websocket-version", "13");
        let (status, fields) = http2.refused("/echo", &[("sec-websocket-version", "12")]).await;
        assert_eq!((status, &fields["sec-websocket-version"]), (426, &"13".parse().unwrap()));
        assert_eq!(fields.get("upgrade"), None);
        assert_eq!(http2.refused("/echo", &[]).await.0, 426);
        assert_eq!(http2.refused("/nothing", &[version]).await.0, 404);
        assert_eq!(http2.refused("/topics/nothing", &[version]).await.0, 404);
        // A success would mean that the WebSocket is there.
        assert_eq!(http2.refused("/clock", &[version]).await.0, 400);
        let twice = ("sec-websocket-protocol", "a, a");
        assert_eq!(http2.refused("/echo", &[version, twice]).await.0, 400);
        assert_eq!(http2.handshake("/echo", Some("smtp"), &[version]).await.0, 501);
        assert_eq!(http2.handshake("", None, &[]).await.0, 405, "not a proxy");

        // The own origin is that of :authority (RFC 9113 section 8.3.1).
        let (authority, own) = (http2.authority.clone(), format!("https://{}", http2.authority));
        http2.websocket("/echo", &[("origin", &own)]).await;
        http2.websocket("/echo", &[("origin", "https://friend.example")]).await;
        let evil = ("origin", "https://evil.example");
        assert_eq!(http2.refused("/echo", &[version, evil]).await.0, 403);
        let host = ("host", "evil.example");
        assert_eq!(http2.refused("/echo", &[version, evil, host]).await.0, 403);
        http2.authority = format!("evil.example:{}", secure.fixture.address.port());
        for fields in [&[version][..], &[version, ("host", "localhost")]] {
            assert_eq!(http2.refused("/ws", fields).await.0, 421);
        }
        assert_eq!(
            http2.get("/topics", &[]).await.1,
            421,
            "whatever the name of its page was once"
        );
        http2.authority = authority;
        assert_eq!(http2.get("/topics", &[evil]).await.1, 403);
        assert_eq!(http2.get("/topics", &[("origin", &own)]).await.1, 200);
    });
}

#[test]
fn an_http2_connection_is_ended_when_it_is_idle_and_only_then() {
    // Long enough that no machine is late to ask.
    let secure = Secure::with(|options| options.limits.header_timeout = Duration::from_secs(2));
    run(async {
        let idle = secure.http2().await;
        let mut used = secure.http2().await;
        let (mut socket, _) = used.websocket("/echo", &[]).await;
        let mut silent = secure.connect(&["h2"]).await.unwrap();
        idle.connection.await.unwrap().unwrap();
        // No preface came.
        let _ = silent.read_to_end(&mut Vec::new()).await;
        socket.send(Message::Text("still here")).await;
        assert_eq!(socket.text().await, "still here");
    });
}

#[test]
fn each_websocket_counts_as_a_connection() {
    let secure = Secure::with(|options| options.limits.connections_max = 2);
    run(async {
        let mut http2 = secure.http2().await;
        let (mut socket, _) = http2.websocket("/echo", &[]).await;
        let version = [("sec-websocket-version", "13")];
        assert_eq!(http2.refused("/echo", &version).await.0, 503);
        assert!(secure.connect(&[]).await.is_err());
        socket.close().await;
        assert_eq!(socket.text().await, "close 1000");
        while http2.refused("/echo", &version).await.0 == 503 {}
    });
}

#[test]
fn a_reader_that_stops_holds_up_nobody_else_on_its_connection() {
    let config = Config {
        ping_interval: Duration::from_millis(200),
        idle_timeout: Duration::from_secs(3),
        close_timeout: Duration::from_millis(100),
        ..Config::default()
    };
    let secure = Secure::with(|options| {
        options.limits.echo = Arc::new(config);
        options.limits.write_timeout = Duration::from_millis(100);
    });
    run(async {
        let mut http2 = secure.http2().await;
        let (mut stuck, _) = http2.websocket("/echo", &[]).await;
        let (mut other, _) = http2.websocket("/echo", &[]).await;
        // It never reads, so its window is not opened again.
        stuck.send(Message::Binary(&vec![7; 4 << 20])).await;
        while futures_util::FutureExt::now_or_never(std::future::poll_fn(|cx| {
            stuck.wire.send.poll_reset(cx)
        }))
        .is_none()
        {
            other.send(Message::Text("still served")).await;
            assert_eq!(other.text().await, "still served");
        }
    });
}
