//! The listener: one address, one runtime and one accepting socket per thread.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::num::NonZero;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anemone_hub::Hub;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::routes::{Site, Stop};
use crate::{AllowedOrigin, Kind, Limits, Problem, connection};

/// Connections that the kernel holds for us while we are busy.
const BACKLOG: i32 = 1024;
/// How long to wait when a connection could not be accepted, for want of descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that serve connections; `None` for one per processor.
    pub threads: Option<NonZero<usize>>,
    /// Bounds on its peers.
    pub limits: Limits,
    /// Origins other than its own whose pages may read from it.
    pub allowed_origins: Vec<AllowedOrigin>,
}

impl Options {
    /// Listens here, everything else by default.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, threads: None, limits: Limits::default(), allowed_origins: Vec::new() }
    }
}

/// A server that has its address and serves nobody yet.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<StdListener>,
    site: Arc<Site>,
}

/// A server that serves. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Running {
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    local_addr: SocketAddr,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// When the address cannot be had: in use, not of this machine, not permitted.
    pub fn bind(options: Options, hub: Hub) -> io::Result<Self> {
        let threads = match options.threads {
            Some(threads) => threads.get(),
            None => thread::available_parallelism().map_or(1, NonZero::get),
        };
        // Sockets that share a port would also share it with another server that does. One that
        // does not share finds that out.
        let address = listen(options.listen, Sharing::Alone)?.local_addr()?;
        let listeners =
            (0..threads).map(|_| listen(address, Sharing::Shared)).collect::<io::Result<_>>()?;
        let site = Site { hub, limits: options.limits, allowed_origins: options.allowed_origins };
        Ok(Self { listeners, site: Arc::new(site) })
    }

    /// Starts to serve, on threads of its own.
    ///
    /// # Errors
    /// When a thread or its runtime cannot be had.
    pub fn start(self) -> io::Result<Running> {
        let local_addr = self
            .listeners
            .first()
            .map_or_else(|| Err(io::ErrorKind::InvalidInput.into()), StdListener::local_addr)?;
        let (stop, stopped) = watch::channel(false);
        let permits = Arc::new(Semaphore::new(self.site.limits.connections_max));
        let mut threads = Vec::new();
        for (index, listener) in self.listeners.into_iter().enumerate() {
            let (site, permits, stop) =
                (Arc::clone(&self.site), Arc::clone(&permits), Stop::new(stopped.clone()));
            let serve = move || serve(listener, site, permits, stop);
            threads.push(thread::Builder::new().name(format!("server-{index}")).spawn(serve)?);
        }
        Ok(Running { stop, threads, local_addr })
    }
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Stops: no new connections, a close frame (1001) to every WebSocket, the end of every stream,
    /// and what is left after [`Limits::shutdown_grace`] is cut off. Blocks until then.
    pub fn stop(self) {
        self.stop.send_replace(true);
        for thread in self.threads {
            // A thread that panicked has stopped, too; the panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sharing {
    Alone,
    Shared,
}

fn listen(address: SocketAddr, sharing: Sharing) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if sharing == Sharing::Shared {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// One thread's work.
fn serve(listener: StdListener, site: Arc<Site>, permits: Arc<Semaphore>, stop: Stop) {
    let served = Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .and_then(|runtime| {
            runtime.block_on(async {
                accept_all(TcpListener::from_std(listener)?, site, permits, stop).await;
                Ok(())
            })
        });
    if let Err(error) = served {
        tracing::error!(%error, "a thread of the server cannot run");
    }
}

/// Accepts until the server stops, then waits for what is open to end.
async fn accept_all(
    listener: TcpListener,
    site: Arc<Site>,
    permits: Arc<Semaphore>,
    mut stop: Stop,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = stop.stopped() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                // Small messages leave at once instead of waiting for the last one's answer.
                let _ = stream.set_nodelay(true);
                match Arc::clone(&permits).try_acquire_owned() {
                    Ok(permit) => {
                        let connection = serve_one(Arc::clone(&site), stream, stop.clone(), permit);
                        connections.spawn_local(connection);
                    }
                    Err(_) => refuse(stream),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(site.limits.shutdown_grace, all).await.is_err() {
        tracing::info!("some connections did not end in time and were cut off");
    }
}

async fn serve_one(site: Arc<Site>, stream: TcpStream, stop: Stop, permit: OwnedSemaphorePermit) {
    connection::serve(site, stream, stop).await;
    drop(permit);
}

/// Tells a client that there is no room, as far as that goes without waiting for it.
fn refuse(stream: TcpStream) {
    let problem =
        Problem::new(Kind::TooManyConnections, "the server has as many connections as it may");
    let body = problem.to_json() + "\n";
    let reply = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // A fresh socket takes this much without waiting. Should it not, the client sees the close.
    let _ = stream.try_write(reply.as_bytes());
}
