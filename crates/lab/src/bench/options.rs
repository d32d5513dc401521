//! The command line of the bench. Derives the experiments, their work, and the session of each from the options.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::ensure;
use clap::{Parser, ValueEnum};

use crate::cpu::Cores;
use crate::experiment::hostile::floods::Flood;
use crate::experiment::session::{BenchSession, Times};
use crate::experiment::work::{Before, Work};
use crate::lab::pace::Pace;
use crate::load::{Closing, Shape};
use crate::server::Program;

/// The most bytes in flight on one connection. With more, the sockets' buffers would be measured.
const IN_FLIGHT_BYTES_MAX: usize = 1 << 20;
/// The number of descriptors that are kept for everything but connections.
const DESCRIPTORS_SPARE: usize = 100;
const ACTIVE_BYTES: usize = 125;
const BROADCAST_BYTES: usize = 100;
const BROADCAST_OUTSTANDING: [usize; 2] = [1, 8];
/// The name of the log of the measured servers. The file is beside this program.
pub(super) const SERVER_LOG: &str = "bench-server.log";
const QUICK_ROUNDS: usize = 3;
const QUICK_SAMPLE: Duration = Duration::from_millis(200);
const FLOOD: Duration = Duration::from_secs(60);
const QUICK_FLOOD: Duration = Duration::from_secs(5);

/// Measure a server's CPU time and memory beside a bare TCP echo in C, in one run.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub struct BenchOptions {
    /// The server's program [default: the anemone beside this program]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,

    /// The program with a trivial service [default: examples/measured beside this program]
    #[arg(long, value_name = "PATH")]
    services: Option<PathBuf>,

    /// Arguments of the server. It must print `listening on http://ADDR:PORT`, and with --tcp-echo also `tcp echo on
    /// ADDR:PORT`. It must have the topics of --demo, which accept events
    #[arg(
        long,
        value_name = "ARGS",
        allow_hyphen_values = true,
        default_value = "serve --listen 127.0.0.1:0 --threads 1 --connections-max 20000 --tcp-echo 127.0.0.1:0 --demo"
    )]
    server_args: String,

    /// Path of the WebSocket echo
    #[arg(long, value_name = "PATH", default_value = "/echo")]
    path: String,

    /// Measure only the C echo against itself: the noise of this machine
    #[arg(long)]
    control: bool,

    /// Path of the WebSocket broadcast, which sends each message to all
    #[arg(long, value_name = "PATH", default_value = "/broadcast")]
    broadcast_path: String,

    /// Path of a topic that accepts events
    #[arg(long, value_name = "PATH", default_value = "/topics/scratch-bench")]
    topic_path: String,

    /// Only these experiments [default: all]
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    only: Vec<BenchExperiment>,

    /// Only these floods [default: all]
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub(super) flood: Vec<Flood>,

    /// Payloads of the echo and of masking, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "20,125,1024,16384,65536,1048576"
    )]
    pub(super) sizes: Vec<usize>,

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
    pub(super) readers: Vec<usize>,

    /// Deliveries a second of the fan-out to all readers together, from which the rate of events follows
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(super) deliveries: u32,

    /// Directory of topics on disk while publishing is measured [default: beside this program]
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,

    /// Connections that idle while memory is measured; fewer if descriptors run out
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    idle: usize,

    /// Rounds; each gives one value, and the report is about their median
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: usize,

    /// Length of one sample in milliseconds, after a warm-up of a quarter of that
    #[arg(long, value_name = "MS", default_value_t = 800)]
    sample_ms: u64,

    /// Take a first look: 3 rounds of short samples
    #[arg(long, conflicts_with_all = ["rounds", "sample_ms"])]
    quick: bool,

    /// Number of times that a sample is repeated if other processes used the machine meanwhile
    #[arg(long, value_name = "N", default_value_t = 2)]
    retries: usize,

    /// Directory for the reports: bench-NAME.json with every round, .csv, .hlog, .html and .md; `anemone lab compare` reads two
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Seed for random orders and payloads
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The core that servers run on
    #[arg(long, value_name = "N", default_value_t = 0)]
    server_core: usize,

    /// The core that the load generator runs on
    #[arg(long, value_name = "N", default_value_t = 1)]
    generator_core: usize,
}

/// The experiments of the bench, in the order in which they are made.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum BenchExperiment {
    /// Messages of several sizes on a hundred connections
    Echo,
    /// Messages on thousands of connections
    Connections,
    /// Messages of one connection that go to a thousand, directly and through a topic
    Broadcast,
    /// Events of a topic to thousands of readers over each transport, and the memory of the readers
    FanOut,
    /// Events into a topic, in memory and on disk
    Publish,
    /// Calls of a trivial service, compared with an echo and with hyper alone
    Calls,
    /// Partial results of runs, and an echo beside runs that compute
    Runs,
    /// Coverages of a million points by each model: points a second of a core, and the time that is not the model
    Coverage,
    /// Opening and closing connections
    Connect,
    /// User memory of idle connections
    Memory,
    /// Masking, compared with a XOR loop in C
    Mask,
    /// Hostile peers: their cost, the time until they are ended, and a normal client's waits during floods. --quick leaves it
    /// out unless it is named
    Hostile,
    /// The floods of hostile peers alone
    Floods,
}

