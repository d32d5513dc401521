//! The kinds of hostile peers, and their behaviour.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use anemone_ws::proto::handshake::{ClientHandshake, Established, Nonce};
use anemone_ws::proto::{
    Codecs, Config, Connection, DeflateConfig, Header, MaskKey, Message, MessageKind, Opcode, Time,
};
use anyhow::Context;
use clap::ValueEnum;

use super::peer::{Peer, Script};
use crate::load::{Endpoint, connect, masked_frame, shake_hands};

/// The number of connections for a kind that holds little memory; below, the number for a kind that holds as much as it
/// can.
const MANY: usize = 1000;
const FEW: usize = 20;
/// The number of pings on each of [`FEW`] connections. Together, they are a million.
const PINGS: usize = 1_000_000 / FEW;
const MIB: usize = 1 << 20;
/// The longest message that the server's `/echo` accepts.
const MESSAGE_BYTES: usize = 1 << 20;
const MASK: MaskKey = MaskKey([0x37, 0xfa, 0x21, 0x3d]);
const ENDLESS: usize = usize::MAX;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub(crate) enum HostileKind {
    Silent,
    RequestDripped,
    TlsSilent,
    TlsDripped,
    BodyDripped,
    FrameDripped,
    FragmentsDripped,
    RepliesUnread,
    EchoUnread,
    MessageUnread,
    PingsUnread,
    Pings,
    Bomb,
    BombHeld,
    Fragments,
    FragmentsEmpty,
}

impl HostileKind {
    /// Returns true if only a timeout ends a peer of this kind.
    pub(super) fn waits(self) -> bool {
        !matches!(self, Self::Pings | Self::Bomb | Self::Fragments | Self::FragmentsEmpty)
    }

    /// Returns true if the server has no reason to end a peer of this kind.
    pub(super) fn is_harmless(self) -> bool {
        self == Self::Pings
    }

    /// Returns the number of pings on each connection; `None` for a kind that sends none.
    pub(crate) fn pings(self) -> Option<usize> {
        (self == Self::Pings).then_some(PINGS)
    }

