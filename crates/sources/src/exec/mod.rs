//! Programs: those whose output lines become events, and those that do the work of runs ([`ProgramService`]).
//!
//! One process of the first kind serves all readers. It runs as long as the source does, with or without readers.
//! [`lines`] defines a line and its event; an event's time is the wall clock right after the read that completed its
//! line.
//!
//! - Its **standard input** is empty (`/dev/null`).
//! - Its **standard output** is read as fast as the topic takes it, through one buffer. A faster program has to wait,
//!   as with any pipe, and also while the topic's disk is behind, full or broken: then no line is lost.
//! - Its **standard error** goes to the log, limited in rate, or to a topic of its own ([`Stderr`]).
//! - It inherits this process's environment, with additions and `PYTHONUNBUFFERED=1` unless that is set.
//! - It is ended **with all its descendants**: SIGTERM to all, then SIGKILL to those that remain after
//!   [`ExecOptions::grace`]. That happens when the source is stopped or dropped, when this process is killed, and when the
//!   program ends by itself and leaves other processes behind. On Linux, neither a process group or session of its own
//!   (`setsid`, `timeout`, `set -m`) nor the end of its parent (`nohup`, a daemon) saves a descendant; elsewhere, one that has
//!   left the program's process group survives. A process that another service starts for the program (`at`, a
//!   container) is no descendant.
//!
//!   A [guard](guard_or_continue), another run of this executable, does that. So `main` has to begin with
//!   [`guard_or_continue`].
//! - When it ends, [`Restart`] decides whether it starts again, after a wait that grows.
//!
//! Its state ([`status`](crate::status)) is `opening` until its first line, then `live`; `waiting` while lines cannot
//! be kept; `silent` when it has closed its output and still runs; `lost` when it has ended or could not be started,
//! and will be started again; `ended` when it will not. The sentence contains the exit status and the program's name.
//! It omits the arguments, which may be secret, since every reader of the status sees it.

mod allowance;
mod census;
mod descendants;
mod error_log;
mod escapes;
mod group;
mod guard;
mod handover;
mod pipes;
mod program;
mod results;
mod service;
mod source;
mod work;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Topic;

pub use guard::{guard_or_continue, guard_with};
pub use program::ProgramOptions;
pub use service::ProgramService;
pub use source::run;

use crate::{first_line, lines};

/// The command to run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// A program with its arguments, run without a shell. It is looked up in `PATH` if its name has no slash.
    Program {
        /// Its name or path.
        program: OsString,
        /// Its arguments, unchanged.
        arguments: Vec<OsString>,
    },
    /// A line for the shell, run with `sh -c`.
    Shell(OsString),
}

impl Command {
    /// Creates a command from a program and its arguments.
    pub fn program<A: Into<OsString>>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self::Program { program: program.into(), arguments }
    }

    /// Returns the first word of a shell's line that sets no variable: a program, a builtin or a keyword. Returns `None` for a
    /// program without a shell, and if the line leaves unclear which word that is, or where it is looked up.
    #[must_use]
    pub fn shell_word(&self) -> Option<&str> {
        let Self::Shell(line) = self else { return None };
        let line = line.to_str()?;
        let is_clear = |word: &&str| !word.starts_with('-') && !line.contains("PATH=");
        first_word(line).filter(is_clear)
    }

    /// Returns true unless it is a shell's line whose first program is unclear.
    fn has_name(&self) -> bool {
        match self {
            Self::Program { .. } => true,
            Self::Shell(line) => name(&line.to_string_lossy()).is_some(),
        }
    }
}

impl fmt::Display for Command {
    /// Writes the name only, since arguments may be secret. For a shell's line, that is the first word that sets no
    /// variable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { program, .. } => {
                let path = Path::new(program);
                path.file_name().map_or(path, Path::new).display().fmt(f)
            }
            Self::Shell(line) => {
                f.write_str("the shell command")?;
                match name(&line.to_string_lossy()) {
                    Some(name) => write!(f, " {name}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The reserved words of the shell that begin a line; they name no program.
const RESERVED: [&str; 5] = ["case", "for", "if", "until", "while"];

/// Returns the name of the first program of a line for the shell. Returns `None` if it is unclear.
fn name(line: &str) -> Option<&str> {
    let word = first_word(line).filter(|word| !RESERVED.contains(word))?;
    Path::new(word).file_name()?.to_str()
}

/// Returns the first word of a line for the shell that sets no variable. Returns `None` if quotes or similar characters make
/// it unclear which word that is, since quoted text may be secret.
fn first_word(line: &str) -> Option<&str> {
    let is_plain =
        |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "=._-+/:,@%".contains(c));
    let mut words = line.split_ascii_whitespace().take_while(is_plain);
    words.find(|word| !word.contains('='))
}

/// The rule for starting a program again that has ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Restart {
    /// Always.
    #[default]
    Always,
    /// Unless its exit status was 0. Failing to start counts as a failure.
    OnFailure,
    /// Never: the program runs once.
    Never,
}

impl Restart {
    fn is_due(self, failed: bool) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => failed,
            Self::Never => false,
        }
    }
}

