//! The order of measurements: in each round all cases, in each case all contenders, in a new random order each time.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Context;

use super::work::{Contender, Sample, Times, Work};
use super::{broadcast, connect, echo, memory};
use crate::cpu::{self, Cores};
use crate::load::Endpoint;
use crate::server::{Program, Server};
use crate::statistics::Random;

const IDLE: Duration = Duration::from_millis(500);

/// The settings that all experiments of a run share.
#[derive(Clone, Debug)]
pub(crate) struct RunPlan {
    /// A topic that accepts events.
    pub(crate) topic_path: String,
    pub(crate) cores: Cores,
    pub(crate) rounds: usize,
    pub(crate) times: Times,
    /// The number of times that a disturbed sample is repeated; the last one counts.
    pub(crate) retries: usize,
    pub(crate) seed: u64,
}

/// The plan of the experiments that compare contenders.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) run: RunPlan,
    pub(crate) cases: Vec<Work>,
    pub(crate) floor: Program,
    /// Without a server, the C echo is measured against itself.
    pub(crate) server: Option<Program>,
    /// The paths of the server's WebSocket echo, such as `/echo`, and of its broadcast.
    pub(crate) path: String,
    pub(crate) broadcast_path: String,
}

/// The results.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) cases: Vec<Case>,
    /// The CPU time of all processes over the whole run, by two kinds of accounting.
    pub(crate) schedstat_ns: u64,
    pub(crate) stat_ns: u64,
    /// CPU microseconds a second of the server without connections, one value for each round.
    pub(crate) idle: Vec<f64>,
}

/// One piece of work and its samples, one for each round.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) work: Work,
    pub(crate) samples: BTreeMap<Contender, Vec<Sample>>,
}

/// The programs of one round, all running; only one of them has work at a time.
struct Programs {
    floor: Server,
    control: Server,
    server: Option<Server>,
}

impl Programs {
    fn start(plan: &Plan) -> anyhow::Result<Self> {
        let server = plan.server.as_ref().map(|server| server.start(plan.run.cores)).transpose()?;
        let floor = plan.floor.start(plan.run.cores)?;
        Ok(Self { floor, control: plan.floor.start(plan.run.cores)?, server })
    }

    fn of(&self, contender: Contender) -> Option<&Server> {
        match contender {
            Contender::Floor => Some(&self.floor),
            Contender::Control => Some(&self.control),
            Contender::Tcp | Contender::WebSocket | Contender::Topic => self.server.as_ref(),
        }
    }
}

impl Plan {
    pub(crate) fn run(&self) -> anyhow::Result<Results> {
        let cases = self.cases.iter().map(|&work| Case { work, samples: BTreeMap::new() });
        let mut results =
            Results { cases: cases.collect(), schedstat_ns: 0, stat_ns: 0, idle: Vec::new() };
        let mut random = Random::new(self.run.seed);
        for round in 1..=self.run.rounds {
            self.round(round, &mut results, &mut random)?;
        }
        Ok(results)
    }

    fn round(
        &self,
        round: usize,
        results: &mut Results,
        random: &mut Random,
    ) -> anyhow::Result<()> {
        let programs = Programs::start(self)?;
        results.idle.extend(programs.server.as_ref().map(idle).transpose()?);
        for case in &mut results.cases {
            progress(&format!("round {round} of {}: {}", self.run.rounds, case.work));
            let mut order = Contender::ALL;
            random.shuffle(&mut order);
            for contender in order {
                let take = || self.sample(case.work, contender, &programs, random);
                let is_disturbed = |sample: &Option<Sample>| {
                    sample.is_some_and(|sample| sample.busy.is_disturbed())
                };
                let sample = undisturbed(self.run.retries, take, is_disturbed)
                    .with_context(|| format!("{}: {contender:?}", case.work))?;
                case.samples.entry(contender).or_default().extend(sample);
            }
        }
        let servers = [Contender::Floor, Contender::Control, Contender::WebSocket];
        for server in servers.into_iter().filter_map(|contender| programs.of(contender)) {
            results.schedstat_ns += cpu::thread_time_ns(server.pid())?;
            results.stat_ns += cpu::stat_time_ns(server.pid())?;
        }
        Ok(())
    }

