//! Opens connections that exchange one message and then close.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anemone_ws::proto::Opcode;
use anyhow::{Context, ensure};

use super::frames;
use super::opening::{BATCH, Opener};
use crate::statistics::Random;

/// The most connections in a sample. With more, a port could be used again while it is still in TIME_WAIT.
const CONNECTIONS_MAX: u64 = 10_000;
const NORMAL_CLOSURE: [u8; 2] = 1000_u16.to_be_bytes();

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Closing {
    /// The client closes the socket.
    Tcp,
    /// The client sends a close frame, and waits for that of the server and for the end of the connection (RFC 6455
    /// section 7). This is for WebSockets only; a TCP connection is just closed.
    Handshake,
}

/// Opens and closes connections in batches for `time`. Returns their number.
///
/// Each step is done for all connections of a batch before the next step. So neither side waits for a single
/// connection.
pub(crate) fn churn(
    opener: &mut Opener,
    closing: Closing,
    time: Duration,
    random: &mut Random,
) -> anyhow::Result<u64> {
    let close = frames::masked(Opcode::Close, &NORMAL_CLOSURE, random);
    let deadline = Instant::now() + time;
    let mut connections = 0;
    while Instant::now() < deadline && connections < CONNECTIONS_MAX {
        let mut streams = (0..BATCH).map(|_| opener.connect()).collect::<Result<Vec<_>, _>>()?;
        opener.exchange(&mut streams)?;
        if closing == Closing::Handshake {
            closing_handshake(&mut streams, &close)?;
        }
        connections += BATCH as u64;
    }
    Ok(connections)
}

fn closing_handshake(streams: &mut [TcpStream], close: &[u8]) -> anyhow::Result<()> {
    for stream in &mut *streams {
        stream.write_all(close)?;
    }
    // An unmasked close frame that repeats the code (section 5.5.1).
    let expected = [[0x88, 2], NORMAL_CLOSURE].concat();
    for stream in streams {
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).context("waiting for the server to close")?;
        ensure!(reply == expected, "closed with {}", reply.escape_ascii());
    }
    Ok(())
}
