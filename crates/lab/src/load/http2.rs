//! Makes calls over HTTP/2 and TLS, each on a stream of its own.
//!
//! With HPACK, the bytes of a reply depend on the replies before it. So the generator compares the decoded replies:
//! their status, fields and body.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::header::DATE;
use http::{HeaderMap, Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::PATIENCE;
use super::unchecked::client_config;
use crate::tcp_info::Traffic;

const ALPN: &[u8] = b"h2";

/// Open connections with the same number of calls in flight on each.
pub(crate) struct Http2Calls {
    runtime: Runtime,
    connections: Vec<SendRequest<Bytes>>,
    /// The sockets of the connections, for reading the kernel's counters.
    sockets: Vec<std::net::TcpStream>,
    in_flight: usize,
    request: Request<()>,
    expected: Arc<Http2Reply>,
}

/// A complete reply without its date.
#[derive(Clone, Debug, PartialEq)]
struct Http2Reply {
    status: StatusCode,
    fields: HeaderMap,
    body: Vec<u8>,
}

impl Http2Calls {
    /// Opens connections for `GET` requests. The replies must have this body.
    pub(super) fn open(
        address: SocketAddr,
        (path, body): (&str, &str),
        connections: usize,
        in_flight: usize,
    ) -> anyhow::Result<Self> {
        let runtime = runtime()?;
        let connector = TlsConnector::from(Arc::new(client_config(ALPN)?));
        let open = async {
            let mut streams = Vec::with_capacity(connections);
            let mut sockets = Vec::with_capacity(connections);
            for _ in 0..connections {
                let stream = connect(&connector, address).await?;
                sockets.push(stream.get_ref().0.as_fd().try_clone_to_owned()?.into());
                streams.push(stream);
            }
            anyhow::Ok((streams, sockets))
        };
        let (streams, sockets) = runtime.block_on(within_patience(open))?;
        let request = Request::get(format!("https://{address}{path}")).body(())?;
        let calls = Self::over(runtime, streams, request, body, in_flight)?;
        Ok(Self { sockets, ..calls })
    }

    /// Takes over streams to peers that use HTTP/2. Checks the first reply.
    fn over<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        runtime: Runtime,
        streams: Vec<S>,
        request: Request<()>,
        body: &str,
        in_flight: usize,
    ) -> anyhow::Result<Self> {
        let open = async {
            let mut connections = Vec::with_capacity(streams.len());
            for stream in streams {
                let (connection, driver) = client::handshake(stream).await?;
                // A failure also fails the calls.
                tokio::spawn(driver);
                connections.push(connection);
            }
            let mut first = connections.first().context("no connection")?.clone();
            anyhow::Ok((call(&mut first, &request).await.context("the first call")?, connections))
        };
        let (reply, connections) = runtime.block_on(within_patience(open))?;
        ensure!(
            reply.status == StatusCode::OK && reply.body == body.as_bytes(),
            "the service answers {}: {}",
            reply.status,
            reply.body.escape_ascii()
        );
        let (sockets, expected) = (Vec::new(), Arc::new(reply));
        Ok(Self { runtime, connections, sockets, in_flight, request, expected })
    }

    /// Makes this number of calls at once on the first connection. Returns for each reply the time until it came.
    pub(crate) fn exchange(&mut self, calls: usize) -> anyhow::Result<Vec<Duration>> {
        let connection = self.connections.first().context("no connection")?;
        let begun = Instant::now();
        let all = async {
            let callers: Vec<_> = (0..calls)
                .map(|_| {
                    let (mut connection, request) = (connection.clone(), self.request.clone());
                    let expected = Arc::clone(&self.expected);
                    tokio::spawn(async move {
                        let reply = call(&mut connection, &request).await?;
                        ensure!(reply == *expected, "wrong reply: {reply:?}, not {expected:?}");
                        Ok(begun.elapsed())
                    })
                })
                .collect();
            let mut times = Vec::with_capacity(calls);
            for caller in callers {
                times.push(caller.await??);
            }
            Ok(times)
        };
        self.runtime.block_on(within_patience(all))
    }

    pub(crate) fn traffic(&self) -> io::Result<Traffic> {
        Traffic::of_all(&self.sockets)
    }

    /// Keeps calls in flight on every connection for `time`, then waits for the last replies. Returns the number of
    /// calls.
    pub(crate) fn run(&mut self, time: Duration) -> anyhow::Result<u64> {
        let deadline = Instant::now() + time;
        let all = async {
            let connections = self.connections.iter();
            let callers = connections.flat_map(|connection| vec![connection; self.in_flight]);
            let callers: Vec<_> = callers
                .map(|connection| {
                    let (request, expected) = (self.request.clone(), Arc::clone(&self.expected));
                    tokio::spawn(keep_calling(connection.clone(), request, expected, deadline))
                })
                .collect();
            let mut calls = 0;
            for caller in callers {
                calls += caller.await??;
            }
            anyhow::Ok(calls)
        };
        self.runtime.block_on(async {
            let time = time + PATIENCE;
            timeout(time, all).await.context("replies are missing")?
        })
    }
}

