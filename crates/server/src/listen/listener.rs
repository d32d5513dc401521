//! The listener: its addresses, with one accepting socket for each thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use anemone_hub::Hub;
use anemone_hub::run::Runs;
use anemone_ws::Memory;
use tokio::sync::{oneshot, watch};

use crate::ListenAt;
use crate::clients::access::Accesses;
use crate::clients::awaited::AwaitedTopics;
use crate::clients::connections::closed::ClosedConnections;
use crate::clients::connections::survey::Surveyors;
use crate::clients::permits::ConnectionPermits;
use crate::essential::PanicGuard;
use crate::files::Files;
use crate::listen::accept::{self, Listeners};
use crate::listen::bind_error::BindError;
use crate::listen::doors::Doors;
use crate::listen::port::Port;
use crate::listen::running::{OpenRequests, Ports, Running, Thread};
use crate::options::Options;
use crate::publish::Publishing;
use crate::request::host::Hosts;
use crate::request::machine;
use crate::request::proxies::Proxies;
use crate::service::mounts::Mounts;
use crate::service::starter::RunStarter;
use crate::site::Site;
use crate::socket::unix_socket::SocketFile;
use crate::stop::Stop;
use crate::tls::Watch;
use crate::transport;

/// A server that has bound its addresses, and serves nobody yet.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
/// use anemone_hub::{Data, Epoch, Hub, Retention, UnixTime};
/// use anemone_server::Server;
///
/// let hub = Hub::new(Epoch::random()?);
/// let wind = hub.create("wind".parse()?, Retention::default())?;
/// wind.publish(UnixTime::now(), Data::json(&2.74)?)?;
///
/// let running = Server::builder(hub).listen(([127, 0, 0, 1], 0).into()).bind()?.start()?;
/// let mut client = TcpStream::connect(running.local_addr().expect("it listens on an address"))?;
/// client.write_all(b"GET /topics/wind?after=earliest HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
/// let mut reply = String::new();
/// client.read_to_string(&mut reply)?;
/// assert!(reply.contains(r#""data":2.74"#), "{reply}");
/// running.stop_blocking();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    /// One of each for every thread.
    pub(crate) listeners: Vec<Listeners>,
    places: Vec<ListenAt>,
    ports: Ports,
    pub(crate) socket_files: Vec<SocketFile>,
    pub(crate) site: Arc<Site>,
}

impl Server {
    /// Binds the addresses, and creates the topics that are declared by name.
    ///
    /// # Errors
    /// When an address is in use, not of this machine, or not permitted; when a topic cannot be created, a limit is
    /// out of its bounds, or two directories of files have the same path.
    pub fn bind(options: Options, hub: Hub) -> Result<Self, BindError> {
        options.limits.check()?;
        let threads = match options.threads {
            Some(threads) => threads.get(),
            None => thread::available_parallelism().map_or(1, NonZero::get),
        };
        let mut doors = Doors::claim(&options.listen, &options.listen_local)?;
        let claimed = transport::TCP.iter().filter_map(|transport| {
            let address = (transport.address)(&options)?;
            Some(Port::claim(address).map(|port| (port, *transport)))
        });
        let mut claimed = claimed.collect::<Result<Vec<_>, BindError>>()?;
        let ports =
            claimed.iter().map(|(port, transport)| (transport.name, port.address)).collect();
        let listeners = (0..threads).map(|_| {
            let ports =
                claimed.iter_mut().map(|(port, transport)| Ok((port.listener()?, *transport)));
            let ports = ports.collect::<Result<_, BindError>>()?;
            let (sites, unix) = doors.listeners()?;
            Ok(Listeners { sites, unix, ports })
        });
        let listeners = listeners.collect::<Result<_, BindError>>()?;
        let (places, socket_files) = doors.into_parts();
        let site = Arc::new(parts(options, hub, &places)?);
        Ok(Self { listeners, places, ports, socket_files, site })
    }

