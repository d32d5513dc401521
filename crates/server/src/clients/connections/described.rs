//! The description of a connection, as its handler gives it and as JSON.

use std::net::SocketAddr;

use anemone_hub::{Lag, Position};
use anemone_wire::Mode;
use serde::Serialize;

use crate::clients::readers::in_words;
use crate::transport_name::{TransportName, TransportWords};

/// The most readers of a connection that are described, each with its lag.
pub(crate) const READS_MAX: usize = 20;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WireProtocol {
    Http1,
    Http1Tls,
    /// HTTP/2 is always over TLS here.
    Http2,
    Tcp,
    /// Another HTTP server has the connection.
    Other,
}

impl WireProtocol {
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Http1 | Self::Http1Tls => Some("http/1.1"),
            Self::Http2 => Some("http/2"),
            Self::Tcp => Some("tcp"),
            Self::Other => None,
        }
    }

    pub(crate) const fn is_secure(self) -> bool {
        matches!(self, Self::Http1Tls | Self::Http2)
    }
}

/// A connection that speaks nothing that its client has chosen: one that is undecided, or that carries requests and
/// replies.
pub(crate) const HTTP: TransportName =
    TransportName::new(&TransportWords { name: "http", why: "requests that ask for no stream" });
pub(crate) const UNDECIDED: TransportName =
    TransportName::new(&TransportWords { name: "undecided", why: "nothing was sent yet" });

/// The description that a handler gives of its connection.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) client: Option<SocketAddr>,
    pub(crate) transport: TransportName,
    pub(crate) protocol: WireProtocol,
    /// The path as in logs, without the whole key of a run.
    pub(crate) path: Option<String>,
    pub(crate) subprotocol: Option<&'static str>,
    /// The number of open requests, of which some are readers.
    pub(crate) requests: usize,
    /// The first [`READS_MAX`] of its readers.
    pub(crate) reads: Vec<ReadDescription>,
    pub(crate) readers: usize,
}

impl Described {
    /// Describes a connection without readers.
    pub(crate) fn new(
        client: Option<SocketAddr>,
        (transport, protocol): (TransportName, WireProtocol),
        path: impl Into<Option<String>>,
    ) -> Self {
        Self {
            client,
            transport,
            protocol,
            path: path.into(),
            subprotocol: None,
            requests: 0,
            reads: Vec::new(),
            readers: 0,
        }
    }

    /// Adds the only reader, which is the request of the connection.
    pub(crate) fn reading(self, read: ReadDescription) -> Self {
        let path = Some(read.path.clone());
        Self { path, requests: 1, reads: vec![read], readers: 1, ..self }
    }

    /// Returns what lists say about it, without what only the thread knows.
    pub(crate) fn to_list(&self) -> DescriptionInList<'_> {
        let lag = self.reads.iter().fold(Lag::default(), |sum, read| Lag {
            events: sum.events + read.lag.events,
            bytes: sum.bytes + read.lag.bytes,
        });
        let position = match &self.reads[..] {
            [one] if self.readers == 1 => Some(one.position.to_string()),
            _ => None,
        };
        DescriptionInList {
            client: self.client.map(in_words),
            transport: self.transport.as_str(),
            why: self.transport.why(),
            protocol: self.protocol.name(),
            tls: self.protocol.is_secure(),
            path: self.path.as_deref(),
            subprotocol: self.subprotocol,
            requests: self.requests,
            readers: self.readers,
            position,
            lag: (self.readers > 0).then_some(lag),
            reads: self.reads.iter().map(ReadDescription::to_list).collect(),
        }
    }
}

/// The members of a connection in a list that its handler describes.
#[derive(Debug, Serialize)]
pub(crate) struct DescriptionInList<'a> {
    client: Option<String>,
    transport: &'static str,
    why: &'static str,
    protocol: Option<&'static str>,
    tls: bool,
    path: Option<&'a str>,
    subprotocol: Option<&'static str>,
    requests: usize,
    readers: usize,
    position: Option<String>,
    lag: Option<Lag>,
    reads: Vec<ReadInList<'a>>,
}

/// A reader of a connection.
#[derive(Debug)]
pub(crate) struct ReadDescription {
    pub(crate) path: String,
    pub(crate) position: Position,
    pub(crate) mode: Mode,
    pub(crate) lag: Lag,
}

/// The members of a reader of a connection in a list.
#[derive(Debug, Serialize)]
struct ReadInList<'a> {
    path: &'a str,
    position: String,
    mode: &'static str,
    lag: Lag,
}

impl ReadDescription {
    fn to_list(&self) -> ReadInList<'_> {
        let (position, mode) = (self.position.to_string(), self.mode.as_str());
        ReadInList { path: &self.path, position, mode, lag: self.lag }
    }
}
