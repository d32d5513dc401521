//! Calls a trivial service: CPU time for each call, beside an echo of as many bytes and beside the HTTP library alone.

use std::collections::BTreeMap;

use anyhow::Context;

use super::rounds::{RunPlan, progress, undisturbed};
use super::work::Sample;
use crate::cpu::Meter;
use crate::load::{CallWay, Calls, Frames, Generator, Opener, Protocol, Shape, open};
use crate::server::{Program, Server};
use crate::statistics::Random;

const PATH: &str = "/hello";
const BODY: &str = r#"{"id":"testing"}"#;
const ECHO_PATH: &str = "/echo";
const IN_FLIGHT: [usize; 2] = [1, 16];
const CONNECTIONS: usize = 100;

/// A kind of request that is measured.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum CallTarget {
    /// The server's WebSocket echo, with messages as long as a call.
    Echo,
    /// The service in the server.
    Service(CallWay),
    /// The same service in hyper, without the server.
    Hyper(CallWay),
}

impl CallTarget {
    pub(crate) const ALL: [Self; 6] = [
        Self::Echo,
        Self::Service(CallWay::Multiplexed),
        Self::Service(CallWay::Http),
        Self::Hyper(CallWay::Http),
        Self::Service(CallWay::Http2),
        Self::Hyper(CallWay::Http2),
    ];

    /// Returns the arguments of the program that answers.
    fn args(self) -> &'static [&'static str] {
        match self {
            Self::Service(CallWay::Http2) => &["--tls"],
            Self::Hyper(CallWay::Http2) => &["--hyper", "--tls"],
            Self::Hyper(_) => &["--hyper"],
            Self::Echo | Self::Service(_) => &[],
        }
    }
}

/// The plan: what is measured, and how often.
#[derive(Clone, Debug)]
pub(crate) struct CallsPlan {
    pub(crate) run: RunPlan,
    /// A program with an echo and the service, and the service alone with `--hyper`; with `--tls`, it speaks TLS.
    pub(crate) program: Program,
}

/// The calls with this number in flight on each connection, and their samples, one for each round.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallsCase {
    pub(crate) in_flight: usize,
    pub(crate) samples: BTreeMap<CallTarget, Vec<Sample>>,
}

impl CallsPlan {
    pub(crate) fn run(&self) -> anyhow::Result<Vec<CallsCase>> {
        let case = |in_flight| CallsCase { in_flight, samples: BTreeMap::new() };
        let mut cases = IN_FLIGHT.map(case).to_vec();
        let mut random = Random::new(self.run.seed);
        for round in 1..=self.run.rounds {
            progress(&format!("round {round} of {}: calls", self.run.rounds));
            let mut servers = BTreeMap::new();
            for args in CallTarget::ALL.map(CallTarget::args) {
                if !servers.contains_key(args) {
                    servers.insert(args, self.program.with(args).start(self.run.cores)?);
                }
            }
            for case in &mut cases {
                let mut order = CallTarget::ALL;
                random.shuffle(&mut order);
                for called in order {
                    let server = &servers[called.args()];
                    let take = || self.sample(called, case.in_flight, server, &mut random);
                    let is_disturbed = |sample: &Sample| sample.busy.is_disturbed();
                    let sample = undisturbed(self.run.retries, take, is_disturbed)
                        .with_context(|| format!("{called:?}, {} in flight", case.in_flight))?;
                    case.samples.entry(called).or_default().push(sample);
                }
            }
        }
        Ok(cases)
    }

    fn sample(
        &self,
        called: CallTarget,
        in_flight: usize,
        server: &Server,
        random: &mut Random,
    ) -> anyhow::Result<Sample> {
        let mut calls = calls(called, in_flight, server, random)?;
        calls.run(self.run.times.warm_up)?;
        let meter = Meter::start(server.pid())?;
        let replies = calls.run(self.run.times.sample)?;
        Ok(Sample::of_cpu(meter.stop()?, replies))
    }
}

fn calls(
    called: CallTarget,
    in_flight: usize,
    server: &Server,
    random: &mut Random,
) -> anyhow::Result<Calls> {
    let way = match called {
        CallTarget::Echo => {
            let payload_bytes = format!("GET 00 {PATH}").len();
            let shape = Shape { payload_bytes, in_flight };
            let frames = Frames::new(Protocol::WebSocket, shape, random);
            let endpoint = server.endpoint(Protocol::WebSocket, ECHO_PATH).context("no echo")?;
            let streams = open(&mut Opener::new(endpoint, random)?, CONNECTIONS)?;
            return Ok(Calls::Framed(Generator::new(streams, frames)?));
        }
        CallTarget::Service(way) | CallTarget::Hyper(way) => way,
    };
    let service = server.called(PATH, BODY).context("no service is offered")?;
    service.calls(way, CONNECTIONS, in_flight, random)
}
