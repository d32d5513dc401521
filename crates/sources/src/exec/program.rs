//! The options of a program that does the work of runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anemone_wire::TextFault;

use super::Command;
use super::error_log::{LogLimit, LoggedAs};
use crate::lines;
use crate::printable::printable_start;

/// A program that does the work of runs, and its limits. [`ProgramOptions::new`] sets the defaults given here.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// The command to run.
    pub command: Command,
    /// Variables to add to the inherited environment, or to replace in it.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory. Default: that of this process.
    pub directory: Option<PathBuf>,
    /// The longest time of one run. The limit for all runs of the server holds, too. Default: none.
    pub time_max: Option<Duration>,
    /// The time between SIGTERM and SIGKILL. Default 5 s: enough to store what was computed. The wait is over as soon
    /// as the program ends. Until then, a cancelled run still counts as one that works.
    pub grace: Duration,
    /// The most bytes that a run may write to standard output and standard error together. Default 64 MiB, four times
    /// what a run retains.
    pub output_bytes_max: u64,
    /// The longest line of standard output. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// The most processes that a run may have at once (Linux). Default 100. A shell with a few pipelines has a dozen.
    pub processes_max: usize,
    /// The most lines of standard error that all runs together may log in one `report_interval`. Default 100.
    pub log_lines_max: u32,
    /// The interval to which `log_lines_max` applies. Default 10 s.
    pub report_interval: Duration,
}

impl ProgramOptions {
    /// Creates the default options for this command.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self {
            command,
            environment: Vec::new(),
            directory: None,
            time_max: None,
            grace: Duration::from_secs(5),
            output_bytes_max: 64 << 20,
            line_bytes_max: lines::BYTES_MAX_DEFAULT,
            processes_max: 100,
            log_lines_max: 100,
            report_interval: Duration::from_secs(10),
        }
    }
}

/// A program, and what all its runs share.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) options: ProgramOptions,
    pub(super) log: Arc<LogLimit>,
    path: String,
}

/// The most characters of a line in the log.
const SHOWN_CHARS: usize = 100;

impl Program {
    pub(super) fn new(path: String, options: ProgramOptions) -> Self {
        let name = LoggedAs::Service(path.clone());
        let log = LogLimit::new(name, options.log_lines_max, options.report_interval);
        Self { options, log, path }
    }

    /// Returns the name of the program. If the command has no clear name, adds the path of the service.
    pub(super) fn name(&self) -> String {
        match self.options.command.has_name() {
            true => self.options.command.to_string(),
            false => format!("{} of {}", self.options.command, self.path),
        }
    }

    /// Logs that this line is published as text, and the reason.
    pub(super) fn tell_fault(&self, fault: &TextFault, line: &str) {
        let line = printable_start(line, SHOWN_CHARS);
        self.log.warn(&format!("this partial result is text, since {fault}: {line}"));
    }

    /// Logs that this line is not progress, and which lines are.
    pub(super) fn tell_forms(&self, line: &str) {
        let line = printable_start(line, SHOWN_CHARS);
        self.log.warn(&format!(
            "this looks like progress, but is a partial result: {line}; progress is \"progress 0.5\", \"progress 50 %\" or \
             \"progress 3 / 10\", maybe with words after it, or {{\"progress\":0.5,\"text\":\"some words\"}}"
        ));
    }
}
