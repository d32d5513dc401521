use std::future::Future;
use std::net::SocketAddr;

use anemone_proto::handshake::{FIELDS_MAX, ResponseError, accept_key};
use anemone_proto::{DeflateConfig, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, copy_bidirectional, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::*;
use crate::{Accept, AcceptError, Accepted, Error, Incoming, Lost, accept};

/// The request, as far as its empty line.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(request).unwrap()
}

fn value<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = request.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(field, _)| *field == name).map(|(_, value)| value)
}

/// Returns the correct response to the request, with more fields.
fn switching(request: &str, fields: &str) -> String {
    let accept = accept_key(value(request, "Sec-WebSocket-Key").unwrap());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{fields}\r\n"
    )
}

/// The result with a server that answers so, and then leaves the stream open.
async fn answered(
    answer: impl FnOnce(&str) -> String,
) -> Result<WebSocket<DuplexStream>, ConnectError> {
    let (ours, mut theirs) = duplex(1 << 16);
    let server = async {
        let request = request(&mut theirs).await;
        theirs.write_all(answer(&request).as_bytes()).await.unwrap();
    };
    let connect = Connect::new("ws://example.org/chat").connect_over(ours);
    let (connected, ()) = tokio::join!(connect, server);
    drop(theirs);
    connected
}

