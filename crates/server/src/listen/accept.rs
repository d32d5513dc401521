//! A thread of the server: its runtime, its loop, and its accepted connections.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream as StdTcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalRuntime};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::exchange::handoff::shutdown_frame;
use crate::exchange::tcp_transport::TcpTransport;
use crate::listen::connection;
use crate::listen::first_bytes::{self, Undecided};
use crate::listen::guest::{FirstRequest, Guest, Guests};
use crate::listen::secure;
use crate::listen::upgraded::Upgraded;
use crate::local::Local;
use crate::peer::{Door, Peer};
use crate::site::Site;
use crate::socket::unix_socket;
use crate::stop::Stop;

/// The runtime checks its own IO and timers after this many polls of tasks. A poll may take a tenth of a millisecond,
/// so with the default of 61 polls that would be every six milliseconds; the check takes a microsecond.
const POLLS: u32 = 8;

/// The pause after accepting failed, for example because no descriptors are left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) sites: Vec<(TcpListener, Door)>,
    pub(crate) unix: Vec<(UnixListener, Door)>,
    /// The listeners of transports with their own ports.
    pub(crate) ports: Vec<(TcpListener, &'static TcpTransport)>,
}

/// Does a thread's work until the server stops. Sends the outcome of its start to `begun`. Returns the number of
/// connections that it cut.
pub(crate) fn serve(
    listeners: Listeners,
    upgraded: mpsc::UnboundedReceiver<Upgraded>,
    site: Arc<Site>,
    stop: Stop,
    begun: Sender<io::Result<()>>,
) -> usize {
    let mut builder = Builder::new_current_thread();
    let runtime = match builder.enable_all().event_interval(POLLS).build_local(Default::default()) {
        Ok(runtime) => runtime,
        Err(error) => {
            report(begun, Err(error));
            return 0;
        }
    };
    run(runtime, async {
        match Local::start(site) {
            Ok(local) => {
                report(begun, Ok(()));
                accept(Rc::new(local), vec![listeners], upgraded, stop).await
            }
            Err(error) => {
                report(begun, Err(error));
                Ended::default()
            }
        }
    })
}

/// The result of a thread's work.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// The time that its runtime has left to end.
    left: Duration,
    /// The number of connections that did not end in time.
    pub(crate) connections_cut: usize,
}

/// Does work, then gives the runtime the rest of its time to end. Threads that still wait for a disk are left behind:
/// a runtime that is merely dropped waits for them, forever if the disk never answers.
fn run(runtime: LocalRuntime, work: impl Future<Output = Ended>) -> usize {
    match catch_unwind(AssertUnwindSafe(|| runtime.block_on(work))) {
        Ok(Ended { left, connections_cut }) => {
            runtime.shutdown_timeout(left);
            connections_cut
        }
        Err(panic) => {
            runtime.shutdown_background();
            resume_unwind(panic);
        }
    }
}

/// Sends the outcome and drops the sender, so that nobody waits for a thread that panicked while others serve.
fn report(begun: Sender<io::Result<()>>, outcome: io::Result<()>) {
    // Fails if another thread's error came first; then all are stopped.
    let _ = begun.send(outcome);
}

/// Makes the loop accept connections. Returns the Unix sockets, whose connections are accepted in this module.
fn listen(local: &Rc<Local>, listeners: Vec<Listeners>, guests: &Guests) -> Vec<UnixGuests> {
    let mut unix = Vec::new();
    for listeners in listeners {
        for (address, door) in listeners.sites {
            local.reactor.listen(address, site(Rc::clone(local), guests.clone(), door));
        }
        for (listener, transport) in listeners.ports {
            local.reactor.listen(listener, port(Rc::clone(local), transport));
        }
        // All threads share the Unix sockets.
        if unix.is_empty() {
            unix = listeners.unix;
        }
    }
    let watched = unix.into_iter().filter_map(|(listener, door)| {
        let watched = tokio::net::UnixListener::from_std(listener);
        let failed = |error: &io::Error| {
            tracing::error!(%error, "a thread cannot watch a Unix socket");
        };
        let listener = watched.inspect_err(failed).ok()?;
        Some(UnixGuests { listener, door, retry_at: None })
    });
    watched.collect()
}

