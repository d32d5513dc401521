//! The services that `make bench` calls: `measured` offers them, `measured --hyper` the first of them in hyper alone.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, ready};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::task::{Context, Poll};

use anemone_hub::{Epoch, Hub};
use anemone_server::{Mount, Server};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::LocalSet;
use tower_service::Service;

const REPLY: &[u8] = br#"{"id":"testing"}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if std::env::args().any(|argument| argument == "--hyper") {
        return LocalSet::new().block_on(&runtime, serve_with_hyper());
    }
    let server = Server::builder(Hub::new(Epoch::random()?))
        .listen((Ipv4Addr::LOCALHOST, 0).into())
        .threads(NonZero::<usize>::MIN)
        .with(|options| options.echo = true)
        .mount(Mount::new("/hello", Hello)?)
        .bind()?;
    if let Some(address) = server.local_addr() {
        announce(address)?;
    }
    let _running = server.start()?;
    runtime.block_on(std::future::pending())
}

/// Tells the bench where it listens.
fn announce(address: SocketAddr) -> io::Result<()> {
    writeln!(io::stdout(), "listening on http://{address}")
}

/// Serves every connection with hyper, on one thread.
async fn serve_with_hyper() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(|_request: Request<hyper::body::Incoming>| async { hello() });
        tokio::task::spawn_local(
            http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}

fn hello() -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(REPLY)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// The trivial service.
#[derive(Clone, Copy)]
struct Hello;

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
