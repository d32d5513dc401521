//! The measuring clients. They block. Each wait has a limit, and each fault has a kind.
//!
//! They are written by hand. If a client copied, buffered or woke another thread, its time would be measured together
//! with that of the server.

mod feed;
mod http;
mod multiplexed;
mod piece;
mod pipe;
mod plain;
mod sse;
mod stream;
mod tls;
mod transport;
mod wait;
mod web_socket;

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anemone_ws::proto::ProtocolError;
use anemone_ws::proto::handshake::ResponseError;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use super::terminal::printable;

pub(crate) use self::feed::{Feed, Source};
pub(crate) use self::http::{EVENT_BYTES_MIN, Http};
pub(crate) use self::multiplexed::Multiplexed;
pub(crate) use self::piece::{Piece, number};
pub(crate) use self::stream::Stream;
pub(crate) use self::tls::Tls;
pub(crate) use self::transport::Transport;
pub(crate) use self::web_socket::WebSocket;

/// The longest wait for a step that a server should do at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The longest segment on Ethernet (RFC 9293 section 3.7.1). It includes 12 bytes for timestamps.
const SEGMENT_BYTES: u32 = 1460;
const HEAD_BYTES_MAX: usize = 256 << 10;
/// The most bytes of a server's answer that a fault contains.
const SHOWN_BYTES: usize = 200;
/// The longest message or chunk. A longer one is a fault of the server.
pub(crate) const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// The place of a server, maybe behind a link.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    /// The value of the field `Host`.
    pub(crate) host: String,
    /// The TLS configuration; `None` if the server does not use TLS.
    pub(crate) tls: Option<Box<Tls>>,
    pub(crate) patience: Duration,
}

impl Place {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, host: address.to_string(), tls: None, patience: PATIENCE }
    }

    /// Returns the longest wait for a complete message. It is enough for the longest message over the slowest link.
    pub(crate) fn patience_of_all(&self) -> Duration {
        12 * self.patience
    }

    /// Opens a TCP connection. Its segments are as long as on Ethernet, even on this machine, and Nagle's algorithm is
    /// off.
    pub(crate) fn connect(&self) -> Result<TcpStream, Fault> {
        loop {
            match self.connect_once() {
                // A signal came, such as Ctrl-C.
                Err(Fault::Unreachable { error, .. }) if error.kind() == ErrorKind::Interrupted => {
                }
                connected => return connected,
            }
        }
    }

    fn connect_once(&self) -> Result<TcpStream, Fault> {
        let unreachable = |error| Fault::Unreachable { address: self.address, error };
        let socket = Socket::new(Domain::for_address(self.address), Type::STREAM, None);
        let socket = socket.map_err(unreachable)?;
        socket.set_tcp_mss(SEGMENT_BYTES).map_err(unreachable)?;
        socket.connect_timeout(&self.address.into(), self.patience).map_err(unreachable)?;
        socket.set_tcp_nodelay(true).map_err(unreachable)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(self.patience)).map_err(unreachable)?;
        stream.set_write_timeout(Some(self.patience)).map_err(unreachable)?;
        Ok(stream)
    }
}

/// The reason why a measurement failed. Faults are counted by their kinds. They never become part of a latency.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("cannot connect to {address}: {error}")]
    Unreachable { address: SocketAddr, error: io::Error },
    #[error("the server closed the connection")]
    Closed,
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    #[error("{0}")]
    Stalled(Stall),
    #[error("the server answered with status {status}: {body}")]
    Refused { status: u16, body: String },
    #[error("{0}")]
    Wrong(String),
}

/// The reason why a wait was too long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stall {
    /// Nothing came in this time.
    Silent(Duration),
    /// Only pings, comments and blank lines came in this time.
    Heartbeats(Duration),
    /// Only this many bytes came in this time, and others are missing.
    Slow(Duration, u64),
}

