//! The transports for reading events.

/// A transport for reading events.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Transport {
    WebSocket,
    Multiplexed,
    Tcp,
    Sse,
    Ndjson,
    LongPoll,
    Poll,
}

impl Transport {
    pub(crate) const ALL: [Self; 7] = [
        Self::WebSocket,
        Self::Multiplexed,
        Self::Tcp,
        Self::Sse,
        Self::Ndjson,
        Self::LongPoll,
        Self::Poll,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "WebSocket",
            Self::Multiplexed => "multiplexed",
            Self::Tcp => "TCP",
            Self::Sse => "SSE",
            Self::Ndjson => "NDJSON",
            Self::LongPoll => "long poll",
            Self::Poll => "poll",
        }
    }

    /// Returns the header field `Accept` that asks for this transport.
    pub(super) fn accept(self) -> &'static str {
        match self {
            Self::Sse => "Accept: text/event-stream\r\n",
            Self::Ndjson => "Accept: application/x-ndjson\r\n",
            _ => "",
        }
    }
}
