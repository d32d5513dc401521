//! `make bench`: a server's cost, compared with a bare TCP echo in C in the same run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};

use crate::cpu::{Cores, processor};
use crate::experiment::hostile::floods::{self, Flood};
use crate::experiment::rounds::{Plan, RunPlan};
use crate::experiment::{Before, Times, Work, calls, fan_out, hostile, mask, publish, runs};
use crate::load::{Closing, Shape, raise_descriptor_limit};
use crate::report;
use crate::server::Program;
use crate::statistics::Random;

/// More than this in flight on one connection would measure the sockets' buffers.
const IN_FLIGHT_BYTES_MAX: usize = 1 << 20;
/// Descriptors for everything but connections.
const DESCRIPTORS_SPARE: usize = 100;
const ACTIVE_BYTES: usize = 125;
const BROADCAST_BYTES: usize = 100;
const BROADCAST_OUTSTANDING: [usize; 2] = [1, 8];
/// The least number of events of the fan-out to many readers, if a sample is too short for more.
const EVENTS_MIN: usize = 4;
const QUICK_EVENTS_MIN: usize = 2;
/// Next to this program.
const SERVER_LOG: &str = "bench-server.log";
const QUICK_ROUNDS: usize = 3;
const QUICK_SAMPLE: Duration = Duration::from_millis(200);
const MASK_TIME: Duration = Duration::from_millis(20);
/// The duration of each flood.
const FLOOD: Duration = Duration::from_secs(60);
const QUICK_FLOOD: Duration = Duration::from_secs(5);

/// Measure a server's CPU time and memory beside a bare TCP echo in C, in one run.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub struct Options {
    /// The server's program [default: the anemone beside this program]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,

    /// The program with a trivial service [default: examples/measured beside this program]
    #[arg(long, value_name = "PATH")]
    services: Option<PathBuf>,

    /// The server's arguments; it must print `listening on http://ADDR:PORT` and, if these hold --tcp-echo, `tcp
    /// echo on ADDR:PORT`; topics to publish to are those of --demo
    #[arg(
        long,
        value_name = "ARGS",
        allow_hyphen_values = true,
        default_value = "serve --listen 127.0.0.1:0 --threads 1 --connections-max 20000 --tcp-echo 127.0.0.1:0 --demo"
    )]
    server_args: String,

    /// Path that echoes WebSocket messages
    #[arg(long, value_name = "PATH", default_value = "/echo")]
    path: String,

    /// Measure only the C echo against itself: the noise of this machine
    #[arg(long)]
    control: bool,

    /// Path where a message of one WebSocket goes to everyone
    #[arg(long, value_name = "PATH", default_value = "/broadcast")]
    broadcast_path: String,

    /// A topic that may be published to
    #[arg(long, value_name = "PATH", default_value = "/topics/scratch-bench")]
    topic_path: String,

    /// Only these experiments
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    only: Vec<Experiment>,

    /// Only these floods [default: all]
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    flood: Vec<Flood>,

    /// Payloads of the echo and of masking, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "20,125,1024,16384,65536,1048576"
    )]
    sizes: Vec<usize>,

    /// Messages in flight on each connection of the echo; together at most 1 MiB
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,16")]
    in_flight: Vec<usize>,

    /// Connections of the echo
    #[arg(long, value_name = "N", default_value_t = 100)]
    connections: usize,

    /// Connections of the echo with many connections
    #[arg(long, value_name = "N", default_value_t = 5000)]
    active: usize,

    /// Connections of the broadcast; fewer if descriptors run out
    #[arg(long, value_name = "N", default_value_t = 1000)]
    subscribers: usize,

    /// Readers of the fan-out, each number a case; fewer if descriptors run out
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000,10000")]
    readers: Vec<usize>,

    /// Deliveries a second of the fan-out to all readers together: how often there is an event
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    deliveries: u32,

    /// Directory of topics on disk while publishing is measured [default: beside this program]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Connections that idle while memory is measured; fewer if descriptors run out
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    idle: usize,

    /// Rounds; each gives one value, and the report is about their median
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: usize,

    /// Length of one sample in milliseconds; a quarter of it is the warm-up before
    #[arg(long, value_name = "MS", default_value_t = 800)]
    sample_ms: u64,

    /// A first look: 3 rounds of short samples
    #[arg(long, conflicts_with_all = ["rounds", "sample_ms"])]
    quick: bool,

    /// Times that a sample is taken again when other processes used the machine meanwhile
    #[arg(long, value_name = "N", default_value_t = 2)]
    retries: usize,

    /// Seed that orders and payloads are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The core that servers run on
    #[arg(long, value_name = "N", default_value_t = 0)]
    server_core: usize,

    /// The core that the load generator runs on
    #[arg(long, value_name = "N", default_value_t = 1)]
    generator_core: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Experiment {
    /// Messages of several sizes on a hundred connections
    Echo,
    /// Messages on thousands of connections
    Connections,
    /// Messages of one that go to a thousand connections, directly and by way of a topic
    Broadcast,
    /// A topic's events by each transport to thousands of readers, and the memory of those
    FanOut,
    /// Events into a topic, in memory and on disk
    Publish,
    /// Calls of a trivial service, beside an echo and beside hyper alone
    Calls,
    /// Partial results of runs, and an echo beside runs that compute
    Runs,
    /// Coverages of a million points by each model: points a second of a core, and the time that is not the model
    Coverage,
    /// Opening and closing connections
    Connect,
    /// User memory of connections that say nothing
    Memory,
    /// Masking against a XOR loop in C
    Mask,
    /// Hostile peers: their cost, the time until they are ended, and a normal client's waits during floods; not with
    /// --quick alone
    Hostile,
    /// The floods among these
    Floods,
}

