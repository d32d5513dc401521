//! Compares contenders that do the same work: a TCP echo in C, run twice, the server's own TCP echo, and its WebSocket
//! echo.

use std::time::Duration;

use anyhow::Context;

use super::layout::{Column, Layout};
use super::session::{BenchSession, Measured, Subject, of_round};
use super::work::{Contender, Work};
use super::{broadcast, connect, echo, memory};
use crate::cpu::{self, at_rest_ns};
use crate::goals::{self as limits, Goal};
use crate::lab::report::Quantity;
use crate::lab::rounds::{Cell, Sample, try_interleaved};
use crate::server::{Program, Server};
use crate::statistics::Random;

const IDLE_CPU: Quantity = Quantity::less("server CPU without connections", "µs/s");
const IDLE: Duration = Duration::from_millis(500);

/// The programs of one round. All of them run, but only one at a time has work.
struct Programs {
    floor: Server,
    control: Server,
    server: Option<Server>,
}

impl Programs {
    fn start(session: &BenchSession, floor: &Program) -> anyhow::Result<Self> {
        let server = (!session.is_control).then(|| session.server.start(session.cores));
        let server = server.transpose()?;
        Ok(Self {
            floor: floor.start(session.cores)?,
            control: floor.start(session.cores)?,
            server,
        })
    }

    fn of(&self, contender: Contender) -> Option<&Server> {
        match contender {
            Contender::Floor => Some(&self.floor),
            Contender::Control => Some(&self.control),
            Contender::Tcp | Contender::WebSocket | Contender::Topic => self.server.as_ref(),
        }
    }
}

/// The CPU time of all programs over the whole run, counted in two ways, as a check.
#[derive(Default)]
struct Accounts {
    schedstat_ns: u64,
    stat_ns: u64,
}

impl Accounts {
    fn add(&mut self, programs: Option<Programs>) -> anyhow::Result<()> {
        let Some(Programs { floor, control, server }) = programs else { return Ok(()) };
        for server in [Some(floor), Some(control), server].iter().flatten() {
            self.schedstat_ns += cpu::thread_time_ns(server.pid())?;
            self.stat_ns += cpu::stat_time_ns(server.pid())?;
        }
        Ok(())
    }

    fn sentence(&self) -> String {
        let seconds = |ns: u64| ns as f64 / 1e9;
        format!(
            "CPU time of all servers over the run: {:.2} s by /proc/PID/task/*/schedstat (used here), {:.2} s by /proc/PID/stat, \
             user and system.",
            seconds(self.schedstat_ns),
            seconds(self.stat_ns)
        )
    }
}

/// Measures all works. The first figures of all works must be of the same quantity.
pub(crate) fn run(session: &mut BenchSession, works: &[Work]) -> anyhow::Result<Measured> {
    let floor = Program::floor(&session.folder)?;
    let (mut programs, mut accounts) = (None, Accounts::default());
    let quantity = works.first().context("no work")?.quantity();
    let series = try_interleaved(session, quantity, &cells(session, works), |session, cell| {
        let programs = of_round(&mut programs, session.pace.round, |before| {
            accounts.add(before)?;
            Programs::start(session, &floor)
        })?;
        let sample = match cell.key {
            Some((work, contender)) => sample(session, work, contender, &floor, programs),
            None => idle(session),
        };
        sample.with_context(|| format!("{}: {}", cell.case, cell.contender))
    })?;
    accounts.add(programs.map(|(_, programs)| programs))?;
    let program = if session.is_control { &floor } else { &session.server };
    let question = "What does the server spend, beside a bare TCP echo in C?";
    let mut report = session.report(program, question, quantity, series);
    report.method.push(accounts.sentence());
    report.compare_with(Contender::Floor.name());
    Ok(Measured { report, goals: goals(works), layouts: vec![layout(works[0]), idle_layout()] })
}

/// Returns a cell for each contender in each work, and one for the server without connections.
fn cells(session: &BenchSession, works: &[Work]) -> Vec<Cell<Option<(Work, Contender)>>> {
    let mut cells = Vec::new();
    for work in works {
        let cell = |of: Contender| Cell::new(work, of.name(), Some((*work, of)));
        cells.extend(work.contenders().map(cell));
    }
    let of_server = |key| !matches!(key, Some((_, Contender::Floor | Contender::Control)));
    cells.push(Cell::new("no connections", Contender::WebSocket.name(), None));
    cells.retain(|cell| !session.is_control || !of_server(cell.key));
    cells
}

