//! The signal to stop waiting: the server stops, or a client has ended its side.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::socket::ahead::PeerSide;

/// Reports that the server stops, and to code that would wait, that its client has ended its side.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    server: watch::Receiver<bool>,
    /// `None` if the client's end does not matter.
    client: Option<watch::Receiver<PeerSide>>,
}

impl Stop {
    pub(crate) fn new(server: watch::Receiver<bool>) -> Self {
        Self { server, client: None }
    }

    /// Returns the signal for the requests of a connection whose client may end its side.
    pub(crate) fn or_end(&self, client: watch::Receiver<PeerSide>) -> Self {
        Self { server: self.server.clone(), client: Some(client) }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // A server that was dropped has stopped, too.
        *self.server.borrow() || self.server.has_changed().is_err()
    }

    /// Waits until the server stops. Cancel safe.
    pub(crate) async fn stopped(&mut self) {
        // A server that was dropped has stopped, too.
        let _ = self.server.wait_for(|stopped| *stopped).await;
    }

    /// Waits until the server stops, or the client sends nothing more and may be gone. Cancel safe.
    pub(crate) async fn interrupted(&mut self) {
        let Self { server, client } = self;
        let Some(client) = client else { return self.stopped().await };
        tokio::select! {
            _ = server.wait_for(|stopped| *stopped) => {}
            _ = client.wait_for(|side| *side != PeerSide::Open) => {}
        }
    }

    /// Waits until the server stops, or the client is lost. Cancel safe.
    pub(crate) async fn lost(&mut self) {
        let Self { server, client } = self;
        let Some(client) = client else { return self.stopped().await };
        tokio::select! {
            _ = server.wait_for(|stopped| *stopped) => {}
            _ = client.wait_for(|side| *side == PeerSide::Lost) => {}
        }
    }

    /// Waits until the client is lost, or has sent nothing more for `grace`. Cancel safe, but the grace begins anew.
    pub(crate) async fn gone(&mut self, grace: Duration) {
        let Some(client) = &mut self.client else { return pending().await };
        // If the connection is over, so is the wait.
        let _ = client.wait_for(|side| *side != PeerSide::Open).await;
        let _ = timeout(grace, client.wait_for(|side| *side == PeerSide::Lost)).await;
    }
}