    /// Returns the first address on which it listens, unless those are only Unix sockets.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.places.iter().find_map(ListenAt::address)
    }

    /// Returns the runs of the server, in which the program can start runs of its own.
    #[must_use]
    pub fn runs(&self) -> &Runs {
        &self.site.runs
    }

    /// Starts to serve on new threads.
    ///
    /// # Errors
    /// When a thread, its runtime or its loop cannot be created, for example because no descriptors are left. The
    /// other threads are then stopped.
    pub fn start(self) -> io::Result<Running> {
        let watch = Watch::start(self.site.tls.as_ref())?;
        let Self { listeners, places, ports, socket_files, site } = self;
        let mut running = Running {
            site,
            stop: watch::Sender::new(false),
            threads: Vec::new(),
            upgraded: Vec::new(),
            open: OpenRequests::default(),
            failed: Arc::default(),
            places,
            ports,
            _socket_files: socket_files,
            _watch: watch,
        };
        match start_threads(&mut running, listeners) {
            Ok(()) => Ok(running),
            Err(error) => {
                running.stop_blocking();
                Err(error)
            }
        }
    }
}

fn parts(options: Options, hub: Hub, places: &[ListenAt]) -> Result<Site, BindError> {
    let paths = transport::SHAKING_HANDS.iter();
    let offered = paths.filter_map(|transport| transport.offered_path(&options)).collect();
    let Options { limits, allowed_origins, tls, topics, .. } = options;
    let proxies = Proxies::new(options.trusted_proxies);
    // A server without a listener is part of another one, and cannot know the addresses of that: it takes any.
    let anywhere = places.is_empty().then(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let addresses = places.iter().filter_map(ListenAt::address).chain(anywhere);
    let hosts = Hosts::new(addresses, options.allowed_hosts, &machine::names());
    hub.keep_index(limits.index_events_max);
    let publishing = Publishing::new(hub.clone(), topics).map_err(BindError::Topics)?;
    let publishing = Arc::new(publishing);
    let memory = Memory::new(limits.memory_bytes_max());
    let files = Files::new(&options.static_dirs, &memory)?;
    let runs = Runs::new(limits.of_runs());
    let mounts = Mounts::new(options.mounts, RunStarter::new(&runs, &limits))?;
    let readers = Arc::default();
    let permits = Arc::new(ConnectionPermits::new(&limits, &memory));
    let awaited = Arc::new(AwaitedTopics::new(&limits, &memory));
    let accesses = Arc::new(Accesses::new(options.access_log, &memory));
    Ok(Site {
        hub,
        runs,
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
        surveyors: Surveyors::default(),
        closed: ClosedConnections::default(),
        connections_to: options.connections_to,
        runs_to: options.runs_to,
        offered,
        states: Mutex::default(),
        files,
        mounts,
    })
}

/// Starts a thread for each, and waits until all serve.
fn start_threads(running: &mut Running, listeners: Vec<Listeners>) -> io::Result<()> {
    let (begun, outcomes) = mpsc::channel();
    for (index, listeners) in listeners.into_iter().enumerate() {
        let (upgraded, upgrades) = tokio::sync::mpsc::unbounded_channel();
        let (site, stop) = (Arc::clone(&running.site), Stop::new(running.stop.subscribe()));
        let (begun, watched) = (begun.clone(), PanicGuard(Arc::clone(&running.failed)));
        let (ending, ended) = oneshot::channel::<()>();
        let serve = move || {
            let _ending = ending;
            let _watched = watched;
            accept::serve(listeners, upgrades, site, stop, begun)
        };
        let handle = thread::Builder::new().name(format!("server-{index}")).spawn(serve)?;
        running.threads.push(Thread { handle, ended });
        running.upgraded.push(upgraded);
    }
    drop(begun);
    for _ in 0..running.threads.len() {
        outcomes.recv().unwrap_or_else(|_| Err(io::Error::other(ThreadPanicked)))?;
    }
    Ok(())
}

/// A thread ended without an outcome.
#[derive(Debug, thiserror::Error)]
#[error("a thread of the server panicked")]
struct ThreadPanicked;

#[cfg(test)]
mod tests;
