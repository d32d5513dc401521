//! The listener: its addresses, and one accepting socket of each for every thread.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::num::NonZero;
use std::os::unix::net::UnixListener;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anemone_hub::Hub;
use anemone_ws::Memory;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::{Notify, watch};

use crate::clients::access::{AccessLog, Accesses};
use crate::clients::awaited::AwaitedTopics;
use crate::clients::permits::ConnectionPermits;
use crate::everyone::Everyone;
use crate::fallback::Fallback;
use crate::files::Files;
use crate::listen::accept::{self, Listeners};
use crate::publish::Publishing;
use crate::request::host::Hosts;
use crate::request::proxies::Proxies;
use crate::site::Site;
use crate::socket::unix_socket::{BACKLOG, SocketFile};
use crate::stop::Stop;
use crate::tls::Watch;
use crate::{
    AllowedHost, AllowedOrigin, Limits, StaticDir, Tls, TopicRules, TrustedProxy, UnixSocket,
};

/// The options that a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on; port 0 takes a free one. `None` for the Unix socket alone.
    pub listen: Option<SocketAddr>,
    /// A Unix socket to listen on, too, always without TLS. Default: none.
    pub unix: Option<UnixSocket>,
    /// The address to speak `anemone.v1` on over TCP, always without TLS. Default: none.
    pub tcp: Option<SocketAddr>,
    /// The address to echo bytes on as they are, over bare TCP: the floor that every comparison stands on.
    /// Default: nowhere.
    pub tcp_echo: Option<SocketAddr>,
    /// Threads that serve connections; `None` for one per processor.
    pub threads: Option<NonZero<usize>>,
    /// Bounds on its peers.
    pub limits: Limits,
    /// Origins other than its own whose pages may read from it, and publish where clients may.
    pub allowed_origins: Vec<AllowedOrigin>,
    /// Names by which it may be asked for, beside localhost and where it listens.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Proxies that are believed when they say for whom they speak. What comes from one is never of this machine.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The certificate to speak TLS with; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// Whether there is an `/echo`. Default: no; it is for trying things out, and anyone can have it hold messages.
    pub echo: bool,
    /// Whether there is a `/broadcast`. Default: no; anyone can send to all who are on it.
    pub broadcast: bool,
    /// Topics that clients may publish to. Default: none; those of the hub are read only.
    pub topics: TopicRules,
    /// Directories whose files are served. Default: none. One at `/` stands in the place of the fallback.
    pub static_dirs: Vec<StaticDir>,
    /// A service for every path that is neither the server's own nor has a file. Default: none; such a path is answered 404.
    pub fallback: Option<Fallback>,
    /// The requests that are logged, as events with the target [`ACCESS_TARGET`](crate::ACCESS_TARGET). Default: none.
    pub access_log: AccessLog,
}

impl Options {
    /// Listens here, everything else by default.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen: Some(listen),
            unix: None,
            tcp: None,
            tcp_echo: None,
            threads: None,
            limits: Limits::default(),
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            tls: None,
            echo: false,
            broadcast: false,
            topics: TopicRules::default(),
            static_dirs: Vec::new(),
            fallback: None,
            access_log: AccessLog::default(),
        }
    }
}

/// A server that has its address and serves nobody yet.
#[derive(Debug)]
pub struct Server {
    /// One of each for every thread.
    listeners: Vec<Listeners>,
    local_addr: Option<SocketAddr>,
    tcp_addr: Option<SocketAddr>,
    tcp_echo_addr: Option<SocketAddr>,
    socket_file: Option<SocketFile>,
    site: Arc<Site>,
}

/// A server that serves. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Running {
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    failed: Arc<Notify>,
    memory: Memory,
    accesses: Arc<Accesses>,
    local_addr: Option<SocketAddr>,
    tcp_addr: Option<SocketAddr>,
    tcp_echo_addr: Option<SocketAddr>,
    _socket_file: Option<SocketFile>,
    _watch: Watch,
}

