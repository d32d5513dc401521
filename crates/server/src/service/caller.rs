//! The client of a request, as a service sees it.

use std::net::SocketAddr;

use crate::request::client::Client;

/// The client that calls a service. It is in the extensions of each request for a [`Mount`](crate::Mount).
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    client: Client,
    transport: &'static str,
}

/// The identity of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Identity {
    /// A program on the server's own machine, of the server's user or of root, and no proxy.
    Local,
    /// Anyone else.
    Anonymous,
}

impl Caller {
    pub(crate) fn new(client: Client, transport: &'static str) -> Self {
        Self { client, transport }
    }

    /// Returns the same client, as the work of a run sees it.
    pub(super) fn of_run(self) -> Self {
        Self { client: self.client.settled(), transport: "run" }
    }

    pub(super) fn client(self) -> Client {
        self.client
    }

    /// Returns the client's address, if it is known: the one that a trusted proxy reports, or else the peer of the
    /// connection. Port 0 if the proxy does not report it.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.client.address()
    }

    /// Returns true for a program on the server's own machine, of the server's user or of root, that is no proxy.
    /// Asks the operating system on each call.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.client.check_local().is_ok()
    }

    /// Returns the transport of the request: `http`, `websocket`, `multiplexed`, `tcp` or `run`.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.transport
    }

    /// Returns the identity of the client. Asks the operating system on each call.
    #[must_use]
    pub fn identity(&self) -> Identity {
        if self.is_local() { Identity::Local } else { Identity::Anonymous }
    }
}
