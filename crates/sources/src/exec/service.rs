//! A program as a run service: a process for each run.

use std::sync::Arc;

use anemone_hub::run::{RunInput, RunRefusal, RunService, RunWork};

use super::program::{Program, ProgramOptions};
use super::work;

/// Runs a program for each run, on the thread of the run.
///
/// - Its **standard input** is the body of the request. It need not read it.
/// - Each line of its **standard output** is a partial result or progress
///   ([`ProgressLine`](anemone_hub::ProgressLine)). [`lines`](crate::lines) defines a line and its value. If the last line is
///   `{"result":VALUE}` and the program succeeds, VALUE is its result, and the line is no partial result.
/// - Its **standard error** goes to the log, limited in rate, and its end is kept with the run.
/// - `ANEMONE_PATH`, `ANEMONE_QUERY` and `ANEMONE_CONTENT_TYPE` in its **environment** say what was requested; the
///   last two may be empty. Nothing of a request is ever part of a command line.
/// - The exit status 0 means that the run is done, without a result unless the last line has one. With any other one, or a signal, it has failed.
/// - It is ended **with all its descendants**, as that of a source: when the program ends, when the run is cancelled or takes
///   too long, and when this process is killed. It has [`ProgramOptions::grace`] after SIGTERM, for example to store what it has. The
///   run is cancelled at once, so that output from then on is no event.
/// - A program that passes a limit is killed at once (SIGKILL), and its run fails.
/// - It has a **low priority** (on Linux nice 10, as other work of runs); the thread that passes its output on has not.
#[derive(Clone, Debug)]
pub struct ProgramService(Arc<Program>);

impl ProgramService {
    /// Creates a service; `path` is its name in the log.
    #[must_use]
    pub fn new(path: impl Into<String>, options: ProgramOptions) -> Self {
        Self(Arc::new(Program::new(path.into(), options)))
    }
}

impl RunService for ProgramService {
    fn prepare(&self, input: RunInput) -> Result<RunWork, RunRefusal> {
        let program = Arc::clone(&self.0);
        Ok(RunWork::new(move |context| work::run(&program, &input, context)).at_normal_priority())
    }
}