impl BenchExperiment {
    /// Returns the name of the experiment, which is also the name of its report.
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        format!("bench-{}", value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl BenchOptions {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.sizes.contains(&0), "a message has at least one byte");
        ensure!(!self.in_flight.contains(&0), "at least one message is in flight");
        let lists = [("--sizes", &self.sizes), ("--in-flight", &self.in_flight)];
        for (flag, list) in lists {
            ensure!(is_each_once(list), "{flag} names a number twice: a report has each case once");
        }
        ensure!(
            is_each_once(&self.flood),
            "--flood names a kind twice: a report has each case once"
        );
        ensure!(self.subscribers > 0, "a broadcast goes to at least one connection");
        ensure!(!self.readers.contains(&0), "a topic has at least one reader");
        ensure!(self.deliveries > 0, "there is at least one delivery a second");
        Ok(())
    }

    pub(super) fn experiments(&self) -> Vec<BenchExperiment> {
        let all = BenchExperiment::value_variants().iter().copied();
        all.filter(|experiment| self.wants(*experiment)).collect()
    }

    fn wants(&self, experiment: BenchExperiment) -> bool {
        use BenchExperiment::{Broadcast, Connect, Connections, Echo, Floods, Hostile, Memory};
        let is_named = |experiment| self.only.contains(&experiment);
        let has_floor = [Echo, Connections, Broadcast, Connect, Memory].contains(&experiment);
        // A quick run leaves hostile peers out.
        let all = self.only.is_empty();
        let is_asked = match experiment {
            Hostile => is_named(Hostile) || (all && !self.quick),
            Floods => is_named(Floods) || is_named(Hostile) || (all && !self.quick),
            other => all || is_named(other),
        };
        is_asked && (has_floor || !self.control)
    }

    pub(super) fn flood_time(&self) -> Duration {
        if self.quick { QUICK_FLOOD } else { FLOOD }
    }

    fn times(&self) -> Times {
        let sample = if self.quick { QUICK_SAMPLE } else { Duration::from_millis(self.sample_ms) };
        Times { sample, warm_up: sample / 4 }
    }

    pub(super) fn cores(&self) -> Cores {
        Cores { server: self.server_core, generator: self.generator_core }
    }

    /// Returns the pace of an experiment. It has no round of warm-up, since each sample has a warm-up of its own. It
    /// watches no timers, since each sample measures how busy the generator was.
    pub(super) fn pace(&self, stop: Arc<AtomicBool>, part: String) -> Pace {
        let rounds = if self.quick { QUICK_ROUNDS } else { self.rounds };
        let mut pace = Pace::new(rounds, self.seed, stop, part);
        (pace.warm_up, pace.watches_timers) = (0, false);
        (pace.retries, pace.is_quick) = (self.retries, self.quick);
        pace
    }

    pub(super) fn session(
        &self,
        experiment: BenchExperiment,
        pace: Pace,
        folder: &Path,
        descriptors: usize,
    ) -> BenchSession {
        let of = |path: &Option<PathBuf>, default: &str, args: &str| {
            let program = path.clone().unwrap_or_else(|| folder.join(default));
            let args = args.split_whitespace().map(str::to_owned).collect();
            Program::server(program, args, folder.join(SERVER_LOG))
        };
        use BenchExperiment::{Floods, Hostile, Mask};
        // The others have times of their own.
        let has_samples = ![Mask, Hostile, Floods].contains(&experiment);
        let conditions =
            [has_samples.then(|| self.conditions()), self.shortage(experiment, descriptors)];
        BenchSession {
            name: experiment.name(),
            pace,
            cores: self.cores(),
            times: self.times(),
            folder: folder.to_owned(),
            server: of(&self.server, "anemone", &self.server_args),
            services: of(&self.services, "examples/measured", ""),
            is_control: self.control,
            echo_path: self.path.clone(),
            broadcast_path: self.broadcast_path.clone(),
            topic_path: self.topic_path.clone(),
            room: descriptors.saturating_sub(DESCRIPTORS_SPARE),
            conditions: conditions.into_iter().flatten().collect(),
        }
    }

