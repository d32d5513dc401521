//! One topic with many readers on each transport: the server's CPU time for a delivery, the latency, and the memory
//! of an idle reader.
//!
//! Each sample has a new server, because memory requires one that has done nothing yet.

use std::time::Duration;

use anyhow::{Context, ensure};

use super::rounds::{RunPlan, progress, undisturbed};
use crate::cpu::{Busy, Meter, anonymous_bytes, at_rest_ns};
use crate::load::{Deliveries, Delivery, Opener, Protocol, Readers, open};
use crate::server::{Program, Server};
use crate::statistics::Random;

/// These are opened and closed first, so that memory allocated only once does not count.
const FIRST_READERS: usize = 10;
const WARM_UP_EVENTS: usize = 1;

/// The plan of a run.
#[derive(Clone, Debug)]
pub(crate) struct FanOutPlan {
    pub(crate) run: RunPlan,
    pub(crate) server: Program,
    /// The path of its WebSocket echo.
    pub(crate) echo_path: String,
    /// The numbers of readers; each is a case.
    pub(crate) readers: Vec<usize>,
    /// The rate of all readers together, which says how often there is an event.
    pub(crate) deliveries_per_second: f64,
    /// The least number of events in a sample, which lengthens it if necessary.
    pub(crate) events_min: usize,
}

/// The role of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// A silent WebSocket to the echo, for comparison with a reader.
    Bare,
    Reader(Delivery),
}

impl Role {
    fn all() -> Vec<Self> {
        [Self::Bare].into_iter().chain(Delivery::ALL.map(Self::Reader)).collect()
    }
}

/// Connections of one role, with a sample for each round.
#[derive(Clone, Debug)]
pub(crate) struct FanOutCase {
    pub(crate) role: Role,
    pub(crate) readers: usize,
    pub(crate) events_per_second: f64,
    pub(crate) samples: Vec<FanOutSample>,
    /// The deliveries of all samples.
    pub(crate) deliveries: Deliveries,
}

#[derive(Clone, Debug)]
pub(crate) struct FanOutSample {
    /// User memory of the server for each connection: before any event, and after.
    pub(crate) opened_bytes: f64,
    pub(crate) served_bytes: f64,
    /// Server CPU for each delivery; `None` for [`Role::Bare`].
    pub(crate) cpu_us: Option<f64>,
    pub(crate) busy: Busy,
}

impl FanOutPlan {
    pub(crate) fn run(&self) -> anyhow::Result<Vec<FanOutCase>> {
        let mut random = Random::new(self.run.seed);
        let mut cases: Vec<_> = self
            .readers
            .iter()
            .flat_map(|&readers| Role::all().into_iter().map(move |role| (role, readers)))
            .map(|(role, readers)| FanOutCase {
                role,
                readers,
                events_per_second: self.deliveries_per_second / readers as f64,
                samples: Vec::new(),
                deliveries: Deliveries::default(),
            })
            .collect();
        let mut order: Vec<_> = (0..cases.len()).collect();
        for round in 1..=self.run.rounds {
            progress(&format!("round {round} of {}: fan-out", self.run.rounds));
            random.shuffle(&mut order);
            for &index in &order {
                let case = &mut cases[index];
                let take = || self.sample(case, &mut random);
                let is_disturbed = |taken: &(FanOutSample, Deliveries)| taken.0.busy.is_disturbed();
                let (sample, deliveries) = undisturbed(self.run.retries, take, is_disturbed)
                    .with_context(|| format!("{:?}, {} readers", case.role, case.readers))?;
                case.samples.push(sample);
                case.deliveries.add(&deliveries);
            }
        }
        Ok(cases)
    }

    fn sample(
        &self,
        case: &FanOutCase,
        random: &mut Random,
    ) -> anyhow::Result<(FanOutSample, Deliveries)> {
        let server = self.server.start(self.run.cores)?;
        match case.role {
            Role::Bare => Ok((self.bare(&server, case.readers, random)?, Deliveries::default())),
            Role::Reader(delivery) => self.reading(&server, case, delivery, random),
        }
    }