/// Takes one sample. The sample has no figure if this contender does not exist.
fn sample(
    session: &mut BenchSession,
    work: Work,
    contender: Contender,
    floor: &Program,
    programs: &Programs,
) -> anyhow::Result<Sample> {
    let fresh;
    let server = match (work, contender) {
        // Memory requires a server that has done nothing yet.
        (Work::Memory { .. }, Contender::Floor | Contender::Control) => {
            fresh = floor.start(session.cores)?;
            Some(&fresh)
        }
        (Work::Memory { .. }, _) => {
            fresh = session.server.start(session.cores)?;
            Some(&fresh)
        }
        _ => programs.of(contender),
    };
    let Some(server) = server else { return Ok(Sample::default()) };
    let protocol = contender.protocol();
    let endpoint = match (work, contender) {
        (Work::Broadcast { .. }, Contender::Topic) => match server.topic(&session.topic_path) {
            Some(topic) if topic.create()? => server.endpoint(protocol, &session.topic_path),
            _ => None,
        },
        (Work::Broadcast { .. }, _) => server.broadcast(protocol, &session.broadcast_path),
        _ => server.endpoint(protocol, &session.echo_path),
    };
    let Some(endpoint) = endpoint else { return Ok(Sample::default()) };
    let random = &mut Random::new(session.pace.random.next());
    let subject = Subject { pid: server.pid(), endpoint, times: session.times, random };
    match work {
        Work::Echo { connections, shape } => echo::measure(connections, shape, subject),
        Work::Broadcast { connections, shape } => broadcast::measure(connections, shape, subject),
        Work::Connect { closing } => connect::measure(closing, subject),
        Work::Memory { connections, before } => memory::measure(connections, before, subject),
    }
}

/// Measures the CPU time of a server without connections.
fn idle(session: &BenchSession) -> anyhow::Result<Sample> {
    let server = session.server.start(session.cores)?;
    // The start of the server does not count.
    std::thread::sleep(IDLE / 2);
    let before = at_rest_ns(server.pid())?;
    std::thread::sleep(IDLE);
    let used_ns = cpu::since(cpu::thread_time_ns(server.pid())?, before);
    let figure = used_ns as f64 / 1e3 / IDLE.as_secs_f64();
    Ok(Sample { figures: vec![(IDLE_CPU, figure)], expected: 1, received: 1, ..Sample::default() })
}

fn idle_layout() -> Layout {
    Layout::of_cases(IDLE_CPU, vec![Column::Cost(IDLE_CPU, Contender::WebSocket.name())])
}

/// Returns the layout of the table for a kind of work. The server has no broadcast over bare TCP. Its broadcast through
/// a topic is compared with its WebSocket broadcast.
pub(crate) fn layout(work: Work) -> Layout {
    use Column::{Busy, Cost, Goal, Interval, Ratio};
    const C: &str = Contender::Floor.name();
    const AGAIN: &str = Contender::Control.name();
    const TCP: &str = Contender::Tcp.name();
    const OURS: &str = Contender::WebSocket.name();
    const TOPIC: &str = Contender::Topic.name();
    let of = work.quantity();
    let costs = |all: [&'static str; 4]| all.map(|contender| Cost(of, contender));
    let busy = Busy(&[OURS, C]);
    let columns = match work {
        Work::Memory { .. } => [C, TCP, OURS]
            .map(|contender| Interval(of, contender))
            .into_iter()
            .chain([Goal(of, OURS)])
            .collect(),
        Work::Broadcast { .. } => {
            let ratios = [Ratio(of, AGAIN, C), Ratio(of, OURS, C), Goal(of, OURS)];
            let of_topic = [Ratio(of, TOPIC, OURS), Goal(of, TOPIC), busy];
            [&costs([C, AGAIN, OURS, TOPIC])[..], &ratios, &of_topic].concat()
        }
        Work::Echo { .. } | Work::Connect { .. } => {
            let ratios = [AGAIN, TCP, OURS].map(|contender| Ratio(of, contender, C));
            let others = [Goal(of, OURS), Ratio(of, OURS, TCP), busy];
            [&costs([C, AGAIN, TCP, OURS])[..], &ratios, &others].concat()
        }
    };
    Layout::of_cases(of, columns)
}

pub(crate) fn goals(works: &[Work]) -> Vec<Goal> {
    works.iter().flat_map(goals_of).collect()
}

fn goals_of(work: &Work) -> Vec<Goal> {
    let [floor, ours, topic] =
        [Contender::Floor, Contender::WebSocket, Contender::Topic].map(Contender::name);
    let case = work.to_string();
    let goal = |of: &str, to: Option<&str>, limit| Goal::new(work.quantity(), &case, of, to, limit);
    match *work {
        Work::Echo { connections, shape } => limits::echo(connections, shape)
            .map(|limit| goal(ours, Some(floor), limit))
            .into_iter()
            .collect(),
        Work::Broadcast { connections, shape } => {
            let own = limits::broadcast(connections, shape).map(|limit| goal(ours, None, limit));
            let of_topic = goal(topic, Some(ours), limits::TOPIC_TO_BROADCAST);
            own.into_iter().chain([of_topic]).collect()
        }
        Work::Connect { .. } => vec![goal(ours, Some(floor), limits::CONNECT)],
        Work::Memory { .. } => vec![goal(ours, None, limits::MEMORY_BYTES)],
    }
}
