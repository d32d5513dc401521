//! One row of the report: the work, those it is done to, and what one sample of it says.

use std::fmt;
use std::time::Duration;

use crate::cpu::{Busy, Used};
use crate::load::{Closing, Protocol, Shape};

/// The program that does the work.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Contender {
    /// The TCP echo in C, or the broadcast that it offers as well.
    Floor,
    /// A second process of the same, the A/A control: how far two equals differ.
    Control,
    /// The server's own bare TCP echo.
    Tcp,
    /// The server's WebSocket echo, or broadcast.
    WebSocket,
    /// The server's broadcast by way of a topic, which keeps what it sends.
    Topic,
}

impl Contender {
    pub(crate) const ALL: [Self; 5] =
        [Self::Floor, Self::Control, Self::Tcp, Self::WebSocket, Self::Topic];

    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Floor | Self::Control | Self::Tcp => Protocol::Tcp,
            Self::WebSocket | Self::Topic => Protocol::WebSocket,
        }
    }
}

/// The work that is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Work {
    /// Messages go and come back on open connections.
    Echo { connections: usize, shape: Shape },
    /// One connection's messages go to all; those in flight are on their way to any of them.
    Broadcast { connections: usize, shape: Shape },
    /// Connections are opened, say one thing and are closed.
    Connect { closing: Closing },
    /// Connections are opened and say nothing more, or nothing after one echo.
    Memory { connections: usize, before: Before },
}

/// The past of an idle connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Before {
    Opened,
    Echoed,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Echo { connections, shape } => write!(
                f,
                "{}, {} in flight, {connections} connections",
                Bytes(shape.payload_bytes),
                shape.in_flight
            ),
            Self::Broadcast { connections, shape } => write!(
                f,
                "{} to {connections} connections, {} outstanding",
                Bytes(shape.payload_bytes),
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

/// Prints a number of bytes in the largest unit that leaves it whole.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n > 0 && n % (1 << 20) == 0 => write!(f, "{} MiB", n >> 20),
            n if n > 0 && n % (1 << 10) == 0 => write!(f, "{} KiB", n >> 10),
            n => write!(f, "{n} B"),
        }
    }
}

/// The times of a sample, and before it of the warm-up, which is not counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) sample: Duration,
    pub(crate) warm_up: Duration,
}

/// One sample: what one unit of the work cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// CPU microseconds for each message, delivery or connection, or bytes for each connection.
    pub(crate) cost: f64,
    pub(crate) busy: Busy,
}

impl Sample {
    pub(crate) fn of_cpu(used: Used, units: u64) -> Self {
        Self { cost: used.server_ns as f64 / 1e3 / units as f64, busy: used.busy }
    }
}
