//! Measures hostile peers. Each kind has a server of its own. The figures are the cost of one peer, and the time until
//! the server ends it.
//!
//! The kinds that the server ends at once are measured one after the other. Those that end by a timeout are measured at
//! the same time. `kinds` defines the behaviour of peers; this module runs and measures them.

pub(crate) mod floods;
mod kinds;
mod peer;
pub(super) mod witness;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use kinds::HostileKind;
use peer::{Peer, PeerEnd, Progress};

use super::layout::{Column, Layout, OWN};
use super::session::{BenchSession, Measured};
use crate::cpu::{anonymous_bytes, at_rest_ns, since};
use crate::lab::report::Quantity;
use crate::lab::rounds::{Cell, Sample, series};
use crate::load::Protocol;
use crate::server::Server;

const SENT: Quantity = Quantity::less("sent", "KiB");
const MEMORY: Quantity = Quantity::less("server memory at most", "KiB");
const CPU: Quantity = Quantity::less("server CPU", "µs");
const PING: Quantity = Quantity::less("server CPU for each ping", "µs");
const ENDED: Quantity = Quantity::less("time until it is ended", "s");
/// The words about peers that the server does not end.
const NOT_ENDED: &str = "not ended";
/// The longest time for a kind. It is a little more than the longest default timeout, that of an idle WebSocket that
/// does not answer the close frame.
const TIME_MAX: Duration = Duration::from_secs(75);
const DRIP_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a turn without progress. It leaves the processor to the server.
const TURN: Duration = Duration::from_millis(2);
/// The interval at which the server's memory is read.
const MEMORY_INTERVAL: Duration = Duration::from_millis(10);

/// Measures every kind at a server of its own. There are no rounds, since the kinds that wait take more than a minute,
/// and run at the same time.
pub(crate) fn run(session: &mut BenchSession) -> anyhow::Result<Measured> {
    let (waiting, others): (Vec<_>, Vec<_>) =
        HostileKind::value_variants().iter().partition(|kind| kind.waits());
    session.pace.begin(others.len() + 1);
    let mut measured = Vec::new();
    for kinds in others.chunks(1).chain([&waiting[..]]) {
        if session.pace.cut_if_stopped() {
            break;
        }
        measured.extend(endure(kinds, session)?);
        session.pace.step();
    }
    measured.sort_by_key(|(kind, ..)| *kind);
    let series = measured
        .iter()
        .flat_map(|(_, cell, sample)| series(SENT, cell, std::slice::from_ref(sample)));
    let question = "What do hostile peers cost, each of them, and when are they ended?";
    let order = format!(
        "Once, each kind at a server of its own, watched for {} s at most. A peer is named after the way in which it is ended.",
        TIME_MAX.as_secs()
    );
    let report = session.report_of_once(&session.server, question, CPU, series.collect(), order);
    let columns = [SENT, MEMORY, CPU, PING, ENDED].map(|figure| Column::Cost(figure, OWN));
    let title = "hostile peers, for each connection";
    let layouts = vec![Layout::of_contenders(title, SENT, columns.into())];
    Ok(Measured { report, goals: Vec::new(), layouts })
}

/// Starts peers of these kinds. Watches them until the server has ended all of them, or the time is up.
fn endure(
    kinds: &[HostileKind],
    session: &BenchSession,
) -> anyhow::Result<Vec<(HostileKind, Cell<()>, Sample)>> {
    let room = session.room / kinds.len();
    let sieges = kinds
        .iter()
        .map(|&kind| Siege::begin(kind, session, room).with_context(|| kind.to_string()));
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

/// The server and the peers of one kind.
struct Siege {
    kind: HostileKind,
    server: Server,
    peers: Vec<Peer>,
    cpu_ns_before: u64,
    bytes_before: u64,
    bytes_most: u64,
    dripped_at: Instant,
    memory_at: Instant,
}

impl Siege {
    fn begin(kind: HostileKind, session: &BenchSession, room: usize) -> anyhow::Result<Self> {
        let server = session.server.with(kind.server_args()).start(session.cores)?;
        let endpoint = server.endpoint(Protocol::WebSocket, &session.echo_path);
        let endpoint = endpoint.context("it serves no echo")?;
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

    /// Gives every peer a turn. Returns true if any peer made progress.
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

    fn end(self) -> anyhow::Result<(HostileKind, Cell<()>, Sample)> {
        let cpu_ns = since(at_rest_ns(self.server.pid())?, self.cpu_ns_before);
        let connections = self.peers.len();
        let each = |sum: u64| sum as f64 / connections as f64;
        let mut ends: Vec<_> = self.peers.iter().filter_map(|peer| peer.end.as_ref()).collect();
        // Of the last one, from its first hostile byte, if all were ended.
        let ended = ends.iter().map(|end| end.after).max();
        let ended = ended.filter(|_| ends.len() == connections);
        if self.kind.is_harmless() {
            ensure!(ends.is_empty(), "{}: ended, {}", self.kind, ends[0].how);
        }
        ends.sort_by(|one, other| one.how.cmp(&other.how));
        ends.dedup_by(|one, other| one.how == other.how);
        let ends: Vec<_> = ends.into_iter().map(|PeerEnd { how, .. }| how.as_str()).collect();
        let cpu_us = each(cpu_ns) / 1e3;
        let mut figures = vec![
            (SENT, each(self.peers.iter().map(|peer| peer.sent_bytes).sum()) / 1024.0),
            (MEMORY, each(self.bytes_most.saturating_sub(self.bytes_before)) / 1024.0),
            (CPU, cpu_us),
        ];
        figures.extend(self.kind.pings().map(|pings| (PING, cpu_us / pings as f64)));
        figures.extend(ended.map(|time| (ENDED, time.as_secs_f64())));
        let how = if ends.is_empty() { NOT_ENDED.to_owned() } else { ends.join(", ") };
        let cell = Cell::new(format!("{}, {connections} connections", self.kind), how, ());
        Ok((self.kind, cell, Sample { figures, ..Sample::default() }))
    }
}
