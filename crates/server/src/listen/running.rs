//! A server that serves: what can be asked of it, and its end.

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

/// A server that serves, on threads of its own. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Running {
    pub(crate) site: Arc<Site>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) threads: Vec<Thread>,
    /// Those of the threads, for WebSockets of other HTTP servers.
    pub(crate) upgraded: Vec<UnboundedSender<Upgraded>>,
    /// The requests of other HTTP servers.
    pub(crate) open: Open,
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
    /// Ready once it is about to end.
    pub(crate) ended: oneshot::Receiver<()>,
}

impl Thread {
    /// The number of connections that it cut off in the end. A thread that panicked has said so where it happened.
    fn join(self) -> usize {
        self.handle.join().unwrap_or_default()
    }
}

/// The work that a server cut off, or left behind, when it stopped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stopped {
    /// The number of connections that did not end within [`Limits::shutdown_grace`](crate::Limits::shutdown_grace), and were cut off.
    pub connections_cut: usize,
    /// The number of replies through a [`Service`](crate::Service) that were not over by then. They end with the connections of the
    /// HTTP server that they go through.
    pub requests_open: usize,
}

/// The requests that are open.
#[derive(Clone, Debug)]
pub(crate) struct Open(watch::Sender<usize>);

impl Default for Open {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Open {
    /// One more, until that is dropped.
    pub(crate) fn one_more(&self) -> OneOpen {
        self.0.send_modify(|open| *open += 1);
        OneOpen(self.0.clone())
    }

    fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Returns once there is none.
    async fn none(&self) {
        // The sender is here.
        let _ = self.0.subscribe().wait_for(|open| *open == 0).await;
    }
}

/// A request that is open.
#[derive(Debug)]
pub(crate) struct OneOpen(watch::Sender<usize>);

impl Drop for OneOpen {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl Running {
    /// The address that it listens on, if there is one beside a Unix socket.
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
        self.site.memory.held_bytes()
    }

    /// Returns if a thread of the server panics: then a part of its connections is served by nobody, and it had better be
    /// started anew. The panic has told where it was.
    pub fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        let failed = Arc::clone(&self.failed);
        async move { failed.notified().await }
    }

    /// Stops in stages. At once no connection is accepted any more, every WebSocket is closed with 1001, every stream ends, each long
    /// poll is answered, and a body that is still coming is answered 503. Then what is in flight has
    /// [`Limits::shutdown_grace`](crate::Limits::shutdown_grace) to end; what has not is cut off, and counted. A file that is read or a
    /// topic that is made or deleted is left behind on a thread of its own where its disk never answers.
    ///
    /// # Panics
    /// Outside of a tokio runtime that has time enabled.
    ///
    /// # Cancel safety
    /// The server stops even if the future is dropped, once it was polled.
    pub async fn stop(self) -> Stopped {
        let Self { site, stop, threads, open, .. } = self;
        begin_to_stop(&site, &stop);
        let requests = timeout(site.limits.shutdown_grace, open.none());
        let ended = async {
            let mut connections_cut = 0;
            for mut thread in threads {
                // An error is an end, too.
                let _ = (&mut thread.ended).await;
                connections_cut += thread.join();
            }
            connections_cut
        };
        let (_, connections_cut) = tokio::join!(requests, ended);
        site.accesses.flush();
        Stopped { connections_cut, requests_open: open.count() }
    }

    /// The same without a runtime: blocks its thread until then, and waits for no request through a
    /// [`Service`](crate::Service).
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