/// Accepts until the server stops, then waits for open connections to end, at most for the grace period.
pub(crate) async fn accept(
    local: Rc<Local>,
    listeners: Vec<Listeners>,
    mut upgraded: mpsc::UnboundedReceiver<Upgraded>,
    mut stop: Stop,
) -> Ended {
    let (guests, mut admitted) = Guests::new();
    let mut unix = listen(&local, listeners, &guests);
    let mut requests = JoinSet::new();
    loop {
        tokio::select! {
            Some(guest) = admitted.recv() => serve_guest(&local, guest, &stop, &mut requests),
            Some(upgraded) = upgraded.recv() => {
                requests.spawn_local(upgraded.serve(Rc::clone(&local), stop.clone()));
            }
            (socket, accepted) = accept_any(&unix) => {
                if let Some(stream) = unix[socket].record(accepted) {
                    let peer = Peer::of_unix(&stream, unix[socket].door);
                    adopt(&local, &guests, unix_socket::as_stream(stream), peer);
                }
            }
            Some(_) = requests.join_next() => {}
            () = stop.stopped() => break,
            // The code that joins this thread, or watches over all, gets the panic.
            () = local.reactor.panicked() => resume_unwind(Box::new("the loop panicked")),
            () = local.essentials.failed() => {
                resume_unwind(Box::new("a task of the thread panicked"))
            }
        }
    }
    let (stopped, grace) = (Instant::now(), local.site.limits.shutdown_grace);
    local.reactor.stop_listening();
    // The connections that the thread had not taken yet are served, and get the notice of the end.
    while let Ok(guest) = admitted.try_recv() {
        serve_guest(&local, guest, &stop, &mut requests);
    }
    while let Ok(upgraded) = upgraded.try_recv() {
        requests.spawn_local(upgraded.serve(Rc::clone(&local), stop.clone()));
    }
    let joined = async { while requests.join_next().await.is_some() {} };
    let all = async { tokio::join!(joined, local.reactor.close_all(shutdown_frame())) };
    let mut connections_cut = 0;
    if tokio::time::timeout(grace, all).await.is_err() {
        tracing::info!("cut off connections that did not end in time");
        connections_cut = requests.len() + local.reactor.connections();
    }
    Ended { left: grace.saturating_sub(stopped.elapsed()), connections_cut }
}

fn serve_guest(local: &Rc<Local>, guest: Guest, stop: &Stop, requests: &mut JoinSet<()>) {
    let Guest { stream, peer, permit, first } = guest;
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%error, "cannot watch a connection"),
    };
    let (tls, local, stop) = (local.site.tls.clone(), Rc::clone(local), stop.clone());
    match tls.filter(|_| !peer.is_plain()) {
        None => requests.spawn_local(connection::serve(local, stream, peer, first, stop, permit)),
        Some(tls) => requests.spawn_local(secure::serve(local, stream, peer, tls, stop, permit)),
    };
}

/// Accepts the next connection on any of these Unix sockets, and returns the place of that socket among them.
///
/// # Cancel safety
/// Dropping the future loses no connection.
async fn accept_any(unix: &[UnixGuests]) -> (usize, io::Result<UnixStream>) {
    let accepting = unix.iter().enumerate();
    let accepting = accepting.map(|(at, socket)| async move { (at, socket.accept().await) });
    match accepting.collect::<FuturesUnordered<_>>().next().await {
        Some(accepted) => accepted,
        None => std::future::pending().await,
    }
}

struct UnixGuests {
    listener: tokio::net::UnixListener,
    door: Door,
    /// The time of the next attempt, after accepting failed.
    retry_at: Option<Instant>,
}

impl UnixGuests {
    /// Accepts the next connection, not before the time of the next attempt.
    ///
    /// # Cancel safety
    /// Dropping the future loses no connection.
    async fn accept(&self) -> io::Result<UnixStream> {
        if let Some(retry_at) = self.retry_at {
            sleep_until(retry_at).await;
        }
        self.listener.accept().await?.0.into_std()
    }

    /// Records the outcome. Only the first of several failures is logged.
    fn record(&mut self, accepted: io::Result<UnixStream>) -> Option<UnixStream> {
        match accepted {
            Ok(stream) => {
                self.retry_at = None;
                Some(stream)
            }
            Err(error) => {
                if self.retry_at.replace(Instant::now() + ACCEPT_AGAIN).is_none() {
                    tracing::warn!(%error, "cannot accept a connection on the Unix socket");
                }
                None
            }
        }
    }
}

/// Returns a function that takes connections to the site.
fn site(local: Rc<Local>, guests: Guests, door: Door) -> impl FnMut(StdTcpStream) {
    move |stream| {
        let peer = Peer::of(&stream, door).with_owner();
        adopt(&local, &guests, stream, peer);
    }
}

