//! A run whose work does what its test says.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anemone_hub::Data;
use anemone_hub::run::{Run, RunContext, RunFailure, RunOutcome, RunWork, StartRun};
use anemone_testing::Fixture;
use anemone_testing::ways::{Reading, Told, Way};
use serde_json::{Value, json};

pub(crate) struct Driven {
    pub(crate) run: Arc<Run>,
    steps: Sender<Step>,
}

enum Step {
    Partial(u64),
    Progress(f64),
    End(RunOutcome),
    Panic(String),
}

impl Driven {
    pub(crate) fn start(fixture: &Fixture) -> Self {
        let (steps, taken) = channel();
        let work = RunWork::new(move |context| work(context, &taken));
        let run = fixture.runs.start(StartRun::new("/driven", work)).unwrap().run;
        Self { run, steps }
    }

    pub(crate) fn path(&self) -> String {
        format!("/runs/{}", self.run.key())
    }

    pub(crate) fn partials(&self, numbers: std::ops::RangeInclusive<u64>) {
        numbers.for_each(|number| self.step(Step::Partial(number)));
    }

    pub(crate) fn progress(&self, progress: f64) {
        self.step(Step::Progress(progress));
    }

    pub(crate) fn done(&self, result: &Value) {
        self.step(Step::End(Ok(Some(Data::json(result).unwrap()))));
    }

    pub(crate) fn fail(&self, detail: &str) {
        self.step(Step::End(Err(RunFailure::new(detail))));
    }

    pub(crate) fn panic(&self, message: &str) {
        self.step(Step::Panic(message.to_owned()));
    }

    fn step(&self, step: Step) {
        self.steps.send(step).unwrap();
    }

    pub(crate) fn open(&self, fixture: &Fixture, way: &Way, query: &str) -> Box<dyn Reading> {
        way.read_path(way.connect(fixture), &self.path(), query).unwrap()
    }
}

fn work(context: &RunContext, steps: &Receiver<Step>) -> RunOutcome {
    loop {
        match steps.recv().map_err(|_| RunFailure::new("the test is over"))? {
            Step::Partial(number) => {
                context.partial(&Data::json(&json!({ "n": number })).unwrap())?
            }
            Step::Progress(progress) => context.progress(progress, None)?,
            Step::End(outcome) => return outcome,
            Step::Panic(message) => panic!("{message}"),
        }
    }
}

pub(crate) fn number(event: &Value) -> Option<u64> {
    event["partial"]["n"].as_u64()
}

/// Reads all events that are left, up to the end.
pub(crate) fn rest(reader: &mut dyn Reading) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        match reader.next() {
            Told::Event { data, .. } => events.push(data),
            Told::Ended => return events,
            Told::Position(_) => {}
            other => panic!("{other:?} after {events:?}"),
        }
    }
}