    pub(super) fn server_args(self) -> &'static [&'static str] {
        if matches!(self, Self::TlsSilent | Self::TlsDripped) { &["--tls-dev"] } else { &[] }
    }

    /// Connects the peers. Prepares them up to their first hostile byte.
    pub(super) fn peers(self, endpoint: &Endpoint, room: usize) -> anyhow::Result<Vec<Peer>> {
        let opening = self.opening();
        let (mut script, mut peers) = (None, Vec::new());
        for _ in 0..self.connections().min(room) {
            let mut stream = connect(endpoint.address)?;
            let established = match opening {
                PeerOpening::None => None,
                PeerOpening::WebSocket => Some(open(&mut stream, endpoint, None)?),
                PeerOpening::Compressed => {
                    Some(open(&mut stream, endpoint, Some(DeflateConfig::default()))?)
                }
            };
            let script = match &script {
                Some(script) => script,
                None => script.insert(self.script(endpoint, established.as_ref())?),
            };
            peers.push(Peer::new(stream, script.clone())?);
        }
        Ok(peers)
    }

    fn connections(self) -> usize {
        match self {
            Self::Silent
            | Self::RequestDripped
            | Self::TlsSilent
            | Self::TlsDripped
            | Self::BodyDripped
            | Self::FrameDripped
            | Self::FragmentsDripped => MANY,
            Self::RepliesUnread
            | Self::EchoUnread
            | Self::MessageUnread
            | Self::PingsUnread
            | Self::Pings
            | Self::Bomb
            | Self::BombHeld
            | Self::Fragments
            | Self::FragmentsEmpty => FEW,
        }
    }

    fn opening(self) -> PeerOpening {
        match self {
            Self::Silent
            | Self::RequestDripped
            | Self::TlsSilent
            | Self::TlsDripped
            | Self::BodyDripped
            | Self::RepliesUnread => PeerOpening::None,
            Self::Bomb | Self::BombHeld => PeerOpening::Compressed,
            Self::FrameDripped
            | Self::FragmentsDripped
            | Self::EchoUnread
            | Self::MessageUnread
            | Self::PingsUnread
            | Self::Pings
            | Self::Fragments
            | Self::FragmentsEmpty => PeerOpening::WebSocket,
        }
    }

    fn script(
        self,
        endpoint: &Endpoint,
        established: Option<&Established>,
    ) -> anyhow::Result<Script> {
        let (host, path) = (endpoint.address, &endpoint.path);
        Ok(match self {
            Self::Silent | Self::TlsSilent => Script::default(),
            Self::RequestDripped => {
                let begin = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-Endless: ");
                Script::drip(begin.as_bytes(), b"x")
            }
            // A record with 16,000 bytes of a ClientHello (RFC 8446 sections 4 and 5.1).
            Self::TlsDripped => {
                Script::drip(&[0x16, 3, 1, 0x3e, 0x80, 1, 0, 0x3e, 0x7c, 3, 3], &[0])
            }
            Self::BodyDripped => {
                let begin =
                    format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000\r\n\r\n");
                Script::drip(begin.as_bytes(), b"x")
            }
            Self::FrameDripped => {
                let mut begin = Vec::new();
                let header = Header::new(Opcode::Binary, MESSAGE_BYTES as u64);
                Header { mask: Some(MASK), ..header }.encode(&mut begin);
                Script::drip(&begin, b"x")
            }
            Self::FragmentsDripped => Script::drip(&first(b"x"), &next(b"x")),
            Self::RepliesUnread => {
                Script::unread(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
            }
            Self::EchoUnread => Script::unread(&message(60_000)),
            Self::MessageUnread => Script::unread(&message(MESSAGE_BYTES)),
            Self::PingsUnread => Script::unread(&ping(&[7; 125]).repeat(1000)),
            Self::Pings => Script {
                burst: ping(b"").repeat(1000).into(),
                bursts: PINGS / 1000,
                reply_bytes: Some(2 * PINGS as u64),
                ..Script::default()
            },
            Self::Bomb => Script { begin: bomb(established, 1024)?.into(), ..Script::default() },
            Self::BombHeld => {
                let bomb = bomb(established, MESSAGE_BYTES / MIB)?;
                Script { begin: bomb.into(), ..Script::default() }
            }
            Self::Fragments => Script::chain(&[7; 1000]),
            Self::FragmentsEmpty => Script::chain(b""),
        })
    }
}

impl Script {
    /// Creates a script that sends `begin` at once, and then `drip` once a second.
    fn drip(begin: &[u8], drip: &[u8]) -> Self {
        Self { begin: begin.into(), drip: drip.into(), ..Self::default() }
    }

    /// Creates a script that sends without end and never reads.
    fn unread(burst: &[u8]) -> Self {
        Self { burst: burst.into(), bursts: ENDLESS, never_reads: true, ..Self::default() }
    }

    /// Creates a script that sends a message whose fragments never end.
    fn chain(payload: &[u8]) -> Self {
        let burst = next(payload).repeat(1000).into();
        Self { begin: first(payload).into(), burst, bursts: ENDLESS, ..Self::default() }
    }
}

fn ping(payload: &[u8]) -> Vec<u8> {
    frame(Header::new(Opcode::Ping, 0), payload)
}

fn message(len: usize) -> Vec<u8> {
    frame(Header::new(Opcode::Binary, 0), &vec![7; len])
}

/// Returns the first fragment of a message.
fn first(payload: &[u8]) -> Vec<u8> {
    frame(Header { fin: false, ..Header::new(Opcode::Binary, 0) }, payload)
}

/// Returns a fragment that is neither the first nor the last.
fn next(payload: &[u8]) -> Vec<u8> {
    frame(Header { fin: false, ..Header::new(Opcode::Continuation, 0) }, payload)
}

pub(super) fn frame(header: Header, payload: &[u8]) -> Vec<u8> {
    masked_frame(header, payload, MASK)
}

