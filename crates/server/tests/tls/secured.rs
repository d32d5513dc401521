//! TLS: transports over it, its certificate, and connections without it.

use anemone_server::ListenAt;
use anemone_testing::Endpoint;

use super::*;

#[test]
fn everything_http_is_there_over_tls() {
    let secure = Secure::start();
    secure.fixture.publish(1..=3);
    run(async {
        for alpn in [&["http/1.1"][..], &[], &["spdy/3", "http/1.1"]] {
            let stream = secure.connect(alpn).await.unwrap();
            assert_ne!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        }
        assert_eq!(secure.get("/topics/wind?after=earliest").await.numbers(), [1, 2, 3]);
        assert_eq!(secure.get("/").await.status, 200);
        let mut http2 = secure.http2().await;
        let (mut response, status) = http2.get("/topics/wind?after=earliest", &[]).await;
        assert_eq!(status, 200);
        for field in ["connection", "upgrade", "keep-alive", "transfer-encoding"] {
            assert_eq!(response.headers().get(field), None, "{field}");
        }
        let page: serde_json::Value =
            serde_json::from_str(&text(response.body_mut()).await).unwrap();
        assert_eq!(page["events"].as_array().unwrap().len(), 3);
        let (response, status) = http2.get("/echo", &[]).await;
        assert_eq!((status, response.headers().get("upgrade")), (426, None));
    });
}

#[test]
fn a_websocket_over_tls_echoes_everything_and_ends_cleanly() {
    let secure = Secure::start();
    run(async { echoes_everything(secure.websocket("/echo").await).await });
}

#[test]
fn a_new_certificate_is_taken_over_while_connections_stay() {
    let secure = Secure::start();
    run(async {
        let mut before = secure.websocket("/echo").await;
        make_certificate(secure.folder.path());
        while secure.connect(&[]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        before.send(Message::Text("still here")).await;
        assert_eq!(before.text().await, "still here");
    });
}

#[test]
fn plain_http_on_the_tls_port_is_told_so() {
    let secure = Secure::start();
    let mut stream = secure.fixture.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    Reply::read(&mut &*reply, "GET").problem(400, "tls-required");
    assert!(reply.windows(17).any(|part| part == b"connection: close"));
}

#[test]
fn bytes_that_are_no_tls_get_an_alert_and_an_end() {
    let secure = Secure::start();
    for bytes in
        [&b"\x00\x01\x02\x03\x04\x05\x06\x07"[..], &[0x16, 3, 1, 0, 4, 9, 0, 0, 0], &[0xff; 40_000]]
    {
        let mut stream = secure.fixture.connect();
        stream.write_all(bytes).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        assert_eq!(reply.first(), Some(&21), "an alert (RFC 8446 section 6)");
    }
}

#[test]
fn a_handshake_that_takes_too_long_is_given_up() {
    let timeout = Duration::from_millis(100);
    let secure = Secure::with(|options| options.limits.tls_handshake_timeout = timeout);
    for begin in [&[][..], &[0x16, 3, 1, 2, 0, 1, 0], b"G"] {
        let mut stream = secure.fixture.connect();
        stream.write_all(begin).unwrap();
        let begun = Instant::now();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(begun.elapsed() < PATIENCE / 2, "{ended:?}");
    }
}

#[test]
fn a_server_that_stops_tells_every_websocket() {
    let grace = Duration::from_secs(60);
    let mut secure = Secure::with(|options| {
        let limits = &mut options.limits;
        limits.shutdown_grace = grace;
        for config in [&mut limits.echo, &mut limits.websocket] {
            Arc::make_mut(config).close_timeout = grace;
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut http2, mut one, mut other) = runtime.block_on(async {
        let mut http2 = secure.http2().await;
        let (mut one, _) = http2.websocket("/echo", &[]).await;
        let mut other = secure.websocket("/topics/wind").await;
        one.send(Message::Text("x")).await;
        assert_eq!(one.text().await, "x");
        other.wire.flush().await.unwrap();
        (http2, one, other)
    });
    let begun = Instant::now();
    secure.fixture.stop_while(|| {
        runtime.block_on(async {
            assert_eq!(one.text().await, "close 1001");
            assert_eq!(one.text().await, "end of stream");
            assert_eq!(other.text().await, "close 1001");
            assert_eq!(other.text().await, "end of stream");
            (&mut http2.connection).await.unwrap().unwrap();
        });
    });
    assert!(begun.elapsed() < grace, "nothing had to be cut off");
}

#[test]
fn a_place_for_this_machine_alone_has_no_tls() {
    let local = ListenAt::Address(([127, 0, 0, 1], 0).into());
    let secure = Secure::with(|options| options.listen_local = vec![local]);
    let address = secure.fixture.places()[1].address().unwrap();
    let own_page = format!("http://{address}");
    let reply = Endpoint { address }.get("/connections", &[("Origin", &own_page)]);
    assert_eq!(reply.status, 200, "the owner's own page");
}
