//! One thread of the server: its runtime, its loop, and what it accepts.

use std::io;
use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anemone_ws::proto::Output;
use anemone_ws::reactor::StreamHandler;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::connection::Local;
use crate::routes::{Site, Stop};
use crate::{Problem, connection, secure};

/// How long to wait when a connection could not be accepted, for want of descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a thread listens on.
#[derive(Debug)]
pub(crate) struct Listeners<L> {
    pub(crate) site: L,
    pub(crate) tcp_echo: Option<L>,
}

/// A thread's work, until the server stops.
pub(crate) fn serve(
    listeners: Listeners<StdListener>,
    site: Arc<Site>,
    permits: Arc<Semaphore>,
    stop: Stop,
) {
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
    let served = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let thread = Thread { local: Rc::new(Local::start(site, permits)?), stop };
            thread.serve(listeners).await
        })
    });
    if let Err(error) = served {
        tracing::error!(%error, "a thread of the server cannot run");
    }
}

struct Thread {
    local: Rc<Local>,
    stop: Stop,
}

impl Thread {
    /// Accepts until the server stops, then waits for what is open to end.
    async fn serve(self, listeners: Listeners<StdListener>) -> io::Result<()> {
        let site = TcpListener::from_std(listeners.site)?;
        let tcp_echo = listeners.tcp_echo.map(TcpListener::from_std).transpose()?;
        let mut requests = JoinSet::new();
        let mut stop = self.stop.clone();
        loop {
            tokio::select! {
                (stream, permit) = self.accept(Some(&site)) => {
                    let (local, stop) = (Rc::clone(&self.local), self.stop.clone());
                    match &self.local.site.tls {
                        None => requests.spawn_local(connection::serve(local, stream, stop, permit)),
                        Some(tls) => {
                            let tls = tls.clone();
                            requests.spawn_local(secure::serve(local, stream, tls, stop, permit))
                        }
                    };
                }
                (stream, permit) = self.accept(tcp_echo.as_ref()) => self.echo(stream, permit),
                Some(_) = requests.join_next() => {}
                () = stop.stopped() => break,
            }
        }
        drop((site, tcp_echo));
        let requests = async { while requests.join_next().await.is_some() {} };
        let all = async {
            tokio::join!(requests, self.local.reactor.close_all(connection::going_away()))
        };
        if tokio::time::timeout(self.local.site.limits.shutdown_grace, all).await.is_err() {
            tracing::info!("some connections did not end in time and were cut off");
        }
        Ok(())
    }

    /// The next connection there is room for. Never returns without a listener. Cancel safe.
    async fn accept(&self, listener: Option<&TcpListener>) -> (TcpStream, OwnedSemaphorePermit) {
        let Some(listener) = listener else { return std::future::pending().await };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Small messages leave at once instead of waiting for the last one's answer.
                    let _ = stream.set_nodelay(true);
                    match Arc::clone(&self.local.permits).try_acquire_owned() {
                        Ok(permit) => return (stream, permit),
                        // Without a handshake TLS has no words.
                        Err(_) if self.local.site.tls.is_some() => {}
                        Err(_) => refuse(stream),
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn echo(&self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        match stream.into_std() {
            Ok(stream) => {
                let idle_timeout = self.local.site.limits.echo.idle_timeout;
                self.local.reactor.adopt_stream(stream, idle_timeout, ByteEcho { _permit: permit });
            }
            Err(error) => tracing::debug!(%error, "connection lost"),
        }
    }
}

/// Sends bytes back as they come.
struct ByteEcho {
    _permit: OwnedSemaphorePermit,
}

impl StreamHandler for ByteEcho {
    fn receive(&mut self, bytes: &[u8], output: &mut Output) {
        output.extend_from_slice(bytes);
    }
}

/// Tells a client that there is no room, as far as that goes without waiting for it.
fn refuse(stream: TcpStream) {
    let reply = Problem::too_many_connections().to_http1();
    // A fresh socket takes this much without waiting. Should it not, the client sees the close.
    let _ = stream.try_write(reply.as_bytes());
}
