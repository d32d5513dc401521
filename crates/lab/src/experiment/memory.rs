//! Opens connections and leaves them alone: the growth of the server's user memory for each.
//!
//! Only for a server that has just started: a busy one serves new connections from memory that it has kept.

use super::work::{Before, Sample};
use crate::cpu::{Busy, anonymous_bytes, at_rest_ns};
use crate::load::{Endpoint, Opener, echo_once, open};
use crate::statistics::Random;

/// These are opened and closed first, so that memory allocated only once does not count.
const FIRST_CONNECTIONS: usize = 10;
const ECHO_BYTES: usize = 125;

pub(super) fn measure(
    connections: usize,
    before: Before,
    pid: u32,
    endpoint: Endpoint,
    random: &mut Random,
) -> anyhow::Result<Sample> {
    let protocol = endpoint.protocol;
    let mut opener = Opener::new(endpoint, random)?;
    let mut first = open(&mut opener, FIRST_CONNECTIONS)?;
    echo_once(&mut first, protocol, ECHO_BYTES, random)?;
    drop(first);
    at_rest_ns(pid)?;
    let bytes_before = anonymous_bytes(pid)?;
    let mut streams = open(&mut opener, connections)?;
    if before == Before::Echoed {
        echo_once(&mut streams, protocol, ECHO_BYTES, random)?;
    }
    at_rest_ns(pid)?;
    let grown = anonymous_bytes(pid)? as f64 - bytes_before as f64;
    Ok(Sample { cost: grown / connections as f64, busy: Busy::default() })
}
