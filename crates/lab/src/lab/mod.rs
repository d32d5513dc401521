//! `anemone lab`: experiments. Each answers a question, and its report has the measurements of every round.

mod agent;
mod bounds;
mod check;
mod clock;
pub(crate) mod compare;
mod description;
mod error;
mod evaluate;
mod experiment;
mod far;
pub(crate) mod files;
mod lines;
mod link;
pub(crate) mod merge;
mod netem;
pub(crate) mod numbers;
pub(crate) mod pace;
mod probe;
mod rate;
pub(crate) mod regular_file;
mod relay;
pub(crate) mod report;
pub(crate) mod rounds;
mod session;
mod strain;
mod target;
pub(crate) mod terminal;
mod theory;
mod tryout;
pub(crate) mod write;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;

pub use self::compare::Regression;
pub use self::error::{InvalidRun, NoServer, WrongUse};
use self::evaluate::Evaluation;
pub use self::experiment::Experiment;
use self::far::Agent;
pub use self::link::{Link, LinkError};
use self::rate::Rate;
use self::session::{POLL_PAUSE, Session, Settings, Wish};
use self::target::Target;
use self::terminal::tell;
use self::tryout::EntryFault;

/// The shortest and the longest pause of a poll. A run takes several pauses, so a longer pause would take hours.
const POLL_EVERY: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(600);

/// The options of `anemone lab`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Options {
    #[command(subcommand)]
    evaluation: Option<Evaluation>,

    /// The experiment to run
    #[arg(value_name = "NAME", required = true)]
    experiment: Option<Experiment>,

    /// The server to measure: the URL of an Anemone server, such as http://host:8080 or https://host, or a file that describes
    /// another server [default: a server that this command starts on this machine]
    ///
    /// The file is in TOML, and names the paths of the server's echo, small answer and stream: docs/LAB.md has an example. `all`
    /// leaves out the experiments that need more than the server has. The certificate of an https server is not verified, since
    /// nothing secret is sent.
    #[arg(long, value_name = "URL|FILE")]
    target: Option<String>,

    /// The agent on a second machine, such as 192.0.2.7:7000. It starts the server to measure, and publishes events there
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "target", value_parser = far::parse_place)]
    agent: Option<String>,

    /// Take a first look within a minute. Do not quote its results: 4 rounds are too few for a sure difference, which needs 6
    #[arg(long)]
    quick: bool,

    /// Number of rounds, each of which gives one value [default: 10, with --quick 4]
    #[arg(long, value_name = "N", value_parser = rounds)]
    rounds: Option<u16>,

    /// Emulate a network between client and server: lan, wifi, wan, 4g, hsdpa, satellite, or one such as
    /// delay=40ms,rate=10mbit,jitter=5ms
    #[arg(long, value_name = "PROFILE")]
    link: Option<Link>,

    /// Let the kernel emulate the network (netem on the loopback interface) instead of the lab's own relay; needs root
    #[arg(long)]
    netem: bool,

    /// Seed for random orders and payloads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    seed: u64,

    /// advise: rate of your stream, such as 10 (events a second), 1/min or 2/h [default: 4]
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,

    /// advise: bytes of an event, at least 20 [default: 22]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    size: Option<u64>,

    /// advise: number of readers at the same time [default: 100]
    #[arg(long, value_name = "N", value_parser = readers)]
    readers: Option<u64>,

    /// advise: time from the server to a reader, such as 40ms [default: that of --link, otherwise 20ms for a server on this
    /// machine]
    #[arg(long, value_name = "TIME", value_parser = distance)]
    distance: Option<Duration>,

    /// advise: pause of a poll after each answer, such as 10s [default: 150ms]
    #[arg(long, value_name = "TIME", value_parser = poll_every)]
    poll_every: Option<Duration>,

    /// Directory for the reports: NAME.json with all rounds, NAME.csv, NAME.hlog (a log of HDR histograms), NAME.html and
    /// NAME.md
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn rounds(text: &str) -> Result<u16, String> {
    within(text, 1..=1000).ok_or_else(|| "expected 1 to 1000 rounds".to_owned())
}