async fn error(answer: &str) -> ConnectError {
    answered(|_| answer.to_owned()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn the_request_has_what_was_asked_for() {
    // RFC 6455 section 4.1
    let (ours, mut theirs) = duplex(1 << 16);
    let connect = Connect::new("wss://me:secret@[::1]:8443/a b?c".replace(' ', "%20"))
        .subprotocols(["one", "two"])
        .header("Origin", "https://example.org")
        .deflate(DeflateConfig::default());
    assert!(!format!("{connect:?}").contains("secret"));
    let server = async {
        let request = request(&mut theirs).await;
        assert!(request.starts_with("GET /a%20b?c HTTP/1.1\r\n"), "{request}");
        assert_eq!(value(&request, "Host"), Some("[::1]:8443"));
        assert_eq!(value(&request, "Origin"), Some("https://example.org"));
        assert_eq!(value(&request, "Authorization"), Some("Basic bWU6c2VjcmV0"));
        assert_eq!(value(&request, "Sec-WebSocket-Protocol"), Some("one, two"));
        assert!(value(&request, "Sec-WebSocket-Extensions").is_some());
        let response = switching(&request, "Sec-WebSocket-Protocol: two\r\n");
        theirs.write_all(response.as_bytes()).await.unwrap();
        // The first frame comes right behind.
        theirs.write_all(b"\x81\x02hi").await.unwrap();
        theirs
    };
    let (socket, _theirs) = tokio::join!(connect.connect_over(ours), server);
    let mut socket = socket.unwrap();
    assert_eq!(socket.subprotocol(), Some("two"));
    assert_eq!(socket.recv().await.unwrap(), Some(Incoming::Text("hi".into())));
}

#[test]
fn every_future_can_move_between_threads() {
    fn check<T: Send>(_: T) {}
    let (ours, theirs) = duplex(1);
    check(Connect::new("").connect());
    check(accept(theirs));
    let mut socket = WebSocket::client(ours, Arc::default(), Vec::new());
    check(socket.recv());
    check(socket.send("text"));
    check(socket.close(None));
    check(socket.split());
}

#[tokio::test(start_paused = true)]
async fn an_authorization_field_of_the_caller_wins() {
    let (ours, mut theirs) = duplex(1 << 16);
    let connect = Connect::new("ws://me:secret@a/").header("authorization", "Bearer token");
    let (_, request) = tokio::join!(connect.connect_over(ours), async {
        let request = request(&mut theirs).await;
        drop(theirs);
        request
    });
    assert_eq!(value(&request, "authorization"), Some("Bearer token"));
    assert_eq!(value(&request, "Authorization"), None);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_stand_in_a_request_is_refused_before_anything_is_sent() {
    let (ours, theirs) = duplex(1 << 16);
    drop(theirs);
    let begun = |connect: Connect| async { connect.connect().await.unwrap_err() };
    let new = || Connect::new("ws://a/");
    for name in ["Host", "upgrade", "Connection", "Sec-WebSocket-Key", "Content-Length"] {
        let error = begun(new().header(name, "x")).await;
        assert!(matches!(error, ConnectError::HeaderReserved { .. }), "{error:?}");
    }
    for (name, value) in [("", "x"), ("a b", "x"), ("a\r\n", "x"), ("a", "x\r\nb: y"), ("a", "\0")]
    {
        let error = begun(new().header(name, value)).await;
        assert!(matches!(error, ConnectError::HeaderInvalid { .. }), "{error:?}");
        assert!(!error.to_string().contains(['\r', '\n']));
    }
    for names in [&["a b"][..], &[""], &["a", "b", "a"]] {
        let error = begun(new().subprotocols(names.iter().copied())).await;
        assert!(matches!(error, ConnectError::SubprotocolInvalid(_)), "{error:?}");
    }
    let error = begun(Connect::new("http://a/")).await;
    assert!(matches!(error, ConnectError::Url(UrlError::Scheme { .. })), "{error:?}");
    let error = begun(new().proxy("socks5://a")).await;
    assert!(matches!(error, ConnectError::ProxyUrl(UrlError::Scheme { .. })), "{error:?}");
    let error = Connect::new("ws://a/#b").connect_over(ours).await.unwrap_err();
    assert!(matches!(error, ConnectError::Url(UrlError::Fragment)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_told_and_not_followed() {
    let told = error("HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\n\r\n").await;
    assert_eq!(
        told.to_string(),
        "server answered 302 and redirects to https://elsewhere/, which is not followed"
    );
    let ConnectError::Redirected { status, location } = told else { panic!() };
    assert_eq!((status, location.as_deref()), (302, Some("https://elsewhere/")));
    let nowhere = error("HTTP/1.1 304 Not Modified\r\n\r\n").await;
    assert_eq!(nowhere.to_string(), "server answered 304 and redirects without saying where to");
    assert!(matches!(nowhere, ConnectError::Redirected { status: 304, location: None }));
    // U+009B begins an escape sequence in some terminals.
    let long = format!("HTTP/1.1 302 Found\r\nLocation: a\u{9b}{}\r\n\r\n", "b".repeat(1000));
    let long = error(&long).await.to_string();
    assert!(long.contains(&format!("a{}, which", "b".repeat(199))), "{long}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_why() {
    let problem = "{\"title\":\"Not you\",\"detail\":\"token \u{1b}[31mexpired\"}";
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/problem+json\r\n\
         WWW-Authenticate: Bearer\r\nContent-Length: {}\r\n\r\n{problem}and more",
        problem.len()
    );
    let begun = Instant::now();
    let told = error(&answer).await;
    assert_eq!(
        told.to_string(),
        "server answered 401 Unauthorized: {\"title\":\"Not you\",\"detail\":\"token [31mexpired\"}"
    );
    let ConnectError::Refused(refusal) = told else { panic!() };
    assert_eq!(refusal.status(), 401);
    assert_eq!(refusal.field("www-authenticate"), Some("Bearer"));
    assert_eq!(refusal.body(), problem);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_refusals_body_is_bounded_in_every_framing() {
    let cases = [
        ("200 OK", "Content-Type: text/html\r\n", "<p>not here</p>", "<p>not here</p>"),
        (
            "407 Auth",
            "Transfer-Encoding: chunked\r\n",
            "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            "abcde",
        ),
        ("503 Busy", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\nffff\r\nde", "abcde"),
        ("503 Busy", "Transfer-Encoding: chunked\r\n", "zz", ""),
        ("404 Gone", "Content-Length: 99\r\n", "short", "short"),
        ("404 Gone", "Content-Length: 2\r\n", "short", "sh"),
        ("404 Gone", "Content-Length: x\r\n", "short", "short"),
    ];
    for (status, fields, body, expected) in cases {
        let told = error(&format!("HTTP/1.1 {status}\r\n{fields}\r\n{body}")).await;
        assert_eq!(told.to_string(), format!("server answered {status}"));
        let ConnectError::Refused(refusal) = told else { panic!() };
        assert_eq!(refusal.body(), expected, "{status} {fields}");
    }
    let long = format!("HTTP/1.1 500 \r\nContent-Type: text/plain\r\n\r\n{}", "x".repeat(20_000));
    let begun = Instant::now();
    let told = error(&long).await;
    assert!(told.to_string().len() < 250);
    let ConnectError::Refused(refusal) = told else { panic!() };
    assert_eq!(refusal.body().len(), 4096);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_whose_body_does_not_come_is_no_time_out() {
    let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\n";
    for (limit_ms, expected_ms) in [(100, 100), (1_000, 1_000), (10_000, 1_000)] {
        let (ours, mut theirs) = duplex(1 << 16);
        theirs.write_all(refusal).await.unwrap();
        let begun = Instant::now();
        let connect = Connect::new("ws://a/").timeout(Duration::from_millis(limit_ms));
        let refused = connect.connect_over(ours).await.unwrap_err();
        assert_eq!(refused.to_string(), "server answered 403 Forbidden");
        assert_eq!(begun.elapsed().as_millis(), expected_ms);
    }
}

#[tokio::test(start_paused = true)]
async fn a_proxys_refusal_whose_body_does_not_come_is_no_time_out() {
    let refused = tunnel_within(Duration::from_millis(100), "HTTP/1.1 407 Who\r\n\r\n").await;
    assert_eq!(refused.unwrap_err().to_string(), "proxy answered 407 Who");
}

#[tokio::test(start_paused = true)]
async fn a_response_that_breaks_the_rules_is_an_error() {
    // RFC 6455 section 4.1
    let wrong_key = answered(|request| {
        let accept = accept_key(value(request, "Sec-WebSocket-Key").unwrap());
        switching(request, "").replace(&accept, &accept_key("another"))
    });
    let wrong_key = wrong_key.await.unwrap_err();
    assert!(matches!(wrong_key, ConnectError::Response(ResponseError::AcceptInvalid)));
    let unasked = answered(|request| switching(request, "Sec-WebSocket-Protocol: other\r\n"));
    let unasked = unasked.await.unwrap_err();
    assert!(matches!(unasked, ConnectError::Response(ResponseError::SubprotocolNotOffered(_))));
    let garbage = error("SSH-2.0-OpenSSH_9.6\r\n").await;
    assert!(matches!(garbage, ConnectError::Response(ResponseError::NotHttp(_))), "{garbage:?}");
    let long = format!("HTTP/1.1 101 Switching Protocols\r\nX: {}\r\n\r\n", "x".repeat(16 << 10));
    let long = error(&long).await;
    assert!(matches!(long, ConnectError::Response(ResponseError::TooLong { .. })), "{long:?}");
}

#[tokio::test(start_paused = true)]
async fn a_response_may_have_100_fields_and_no_more() {
    let with = |count| answered(move |request| switching(request, &"a: b\r\n".repeat(count)));
    assert!(with(FIELDS_MAX - 3).await.is_ok(), "3 fields are the handshake's own");
    let many = with(FIELDS_MAX - 2).await.unwrap_err();
    let ConnectError::Response(many) = many else { panic!("{many:?}") };
    assert_eq!(many.to_string(), "response has more than 100 header fields");
}

#[tokio::test(start_paused = true)]
async fn interim_responses_are_skipped_within_the_limit() {
    // RFC 9110 section 15.2
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let early = answered(|request| format!("{hint}{hint}{}", switching(request, ""))).await;
    assert!(early.is_ok(), "{early:?}");
    let endless = error(&hint.repeat(1000)).await;
    assert!(matches!(endless, ConnectError::Response(ResponseError::TooLong { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up_in_time() {
    let (ours, mut theirs) = duplex(1 << 16);
    let begun = Instant::now();
    let connect = Connect::new("ws://a/").timeout(Duration::from_secs(3)).connect_over(ours);
    let drip = async {
        while theirs.write_all(b"H").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (connected, ()) = tokio::join!(connect, drip);
    let Err(ConnectError::TimedOut { step: Step::Handshake, limit }) = connected else {
        panic!("{connected:?}");
    };
    assert_eq!((limit.as_secs(), begun.elapsed().as_secs()), (3, 3));
    let message = ConnectError::TimedOut { step: Step::Handshake, limit }.to_string();
    assert_eq!(message, "not connected within 3s, stopped at WebSocket handshake");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_is_an_error_of_the_stream() {
    let (ours, mut theirs) = duplex(1 << 16);
    let connect = Connect::new("ws://a/").timeout(Duration::MAX).connect_over(ours);
    let (connected, ()) = tokio::join!(connect, async {
        request(&mut theirs).await;
        drop(theirs);
    });
    let Err(ConnectError::Stream { step: Step::Handshake, source }) = connected else { panic!() };
    assert_eq!(source.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// Starts an echo server on a port of its own, until the test is over.
async fn echo_server<S, F>(wrap: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = std::io::Result<S>> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = wrap(stream).await else { continue };
            tokio::spawn(async move {
                let options =
                    Accept::default().subprotocols(["echo"]).deflate(DeflateConfig::default());
                let mut accepted = options.accept(stream).await?;
                assert_eq!(accepted.target, "/echo");
                while let Ok(Some(message)) = accepted.socket.recv().await {
                    accepted.socket.send(message).await.unwrap();
                }
                Ok::<_, AcceptError>(())
            });
        }
    });
    address
}

async fn plain_echo_server() -> SocketAddr {
    echo_server(async |stream| Ok(stream)).await
}

/// Sends a message there and back, and closes.
async fn exchange(connect: Connect) -> Result<(), ConnectError> {
    let mut socket = connect.subprotocols(["none", "echo"]).connect().await?;
    assert_eq!(socket.subprotocol(), Some("echo"));
    let long = "round and round ".repeat(10_000);
    socket.send(&long).await.unwrap();
    assert_eq!(socket.recv().await.unwrap(), Some(Incoming::from(long)));
    socket.close(None).await.unwrap();
    Ok(())
}

#[tokio::test]
async fn a_connection_over_tcp_works_with_and_without_compression() {
    let address = plain_echo_server().await;
    exchange(Connect::new(format!("ws://{address}/echo"))).await.unwrap();
    let compressed = Connect::new(format!("ws://{address}/echo")).deflate(DeflateConfig::default());
    exchange(compressed).await.unwrap();
}

#[tokio::test]
async fn a_name_with_several_addresses_is_connected_to_at_the_one_that_answers() {
    let port = plain_echo_server().await.port();
    exchange(Connect::new(format!("ws://localhost:{port}/echo"))).await.unwrap();
}

#[tokio::test]
async fn a_closed_port_and_an_impossible_name_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let refused = crate::connect(&format!("ws://{address}/")).await.unwrap_err();
    let ConnectError::Stream { step: Step::Tcp, source } = &refused else { panic!("{refused:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(source.to_string(), format!("cannot reach {address}"));
    let unknown = crate::connect("ws://a..b/").await.unwrap_err();
    assert!(matches!(unknown, ConnectError::Stream { step: Step::Lookup, .. }), "{unknown:?}");
}

/// A proxy that opens tunnels for one user.
async fn proxy() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let request = request(&mut client).await;
                let target = value(&request, "Host").unwrap();
                assert!(request.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")));
                if value(&request, "Proxy-Authorization") != Some("Basic bWU6c2VjcmV0") {
                    let refusal = "HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\n\
                                   Content-Type: text/plain\r\nContent-Length: 8\r\n\r\nnot you\n";
                    return client.write_all(refusal.as_bytes()).await.unwrap();
                }
                let mut server = TcpStream::connect(target).await.unwrap();
                client.write_all(b"HTTP/1.1 200 Tunnel open\r\nVia: test\r\n\r\n").await.unwrap();
                // Both ends of a tunnel may end it at any time.
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_proxy_opens_a_tunnel_to_those_it_knows() {
    let (server, proxy) = (plain_echo_server().await, proxy().await);
    let connect = || Connect::new(format!("ws://{server}/echo"));
    exchange(connect().proxy(format!("http://me:secret@{proxy}"))).await.unwrap();
    let refused = exchange(connect().proxy(format!("http://{proxy}"))).await.unwrap_err();
    assert_eq!(refused.to_string(), "proxy answered 407 Who are you: not you");
    let ConnectError::ProxyRefused(refusal) = refused else { panic!() };
    assert_eq!(refusal.field("Proxy-Authenticate"), Some("Basic"));
}

/// The result with a proxy that answers so.
async fn tunnel(answer: &str) -> Result<(), ConnectError> {
    tunnel_within(Duration::from_secs(3), answer).await
}

async fn tunnel_within(limit: Duration, answer: &str) -> Result<(), ConnectError> {
    let (mut ours, mut theirs) = duplex(1 << 16);
    theirs.write_all(answer.as_bytes()).await.unwrap();
    let proxy = Url::parse("http://proxy", &PROXY).unwrap();
    let target = Url::of_server("wss://[::1]/").unwrap();
    let deadline = Deadline::after(limit);
    let opened = proxy::open_tunnel(&mut ours, &proxy, &target, &deadline).await;
    assert!(request(&mut theirs).await.starts_with("CONNECT [::1]:443 HTTP/1.1\r\n"));
    opened
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_answers_nonsense_is_given_up() {
    assert!(tunnel("HTTP/1.1 204 Fine\r\n\r\n").await.is_ok());
    let spoke = tunnel("HTTP/1.1 200 OK\r\n\r\nhello").await;
    assert!(matches!(spoke, Err(ConnectError::ProxySpoke { len: 5 })), "{spoke:?}");
    let garbage = tunnel("220 mail.example.org\r\n").await;
    assert!(matches!(garbage, Err(ConnectError::ProxyResponse(_))), "{garbage:?}");
    let moved = tunnel("HTTP/1.1 302 Found\r\nLocation: http://login/\r\n\r\n").await;
    assert!(matches!(moved, Err(ConnectError::ProxyRefused(_))), "{moved:?}");
    let silent = tunnel("").await;
    assert!(matches!(silent, Err(ConnectError::TimedOut { step: Step::Proxy, .. })), "{silent:?}");
}

#[cfg(feature = "aws-lc-rs")]
mod secure {
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::crypto::aws_lc_rs;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{RootCertStore, ServerConfig};

    use super::*;

    /// A server with a certificate for `localhost`, and a client's configuration that trusts it.
    async fn secure_echo_server() -> (SocketAddr, Arc<ClientConfig>) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let own = rcgen::generate_simple_self_signed(names).unwrap();
        let certificate = own.cert.der().clone();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let acceptor = TlsAcceptor::from(Arc::new(server));
        let address = echo_server(move |stream| acceptor.accept(stream)).await;
        (address, Arc::new(client))
    }

    #[tokio::test]
    async fn a_connection_over_tls_works_by_name_by_address_and_through_a_proxy() {
        let (address, trusting) = secure_echo_server().await;
        let proxy = proxy().await;
        let by_address = Connect::new(format!("wss://{address}/echo")).tls(trusting.clone());
        exchange(by_address.clone()).await.unwrap();
        exchange(by_address.proxy(format!("http://me:secret@{proxy}"))).await.unwrap();
        let by_name = format!("wss://localhost:{}/echo", address.port());
        exchange(Connect::new(by_name).tls(trusting)).await.unwrap();
    }

    #[tokio::test]
    async fn a_certificate_that_nobody_vouches_for_is_refused() {
        let (address, _) = secure_echo_server().await;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let trusting_nobody = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let connect = Connect::new(format!("wss://{address}/echo")).tls(Arc::new(trusting_nobody));
        let refused = exchange(connect).await.unwrap_err();
        let ConnectError::Stream { step: Step::Tls, source } = refused else { panic!() };
        let cause = source.get_ref().and_then(|cause| cause.downcast_ref());
        let invalid: Option<&crate::rustls::Error> = cause;
        assert!(matches!(invalid, Some(crate::rustls::Error::InvalidCertificate(_))), "{source}");
    }

    #[tokio::test]
    async fn by_default_only_the_machines_own_roots_are_trusted() {
        let (address, _) = secure_echo_server().await;
        let refused = exchange(Connect::new(format!("wss://{address}/echo"))).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Stream { step: Step::Tls, .. }), "{refused:?}");
    }

    #[tokio::test]
    async fn a_server_without_tls_is_an_error_of_the_tls_step() {
        let address = plain_echo_server().await;
        let (_, trusting) = secure_echo_server().await;
        let connect = Connect::new(format!("wss://{address}/echo")).tls(trusting);
        let refused = exchange(connect).await.unwrap_err();
        let said = "TLS handshake failed, the server does not seem to speak TLS";
        assert_eq!(refused.to_string(), said);
        let ConnectError::Stream { step: Step::Tls, source } = refused else { panic!() };
        assert!(source.get_ref().unwrap().is::<crate::rustls::Error>(), "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_handshake_is_wrong_is_told_why() {
    let (mut ours, theirs) = duplex(1 << 16);
    let client = async {
        ours.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut response = String::new();
        ours.read_to_string(&mut response).await.unwrap();
        drop(ours);
        response
    };
    let (refused, response) = tokio::join!(accept(theirs), client);
    assert!(matches!(refused, Err(AcceptError::Refused(_))), "{refused:?}");
    assert!(response.starts_with("HTTP/1.1 426 "), "{response}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_slow_or_gone_is_given_up() {
    let (mut ours, theirs) = duplex(1 << 16);
    ours.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let begun = Instant::now();
    let slow = Accept::default().timeout(Duration::from_secs(3)).accept(theirs).await;
    assert!(matches!(slow, Err(AcceptError::TimedOut { .. })), "{slow:?}");
    assert_eq!(begun.elapsed().as_secs(), 4, "3 s for the request, 1 s to read the refusal");
    let mut response = String::new();
    ours.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");

    let (ours, theirs) = duplex(1 << 16);
    drop(ours);
    assert!(matches!(accept(theirs).await, Err(AcceptError::Ended)));
}

#[tokio::test(start_paused = true)]
async fn limits_hold_for_the_connection_that_was_opened() {
    let (ours, theirs) = duplex(1 << 16);
    let limited = Config { message_bytes_max: 10, ..Config::default() };
    let accept = Accept::default().config(limited);
    let connect = Connect::new("ws://a/").connect_over(ours);
    let (client, accepted) = tokio::join!(connect, accept.accept(theirs));
    let (mut client, Accepted { mut socket, .. }) = (client.unwrap(), accepted.unwrap());
    client.send(Message::Text("longer than ten")).await.unwrap();
    let (failed, closed) = tokio::join!(socket.recv(), client.recv());
    assert!(matches!(failed, Err(Error::Protocol(_))), "{failed:?}");
    assert!(matches!(closed, Ok(None) | Err(Error::Lost(Lost::Io(_)))), "{closed:?}");
    assert_eq!(client.close_frame().unwrap().code.get(), 1009);
}
