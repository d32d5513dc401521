//! `make bench`: measures the cost of a server, beside a bare TCP echo in C in the same run.

mod options;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::ValueEnum;

pub use self::options::BenchOptions;
use self::options::{BenchExperiment, SERVER_LOG};
use crate::experiment::hostile::floods::{self, Flood};
use crate::experiment::session::{BenchSession, Measured};
use crate::experiment::{calls, compare, fan_out, hostile, mask, publish, runs};
use crate::goals;
use crate::lab::regular_file::write_whole;
use crate::lab::terminal::{print, tell};
use crate::lab::write::{hand_out, page, prepare};
use crate::load::raise_descriptor_limit;
use crate::server::Program;

/// The least number of events in a sample of the fan-out to many readers. A short sample is made longer for them.
const EVENTS_MIN: usize = 4;
const QUICK_EVENTS_MIN: usize = 2;

/// Runs the experiments. Prints the report of each on standard output, and writes it to `--out`. Once `stop` is true,
/// the current sample is the last one. The report then has the figures so far.
///
/// # Errors
/// Returns the error of the first experiment that failed, after the others have run. For example, an experiment fails
/// if a server does not start, or gives a wrong reply.
pub fn run(options: &BenchOptions, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    options.check()?;
    let descriptors = raise_descriptor_limit()?;
    let program = std::env::current_exe().context("where the compiled programs go")?;
    let folder = program.parent().context("where the compiled programs go")?;
    let experiments = options.experiments();
    if let Some(directory) = &options.out {
        let names: Vec<_> = experiments.iter().map(|one| one.name()).collect();
        prepare(directory, &names)?;
    }
    // Servers append to the log, so the log of the last run is removed.
    let _ = std::fs::remove_file(folder.join(SERVER_LOG));
    options.cores().go_to_the_generators()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    each(&experiments, is_stopped, |at, experiment| {
        if experiment == BenchExperiment::Coverage {
            let told = coverage(folder)?;
            if let Some(directory) = &options.out {
                let path = directory.join(format!("{}.md", experiment.name()));
                write_whole(&path, told.as_bytes())
                    .with_context(|| format!("writing {}", path.display()))?;
            }
            return Ok(print(&told)?);
        }
        let part = match experiments.len() {
            1 => experiment.name(),
            count => format!("{} of {count}, {}", at + 1, experiment.name()),
        };
        let pace = options.pace(Arc::clone(stop), part);
        let mut session = options.session(experiment, pace, folder, descriptors);
        let measured = experiment.run(options, &mut session);
        let Measured { mut report, goals, layouts } =
            measured.with_context(|| experiment.name())?;
        report.answer = goals::answer(&goals, &report);
        let tables = layouts.iter().map(|layout| layout.table(&report, &goals));
        let tables: Vec<_> = tables.filter(|table| !table.rows.is_empty()).collect();
        let out = options.out.as_deref();
        hand_out(&session.pace, report, out, |report| page(report, &tables))
    })
}