/// Returns a fragment that inflates to this many MiB of zeros. It repeats the compressed form of one MiB. That is
/// valid, since the window of the compression contains only zeros, too.
fn bomb(established: Option<&Established>, mebibytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut piece = compressed(established, &vec![0; MIB])?;
    let (header, header_bytes) = Header::decode(&piece)?.context("no frame was made")?;
    header.mask.context("a client masks")?.apply(&mut piece[header_bytes..]);
    let payload = piece[header_bytes..].repeat(mebibytes);
    Ok(frame(Header { fin: false, rsv1: true, ..Header::new(Opcode::Binary, 0) }, &payload))
}

/// Returns the first fragment of a compressed message.
fn compressed(established: Option<&Established>, payload: &[u8]) -> anyhow::Result<Vec<u8>> {
    let deflate = established.and_then(|established| established.deflate.as_ref());
    let deflate = deflate.context("the server does not compress")?;
    let mut client = Connection::client(Arc::new(Config::default()), Time::ZERO, Box::new(|| MASK))
        .with_deflate(deflate, |_| Codecs::new());
    client.sender().send_fragment(MessageKind::Binary, payload, false)?;
    Ok(client.sender().transmit().to_vec())
}

/// Returns a complete compressed message.
pub(super) fn compressed_message(
    established: &Established,
    payload: &[u8],
) -> anyhow::Result<Vec<u8>> {
    let deflate = established.deflate.as_ref().context("the server does not compress")?;
    let keys = Box::new(|| MASK);
    let mut client = Connection::client(Arc::new(Config::default()), Time::ZERO, keys)
        .with_deflate(deflate, |_| Codecs::new());
    client.sender().send(Message::Binary(payload))?;
    Ok(client.sender().transmit().to_vec())
}

/// Makes the server do the work that it does only once, before anything is measured.
pub(super) fn warm_up(endpoint: &Endpoint) -> anyhow::Result<()> {
    let mut stream = connect(endpoint.address)?;
    let established = open(&mut stream, endpoint, Some(DeflateConfig::default()))?;
    let message = [compressed(Some(&established), &[0; 1000])?, last(b"")].concat();
    stream.write_all(&message)?;
    stream.read_exact(&mut [0]).context("waiting for an echo")?;
    let mut stream = connect(endpoint.address)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", endpoint.address);
    stream.write_all(request.as_bytes())?;
    stream.read_exact(&mut [0]).context("waiting for a reply")
}

fn last(payload: &[u8]) -> Vec<u8> {
    frame(Header::new(Opcode::Continuation, 0), payload)
}

pub(super) fn open(
    stream: &mut TcpStream,
    endpoint: &Endpoint,
    deflate: Option<DeflateConfig>,
) -> anyhow::Result<Established> {
    let mut handshake = ClientHandshake::new(Nonce([7; 16]), &[]);
    if let Some(deflate) = deflate {
        handshake = handshake.with_deflate(deflate);
    }
    shake_hands(stream, handshake, &endpoint.path)
}

impl fmt::Display for HostileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "sends nothing",
            Self::RequestDripped => "a request, a byte a second",
            Self::TlsSilent => "no TLS handshake",
            Self::TlsDripped => "a TLS handshake, a byte a second",
            Self::BodyDripped => "a body, a byte a second",
            Self::FrameDripped => "a frame, a byte a second",
            Self::FragmentsDripped => "a fragment of a byte a second",
            Self::RepliesUnread => "requests, never reads",
            Self::EchoUnread => "messages of 60,000 B, never reads",
            Self::MessageUnread => "messages of 1 MiB, never reads",
            Self::PingsUnread => "pings, never reads",
            Self::Pings => "1,000,000 pings, reads the pongs",
            Self::Bomb => "a bomb of 1 GiB",
            Self::BombHeld => "a bomb of 1 MiB, then nothing",
            Self::Fragments => "fragments of 1000 B for ever",
            Self::FragmentsEmpty => "fragments of 0 B for ever",
        })
    }
}

/// The opening of a connection before the first hostile byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PeerOpening {
    None,
    WebSocket,
    Compressed,
}
