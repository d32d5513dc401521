//! Programs as sources, whose output lines become events, and programs that do the work of runs ([`ProgramService`]).
//!
//! A source has one process for all readers. It runs as long as the source does, with or without readers. [`lines`]
//! defines a line and its event; an event's time is the wall clock right after the read that completed its line.
//!
//! - Its **standard input** is empty (`/dev/null`).
//! - Its **standard output** is read as fast as the topic takes it, through one buffer. A faster program has to wait,
//!   as with any pipe. It also waits while the topic's disk is behind, full or broken, so no line is lost.
//! - Its **standard error** goes to the log at a limited rate, or to a topic of its own ([`Stderr`]).
//! - It inherits this process's environment, with additions and `PYTHONUNBUFFERED=1` unless that is set.
//! - It is ended **with all its descendants**: SIGTERM to all, then SIGKILL to those that remain after
//!   [`ExecOptions::grace`]. That happens when the source is stopped or dropped, when this process is killed, and when
//!   the program ends by itself and leaves other processes behind. On Linux, a descendant is ended even in its own
//!   process group or session (`setsid`, `timeout`, `set -m`), and even after its parent has ended (`nohup`, a daemon).
//!   On other systems, a descendant outside the program's process group survives. A process that another service starts
//!   for the program (`at`, a container) is no descendant.
//!
//!   A [guard](guard_or_continue) ends them. It is another process of this executable, so `main` has to begin with
//!   [`guard_or_continue`].
//! - When the program ends, [`Restart`] decides whether it is started again. The wait before that grows.
//!
//! Its state ([`status`](crate::status)) is one of these:
//!
//! - `opening` until its first line, then `live`;
//! - `waiting` while lines cannot be kept;
//! - `silent` when it has closed its output and still runs;
//! - `lost` when it has ended or could not be started, and will be started again;
//! - `ended` when it will not be started again.
//!
//! The sentence of the status names the program and its exit status. Every reader of the status sees the sentence, so
//! it omits the arguments, which may be secret.

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
    /// A program with its arguments, run without a shell. A name without a slash is looked up in `PATH`.
    Program {
        /// Its name or path.
        program: OsString,
        /// Its arguments, unchanged.
        arguments: Vec<OsString>,
    },
    /// A command line, run with `sh -c`.
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

    /// Returns the first word of a shell's command line that sets no variable: a program, a builtin or a keyword.
    /// Returns `None` for a program without a shell. Returns `None` also if it is not clear which word that is, or
    /// where the shell looks it up.
    #[must_use]
    pub fn shell_word(&self) -> Option<&str> {
        let Self::Shell(line) = self else { return None };
        let line = line.to_str()?;
        let is_clear = |word: &&str| !word.starts_with('-') && !line.contains("PATH=");
        first_word(line).filter(is_clear)
    }

    /// Returns true if the name of the program is clear. It may be unclear only in a shell's command line.
    fn has_name(&self) -> bool {
        match self {
            Self::Program { .. } => true,
            Self::Shell(line) => name(&line.to_string_lossy()).is_some(),
        }
    }
}

impl fmt::Display for Command {
    /// Writes the name only, since arguments may be secret. The name in a shell's command line is the first word that
    /// sets no variable.
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

/// The reserved words that may begin a shell's command line. They name no program.
const RESERVED: [&str; 5] = ["case", "for", "if", "until", "while"];

/// Returns the name of the first program in a shell's command line; `None` if that is not clear.
fn name(line: &str) -> Option<&str> {
    let word = first_word(line).filter(|word| !RESERVED.contains(word))?;
    Path::new(word).file_name()?.to_str()
}

/// Returns the first word of a shell's command line that sets no variable. Quotes and similar characters may make it
/// unclear which word that is, and quoted text may be secret. Then returns `None`.
fn first_word(line: &str) -> Option<&str> {
    let is_plain =
        |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "=._-+/:,@%".contains(c));
    let mut words = line.split_ascii_whitespace().take_while(is_plain);
    words.find(|word| !word.contains('='))
}

/// The rule for starting a program again after it has ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Restart {
    /// The program is always started again.
    #[default]
    Always,
    /// The program is started again unless its exit status was 0. Failing to start counts as a failure.
    OnFailure,
    /// The program runs once.
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
    /// [`ExecOptions::log_lines_max`] lines are logged in each [`ExecOptions::report_interval`]. After them, the log
    /// has the number of lines that were left out.
    #[default]
    Log,
    /// This topic (by convention `NAME.stderr`), with the same rules as for standard output. Its lines count in the
    /// status, too.
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
    /// The rule for starting the program again. Default [`Restart::Always`].
    pub restart: Restart,
    /// The destination of the program's standard error. Default [`Stderr::Log`].
    pub stderr: Stderr,
    /// The time between SIGTERM and SIGKILL. Default 5 s.
    pub grace: Duration,
    /// The longest line of standard output and of standard error, in bytes. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// The time between two reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
    /// The most lines of standard error that are logged in one `report_interval`. Default 100.
    pub log_lines_max: u32,
    /// The first delay before the program is started again. Default 250 ms; doubles each time. Each delay is shortened
    /// at random by up to a quarter.
    pub retry_min: Duration,
    /// The longest of these delays. Default 30 s.
    pub retry_max: Duration,
    /// The time without a first line after which the log warns that the program may buffer its output. Default 10 s.
    pub first_line_wait: Duration,
    /// The time for which a program may run with closed output before that is reported. Default 1 s, since a program
    /// that ends closes its output a moment before.
    pub closed_wait: Duration,
    /// The least length of a run after which the next delay is the shortest one again. Default 10 s.
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
