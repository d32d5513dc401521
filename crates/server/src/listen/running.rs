//! A running server: its addresses, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::{timeout, timeout_at};

use crate::ListenAt;
use crate::listen::upgraded::Upgraded;
use crate::site::Site;
use crate::socket::unix_socket::SocketFile;
use crate::tls::Watch;

/// A running server with its own threads. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Running {
    pub(crate) site: Arc<Site>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) threads: Vec<Thread>,
    /// The senders to the threads, for WebSockets of other HTTP servers.
    pub(crate) upgraded: Vec<UnboundedSender<Upgraded>>,
    /// The open requests of other HTTP servers.
    pub(crate) open: OpenRequests,
    pub(crate) failed: Arc<Notify>,
    pub(crate) places: Vec<ListenAt>,
    pub(crate) ports: Ports,
    pub(crate) _socket_files: Vec<SocketFile>,
    pub(crate) _watch: Watch,
}

/// The names and addresses of transports with their own ports.
pub(crate) type Ports = Vec<(&'static str, SocketAddr)>;

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) handle: JoinHandle<usize>,
    pub(crate) ended: oneshot::Receiver<()>,
}

impl Thread {
    /// Waits until the thread is about to end, without a runtime. Returns false if it is not by then.
    fn ends_by(&self, deadline: Instant) -> bool {
        while !self.handle.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Returns the number of connections that it cut at the end. A panic has been reported where it happened.
    fn join(self) -> usize {
        self.handle.join().unwrap_or_default()
    }
}

/// The work that a server cut or left behind when it stopped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stopped {
    /// The number of connections that did not end within [`Limits::shutdown_grace`](crate::Limits::shutdown_grace),
    /// and were cut, or left behind with a thread that a handler of a [`Mount`](crate::Mount) blocks.
    pub connections_cut: usize,
    /// The number of replies through a [`Service`](crate::Service) that were not over by then. They end with the
    /// connections of the HTTP server.
    pub requests_open: usize,
    /// The number of runs whose work had not returned by then. They are cancelled, and their threads are left behind.
    pub runs_open: usize,
}

/// The number of open requests.
#[derive(Clone, Debug)]
pub(crate) struct OpenRequests(watch::Sender<usize>);

impl Default for OpenRequests {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl OpenRequests {
    /// Counts one more until the result is dropped.
    pub(crate) fn one_more(&self) -> OpenRequest {
        self.0.send_modify(|open| *open += 1);
        OpenRequest(self.0.clone())
    }

    fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until there is none.
    async fn none(&self) {
        // The sender is a field of this value, so this does not fail.
        let _ = self.0.subscribe().wait_for(|open| *open == 0).await;
    }
}

#[derive(Debug)]
pub(crate) struct OpenRequest(watch::Sender<usize>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl Running {
    /// Returns the first address on which it listens, unless those are only Unix sockets.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.places.iter().find_map(ListenAt::address)
    }

    /// Returns the places on which it listens: those of [`Options::listen`](crate::Options::listen), and then those of
    /// [`Options::listen_local`](crate::Options::listen_local), with the ports that were free in place of 0.
    #[must_use]
    pub fn places(&self) -> &[ListenAt] {
        &self.places
    }

    /// Returns the address of `anemone.v1` over TCP, if there is one.
    #[must_use]
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.port("tcp")
    }

    /// Returns the address of the TCP echo, if there is one.
    #[must_use]
    pub fn tcp_echo_addr(&self) -> Option<SocketAddr> {
        self.port("tcp_echo")
    }

    /// Returns the address of the transport with this name.
    pub(crate) fn port(&self, name: &str) -> Option<SocketAddr> {
        self.ports.iter().find(|(port, _)| *port == name).map(|(_, address)| *address)
    }

