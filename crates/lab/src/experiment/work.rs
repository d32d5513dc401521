//! One row of the report: the work, the contenders, and the meaning of a sample.

use std::fmt;
use std::time::Duration;

use crate::cpu::{Busy, Used};
use crate::load::{Closing, Protocol, Shape};

/// A program that is measured.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Contender {
    /// The TCP echo in C, or its broadcast.
    Floor,
    /// A second process of the same, the A/A control: it shows the noise.
    Control,
    /// The server's own bare TCP echo.
    Tcp,
    /// The server's WebSocket echo, or broadcast.
    WebSocket,
    /// The server's broadcast through a topic, which stores the messages.
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

/// The work of one sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Work {
    /// Messages are echoed on open connections.
    Echo { connections: usize, shape: Shape },
    /// The messages of one connection go to all; those in flight are on their way to any of them.
    Broadcast { connections: usize, shape: Shape },
    /// Connections open, exchange one message and close.
    Connect { closing: Closing },
    /// Connections open and stay idle, some after one echo.
    Memory { connections: usize, before: Before },
}

/// The history of an idle connection.
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

/// The durations of a sample and of its warm-up, which does not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) sample: Duration,
    pub(crate) warm_up: Duration,
}

/// One sample: the cost of one unit of the work.
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