/// The destination of a program's standard error, line by line.
#[derive(Clone, Debug, Default)]
pub enum Stderr {
    /// The log, at level info. A line is cut to 1,000 characters, and its control characters are escaped. At most
    /// [`ExecOptions::log_lines_max`] are logged in each [`ExecOptions::report_interval`], followed by the number of those
    /// omitted.
    #[default]
    Log,
    /// This topic (by convention `NAME.stderr`), by the same rules as standard output. Its lines count in the status
    /// like those of standard output.
    Topic(Arc<Topic>),
}

/// A command and its options. [`ExecOptions::new`] sets the defaults given here.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// The command to run.
    pub command: Command,
    /// Variables to add to the inherited environment, or to replace in it.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory. Default: that of this process.
    pub directory: Option<PathBuf>,
    /// The rule for starting it again. Default [`Restart::Always`].
    pub restart: Restart,
    /// The destination of its standard error. Default [`Stderr::Log`].
    pub stderr: Stderr,
    /// The time between SIGTERM and SIGKILL. Default 5 s.
    pub grace: Duration,
    /// The longest line of either output. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// The time between two reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
    /// The most lines of standard error logged in one such interval. Default 100.
    pub log_lines_max: u32,
    /// The first wait before it is started again. Default 250 ms; it doubles each time. Each wait is shortened at
    /// random by up to a quarter.
    pub retry_min: Duration,
    /// The longest wait. Default 30 s.
    pub retry_max: Duration,
    /// The time without a first line after which the log warns that the program may buffer its output. Default 10 s.
    pub first_line_wait: Duration,
    /// The time that a program may run with closed output before that is reported. Default 1 s, since an ending
    /// program closes its output a moment before.
    pub closed_wait: Duration,
    /// After a run of at least this length, the next wait is the shortest one again. Default 10 s.
    pub good_run_min: Duration,
}

impl ExecOptions {
    /// Creates the default options for this command.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self {
            command,
            environment: Vec::new(),
            directory: None,
            restart: Restart::default(),
            stderr: Stderr::default(),
            grace: Duration::from_secs(5),
            line_bytes_max: lines::BYTES_MAX_DEFAULT,
            report_interval: Duration::from_secs(10),
            log_lines_max: 100,
            retry_min: Duration::from_millis(250),
            retry_max: Duration::from_secs(30),
            first_line_wait: first_line::WAIT_DEFAULT,
            closed_wait: Duration::from_secs(1),
            good_run_min: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_its_arguments() {
        let command = Command::program("/usr/bin/curl", ["-H", "Authorization: secret"]);
        assert_eq!(command.to_string(), "curl");
        for (line, shown) in [
            ("vmstat 1 | awk '{print $1}'", "the shell command vmstat"),
            ("TOKEN=secret curl -H x", "the shell command curl"),
            (" /usr/bin/env X=secret y", "the shell command env"),
            ("TOKEN='a secret' curl", "the shell command"),
            ("TOKEN=a\\ secret curl", "the shell command"),
            ("TOKEN=$(cat secret) curl", "the shell command"),
            ("(ls; secret)", "the shell command"),
            ("TOKEN=secret", "the shell command"),
            ("for i in 1 2; do echo $i; done", "the shell command"),
            ("", "the shell command"),
        ] {
            assert_eq!(Command::Shell(line.into()).to_string(), shown, "{line}");
        }
        assert_eq!(Command::program("..", [""; 0]).to_string(), "..");
    }

    #[test]
    fn the_policy_decides_by_how_it_ended() {
        let due = |restart: Restart| [restart.is_due(false), restart.is_due(true)];
        assert_eq!(due(Restart::Always), [true, true]);
        assert_eq!(due(Restart::OnFailure), [false, true]);
        assert_eq!(due(Restart::Never), [false, false]);
    }
}
