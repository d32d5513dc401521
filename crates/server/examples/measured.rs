//! The services that `make bench` measures, beside an echo: `/hello` is trivial, `/count` makes partial results, `/fill`
//! publishes as many events to a topic, and `/spin` computes. `measured --hyper` serves `/hello` with hyper alone. With
//! `--tls`, either speaks TLS and HTTP/2.

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::sync::Arc;

use anemone_hub::run::{RunFailure, RunInput, RunRefusal, RunWork};
use anemone_hub::{Data, Epoch, Hub, Retention, Topic, UnixTime};
use anemone_server::{Mount, Server, Tls};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::Full;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const REPLY: &[u8] = br#"{"id":"testing"}"#;
/// The length of the text in a partial result, and in an event.
const TEXT_BYTES: usize = 80;

fn main() -> Result<(), Box<dyn Error>> {
    let is_given = |flag| std::env::args().any(|argument| argument == flag);
    let (is_hyper, is_tls) = (is_given("--hyper"), is_given("--tls"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if is_hyper {
        return LocalSet::new().block_on(&runtime, serve_with_hyper(is_tls));
    }
    let hub = Hub::new(Epoch::random()?);
    let retention = Retention { events_max: 100_000, bytes_max: 1 << 30, ..Retention::default() };
    let filled = hub.create("filled".parse()?, retention)?;
    let tls = is_tls.then(Tls::for_localhost).transpose()?;
    let server = Server::builder(hub)
        .listen((Ipv4Addr::LOCALHOST, 0).into())
        .threads(NonZero::<usize>::MIN)
        .with(|options| (options.echo, options.tls) = (true, tls))
        .mount(Mount::new("/hello", trivial::Hello)?)
        .mount(Mount::run("/count", count)?)
        .mount(Mount::run("/fill", move |input| fill(&filled, input))?)
        .mount(Mount::run("/spin", spin)?)
        .bind()?;
    if let Some(address) = server.local_addr() {
        announce(is_tls, address)?;
    }
    let _running = server.start()?;
    runtime.block_on(std::future::pending())
}

/// Tells the bench where it listens.
fn announce(is_tls: bool, address: SocketAddr) -> io::Result<()> {
    let scheme = if is_tls { "https" } else { "http" };
    writeln!(io::stdout(), "listening on {scheme}://{address}")
}

/// Serves every connection with hyper, on one thread: HTTP/1.1, or HTTP/2 over TLS.
async fn serve_with_hyper(is_tls: bool) -> Result<(), Box<dyn Error>> {
    let acceptor = is_tls.then(acceptor).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(is_tls, listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(|_request: Request<hyper::body::Incoming>| async { hello() });
        let Some(acceptor) = acceptor.clone() else {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::task::spawn_local(connection);
            continue;
        };
        tokio::task::spawn_local(async move {
            // A client that cannot shake hands is none of the bench.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let http2 = http2::Builder::new(TokioExecutor::new());
            let _ = http2.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Accepts TLS as the server does.
fn acceptor() -> Result<TlsAcceptor, Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der())?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn hello() -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(REPLY)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Makes as many partial results as the body says.
fn count(input: RunInput) -> Result<RunWork, RunRefusal> {
    let most = number(&input)?;
    Ok(RunWork::new(move |run| {
        for number in 1..=most {
            run.partial(&numbered(number).map_err(RunFailure::new)?)?;
        }
        Ok(None)
    }))
}

/// Computes until it is cancelled.
fn spin(_input: RunInput) -> Result<RunWork, RunRefusal> {
    Ok(RunWork::new(|run| {
        loop {
            run.check()?;
            std::hint::black_box((0..std::hint::black_box(100_000_u64)).sum::<u64>());
        }
    }))
}

/// Publishes as many events as the body says.
fn fill(topic: &Arc<Topic>, input: RunInput) -> Result<RunWork, RunRefusal> {
    let (topic, most) = (Arc::clone(topic), number(&input)?);
    Ok(RunWork::new(move |_| {
        for number in 1..=most {
            let data = numbered(number).map_err(RunFailure::new)?;
            let published = topic.publish(UnixTime::now(), data);
            published.map_err(|error| RunFailure::new(error.to_string()))?;
        }
        Ok(None)
    }))
}

fn number(input: &RunInput) -> Result<u64, RunRefusal> {
    serde_json::from_slice(&input.body)
        .map_err(|error| RunRefusal::BadBody(format!("expected a number: {error}")))
}

fn numbered(number: u64) -> Result<Data, String> {
    let data = json!({ "number": number, "text": "x".repeat(TEXT_BYTES) });
    Data::json(&data).map_err(|error| error.to_string())
}

mod trivial {
    use std::future::{Ready, ready};
    use std::task::{Context, Poll};

    use tower_service::Service;

    use super::{Bytes, Full, Infallible, Request, Response, hello};

    #[derive(Clone, Copy)]
    pub(crate) struct Hello;

    impl<B> Service<Request<B>> for Hello {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<B>) -> Self::Future {
            ready(hello())
        }
    }
}
