//! The names of transports, for lists of readers and the access log.

/// The name of a transport, as small as a pointer, since each entry in the list of readers has one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct TransportName(&'static TransportWords);

/// What is said of a transport.
#[derive(Debug, Eq, Hash, PartialEq)]
pub(crate) struct TransportWords {
    pub(crate) name: &'static str,
    /// What makes the server use it.
    pub(crate) why: &'static str,
}

impl TransportName {
    /// A plain WebSocket, at the path of whatever answers it.
    pub(crate) const WEBSOCKET: Self =
        Self::new(&TransportWords { name: "websocket", why: "a WebSocket handshake at this path" });

    pub(crate) const fn new(words: &'static TransportWords) -> Self {
        Self(words)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        self.0.name
    }

    pub(crate) const fn why(self) -> &'static str {
        self.0.why
    }
}
