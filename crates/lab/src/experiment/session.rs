//! The session of the bench. It has the programs, cores, durations and pace, which all experiments share.

use std::path::PathBuf;
use std::time::Duration;

use super::layout::Layout;
use crate::cpu::{Cores, Meter, OTHERS_MAX, Used};
use crate::goals::Goal;
use crate::lab::pace::Pace;
use crate::lab::report::{Quantity, Report, Series};
use crate::lab::rounds::Sample;
use crate::load::Endpoint;
use crate::server::Program;
use crate::statistics::Random;

/// The least number of samples for each disturbed one. With fewer, the run proves nothing.
const UNDISTURBED_MIN: usize = 10;

/// The durations of a sample and of its warm-up. The warm-up does not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) sample: Duration,
    pub(crate) warm_up: Duration,
}

#[derive(Debug)]
pub(crate) struct BenchSession {
    /// The name of the report.
    pub(crate) name: String,
    pub(crate) pace: Pace,
    pub(crate) cores: Cores,
    pub(crate) times: Times,
    /// The folder of the compiled programs.
    pub(crate) folder: PathBuf,
    pub(crate) server: Program,
    /// A program with an echo, a trivial service and the run services.
    pub(crate) services: Program,
    /// True if the C echo is measured against itself, without the server.
    pub(crate) is_control: bool,
    /// The path of the server's WebSocket echo; below, those of its broadcast and of a topic that accepts events.
    pub(crate) echo_path: String,
    pub(crate) broadcast_path: String,
    pub(crate) topic_path: String,
    /// The most connections at once.
    pub(crate) room: usize,
    /// The conditions of the run, one sentence each.
    pub(crate) conditions: Vec<String>,
}

impl AsMut<Pace> for BenchSession {
    fn as_mut(&mut self) -> &mut Pace {
        &mut self.pace
    }
}

/// The outcome of an experiment: its report, its goals, and its layout for people.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) report: Report,
    pub(crate) goals: Vec<Goal>,
    pub(crate) layouts: Vec<Layout>,
}

impl BenchSession {
    /// Makes the report of an experiment with rounds. Leaves out series without a value.
    pub(crate) fn report(
        &self,
        program: &Program,
        question: &str,
        quantity: Quantity,
        mut series: Vec<Series>,
    ) -> Report {
        let rounds = self.pace.rounds_run(&series);
        series.retain(|series| series.rounds.iter().any(Option::is_some));
        self.report_of_once(program, question, quantity, series, rounds)
    }

    /// Makes the report of an experiment without rounds. `order` is a sentence about the order of its measurements.
    pub(crate) fn report_of_once(
        &self,
        program: &Program,
        question: &str,
        quantity: Quantity,
        series: Vec<Series>,
        order: String,
    ) -> Report {
        let Cores { server, generator } = self.cores;
        let target = format!("{program} on core {server}, generator on core {generator}");
        let mut report = self.pace.report(&self.name, question, quantity, series, target);
        report.method.push(order);
        report.method.extend(self.conditions.clone());
        let watched = || report.series.iter().flat_map(|series| &series.busy);
        let disturbed = watched().filter(|busy| busy.is_disturbed()).count();
        if let all @ 1.. = watched().count() {
            let words = format!(
                "other processes used more than {:.0} % of a core during {disturbed} of {all} samples",
                OTHERS_MAX * 100.0
            );
            report.method.push(format!("Disturbances: {words}."));
            report.invalid = (disturbed * UNDISTURBED_MIN > all).then_some(words);
        }
        report
    }
}

/// The server that is measured in a sample.
pub(super) struct Subject<'a> {
    pub(super) pid: u32,
    pub(super) endpoint: Endpoint,
    pub(super) times: Times,
    pub(super) random: &'a mut Random,
}

/// Takes a sample: the server's CPU time for each unit of work. `work` works for a time, and returns the number of
/// units.
pub(super) fn metered(
    quantity: Quantity,
    pid: u32,
    times: Times,
    mut work: impl FnMut(Duration) -> anyhow::Result<u64>,
) -> anyhow::Result<Sample> {
    work(times.warm_up)?;
    let meter = Meter::start(pid)?;
    let units = work(times.sample)?;
    Ok(of_cpu(quantity, meter.stop()?, units))
}

/// Makes a sample of the server's CPU time for each unit. All units count as received.
pub(super) fn of_cpu(quantity: Quantity, used: Used, units: u64) -> Sample {
    Sample {
        figures: vec![(quantity, used.server_ns as f64 / 1e3 / units as f64)],
        expected: units,
        received: units,
        busy: Some(used.busy),
        ..Sample::default()
    }
}

/// Returns the programs of the current round. In each new round, `start` gets the programs of the last one, and starts
/// new ones.
pub(super) fn of_round<T>(
    programs: &mut Option<(usize, T)>,
    round: usize,
    start: impl FnOnce(Option<T>) -> anyhow::Result<T>,
) -> anyhow::Result<&T> {
    let started = match programs.take() {
        Some((of, programs)) if of == round => programs,
        before => start(before.map(|(_, programs)| programs))?,
    };
    Ok(&programs.insert((round, started)).1)
}
