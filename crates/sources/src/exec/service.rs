//! A program as a service for runs, with one process for each run.

use std::sync::Arc;

use anemone_hub::run::{RunInput, RunRefusal, RunService, RunWork};

use super::program::{Program, ProgramOptions};
use super::work;

/// A service that starts a program for each run, on the thread of the run.
///
/// - Its **standard input** is the body of the request. The program need not read it.
/// - Each line of its **standard output** is a partial result or progress
///   ([`ProgressLine`](anemone_hub::ProgressLine)). [`lines`](crate::lines) defines a line and its value. If the
///   program succeeds and its last line is `{"result":VALUE}`, the result of the run is VALUE, and the line is no
///   partial result.
/// - Its **standard error** goes to the log at a limited rate. Its end is kept with the run.
/// - `ANEMONE_PATH`, `ANEMONE_QUERY` and `ANEMONE_CONTENT_TYPE` in its **environment** describe the request; the last
///   two may be empty. Nothing of a request is ever part of a command line.
/// - With the exit status 0, the run is done. It has a result only if the last line has one. With any other status, or
///   after a signal, the run has failed.
/// - It is ended **with all its descendants**, as the program of a source is. That happens when the program ends, when
///   the run is cancelled or takes too long, and when this process is killed. The program has [`ProgramOptions::grace`]
///   after SIGTERM, for example to store its results. The run itself is cancelled at once, so later output does not
///   become events.
/// - A program that passes a limit is killed at once (SIGKILL), and its run fails.
/// - It has a **low priority** (on Linux nice 10), as all work of runs. The thread that publishes its output has the
///   normal priority.
#[derive(Clone, Debug)]
pub struct ProgramService(Arc<Program>);

impl ProgramService {
    /// Creates a service. The log uses `path` as its name.
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