/// Runs experiments one after the other, even if one fails. Returns the first error at the end.
fn each<E: Copy>(
    experiments: &[E],
    is_stopped: impl Fn() -> bool,
    mut run: impl FnMut(usize, E) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut failed = None;
    for (at, experiment) in experiments.iter().enumerate() {
        if let Err(error) = run(at, *experiment) {
            if at + 1 < experiments.len() {
                tell(&format!("{error:#}"));
            }
            failed.get_or_insert(error);
        }
        if is_stopped() {
            break;
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Runs the example program that measures coverages, on the generator's core. Returns its figures as Markdown.
fn coverage(folder: &Path) -> anyhow::Result<String> {
    let path = folder.join("examples/coverage_speed");
    let program = Program::server(path, Vec::new(), folder.join(SERVER_LOG));
    let told = program.output(&[]).context("measuring coverages")?;
    Ok(format!("\n### coverages of 1,000 x 1,000 points, one core\n\n```\n{told}```\n"))
}

impl BenchExperiment {
    fn run(self, options: &BenchOptions, session: &mut BenchSession) -> anyhow::Result<Measured> {
        match self {
            Self::Echo | Self::Connections | Self::Broadcast | Self::Connect | Self::Memory => {
                compare::run(session, &options.works(self, session.room))
            }
            Self::FanOut => {
                let mut readers = options.readers.clone();
                readers.iter_mut().for_each(|readers| *readers = session.room.min(*readers));
                readers.sort_unstable();
                readers.dedup();
                let events_min = session.pace.full_or_quick(EVENTS_MIN, QUICK_EVENTS_MIN);
                fan_out::run(session, &readers, options.deliveries.into(), events_min)
            }
            Self::Publish => {
                let folder = options.data.clone().unwrap_or_else(|| session.folder.clone());
                publish::run(session, &folder)
            }
            Self::Calls => calls::run(session),
            Self::Runs => runs::run(session, options.flood_time()),
            Self::Coverage => anyhow::bail!("coverages are measured by a program of their own"),
            Self::Mask => mask::run(session, &options.sizes),
            Self::Hostile => hostile::run(session),
            Self::Floods => {
                let all = options.flood.is_empty();
                let kinds = if all { Flood::value_variants() } else { &options.flood };
                floods::run(session, options.flood_time(), kinds)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::ensure;
    use clap::Parser;

    use super::*;

    #[test]
    fn an_experiment_that_fails_does_not_end_those_after_it() {
        let (mut run, stop) = (Vec::new(), AtomicBool::new(false));
        let ended = each(
            &[1, 2, 3, 4],
            || stop.load(Ordering::Relaxed),
            |_, number| {
                run.push(number);
                stop.store(number == 3, Ordering::Relaxed);
                ensure!(number != 2, "the second failed");
                Ok(())
            },
        );
        assert_eq!(ended.unwrap_err().to_string(), "the second failed");
        assert_eq!(run, [1, 2, 3], "it was stopped in the third");
    }

    #[test]
    fn the_lab_compares_two_runs_of_the_bench() {
        use crate::cpu::Busy;
        use crate::experiment::work::DELIVERY;
        use crate::lab::rounds::{Cell, Sample, try_interleaved};
        use crate::lab::{compare, files, merge, write};

        let base = std::env::temp_dir().join(format!("bench-out-{}", std::process::id()));
        let [a, b] = [("a", 2.0), ("b", 1.0)].map(|(name, cost)| {
            let directory = base.join(name);
            prepare(&directory, &[]).unwrap();
            let options = BenchOptions::parse_from(["bench", "--retries", "1"]);
            let pace = options.pace(Arc::default(), String::new());
            let mut session = options.session(BenchExperiment::Broadcast, pace, &base, 6000);
            let cells = ["C", "topic"].map(|contender| Cell::new("100 B", contender, ()));
            let mut calls = 0;
            let series = try_interleaved(&mut session, DELIVERY, &cells, |session, _| {
                calls += 1;
                assert!(session.pace.round < 10);
                // The first one of each run is disturbed, and taken again.
                let others = if calls == 1 { 1.0 } else { 0.0 };
                let busy = Some(Busy { server: 0.5, generator: 1.0, others });
                let figures = vec![(DELIVERY, cost)];
                let mut sample = Sample { figures, busy, ..Sample::default() };
                sample.durations.record(Duration::from_millis(1));
                anyhow::Ok(sample)
            });
            let series = series.unwrap();
            assert_eq!((calls, series.len()), (21, 2));
            let mut report = session.report(&session.server, "How much?", DELIVERY, series);
            report.compare_with("C");
            assert_eq!(report.invalid, None);
            write::write(&report, "", &directory).unwrap();
            let read = files::read(&directory, &mut Default::default()).unwrap();
            let read = merge::merged(read).unwrap();
            assert_eq!(read[0].series[0].busy.len(), 10);
            read
        });
        std::fs::remove_dir_all(&base).unwrap();
        let pairs = compare::pairs(&a, &b).unwrap();
        let told = write::changes(&pairs.all[0]);
        let row = "| 100 B | topic | server CPU for each delivery, µs | 2.00 | 1.00 | −1.00 [−1.00, −1.00] | −50.0 [−50.0, −50.0] | better |";
        assert!(
            told.starts_with("## bench-broadcast: B against A") && told.contains(row),
            "{told}"
        );
        assert!(!told.contains("other conditions"), "{told}");
    }
}
