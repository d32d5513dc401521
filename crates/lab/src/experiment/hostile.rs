//! Hostile peers, each kind at its own server: the cost of one peer, and the time until it is ended.
//!
//! Kinds that end at once are measured one after the other, and those that wait for a timeout in parallel. `kinds`
//! defines their behaviour; here they are driven and measured.

pub(crate) mod floods;
mod kinds;
mod peer;
mod witness;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
pub(crate) use kinds::Kind;
use peer::{End, Peer, Progress};
pub(crate) use witness::Waits;
pub(super) use witness::Witness;

use super::rounds::progress;
use crate::cpu::{Cores, anonymous_bytes, at_rest_ns};
use crate::load::Protocol;
use crate::server::{Program, Server};

/// A little more than the longest default timeout, that of an idle WebSocket that does not answer the close frame.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(75);
const DRIP_INTERVAL: Duration = Duration::from_secs(1);
/// The pause of the slow kinds, which leaves the processor to the server.
const TURN: Duration = Duration::from_millis(2);
/// The interval at which the server's memory is read.
const MEMORY_INTERVAL: Duration = Duration::from_millis(10);

/// The outcome of one kind.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) kind: Kind,
    pub(crate) connections: usize,
    /// The bytes that each connection sent, on average.
    pub(crate) sent_bytes: f64,
    /// The largest growth of the server's memory, for each connection.
    pub(crate) memory_bytes: f64,
    /// The CPU time for each connection, over its whole life.
    pub(crate) cpu_us: f64,
    /// The time of the last one from its first hostile byte to its end; `None` if some were not ended.
    pub(crate) ended_after: Option<Duration>,
    /// The server's reasons, each once.
    pub(crate) ends: Vec<String>,
}

/// Measures every kind at a server started for it. `room` is the most connections at once.
pub(crate) fn run(
    program: &Program,
    path: &str,
    cores: Cores,
    room: usize,
) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.waits()) {
        progress(&format!("hostile peers: {kind}"));
        outcomes.extend(endure(&[kind], program, path, cores, room)?);
    }
    let waiting: Vec<_> = Kind::ALL.into_iter().filter(|kind| kind.waits()).collect();
    progress(&format!("hostile peers: those who wait, at most {} s", TIME_MAX.as_secs()));
    outcomes.extend(endure(&waiting, program, path, cores, room / waiting.len())?);
    outcomes.sort_by_key(|outcome| Kind::ALL.iter().position(|&kind| kind == outcome.kind));
    Ok(outcomes)
}

/// Starts peers of these kinds and watches them until all are ended, or the time is up.
fn endure(
    kinds: &[Kind],
    program: &Program,
    path: &str,
    cores: Cores,
    room: usize,
) -> anyhow::Result<Vec<Outcome>> {
    let sieges = kinds.iter().map(|&kind| {
        Siege::begin(kind, program, path, cores, room).with_context(|| kind.to_string())
    });
    let mut sieges = sieges.collect::<anyhow::Result<Vec<_>>>()?;
    let begun = Instant::now();
    while begun.elapsed() < TIME_MAX && sieges.iter().any(|siege| !siege.is_over()) {
        let mut went_on = false;
        for siege in &mut sieges {
            went_on |= siege.turn()?;
        }
        if !went_on {
            std::thread::sleep(TURN);
        }
    }
    sieges.into_iter().map(Siege::end).collect()
}

/// One kind's server and its peers.
struct Siege {
    kind: Kind,
    server: Server,
    peers: Vec<Peer>,
    cpu_ns_before: u64,
    bytes_before: u64,
    bytes_most: u64,
    dripped_at: Instant,
    memory_at: Instant,
}

impl Siege {
    fn begin(
        kind: Kind,
        program: &Program,
        path: &str,
        cores: Cores,
        room: usize,
    ) -> anyhow::Result<Self> {
        let server = program.with(kind.server_args()).start(cores)?;
        let endpoint = server.endpoint(Protocol::WebSocket, path).context("it serves no echo")?;
        // Work that a server does only once does not count for the peers.
        if kind.server_args().is_empty() {
            kinds::warm_up(&endpoint)?;
        }
        let (cpu_ns_before, bytes_before) =
            (at_rest_ns(server.pid())?, anonymous_bytes(server.pid())?);
        let (now, peers) = (Instant::now(), kind.peers(&endpoint, room)?);
        let mut siege = Self {
            kind,
            server,
            peers,
            cpu_ns_before,
            bytes_before,
            bytes_most: bytes_before,
            dripped_at: now,
            memory_at: now,
        };
        siege.turn()?;
        Ok(siege)
    }

    /// Returns true if every peer is finished.
    fn is_over(&self) -> bool {
        self.peers.iter().all(Peer::is_over)
    }

    /// Does one step of every peer; returns true if any made progress.
    fn turn(&mut self) -> anyhow::Result<bool> {
        let drips = self.dripped_at.elapsed() >= DRIP_INTERVAL;
        if drips {
            self.dripped_at += DRIP_INTERVAL;
        }
        let mut went_on = false;
        for peer in &mut self.peers {
            went_on |= peer.turn(drips)? == Progress::Some;
        }
        if self.memory_at.elapsed() >= MEMORY_INTERVAL {
            self.bytes_most = self.bytes_most.max(anonymous_bytes(self.server.pid())?);
            self.memory_at = Instant::now();
        }
        Ok(went_on)
    }

    fn end(self) -> anyhow::Result<Outcome> {
        let cpu_ns = at_rest_ns(self.server.pid())? - self.cpu_ns_before;
        let connections = self.peers.len();
        let each = |sum: u64| sum as f64 / connections as f64;
        let mut ends: Vec<_> = self.peers.iter().filter_map(|peer| peer.end.as_ref()).collect();
        let ended_after = ends.iter().map(|end| end.after).max();
        let ended_after = ended_after.filter(|_| ends.len() == connections);
        if self.kind.is_harmless() {
            ensure!(ends.is_empty(), "{}: ended, {}", self.kind, ends[0].how);
        }
        ends.sort_by(|one, other| one.how.cmp(&other.how));
        ends.dedup_by(|one, other| one.how == other.how);
        Ok(Outcome {
            kind: self.kind,
            connections,
            sent_bytes: each(self.peers.iter().map(|peer| peer.sent_bytes).sum()),
            memory_bytes: each(self.bytes_most.saturating_sub(self.bytes_before)),
            cpu_us: each(cpu_ns) / 1e3,
            ended_after,
            ends: ends.into_iter().map(|End { how, .. }| how.clone()).collect(),
        })
    }
}