/// Runs what `options` ask for and prints the report on standard output.
///
/// # Errors
/// A server that does not start or gives a wrong reply ends the run, with what was wrong.
pub fn run(options: &Options) -> anyhow::Result<()> {
    ensure!(!options.sizes.contains(&0), "a message has at least one byte");
    ensure!(!options.in_flight.contains(&0), "at least one message is in flight");
    ensure!(options.subscribers > 0, "a broadcast goes to at least one connection");
    ensure!(!options.readers.contains(&0), "a topic has at least one reader");
    ensure!(options.deliveries > 0, "there is at least one delivery a second");
    let descriptors = raise_descriptor_limit()?;
    let program = std::env::current_exe().context("where the compiled programs go")?;
    let folder = program.parent().context("where the compiled programs go")?;

    // Servers append to the log, so the log of the last run is removed.
    let _ = std::fs::remove_file(folder.join(SERVER_LOG));
    options.cores().go_to_the_generators()?;
    let mut report = options.conditions() + &options.shortage(descriptors);
    let cases = options.cases(descriptors);
    if !cases.is_empty() {
        report += &report::of_results(&options.plan(cases, folder)?.run()?);
    }
    if options.wants(Experiment::FanOut) && !options.control {
        report += &report::of_fan_out(&options.fan_out(folder, descriptors).run()?);
    }
    if options.wants(Experiment::Publish) && !options.control {
        report += &report::of_publishing(&options.publish(folder).run()?);
    }
    if options.wants(Experiment::Calls) && !options.control {
        report += &report::of_calls(&options.calls(folder).run()?);
    }
    if options.wants(Experiment::Runs) && !options.control {
        report += &report::of_runs(&options.runs(folder).run()?);
    }
    if options.wants(Experiment::Coverage) && !options.control {
        report += &coverage(folder)?;
    }
    if options.wants(Experiment::Mask) && !options.control {
        let xor = Program::xor(folder)?;
        let mut random = Random::new(options.seed);
        let cases = mask::run(&xor, &options.sizes, options.rounds(), MASK_TIME, &mut random)?;
        report += &report::of_masking(&cases);
    }
    if options.wants_hostile() {
        let room = descriptors.saturating_sub(DESCRIPTORS_SPARE);
        let outcomes =
            hostile::run(&options.server_program(folder), &options.path, options.cores(), room)?;
        report += &report::of_hostile_peers(&outcomes);
    }
    if options.wants_floods() {
        let (server, time) = (options.server_program(folder), options.flood_time());
        let (path, topic) = (&options.path, &options.topic_path);
        let kinds = if options.flood.is_empty() { Flood::value_variants() } else { &options.flood };
        let outcomes = floods::run(&server, path, topic, options.cores(), time, kinds)?;
        report += &report::of_floods(&outcomes, time);
    }
    Ok(std::io::stdout().write_all(report.as_bytes())?)
}