fn seed(text: &str) -> Result<u64, String> {
    let words = || "expected a whole number, such as 1".to_owned();
    text.parse().map_err(|_| words())
}

fn size(text: &str) -> Result<u64, String> {
    within(text, 20..=1_000_000).ok_or_else(|| "expected 20 to 1000000 bytes".to_owned())
}

fn readers(text: &str) -> Result<u64, String> {
    within(text, 1..=1_000_000_000).ok_or_else(|| "expected 1 to 1000000000 readers".to_owned())
}

/// Parses a whole number. Returns `None` if it is not within the range.
fn within<N: FromStr + PartialOrd>(text: &str, range: RangeInclusive<N>) -> Option<N> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// Parses the pause of a poll.
fn poll_every(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("min", 60.0), ("s", 1.0)];
    let time = units.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        Duration::try_from_secs_f64(number * seconds).ok()
    });
    time.filter(|time| POLL_EVERY.contains(time))
        .ok_or_else(|| "expected a time from 1ms to 10min, such as 10s".to_owned())
}

fn distance(text: &str) -> Result<Duration, String> {
    let link = format!("delay={text}").parse::<Link>();
    link.map(|link| link.delay)
        .map_err(|_| "expected a time of at most 5 s, such as 40ms".to_owned())
}

/// Runs the command: compares or merges reports, or runs experiments. Prints the report of each experiment as Markdown
/// on standard output, and writes it to `--out`. Once `stop` is true, the current sample is the last one; the report
/// then has the figures so far. If one of several experiments fails, the others still run.
///
/// # Errors
/// [`WrongUse`] for a wrong flag or URL, [`NoServer`] if there is nothing to measure, [`InvalidRun`] if a report proves
/// nothing, and [`Regression`] if a comparison fails. Other errors if a server cannot be started, or a directory cannot
/// be written. Failures of the measured server are no errors: they are part of the report.
pub fn run(options: &Options, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    if let Some(evaluation) = &options.evaluation {
        return evaluation.run(stop);
    }
    options.check()?;
    if let Some(directory) = &options.out {
        // Before anything is measured that could not be kept.
        let named = options.experiment.map(Experiment::named).unwrap_or_default();
        write::prepare(directory, &named.into_iter().map(Experiment::name).collect::<Vec<_>>())?;
    }
    let (mut invalid, mut failed) = (Vec::new(), None);
    let experiments = experiments(options)?;
    let count = experiments.len();
    for (at, experiment) in experiments.into_iter().enumerate() {
        let name = experiment.name();
        let part = match count {
            1 => name.clone(),
            _ => format!("{} of {count}, {name}", at + 1),
        };
        let (target, stop) = (target(options)?, Arc::clone(stop));
        let mut session = Session::new(target, options.settings(), stop, part);
        match experiment.run(&mut session).with_context(|| format!("the experiment {name}")) {
            Ok(report) => {
                invalid.extend(report.invalid.iter().map(|reason| format!("{name}: {reason}")));
                write::hand_out(&session.pace, report, options.out.as_deref(), write::markdown)?;
            }
            Err(error) if options.experiment == Some(Experiment::All) => {
                session.pace.say(&format!("{error:#}"));
                failed.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
        if session.pace.is_stopped() {
            break;
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    ensure!(invalid.is_empty(), InvalidRun(invalid.join("; ")));
    Ok(())
}

/// Returns the experiments to run. First tries each entry of a description, or the services that an Anemone server has
/// only with `--demo`. If the experiments are `all`, leaves out those that need more than the server has, and tells the
/// user.
fn experiments(options: &Options) -> anyhow::Result<Vec<Experiment>> {
    let named = options.experiment.map(Experiment::named).unwrap_or_default();
    let Some(server) = &options.target else {
        let is_near = options.agent.is_none() || options.experiment != Some(Experiment::All);
        let all = named.into_iter().filter(|one| is_near || one.is_of_far_server());
        return Ok(all.collect());
    };
    let target = Target::named(server)?;
    let offer = target.offer();
    if let Some(offer) = offer {
        let faults = tryout::faults(&target.place(), offer);
        for fault in &faults {
            tell(&format!("{server}, {fault}"));
        }
        ensure!(
            !faults.iter().any(EntryFault::is_wrong_path),
            WrongUse(format!(
                "{server}: the server has no such path (status 404): correct it, or leave it out of the file"
            ))
        );
    }
    let lacks = match offer {
        Some(_) => Vec::new(),
        None => tryout::lacks(&target.place()),
    };
    let lacked = |one: &Experiment| lacks.iter().find(|lack| one.needs(**lack));
    if options.experiment != Some(Experiment::All) {
        if let Some(lack) = named.iter().find_map(lacked) {
            return Err(NoServer(format!("{server} {lack}")).into());
        }
        return Ok(named);
    }
    for lack in &lacks {
        tell(&format!("{server} {lack}"));
    }
    let (possible, others): (Vec<_>, Vec<_>) = named
        .into_iter()
        .partition(|one| one.is_possible(offer, target.is_secure()) && lacked(one).is_none());
    if !others.is_empty() {
        let names: Vec<_> = others.into_iter().map(Experiment::name).collect();
        tell(&format!(
            "left out, because the server does not have what they need: {}",
            names.join(", ")
        ));
    }
    ensure!(
        !possible.is_empty(),
        WrongUse(format!(
            "{server}: there is nothing to measure: add get, [echo] or [stream] to the file"
        ))
    );
    Ok(possible)
}

fn target(options: &Options) -> anyhow::Result<Target> {
    match (&options.target, &options.agent) {
        (Some(server), _) => Target::named(server),
        (None, Some(agent)) => Ok(Target::Far(Box::new(Agent::connect(agent)?))),
        (None, None) => Target::start_reference(),
    }
}

impl Options {
    /// Returns true if [`run`] ends when `stop` becomes true. Commands that only read and write reports ignore it,
    /// since their work so far is not worth keeping.
    #[must_use]
    pub fn can_stop(&self) -> bool {
        self.evaluation.as_ref().is_none_or(Evaluation::is_endless)
    }

    /// Checks that the experiments use each of the given flags.
    fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.experiment != Some(Experiment::Idle) || self.target.is_none(),
            WrongUse(
                "idle measures the process of the server, so it needs one that the lab starts: leave --target out"
                    .to_owned()
            )
        );
        let brings_links = [Experiment::Distance, Experiment::Sizes, Experiment::All];
        let has_link = self.link.as_ref().is_some_and(|link| !link.is_direct());
        ensure!(
            !self.netem
                || has_link
                || self.experiment.is_some_and(|one| brings_links.contains(&one)),
            WrongUse("--netem emulates a link, but without --link there is none".to_owned())
        );
        let given = [
            ("--rate", self.rate.is_some()),
            ("--size", self.size.is_some()),
            ("--readers", self.readers.is_some()),
            ("--distance", self.distance.is_some()),
            ("--poll-every", self.poll_every.is_some()),
        ];
        let has_advise = matches!(self.experiment, Some(Experiment::Advise | Experiment::All));
        for (flag, is_given) in given {
            ensure!(has_advise || !is_given, WrongUse(format!("{flag} is only for advise")));
        }
        Ok(())
    }

    fn settings(&self) -> Settings {
        Settings {
            rounds: self.rounds.map(usize::from),
            is_quick: self.quick,
            link: self.link.clone().unwrap_or_default(),
            has_netem: self.netem,
            seed: self.seed,
            wish: Wish {
                rate: self.rate.unwrap_or(Rate::per_second(4.0)),
                bytes: self.size.unwrap_or(22) as usize,
                readers: self.readers.unwrap_or(100),
                distance: self.distance,
                poll_every: self.poll_every.unwrap_or(POLL_PAUSE),
            },
        }
    }
}