    fn bare(
        &self,
        server: &Server,
        count: usize,
        random: &mut Random,
    ) -> anyhow::Result<FanOutSample> {
        let echo =
            server.endpoint(Protocol::WebSocket, &self.echo_path).context("no WebSockets")?;
        let mut opener = Opener::new(echo, random)?;
        drop(open(&mut opener, FIRST_READERS)?);
        let memory = Memory::start(server.pid(), count)?;
        let _connections = open(&mut opener, count)?;
        let bytes = memory.grown()?;
        let (opened_bytes, served_bytes, busy) = (bytes, bytes, Busy::default());
        Ok(FanOutSample { opened_bytes, served_bytes, cpu_us: None, busy })
    }

    fn reading(
        &self,
        server: &Server,
        case: &FanOutCase,
        delivery: Delivery,
        random: &mut Random,
    ) -> anyhow::Result<(FanOutSample, Deliveries)> {
        let topic = server.topic(&self.run.topic_path).context("no topic is served")?;
        ensure!(topic.create()?, "{} cannot be published to: is --demo missing?", topic.path);
        drop(Readers::open(delivery, &topic, FIRST_READERS, random)?);
        let memory = Memory::start(server.pid(), case.readers)?;
        let mut readers = Readers::open(delivery, &topic, case.readers, random)?;
        let opened_bytes = memory.grown()?;

        let interval = Duration::from_secs_f64(1.0 / case.events_per_second);
        let events = (self.run.times.sample.as_secs_f64() * case.events_per_second).ceil() as usize;
        let warm_up = readers.run(&times(WARM_UP_EVENTS, interval, random))?;
        ensure!(warm_up.received == warm_up.expected, "readers missed the first event");
        let meter = Meter::start(server.pid())?;
        let deliveries = readers.run(&times(events.max(self.events_min), interval, random))?;
        let used = meter.stop()?;
        let cpu_us = Some(used.server_ns as f64 / 1e3 / deliveries.received as f64);
        let served_bytes = memory.grown()?;
        Ok((FanOutSample { opened_bytes, served_bytes, cpu_us, busy: used.busy }, deliveries))
    }
}

/// Returns the times of events: the first at once, the others from half to one and a half intervals apart, so that
/// they do not synchronize with anything else.
fn times(events: usize, interval: Duration, random: &mut Random) -> Vec<Duration> {
    let mut time = Duration::ZERO;
    let mut next = || {
        let share = 0.5 + random.next() as f64 / u64::MAX as f64;
        let after = time + interval.mul_f64(share);
        std::mem::replace(&mut time, after)
    };
    (0..events).map(|_| next()).collect()
}

/// A server's memory, compared with an earlier moment.
struct Memory {
    pid: u32,
    connections: usize,
    before: u64,
}

impl Memory {
    fn start(pid: u32, connections: usize) -> anyhow::Result<Self> {
        at_rest_ns(pid)?;
        Ok(Self { pid, connections, before: anonymous_bytes(pid)? })
    }

    /// Returns the growth in bytes for each connection.
    fn grown(&self) -> anyhow::Result<f64> {
        at_rest_ns(self.pid)?;
        let grown = anonymous_bytes(self.pid)? as f64 - self.before as f64;
        Ok(grown / self.connections as f64)
    }
}

impl Deliveries {
    fn add(&mut self, other: &Self) {
        self.expected += other.expected;
        self.received += other.received;
        self.latency.add(&other.latency);
        self.lag.add(&other.lag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_half_to_one_and_a_half_intervals_apart() {
        let interval = Duration::from_millis(100);
        let times = times(1000, interval, &mut Random::new(1));
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (interval / 2..=interval * 3 / 2).contains(gap)));
        assert_eq!(times[0], Duration::ZERO);
        let mean = times[999] / 999;
        assert!((interval * 95 / 100..interval * 105 / 100).contains(&mean), "{mean:?}");
    }
}