fn runtime() -> anyhow::Result<Runtime> {
    Ok(runtime::Builder::new_current_thread().enable_all().build()?)
}

async fn within_patience<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    timeout(PATIENCE, work).await.context("the server does not answer")?
}

async fn connect(
    connector: &TlsConnector,
    address: SocketAddr,
) -> anyhow::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::IpAddress(address.ip().into());
    let stream = connector.connect(name, stream).await.context("the TLS handshake")?;
    ensure!(stream.get_ref().1.alpn_protocol() == Some(ALPN), "the server does not offer HTTP/2");
    Ok(stream)
}

/// Makes one call after the other until the deadline. Makes at least one.
async fn keep_calling(
    mut connection: SendRequest<Bytes>,
    request: Request<()>,
    expected: Arc<Http2Reply>,
    deadline: Instant,
) -> anyhow::Result<u64> {
    let mut calls = 0;
    loop {
        let reply = call(&mut connection, &request).await?;
        ensure!(reply == *expected, "wrong reply: {reply:?}, not {expected:?}");
        calls += 1;
        if Instant::now() >= deadline {
            return Ok(calls);
        }
    }
}

async fn call(
    connection: &mut SendRequest<Bytes>,
    request: &Request<()>,
) -> anyhow::Result<Http2Reply> {
    let mut ready = connection.clone().ready().await?;
    let (response, _) = ready.send_request(request.clone(), true)?;
    let (mut head, mut data) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = data.data().await {
        let piece = piece?;
        data.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    head.headers.remove(DATE);
    Ok(Http2Reply { status: head.status, fields: head.headers, body })
}

#[cfg(test)]
mod tests {
    use http::Response;
    use tokio::io::DuplexStream;

    use super::*;

    type Answer = fn(usize) -> (u16, &'static str, &'static str);

    /// Serves a connection. `answer` returns the status, type and body of the reply with a given number.
    async fn serve(stream: DuplexStream, answer: Answer) -> Result<(), h2::Error> {
        let mut connection = h2::server::handshake(stream).await?;
        let mut number = 0;
        while let Some(request) = connection.accept().await {
            let (_, mut respond) = request?;
            let (status, kind, body) = answer(number);
            let reply = Response::builder().status(status).header("content-type", kind);
            let reply = reply.header(DATE, number).body(()).unwrap();
            respond.send_response(reply, false)?.send_data(body.into(), true)?;
            number += 1;
        }
        Ok(())
    }

    fn calls(answer: Answer) -> anyhow::Result<Http2Calls> {
        let runtime = runtime()?;
        let streams = [(); 2].map(|()| {
            let (stream, peer) = tokio::io::duplex(4096);
            runtime.spawn(serve(peer, answer));
            stream
        });
        let request = Request::get("https://localhost/hello").body(())?;
        Http2Calls::over(runtime, streams.into(), request, "{}", 3)
    }

    #[test]
    fn each_call_in_flight_is_counted_and_the_date_may_change() {
        let mut calls = calls(|_| (200, "application/json", "{}")).unwrap();
        // The deadline has passed, so each of the three on two connections is made once.
        assert_eq!(calls.run(Duration::ZERO).unwrap(), 6);
        assert_eq!(calls.exchange(5).unwrap().len(), 5);
        // More than the windows that HTTP/2 begins with; a busy machine gets a longer time.
        let mut seconds = [0.3, 3.0, 30.0].map(Duration::from_secs_f64).into_iter();
        assert!(seconds.any(|time| calls.run(time).unwrap() > 6));
    }

    #[test]
    fn a_wrong_first_reply_is_an_error() {
        for answer in [(|_| (404, "", "{}")) as Answer, |_| (200, "", "[]")] {
            let error = calls(answer).err().unwrap().to_string();
            assert!(error.starts_with("the service answers "), "{error}");
        }
    }

    #[test]
    fn a_status_a_field_or_a_body_that_changes_is_an_error() {
        let status: Answer = |number| (if number < 4 { 200 } else { 503 }, "", "{}");
        let field: Answer = |number| (200, if number < 4 { "a/b" } else { "a/c" }, "{}");
        let body: Answer = |number| (200, "", if number < 4 { "{}" } else { "{" });
        for answer in [status, field, body] {
            let error = calls(answer).unwrap().run(Duration::from_secs(5)).unwrap_err();
            assert!(error.to_string().starts_with("wrong reply: "), "{error}");
        }
    }
}