    /// Returns the work of an experiment whose contenders are measured side by side. It has at most `room` connections.
    pub(super) fn works(&self, experiment: BenchExperiment, room: usize) -> Vec<Work> {
        match experiment {
            BenchExperiment::Echo => {
                let shapes = self.in_flight.iter().flat_map(|&in_flight| {
                    self.sizes.iter().map(move |&payload_bytes| Shape { payload_bytes, in_flight })
                });
                let shapes = shapes.filter(|shape| {
                    shape.in_flight == 1
                        || shape.in_flight * shape.payload_bytes <= IN_FLIGHT_BYTES_MAX
                });
                shapes.map(|shape| Work::Echo { connections: self.connections, shape }).collect()
            }
            BenchExperiment::Connections => {
                let shape = Shape { payload_bytes: ACTIVE_BYTES, in_flight: 1 };
                vec![Work::Echo { connections: self.active.min(room), shape }]
            }
            BenchExperiment::Broadcast => {
                let connections = self.subscribers.min(room);
                let shape = |in_flight| Shape { payload_bytes: BROADCAST_BYTES, in_flight };
                let works = BROADCAST_OUTSTANDING
                    .map(|in_flight| Work::Broadcast { connections, shape: shape(in_flight) });
                works.into()
            }
            BenchExperiment::Connect => {
                [Closing::Tcp, Closing::Handshake].map(|closing| Work::Connect { closing }).into()
            }
            BenchExperiment::Memory => {
                let connections = self.idle.min(room);
                let states = [Before::Opened, Before::Echoed];
                states.map(|before| Work::Memory { connections, before }).into()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the conditions of all experiments, apart from the machine. A reader needs them to judge the figures.
    fn conditions(&self) -> String {
        let Times { sample, warm_up } = self.times();
        let control = "/proc/sys/net/ipv4/tcp_congestion_control";
        format!(
            "Samples of {} ms after {} ms of warm-up; medians over the rounds, ratios within a round, 95 % intervals by bootstrap. TCP \
             congestion control: {}.",
            sample.as_millis(),
            warm_up.as_millis(),
            std::fs::read_to_string(control).unwrap_or_default().trim(),
        )
    }

    /// Returns a sentence about a lack of connections, if there are fewer than the options ask for.
    fn shortage(&self, experiment: BenchExperiment, descriptors: usize) -> Option<String> {
        let room = descriptors.saturating_sub(DESCRIPTORS_SPARE);
        let asked = match experiment {
            BenchExperiment::Connections => self.active,
            BenchExperiment::Broadcast => self.subscribers,
            BenchExperiment::Memory => self.idle,
            BenchExperiment::FanOut => self.readers.iter().copied().max().unwrap_or(0),
            _ => 0,
        };
        (asked > room).then(|| {
            format!(
                "A process may have {descriptors} descriptors here (ulimit -Hn): there are {room} connections where {asked} were asked for."
            )
        })
    }
}

fn is_each_once<T: PartialEq>(list: &[T]) -> bool {
    list.iter().enumerate().all(|(at, one)| !list[..at].contains(one))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn options(args: &str) -> BenchOptions {
        BenchOptions::try_parse_from(["bench"].into_iter().chain(args.split_whitespace())).unwrap()
    }

    fn cases(args: &str) -> Vec<String> {
        let options = options(args);
        let works = options.experiments().into_iter().flat_map(|one| options.works(one, 5900));
        works.map(|work| work.to_string()).collect()
    }

    #[test]
    fn the_command_line_is_consistent() {
        BenchOptions::command().debug_assert();
    }

    #[test]
    fn no_case_is_asked_for_twice() {
        let check = |args: &str| options(args).check().map_err(|error| error.to_string());
        assert_eq!(check("--sizes 20,30 --in-flight 1,20 --flood pings,pongs"), Ok(()));
        for twice in ["--sizes 20,30,20", "--in-flight 1,1", "--flood pings,pings"] {
            let error = check(twice).unwrap_err();
            assert!(twice.starts_with(error.split(' ').next().unwrap()), "{error}");
            assert!(error.contains(" twice: "), "{error}");
        }
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
        let shortage = options("").shortage(BenchExperiment::FanOut, 6000);
        assert_eq!(
            shortage.as_deref(),
            Some(
                "A process may have 6000 descriptors here (ulimit -Hn): there are 5900 connections where 10000 were asked for."
            )
        );
        assert_eq!(options("").shortage(BenchExperiment::Connections, 6000), None);
        assert_eq!(
            cases("--only memory"),
            ["5900 connections, opened", "5900 connections, after one echo of 125 B"]
        );
    }

    #[test]
    fn a_control_has_only_the_c_echo_and_a_quick_run_no_hostile_peers() {
        let names = |args| {
            let experiments = options(args).experiments().into_iter();
            experiments.map(BenchExperiment::name).collect::<Vec<_>>().join(" ")
        };
        let floor = "bench-echo bench-connections bench-broadcast bench-connect bench-memory";
        assert_eq!(names("--control"), floor);
        assert!(names("--quick").ends_with("bench-memory bench-mask"));
        assert_eq!(names("--only hostile"), "bench-hostile bench-floods");
        assert_eq!(names("--only floods,fan-out"), "bench-fan-out bench-floods");
    }
}
