//! The work of a sample, and the contenders that do it.

use std::fmt;

use crate::lab::report::Quantity;
use crate::load::{Closing, Protocol, Shape};

pub(super) const MESSAGE: Quantity = Quantity::less("server CPU for each message", "µs");
pub(crate) const DELIVERY: Quantity = Quantity::less("server CPU for each delivery", "µs");
pub(super) const CONNECTION: Quantity = Quantity::less("server CPU for each connection", "µs");
pub(super) const MEMORY: Quantity =
    Quantity::less("user memory of the server for each idle connection", "B");

/// A program that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contender {
    /// The TCP echo in C, or its broadcast.
    Floor,
    /// The control (A/A): a second process of the same program. Its difference shows the noise.
    Control,
    /// The server's own bare TCP echo.
    Tcp,
    /// The server's WebSocket echo, or broadcast.
    WebSocket,
    /// The server's broadcast through a topic. The topic stores the messages.
    Topic,
}

impl Contender {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "C",
            Self::Control => "C again",
            Self::Tcp => "TCP",
            Self::WebSocket => "WebSocket",
            Self::Topic => "topic",
        }
    }

    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Floor | Self::Control | Self::Tcp => Protocol::Tcp,
            Self::WebSocket | Self::Topic => Protocol::WebSocket,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Work {
    /// Messages are echoed on open connections.
    Echo { connections: usize, shape: Shape },
    /// The messages of one connection go to all connections. A message is in flight until all have it.
    Broadcast { connections: usize, shape: Shape },
    /// Connections open, exchange one message and close.
    Connect { closing: Closing },
    /// Connections open and stay idle. In some cases, each first makes one echo.
    Memory { connections: usize, before: Before },
}

/// The history of an idle connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Before {
    Opened,
    Echoed,
}

impl Work {
    /// Returns the quantity of the work: its cost for each unit.
    pub(crate) fn quantity(&self) -> Quantity {
        match self {
            Self::Echo { .. } => MESSAGE,
            Self::Broadcast { .. } => DELIVERY,
            Self::Connect { .. } => CONNECTION,
            Self::Memory { .. } => MEMORY,
        }
    }

    /// Returns the contenders that do the work. The server has no broadcast over bare TCP.
    pub(crate) fn contenders(&self) -> [Contender; 4] {
        let last = match self {
            Self::Broadcast { .. } => [Contender::WebSocket, Contender::Topic],
            _ => [Contender::Tcp, Contender::WebSocket],
        };
        [Contender::Floor, Contender::Control, last[0], last[1]]
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Echo { connections, shape } => write!(
                f,
                "{}, {} in flight, {connections} connections",
                ByteSize(shape.payload_bytes),
                shape.in_flight
            ),
            Self::Broadcast { connections, shape } => write!(
                f,
                "{} to {connections} connections, {} outstanding",
                ByteSize(shape.payload_bytes),
                shape.in_flight
            ),
            Self::Connect { closing: Closing::Tcp } => f.write_str("open, close the socket"),
            Self::Connect { closing: Closing::Handshake } => f.write_str("open, closing handshake"),
            Self::Memory { connections, before: Before::Opened } => {
                write!(f, "{connections} connections, opened")
            }
            Self::Memory { connections, before: Before::Echoed } => {
                write!(f, "{connections} connections, after one echo of 125 B")
            }
        }
    }
}

/// A number of bytes. It is formatted in the largest unit that leaves the number whole.
pub(crate) struct ByteSize(pub(crate) usize);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n > 0 && n % (1 << 20) == 0 => write!(f, "{} MiB", n >> 20),
            n if n > 0 && n % (1 << 10) == 0 => write!(f, "{} KiB", n >> 10),
            n => write!(f, "{n} B"),
        }
    }
}
