//! A running server: its addresses, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;

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
    pub(crate) local_addr: Option<SocketAddr>,
    pub(crate) tcp_addr: Option<SocketAddr>,
    pub(crate) tcp_echo_addr: Option<SocketAddr>,
    pub(crate) _socket_file: Option<SocketFile>,
    pub(crate) _watch: Watch,
}

/// A thread of the server.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) handle: JoinHandle<usize>,
    /// Completes when the thread is about to end.
    pub(crate) ended: oneshot::Receiver<()>,
}

impl Thread {
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
    /// and were cut.
    pub connections_cut: usize,
    /// The number of replies through a [`Service`](crate::Service) that were not over by then. They end with the
    /// connections of the HTTP server.
    pub requests_open: usize,
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

/// An open request.
#[derive(Debug)]
pub(crate) struct OpenRequest(watch::Sender<usize>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl Running {
    /// Returns the address on which it listens, unless that is only a Unix socket.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// Returns the address of `anemone.v1` over TCP, if there is one.
    #[must_use]
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.tcp_addr
    }

    /// Returns the address of the TCP echo, if there is one.
    #[must_use]
    pub fn tcp_echo_addr(&self) -> Option<SocketAddr> {
        self.tcp_echo_addr
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

    /// Stops in stages. At once, no more connections are accepted, every WebSocket is closed with 1001, every stream
    /// ends, long polls are answered, and incomplete bodies get 503. Other work then has
    /// [`Limits::shutdown_grace`](crate::Limits::shutdown_grace) to end; the rest is cut and counted. If a disk never
    /// answers, its file operations are left behind on their threads.
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
        let requests = timeout(site.limits.shutdown_grace, open.none());
        let ended = async {
            let mut connections_cut = 0;
            for mut thread in threads {
                // An error means that the thread has ended, too.
                let _ = (&mut thread.ended).await;
                connections_cut += thread.join();
            }
            connections_cut
        };
        let (_, connections_cut) = tokio::join!(requests, ended);
        site.accesses.flush();
        Stopped { connections_cut, requests_open: open.count() }
    }

    /// Stops like [`stop`](Self::stop), without a runtime: blocks this thread, and does not wait for requests through
    /// a [`Service`](crate::Service).
    pub fn stop_blocking(self) -> Stopped {
        begin_to_stop(&self.site, &self.stop);
        let connections_cut = self.threads.into_iter().map(Thread::join).sum();
        self.site.accesses.flush();
        Stopped { connections_cut, requests_open: self.open.count() }
    }
}

fn begin_to_stop(site: &Site, stop: &watch::Sender<bool>) {
    site.accesses.stop();
    stop.send_replace(true);
}
