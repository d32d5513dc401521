//! A WebSocket on a connection of another HTTP server.

use std::rc::Rc;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::time::{sleep, timeout};

use crate::clients::connections::described::WireProtocol;
use crate::clients::permits::ConnectionPermit;
use crate::exchange::handoff::Handoff;
use crate::local::Local;
use crate::stop::Stop;

/// A connection that an HTTP server hands over after writing the reply to a handshake.
pub(crate) struct Upgraded {
    pub(crate) stream: OnUpgrade,
    pub(crate) handoff: Handoff,
    pub(crate) permit: ConnectionPermit,
}

impl Upgraded {
    /// Serves the WebSocket until it is over, if its client takes the reply to its handshake in time.
    pub(crate) async fn serve(self, local: Rc<Local>, mut stop: Stop) {
        let Self { stream, handoff, permit } = self;
        let limits = &local.site.limits;
        let stopped = async {
            stop.stopped().await;
            // A client that takes the reply meanwhile is told that the server stops.
            sleep(limits.shutdown_grace / 2).await;
        };
        let given = tokio::select! {
            given = timeout(limits.write_timeout, stream) => given,
            () = stopped => return,
        };
        let Ok(given) = given else {
            tracing::debug!("the client did not take the reply to its handshake");
            return;
        };
        match given {
            Ok(stream) => {
                let stream = TokioIo::new(stream);
                handoff
                    .in_task(&local, Vec::new(), permit, (stream, stop, WireProtocol::Other))
                    .await;
            }
            Err(error) => tracing::debug!(%error, "connection lost in its handshake"),
        }
    }
}
