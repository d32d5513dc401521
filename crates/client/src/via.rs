//! The transports of readers and of calls.

use std::fmt;

/// A transport of a reader.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Via {
    /// A WebSocket for one topic, with the subprotocol `anemone.events`.
    WebSocket,
    /// `anemone.v1` on a WebSocket.
    Mux,
    /// Server-sent events.
    Sse,
    /// An endless reply with one JSON object per line.
    Ndjson,
    /// Long polls: the server answers each request once there is an event.
    LongPoll,
    /// Polls: requests at a fixed interval.
    Poll,
    /// `anemone.v1` on bare TCP.
    Tcp,
}

impl Via {
    /// All transports.
    pub const ALL: [Self; 7] = [
        Self::WebSocket,
        Self::Mux,
        Self::Sse,
        Self::Ndjson,
        Self::LongPoll,
        Self::Poll,
        Self::Tcp,
    ];

    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebSocket => "ws",
            Self::Mux => "mux",
            Self::Sse => "sse",
            Self::Ndjson => "ndjson",
            Self::LongPoll => "long-poll",
            Self::Poll => "poll",
            Self::Tcp => "tcp",
        }
    }

    /// Returns true if the transport carries several topics on one stream. The multiplexed transports have a reader for
    /// each topic instead.
    pub(crate) const fn carries_several(self) -> bool {
        matches!(self, Self::Ndjson | Self::Sse | Self::LongPoll | Self::Poll)
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A transport of calls.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CallVia {
    /// HTTP/1.1, with a connection for each open call.
    Http,
    /// `anemone.v1` on one WebSocket for all calls.
    Mux,
    /// `anemone.v1` on one TCP connection for all calls.
    Tcp,
}

impl CallVia {
    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Mux => "mux",
            Self::Tcp => "tcp",
        }
    }
}

impl fmt::Display for CallVia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
