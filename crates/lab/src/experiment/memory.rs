//! Measures the growth of the server's user memory for each idle connection.
//!
//! The server must have just started. One that was busy before serves new connections from memory that it has kept.

use super::session::Subject;
use super::work::{Before, MEMORY};
use crate::cpu::Growth;
use crate::lab::rounds::Sample;
use crate::load::{Opener, echo_once, open};

/// The number of connections that are opened and closed first. After them, memory that is allocated only once does not
/// count.
const FIRST_CONNECTIONS: usize = 10;
const ECHO_BYTES: usize = 125;

pub(super) fn measure(
    connections: usize,
    before: Before,
    subject: Subject<'_>,
) -> anyhow::Result<Sample> {
    let Subject { pid, endpoint, random, .. } = subject;
    let protocol = endpoint.protocol;
    let mut opener = Opener::new(endpoint, random)?;
    let mut first = open(&mut opener, FIRST_CONNECTIONS)?;
    echo_once(&mut first, protocol, ECHO_BYTES, random)?;
    drop(first);
    let growth = Growth::start(pid)?;
    let mut streams = open(&mut opener, connections)?;
    if before == Before::Echoed {
        echo_once(&mut streams, protocol, ECHO_BYTES, random)?;
    }
    let (figures, count) = (vec![(MEMORY, growth.each(connections)?)], connections as u64);
    Ok(Sample { figures, expected: count, received: count, ..Sample::default() })
}
