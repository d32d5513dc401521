//! `[[run]]`: programs that do the work of runs.

use std::time::Duration;

use anemone_server::{Mount, MountError, StartRight};
use anemone_sources::exec::{Command, ProgramOptions, ProgramService};
use serde_json::Value;

use super::place::{Located, Place};
use super::sources::{beside, command, environment};
use super::table::Table;
use super::values::{
    DAY, HOUR, MIB, MILLISECOND, SECOND, TIB, duration, number, path, size, text, word,
};

/// A program, and the path at which clients start its runs.
#[derive(Clone, Debug)]
pub(crate) struct RunProgram {
    pub(crate) path: Located<String>,
    pub(crate) start_right: StartRight,
    /// A sentence for people.
    pub(crate) about: Option<String>,
    pub(crate) options: ProgramOptions,
}

impl RunProgram {
    /// Creates the service that starts its runs.
    ///
    /// # Errors
    /// When no service can have this path, which was checked before.
    pub(crate) fn mount(&self) -> Result<Mount, MountError> {
        let service = ProgramService::new(&*self.path, self.options.clone());
        let mount = Mount::run(&self.path, service)?.start_right(self.start_right);
        Ok(match &self.about {
            Some(about) => mount.about(about, Value::Null),
            None => mount,
        })
    }
}

/// Reads a program; `None` after an error.
pub(super) fn read(mut table: Table<'_>) -> Option<RunProgram> {
    let t = &mut table;
    let at = t.required("path", "where clients start runs, such as \"/primes\"", text);
    let what = "a shell command, such as \"python3 primes.py\", or a program and its arguments, such as \
                [\"python3\", \"primes.py\"]";
    let command = t.required("command", what, command);
    let found = command.is_some();
    let command = command.map_or(Command::Shell("".into()), |command| command.value);
    let default = ProgramOptions::new(command);
    let start_right = [("loopback", StartRight::Local), ("anyone", StartRight::Anyone)];
    let start_right = t.value("start", StartRight::Local, word(start_right));
    let about = t.optional("about", text).map(|found| found.value);
    let directory = t.optional("directory", path).map(|found| found.value);
    let times = duration(MILLISECOND..=DAY.saturating_mul(36_500));
    let options = ProgramOptions {
        environment: t.value("environment", Vec::new(), environment),
        directory: directory.or_else(|| beside(t.place())),
        time_max: t.optional("time_max", times).map(|found| found.value),
        grace: t.value("grace", default.grace, duration(Duration::ZERO..=HOUR)),
        output_bytes_max: t.value("output_bytes_max", default.output_bytes_max, size(1..=TIB)),
        line_bytes_max: t.value("line_bytes_max", default.line_bytes_max, size(1..=MIB)),
        processes_max: t.value("processes_max", default.processes_max, number(1..=1_000_000)),
        log_lines_max: t.value("log_lines_max", default.log_lines_max, number(0..=1_000_000)),
        report_interval: t.value(
            "report_interval",
            default.report_interval,
            duration(SECOND..=DAY),
        ),
        ..default
    };
    table.finish();
    found.then_some(RunProgram { path: at?, start_right, about, options })
}

pub(super) fn of_flag(path: &str, line: &str) -> RunProgram {
    RunProgram {
        path: Located::new(path.to_owned(), Place::Flag("--run")),
        start_right: StartRight::Local,
        about: None,
        options: ProgramOptions::new(Command::Shell(line.into())),
    }
}