/// Has the example of the services measure coverages, on the generator's core.
fn coverage(folder: &Path) -> anyhow::Result<String> {
    let path = folder.join("examples/coverage_speed");
    let program = Program::server(path, Vec::new(), folder.join(SERVER_LOG));
    let told = program.output(&[]).context("measuring coverages")?;
    Ok(format!("\n### Coverages of 1,000 x 1,000 points, one core\n\n```\n{told}```\n"))
}

impl Options {
    fn wants(&self, experiment: Experiment) -> bool {
        self.only.is_empty() || self.only.contains(&experiment)
    }

    /// A quick run leaves it out.
    fn wants_hostile(&self) -> bool {
        let is_named = self.only.contains(&Experiment::Hostile);
        !self.control && (is_named || (self.only.is_empty() && !self.quick))
    }

    fn wants_floods(&self) -> bool {
        self.wants_hostile() || (!self.control && self.only.contains(&Experiment::Floods))
    }

    fn flood_time(&self) -> Duration {
        if self.quick { QUICK_FLOOD } else { FLOOD }
    }

    fn rounds(&self) -> usize {
        if self.quick { QUICK_ROUNDS } else { self.rounds }
    }

    fn times(&self) -> Times {
        let sample = if self.quick { QUICK_SAMPLE } else { Duration::from_millis(self.sample_ms) };
        Times { sample, warm_up: sample / 4 }
    }

    fn cores(&self) -> Cores {
        Cores { server: self.server_core, generator: self.generator_core }
    }

    fn server_program(&self, folder: &Path) -> Program {
        let args = self.server_args.split_whitespace().map(str::to_owned).collect();
        let program = self.server.clone().unwrap_or_else(|| folder.join("anemone"));
        Program::server(program, args, folder.join(SERVER_LOG))
    }

    fn run_plan(&self) -> RunPlan {
        RunPlan {
            topic_path: self.topic_path.clone(),
            cores: self.cores(),
            rounds: self.rounds(),
            times: self.times(),
            retries: self.retries,
            seed: self.seed,
        }
    }

    fn plan(&self, cases: Vec<Work>, folder: &Path) -> anyhow::Result<Plan> {
        Ok(Plan {
            run: self.run_plan(),
            cases,
            floor: Program::floor(folder)?,
            server: (!self.control).then(|| self.server_program(folder)),
            path: self.path.clone(),
            broadcast_path: self.broadcast_path.clone(),
        })
    }

    fn fan_out(&self, folder: &Path, descriptors: usize) -> fan_out::FanOutPlan {
        let room = descriptors.saturating_sub(DESCRIPTORS_SPARE);
        let mut readers: Vec<_> = self.readers.iter().map(|&readers| readers.min(room)).collect();
        readers.dedup();
        fan_out::FanOutPlan {
            run: self.run_plan(),
            server: self.server_program(folder),
            echo_path: self.path.clone(),
            readers,
            deliveries_per_second: self.deliveries.into(),
            events_min: if self.quick { QUICK_EVENTS_MIN } else { EVENTS_MIN },
        }
    }

    fn publish(&self, folder: &Path) -> publish::PublishPlan {
        publish::PublishPlan {
            run: self.run_plan(),
            server: self.server_program(folder),
            folder: self.data.as_deref().unwrap_or(folder).to_owned(),
        }
    }

    /// Returns the program with services.
    fn services(&self, folder: &Path) -> Program {
        let program = self.services.clone().unwrap_or_else(|| folder.join("examples/measured"));
        Program::server(program, Vec::new(), folder.join(SERVER_LOG))
    }

    fn calls(&self, folder: &Path) -> calls::CallsPlan {
        calls::CallsPlan { run: self.run_plan(), program: self.services(folder) }
    }

    fn runs(&self, folder: &Path) -> runs::RunsPlan {
        let program = self.services(folder);
        runs::RunsPlan { run: self.run_plan(), program, time: self.flood_time() }
    }

