//! The server on the caller's runtime.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use crate::listen::accept::accept;
use crate::listen::listener::Server;
use crate::listen::running::Stopped;
use crate::local::Local;
use crate::stop::Stop;
use crate::tls::Watch;

impl Server {
    /// Serves all connections on the thread that polls this, on the caller's runtime, until `shutdown` is ready; then
    /// stops like [`Running::stop`](crate::Running::stop). The future is not `Send`: await it in `main`, or in a
    /// `LocalSet`. [`start`](Self::start) uses its own threads instead.
    ///
    /// Readers wait less on a runtime with one thread (`#[tokio::main(flavor = "current_thread")]`). The handlers of a
    /// [`Mount`](crate::Mount) run on the same thread: if one blocks, everything waits, the end included.
    ///
    /// # Errors
    /// When its loop cannot be created, for example because no descriptors are left.
    ///
    /// # Panics
    /// Outside of a tokio runtime with IO and time enabled; and when an essential task of the server panics.
    ///
    /// # Cancel safety
    /// Dropping the future cuts every connection.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> io::Result<Stopped> {
        let _watch = Watch::start(self.site.tls.as_ref())?;
        let Self { listeners, site, socket_files: _socket_files, .. } = self;
        let (accesses, runs) = (Arc::clone(&site.accesses), site.runs.clone());
        let (stop, stopped) = watch::channel(false);
        let serve = async move {
            let local = Local::start(site)?;
            let (_none, upgraded) = mpsc::unbounded_channel();
            let accepting = accept(Rc::new(local), listeners, upgraded, Stop::new(stopped));
            Ok::<_, io::Error>(accepting.await.connections_cut)
        };
        let stopping = async {
            shutdown.await;
            accesses.stop();
            let _ = runs.stop(Duration::ZERO);
            stop.send_replace(true);
            std::future::pending::<()>().await;
        };
        let served = LocalSet::new();
        let outcome = served.run_until(async {
            tokio::select! {
                outcome = serve => outcome,
                () = stopping => Ok(0),
            }
        });
        let connections_cut = outcome.await?;
        drop(served);
        accesses.flush();
        let runs_open = runs.stop(Duration::ZERO);
        Ok(Stopped { connections_cut, requests_open: 0, runs_open })
    }
}