    /// Returns the bytes held for all clients, of at most [`Limits::memory_max`](crate::Limits::memory_max).
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.site.memory.held_bytes()
    }

    /// Completes if a thread of the server panics. Its connections are then not served any more, and the program
    /// should be restarted. The panic has been reported where it happened.
    pub fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        let failed = Arc::clone(&self.failed);
        async move { failed.notified().await }
    }

    /// Stops in stages. At once, no more connections are accepted, all runs are cancelled, every WebSocket is closed with 1001, every stream
    /// ends, long polls are answered, and incomplete bodies get 503. Other work then has
    /// [`Limits::shutdown_grace`](crate::Limits::shutdown_grace) to end; the rest is cut and counted. If a disk never
    /// answers, its file operations are left behind on their threads. A thread that a handler of a
    /// [`Mount`](crate::Mount) blocks is left behind a second later. Its connections count as cut, but they and its
    /// listener stay open until the handler returns or the process ends.
    ///
    /// The HTTP server in front of a [`Service`](crate::Service) needs its own time limit to end: a client that has sent
    /// half a request, or does not take its reply, may keep a connection forever.
    ///
    /// # Panics
    /// Outside of a tokio runtime that has time enabled.
    ///
    /// # Cancel safety
    /// Once the future is polled, the server stops even if the future is dropped.
    pub async fn stop(self) -> Stopped {
        let Self { site, stop, threads, open, .. } = self;
        begin_to_stop(&site, &stop);
        // A program that is asked to end, and has as long as the server by default, is killed right after it.
        let (runs, wait) = (site.runs.clone(), site.limits.shutdown_grace.saturating_add(LAG_MAX));
        let runs = spawn_blocking(move || runs.stop(wait));
        let requests = timeout(site.limits.shutdown_grace, open.none());
        let (deadline, mut cut) = (deadline(&site), Cut::default());
        let ended = async {
            for mut thread in threads {
                // An error means that the thread has ended, too.
                let is_over = timeout_at(deadline.into(), &mut thread.ended).await.is_ok();
                cut.add(thread, is_over);
            }
        };
        let (_, runs_open, ()) = tokio::join!(requests, runs, ended);
        Stopped { runs_open: runs_open.unwrap_or_default(), ..cut.stopped(&site, &open) }
    }

    /// Stops like [`stop`](Self::stop), without a runtime: blocks this thread, and does not wait for requests through
    /// a [`Service`](crate::Service).
    pub fn stop_blocking(self) -> Stopped {
        begin_to_stop(&self.site, &self.stop);
        let (deadline, mut cut) = (deadline(&self.site), Cut::default());
        for thread in self.threads {
            let is_over = thread.ends_by(deadline);
            cut.add(thread, is_over);
        }
        let runs_open = self.site.runs.stop(deadline.saturating_duration_since(Instant::now()));
        Stopped { runs_open, ..cut.stopped(&self.site, &self.open) }
    }
}

/// The time that a thread may need after the grace to end. A thread that needs more is blocked by a handler.
const LAG_MAX: Duration = Duration::from_secs(1);

fn deadline(site: &Site) -> Instant {
    Instant::now() + site.limits.shutdown_grace + LAG_MAX
}

/// The connections that threads have cut, and whether one was left behind.
#[derive(Default)]
struct Cut {
    connections: usize,
    is_one_blocked: bool,
}

impl Cut {
    fn add(&mut self, thread: Thread, is_over: bool) {
        if is_over {
            self.connections += thread.join();
        } else {
            tracing::error!("a handler blocks a thread of the server, which is left behind");
            self.is_one_blocked = true;
        }
    }

    fn stopped(self, site: &Site, open: &OpenRequests) -> Stopped {
        let requests_open = open.count();
        let left_behind = match self.is_one_blocked {
            // Each open request of a service has a permit, too.
            true => site.permits.taken().saturating_sub(requests_open),
            false => 0,
        };
        site.accesses.flush();
        let connections_cut = self.connections + left_behind;
        Stopped { connections_cut, requests_open, runs_open: 0 }
    }
}

fn begin_to_stop(site: &Site, stop: &watch::Sender<bool>) {
    site.accesses.stop();
    // Watchers may still see the end.
    let _ = site.runs.stop(Duration::ZERO);
    stop.send_replace(true);
}
