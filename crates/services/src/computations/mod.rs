//! The run service `computations` of the demo: lists that are made and sorted, and told while they change
//! (`docs/COMPUTATIONS.md`).
//!
//! A document is a tree of actions ([`tree`]), checked before anything is made. [`computation`] lets the actions that have
//! begun take turns on the one thread of the run, so that a run with many branches takes no more threads than any other. [`sorting`]
//! has the algorithms, which know only a [`board`]; a [`recorder`] makes events from its changes.

mod action;
mod board;
mod computation;
mod counting;
mod event;
mod forecast;
mod list;
mod options;
mod owed_sleep;
mod recorder;
mod sorting;
#[cfg(test)]
mod tests;
mod tree;
mod work;

use std::time::{Duration, Instant};

use anemone_hub::run::{
    RunContext, RunFailure, RunInput, RunOutcome, RunRefusal, RunService, RunWork,
};

use self::computation::{Computation, Turn};
use self::event::EventText;
use self::options::ComputationOptions;
use self::owed_sleep::OwedSleep;
use self::tree::ActionTree;

/// The most bytes of a computation's events, as for a program's output. Those at a rate have a limit for each second
/// instead.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// The time between two reports of the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// The shortest and the longest time to wait when the pace allows no change yet: an eighth of the time between two changes.
const PACE_WAIT_MIN: Duration = Duration::from_millis(5);
const PACE_WAIT_MAX: Duration = Duration::from_millis(50);

/// The bytes that a run holds for an element of its lists: its value, its place, and both again in what was told last.
const ELEMENT_BYTES: u64 = 24;

/// Makes lists and sorts them, and tells each state on the way: a [`RunService`] for a mount.
///
/// The body of a start is a document with a tree of actions, of at most 64 KiB. `docs/COMPUTATIONS.md` describes it, the parameters of the query, the events and the
/// limits. A cancelled run stops within some milliseconds. One with a pace is [light](RunWork::light).
#[derive(Clone, Copy, Debug, Default)]
pub struct Computations;

impl Computations {
    /// Describes the parameters of the query, as a list of objects of OpenAPI 3.1.
    #[must_use]
    pub fn openapi_parameters() -> serde_json::Value {
        ComputationOptions::describe()
    }
}

impl RunService for Computations {
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal> {
        let options = ComputationOptions::parse(input.query.as_deref().unwrap_or_default())?;
        let tree = ActionTree::parse(&input.body)?;
        let has_pace = options.pace.is_some();
        let work = RunWork::new(move |run| compute(tree, options, run));
        Ok(if has_pace { work.light() } else { work })
    }
}

fn compute(tree: ActionTree, options: ComputationOptions, run: &RunContext) -> RunOutcome {
    let (begun, pace) = (Instant::now(), options.pace);
    let pace_wait = pace.map_or(PACE_WAIT_MIN, pace_wait);
    let bytes = tree.actions.iter().map(|action| action.size as u64).sum::<u64>() * ELEMENT_BYTES;
    // With a pace, the lists are there twice at first, to count their changes.
    run.hold(if pace.is_some() { 2 * bytes } else { bytes });
    let mut computation = Computation::new(tree, options);
    run.hold(bytes);
    let mut output = Output { bytes_left: OUTPUT_BYTES_MAX, is_rate: options.states.is_rate() };
    let mut tell = |events: Vec<EventText>| -> Result<(), RunFailure> {
        output.take(events.iter().map(EventText::len).sum())?;
        let events = events.into_iter().map(EventText::into_data);
        // Without events, this still asks whether to go on.
        run.check()?;
        Ok(run.partials(&events.collect::<Result<Vec<_>, _>>()?)?)
    };
    tell(computation.begin(begun.elapsed()))?;
    // The times up to which the progress is reported, and work and sleep are counted.
    let (mut reported, mut counted) = (Duration::ZERO, Duration::ZERO);
    let mut sleep = OwedSleep::new();
    loop {
        let now = begun.elapsed();
        let turn = computation.turn(now);
        let is_too_early = turn == Turn::TooEarly;
        match turn {
            Turn::Worked(events) => tell(events)?,
            Turn::TooEarly => {}
            Turn::Done => break,
        }
        if now.saturating_sub(reported) >= PROGRESS_INTERVAL {
            reported = now;
            report(&computation, run)?;
        }
        let worked = begun.elapsed();
        sleep.worked(worked - counted);
        counted = worked;
        let due = if pace.is_some() { sleep.due() } else { Duration::ZERO };
        if is_too_early || !due.is_zero() {
            run.sleep(pace_wait.max(due))?;
            counted = begun.elapsed();
            sleep.slept(counted - worked);
        }
    }
    report(&computation, run)?;
    computation.result().into_data().map(Some)
}

/// Returns the time to wait for so many changes a second.
fn pace_wait(pace: u64) -> Duration {
    Duration::from_millis(125 / pace.max(1)).clamp(PACE_WAIT_MIN, PACE_WAIT_MAX)
}

fn report(computation: &Computation, run: &RunContext) -> Result<(), RunFailure> {
    let (value, text) = computation.progress();
    Ok(run.progress(value, Some(&text))?)
}

struct Output {
    bytes_left: usize,
    is_rate: bool,
}

impl Output {
    /// Counts bytes that are to be told.
    ///
    /// # Errors
    /// If the run has told too much.
    fn take(&mut self, bytes: usize) -> Result<(), RunFailure> {
        match self.bytes_left.checked_sub(bytes) {
            _ if self.is_rate => Ok(()),
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(RunFailure::new(format!(
                "the states take more than {OUTPUT_BYTES_MAX} bytes: ask for fewer, with ?states=every:N or ?states=rate:N"
            ))),
        }
    }
}