    /// Takes one sample; `None` if there is no such contender.
    fn sample(
        &self,
        work: Work,
        contender: Contender,
        programs: &Programs,
        random: &mut Random,
    ) -> anyhow::Result<Option<Sample>> {
        let fresh;
        let server = match (work, contender) {
            (Work::Echo { .. } | Work::Connect { .. } | Work::Memory { .. }, Contender::Topic) => {
                None
            }
            // Memory requires a server that has done nothing yet.
            (Work::Memory { .. }, Contender::Floor | Contender::Control) => {
                fresh = self.floor.start(self.run.cores)?;
                Some(&fresh)
            }
            (Work::Memory { .. }, Contender::Tcp | Contender::WebSocket) => match &self.server {
                Some(server) => {
                    fresh = server.start(self.run.cores)?;
                    Some(&fresh)
                }
                None => None,
            },
            _ => programs.of(contender),
        };
        let Some(server) = server else { return Ok(None) };
        let protocol = contender.protocol();
        let endpoint = match (work, contender) {
            (Work::Broadcast { .. }, Contender::Topic) => {
                match server.topic(&self.run.topic_path) {
                    Some(topic) if topic.create()? => {
                        server.endpoint(protocol, &self.run.topic_path)
                    }
                    _ => None,
                }
            }
            (Work::Broadcast { .. }, _) => server.broadcast(protocol, &self.broadcast_path),
            _ => server.endpoint(protocol, &self.path),
        };
        let Some(endpoint) = endpoint else { return Ok(None) };
        measure(work, server.pid(), endpoint, self.run.times, random).map(Some)
    }
}

/// Takes a sample, and repeats it while it is disturbed. The last one counts.
pub(super) fn undisturbed<T>(
    retries: usize,
    mut take: impl FnMut() -> anyhow::Result<T>,
    is_disturbed: impl Fn(&T) -> bool,
) -> anyhow::Result<T> {
    let mut taken = take()?;
    for _ in 0..retries {
        if !is_disturbed(&taken) {
            break;
        }
        taken = take()?;
    }
    Ok(taken)
}

/// Returns the CPU time of a server without connections.
fn idle(server: &Server) -> anyhow::Result<f64> {
    // The start of the server does not count.
    std::thread::sleep(IDLE / 2);
    let before = cpu::thread_time_ns(server.pid())?;
    std::thread::sleep(IDLE);
    let used_ns = cpu::thread_time_ns(server.pid())? - before;
    Ok(used_ns as f64 / 1e3 / IDLE.as_secs_f64())
}

/// Reports progress on standard error; a failure to do so is ignored.
pub(crate) fn progress(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Does `work` once at `endpoint`, which the process `pid` serves.
fn measure(
    work: Work,
    pid: u32,
    endpoint: Endpoint,
    times: Times,
    random: &mut Random,
) -> anyhow::Result<Sample> {
    match work {
        Work::Echo { connections, shape } => {
            echo::measure(connections, shape, pid, endpoint, times, random)
        }
        Work::Broadcast { connections, shape } => {
            broadcast::measure(connections, shape, pid, endpoint, times, random)
        }
        Work::Connect { closing } => connect::measure(closing, pid, endpoint, times, random),
        Work::Memory { connections, before } => {
            memory::measure(connections, before, pid, endpoint, random)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_sample_is_taken_again_so_often_and_the_last_is_kept() {
        let taken = |retries, disturbed: u32| {
            let mut samples = 1..;
            undisturbed(retries, || samples.next().context("no more"), |&n| n <= disturbed).unwrap()
        };
        assert_eq!(taken(2, 0), 1);
        assert_eq!(taken(2, 1), 2);
        assert_eq!(taken(2, 9), 3);
        assert_eq!(taken(0, 9), 1);
    }
}