/// Takes a connection to the site.
fn adopt(local: &Rc<Local>, guests: &Guests, stream: StdTcpStream, peer: Peer) {
    let has_tls = !peer.is_plain() && local.site.tls.is_some();
    let permit = match local.site.permit(peer) {
        Ok(permit) => permit,
        // Without a handshake, TLS cannot send a refusal.
        Err(_) if has_tls => return,
        Err(problem) => return refuse(&stream, problem.to_http1().as_bytes()),
    };
    if has_tls {
        return guests.admit(Guest { stream, peer, permit, first: FirstRequest::default() });
    }
    let timeout = local.site.limits.header_timeout;
    let (local, guests) = (Rc::clone(local), guests.clone());
    let reactor = local.reactor.clone();
    let undecided = Box::new(Undecided { local, guests, peer, permit });
    reactor.adopt_opening(stream, timeout, move |first| first_bytes::decide(undecided, first));
}

/// Returns a function that takes connections to the port of a transport.
fn port(local: Rc<Local>, transport: &'static TcpTransport) -> impl FnMut(StdTcpStream) {
    move |stream| {
        let peer = Peer::of(&stream, Door::Common).with_owner();
        match local.site.permit(peer) {
            Ok(permit) => (transport.adopt)(&local, stream, peer, permit),
            Err(problem) => refuse(&stream, &(transport.refusal)(&problem)),
        }
    }
}

/// Sends a refusal, as far as that is possible without waiting.
fn refuse(mut stream: &StdTcpStream, words: &[u8]) {
    // A new socket takes this much without waiting. If it does not, the client only sees the close.
    let _ = stream.write(words);
}

#[cfg(test)]
mod tests {
    use tokio::task::spawn_blocking;
    use tokio::time::timeout;

    use super::*;

    /// Runs work on a thread like the server's, and returns how that ends, which it has to.
    fn end_of(work: impl Future<Output = Ended> + Send + 'static) -> std::thread::Result<usize> {
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime =
                Builder::new_current_thread().enable_all().build_local(Default::default());
            let end = catch_unwind(AssertUnwindSafe(|| run(runtime.unwrap(), work)));
            ended.send(end)
        });
        end.recv_timeout(Duration::from_secs(30)).expect("the thread waits for the disk")
    }

    #[test]
    fn a_thread_ends_though_a_disk_never_answers_also_when_it_panics() {
        let (_stuck, never) = std::sync::mpsc::channel::<()>();
        let never = Arc::new(std::sync::Mutex::new(never));
        let stick = async move || {
            let (begun, stuck) = tokio::sync::oneshot::channel();
            spawn_blocking(move || {
                begun.send(()).unwrap();
                never.lock().map(|never| never.recv()).is_ok()
            });
            stuck.await.unwrap();
        };
        let work = stick.clone();
        let end = end_of(async move {
            work().await;
            Ended { left: Duration::from_millis(10), connections_cut: 0 }
        });
        assert!(end.is_ok());
        let end = end_of(async move {
            stick().await;
            resume_unwind(Box::new("the loop panicked"))
        });
        assert!(end.is_err(), "whoever watches over it is told");
    }

    #[test]
    fn what_a_disk_does_in_time_is_waited_for() {
        let (go, told) = std::sync::mpsc::channel();
        let (done, outcome) = std::sync::mpsc::channel();
        let end = end_of(async move {
            spawn_blocking(move || {
                told.recv().unwrap();
                done.send(()).unwrap();
            });
            go.send(()).unwrap();
            Ended { left: Duration::from_secs(3600), connections_cut: 0 }
        });
        assert!(end.is_ok());
        assert_eq!(outcome.try_recv(), Ok(()), "it was done when the thread ended");
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_cannot_be_accepted_is_tried_again_later_and_holds_nobody_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let mut unix = UnixGuests { listener, door: Door::Common, retry_at: None };
        let no_descriptor = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        assert!(unix.record(Err(no_descriptor)).is_none(), "at once, with no wait");
        let failed_at = Instant::now();
        // The loop has other things to do meanwhile, and asks anew each time.
        for _ in 0..9 {
            assert!(timeout(ACCEPT_AGAIN / 10, unix.accept()).await.is_err());
        }
        let accepted = unix.accept().await;
        assert!(failed_at.elapsed() >= ACCEPT_AGAIN);
        assert!(unix.record(accepted).is_some());
        assert_eq!(unix.retry_at, None);
    }
}