    fn cases(&self, descriptors: usize) -> Vec<Work> {
        let mut cases = Vec::new();
        if self.wants(Experiment::Echo) {
            let shapes = self.in_flight.iter().flat_map(|&in_flight| {
                self.sizes.iter().map(move |&payload_bytes| Shape { payload_bytes, in_flight })
            });
            let shapes = shapes.filter(|shape| {
                shape.in_flight == 1 || shape.in_flight * shape.payload_bytes <= IN_FLIGHT_BYTES_MAX
            });
            cases.extend(shapes.map(|shape| Work::Echo { connections: self.connections, shape }));
        }
        let room = descriptors.saturating_sub(DESCRIPTORS_SPARE);
        if self.wants(Experiment::Connections) {
            let shape = Shape { payload_bytes: ACTIVE_BYTES, in_flight: 1 };
            cases.push(Work::Echo { connections: self.active.min(room), shape });
        }
        if self.wants(Experiment::Broadcast) {
            let connections = self.subscribers.min(room);
            cases.extend(BROADCAST_OUTSTANDING.map(|in_flight| {
                let shape = Shape { payload_bytes: BROADCAST_BYTES, in_flight };
                Work::Broadcast { connections, shape }
            }));
        }
        if self.wants(Experiment::Connect) {
            let closings = [Closing::Tcp, Closing::Handshake];
            cases.extend(closings.map(|closing| Work::Connect { closing }));
        }
        if self.wants(Experiment::Memory) {
            let connections = self.idle.min(room);
            let states = [Before::Opened, Before::Echoed];
            cases.extend(states.map(|before| Work::Memory { connections, before }));
        }
        cases
    }

    /// Everything a reader needs to know to judge the figures or to repeat them.
    fn conditions(&self) -> String {
        let Times { sample, warm_up } = self.times();
        let Cores { server, generator } = self.cores();
        let system =
            |name| std::fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default();
        format!(
            "{}, Linux {}, TCP congestion control {}; servers on core {server}, generator on core {generator}.\n\
             {} rounds in random order (seed {}), samples of {} ms after {} ms of warm-up; medians over the rounds, \
             ratios within a round, [95 % interval by bootstrap].\n",
            processor().unwrap_or_else(|| "Unknown processor".to_owned()),
            system("kernel/osrelease").trim(),
            system("net/ipv4/tcp_congestion_control").trim(),
            self.rounds(),
            self.seed,
            sample.as_millis(),
            warm_up.as_millis(),
        )
    }

    /// Says so when there are not as many connections as were asked for.
    fn shortage(&self, descriptors: usize) -> String {
        let room = descriptors.saturating_sub(DESCRIPTORS_SPARE);
        let asked = [
            (Experiment::Connections, self.active),
            (Experiment::Broadcast, self.subscribers),
            (Experiment::Memory, self.idle),
            (Experiment::FanOut, self.readers.iter().copied().max().unwrap_or(0)),
        ];
        let most = asked.into_iter().filter(|(experiment, _)| self.wants(*experiment));
        let most = most.map(|(_, connections)| connections).max().unwrap_or(0);
        if most <= room {
            return String::new();
        }
        format!(
            "A process may have {descriptors} descriptors here (ulimit -Hn): there are {room} connections where {most} \
             were asked for.\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn options(args: &str) -> Options {
        Options::try_parse_from(["bench"].into_iter().chain(args.split_whitespace())).unwrap()
    }

    fn cases(args: &str) -> Vec<String> {
        options(args).cases(6000).iter().map(Work::to_string).collect()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn what_is_asked_for_is_measured() {
        assert_eq!(cases("").len(), 6 + 5 + 1 + 2 + 2 + 2);
        assert_eq!(
            cases("--only echo,connections --sizes 20,1048576 --in-flight 16"),
            ["20 B, 16 in flight, 100 connections", "125 B, 1 in flight, 5000 connections"]
        );
        assert_eq!(
            cases("--only broadcast --subscribers 9000"),
            [
                "100 B to 5900 connections, 1 outstanding",
                "100 B to 5900 connections, 8 outstanding"
            ]
        );
        assert_eq!(
            options("--only connections,fan-out").shortage(6000),
            "A process may have 6000 descriptors here (ulimit -Hn): there are 5900 connections where 10000 were asked \
             for.\n"
        );
        assert_eq!(options("--only connections,fan-out --readers 5900").shortage(6000), "");
        assert_eq!(
            cases("--only memory"),
            ["5900 connections, opened", "5900 connections, after one echo of 125 B"]
        );
    }
}
