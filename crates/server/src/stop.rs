//! The end of waiting: the server stops, or a client has ended its side.

use tokio::sync::watch;

/// Tells that the server stops; and those who would wait, that their client has ended its side of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    server: watch::Receiver<bool>,
    /// `None` where it ends with the connection.
    client: Option<watch::Receiver<bool>>,
}

impl Stop {
    pub(crate) fn new(server: watch::Receiver<bool>) -> Self {
        Self { server, client: None }
    }

    /// The same for the requests of a connection, whose client may end its side.
    pub(crate) fn or_end(&self, client: watch::Receiver<bool>) -> Self {
        Self { server: self.server.clone(), client: Some(client) }
    }

    /// Whether the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        // A server that is gone has stopped, too.
        *self.server.borrow() || self.server.has_changed().is_err()
    }

    /// Returns once the server stops. Cancel safe.
    pub(crate) async fn stopped(&mut self) {
        // A server that is gone has stopped, too.
        let _ = self.server.wait_for(|stopped| *stopped).await;
    }

    /// Returns once nobody is to be kept waiting: the server stops, or the client sends nothing more, and may as
    /// well be gone. Cancel safe.
    pub(crate) async fn over(&mut self) {
        let Self { server, client } = self;
        let Some(client) = client else { return self.stopped().await };
        tokio::select! {
            _ = server.wait_for(|stopped| *stopped) => {}
            _ = client.wait_for(|ended| *ended) => {}
        }
    }
}