impl Server {
    /// Takes the address, and creates the topics that are declared by name.
    ///
    /// # Errors
    /// When the address cannot be had: in use, not of this machine, not permitted. When a topic cannot be
    /// created. When no server can keep to a limit, with [`LimitError`](crate::LimitError) inside, or two directories are at one
    /// path, with [`StaticDirsError`](crate::StaticDirsError).
    pub fn bind(options: Options, hub: Hub) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        options.limits.check().map_err(invalid)?;
        let threads = match options.threads {
            Some(threads) => threads.get(),
            None => thread::available_parallelism().map_or(1, NonZero::get),
        };
        let mut site = options.listen.map(Port::claim).transpose()?;
        let (unix, socket_file) = options.unix.as_ref().map(UnixSocket::claim).transpose()?.unzip();
        let mut tcp = options.tcp.map(Port::claim).transpose()?;
        let mut tcp_echo = options.tcp_echo.map(Port::claim).transpose()?;
        let local_addr = site.as_ref().map(|port| port.address);
        let tcp_addr = tcp.as_ref().map(|port| port.address);
        let tcp_echo_addr = tcp_echo.as_ref().map(|port| port.address);
        let listeners = (0..threads).map(|_| {
            let other = |port: &mut Option<Port>| port.as_mut().map(Port::listener).transpose();
            let (tcp, tcp_echo) = (other(&mut tcp)?, other(&mut tcp_echo)?);
            let (site, unix) =
                (other(&mut site)?, unix.as_ref().map(UnixListener::try_clone).transpose()?);
            Ok(Listeners { site, unix, tcp, tcp_echo })
        });
        let listeners = listeners.collect::<io::Result<_>>()?;
        let Options { limits, allowed_origins, tls, topics, echo, broadcast, .. } = options;
        let proxies = Proxies::new(options.trusted_proxies);
        let hosts = Hosts::new(local_addr, options.allowed_hosts);
        let publishing = Arc::new(Publishing::new(hub.clone(), topics)?);
        let memory = Memory::new(limits.memory_bytes_max());
        let files = Files::new(&options.static_dirs, &memory)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let broadcast = broadcast.then(|| Arc::new(Everyone::new(limits.broadcast_bytes_max)));
        let readers = Arc::default();
        let permits = Arc::new(ConnectionPermits::new(&limits, &memory));
        let awaited = Arc::new(AwaitedTopics::new(&limits, &memory));
        let accesses = Arc::new(Accesses::new(options.access_log, &memory));
        let site = Site {
            hub,
            publishing,
            limits,
            permits,
            awaited,
            memory,
            has_relief: AtomicBool::new(false),
            hosts,
            proxies,
            refusals: Arc::default(),
            accesses,
            allowed_origins,
            tls,
            readers,
            echo,
            broadcast,
            files,
            fallback: options.fallback,
        };
        let site = Arc::new(site);
        Ok(Self { listeners, local_addr, tcp_addr, tcp_echo_addr, socket_file, site })
    }

    /// Starts to serve, on threads of its own.
    ///
    /// # Errors
    /// When a thread, its runtime or its loop cannot be had, for want of descriptors for instance. Those
    /// that could are stopped then.
    pub fn start(self) -> io::Result<Running> {
        let (stop, stopped) = watch::channel(false);
        let watch = Watch::start(self.site.tls.as_ref())?;
        let Self { local_addr, tcp_addr, tcp_echo_addr, socket_file: _socket_file, .. } = self;
        let (threads, failed) = (Vec::new(), Arc::<Notify>::default());
        let mut running = Running {
            stop,
            threads,
            failed: Arc::clone(&failed),
            memory: self.site.memory.clone(),
            accesses: Arc::clone(&self.site.accesses),
            local_addr,
            tcp_addr,
            tcp_echo_addr,
            _socket_file,
            _watch: watch,
        };
        let (begun, outcomes) = mpsc::channel();
        for (index, listeners) in self.listeners.into_iter().enumerate() {
            let (site, stop, begun) =
                (Arc::clone(&self.site), Stop::new(stopped.clone()), begun.clone());
            let watched = Watched(Arc::clone(&failed));
            let serve = move || {
                let _watched = watched;
                accept::serve(listeners, site, stop, begun);
            };
            match thread::Builder::new().name(format!("server-{index}")).spawn(serve) {
                Ok(thread) => running.threads.push(thread),
                Err(error) => {
                    running.stop();
                    return Err(error);
                }
            }
        }
        drop(begun);
        for _ in 0..running.threads.len() {
            let outcome = outcomes.recv().unwrap_or_else(|_| Err(io::Error::other(Panicked)));
            if let Err(error) = outcome {
                running.stop();
                return Err(error);
            }
        }
        Ok(running)
    }
}

/// Tells of a thread that panics.
struct Watched(Arc<Notify>);

impl Drop for Watched {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.notify_one();
        }
    }
}

/// A thread ended without a word.
#[derive(Debug, thiserror::Error)]
#[error("a thread of the server panicked")]
struct Panicked;

impl Running {
    /// The address that it listens on, if that is not a Unix socket alone.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// The address that it speaks `anemone.v1` on over TCP, if it does.
    #[must_use]
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.tcp_addr
    }

    /// The address that it echoes bare bytes on, if it does.
    #[must_use]
    pub fn tcp_echo_addr(&self) -> Option<SocketAddr> {
        self.tcp_echo_addr
    }

    /// The bytes that it holds for all clients now, of at most [`Limits::memory_max`](crate::Limits::memory_max).
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.memory.held_bytes()
    }

    /// Returns if a thread of the server panics: then a part of its connections is served by nobody, and it had better be
    /// started anew. The panic has told where it was.
    pub fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        let failed = Arc::clone(&self.failed);
        async move { failed.notified().await }
    }

    /// Stops: no new connections, a close frame (1001) to every WebSocket, the end of every stream,
    /// and what is left after [`Limits::shutdown_grace`] is cut off. Blocks until then. What still waits for a disk after that,
    /// a file that is read or a topic that is made or deleted, is left behind on a thread of its own.
    pub fn stop(self) {
        self.accesses.stop();
        self.stop.send_replace(true);
        for thread in self.threads {
            // A thread that panicked has stopped, too; the panic was reported where it happened.
            let _ = thread.join();
        }
        self.accesses.flush();
    }
}

/// An address to listen on.
struct Port {
    address: SocketAddr,
    /// The first listener, which holds the port until it is given away.
    first: Option<StdListener>,
}

impl Port {
    /// Takes an address, if it is to be had.
    fn claim(address: SocketAddr) -> io::Result<Self> {
        if address.port() != 0 {
            // Sockets that share a port would also share it with another server that does; one that does not
            // share finds that out.
            listen(address, Sharing::Alone)?;
        }
        // A free port is held from now on: let go for a moment, it could be given to another server, too.
        let first = listen(address, Sharing::Shared)?;
        Ok(Self { address: first.local_addr()?, first: Some(first) })
    }

    /// One more listener on it.
    fn listener(&mut self) -> io::Result<StdListener> {
        match self.first.take() {
            Some(first) => Ok(first),
            None => listen(self.address, Sharing::Shared),
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
    // Connections inherit it: small messages leave at once instead of waiting for the last one's answer.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests;