/// The kind of a fault. Reports count faults by kind.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FaultKind {
    /// No connection was possible.
    Unreachable,
    /// The server or the network ended a connection.
    Closed,
    /// Nothing came in time.
    Stalled,
    /// The server answered with the status of a refusal.
    Refused,
    /// The server sent something unexpected.
    Wrong,
    /// The server was not asked, since it had been silent in all cases before.
    NotAsked,
}

impl Fault {
    pub(crate) fn kind(&self) -> FaultKind {
        match self {
            Self::Unreachable { .. } => FaultKind::Unreachable,
            Self::Closed | Self::Broken(_) => FaultKind::Closed,
            Self::Stalled(_) => FaultKind::Stalled,
            Self::Refused { .. } => FaultKind::Refused,
            Self::Wrong(_) => FaultKind::Wrong,
        }
    }

    /// Makes a fault from the error of a load with many connections.
    pub(crate) fn of_load(error: anyhow::Error) -> Self {
        match error.downcast::<io::Error>() {
            Ok(error) => Self::of_io(error, PATIENCE),
            Err(error) => Self::Wrong(printable(&format!("{error:#}"))),
        }
    }

    /// Makes a fault from the error of a connection. Its waits end after `patience`.
    fn of_io(error: io::Error, patience: Duration) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Stalled(Stall::Silent(patience)),
            ErrorKind::InvalidData => Self::Wrong(error.to_string()),
            _ => Self::Broken(error),
        }
    }

    /// Makes the fault about a refusal. It contains the beginning of the body.
    pub(crate) fn refused(status: u16, body: &[u8]) -> Self {
        let body = printable(&String::from_utf8_lossy(start(body)));
        Self::Refused { status, body }
    }

    /// Makes the fault about an unexpected message. It contains the beginning of the bytes.
    pub(crate) fn wrong(words: &str, bytes: &[u8]) -> Self {
        let shown = bytes.escape_ascii().take(SHOWN_BYTES).map(char::from);
        Self::Wrong(format!("{words}: {}", shown.collect::<String>()))
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(time) => write!(f, "the server was silent for {} s", time.as_secs_f64()),
            Self::Heartbeats(time) => {
                write!(f, "only heartbeats came within {} s", time.as_secs_f64())
            }
            Self::Slow(time, bytes) => {
                let seconds = time.as_secs_f64();
                write!(f, "the server was too slow: {bytes} B came in {seconds:.1} s")
            }
        }
    }
}

impl FaultKind {
    /// Returns the words about this number of faults.
    pub(crate) fn counted(self, count: u64) -> String {
        let words = match self {
            Self::Unreachable => "no connection",
            Self::Closed => "closed by the server",
            Self::Stalled => "nothing came in time",
            Self::Refused => "refused",
            Self::Wrong => "wrong reply",
            Self::NotAsked => "not asked",
        };
        format!("{words}: {count}")
    }
}

/// Returns the beginning of a server's bytes, as much as a fault contains.
fn start(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(SHOWN_BYTES)]
}

/// Returns a fault if a head is too long for a web server.
fn within_head(bytes: usize) -> Result<(), Fault> {
    if bytes <= HEAD_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::Wrong(format!("a head has more than {HEAD_BYTES_MAX} bytes")))
}

/// Returns a fault if a message is longer than any that the lab asks for.
fn within_limit(bytes: usize) -> Result<(), Fault> {
    if bytes <= MESSAGE_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::Wrong(format!("a message has more than {MESSAGE_BYTES_MAX} bytes")))
}

impl From<ProtocolError> for Fault {
    fn from(error: ProtocolError) -> Self {
        Self::Wrong(format!("no WebSocket frame: {error}"))
    }
}

impl From<ResponseError> for Fault {
    fn from(error: ResponseError) -> Self {
        Self::Wrong(format!("no WebSocket handshake: {error}"))
    }
}

#[cfg(test)]
mod tests;
