//! A program whose output lines become events.
//!
//! One process for all readers: it runs as long as the source does, whether anybody reads or not.
//! [`lines`] says what a line is and what becomes of it; an event's time is the wall
//! clock right after the read that brought the end of its line.
//!
//! - Its **standard input** is empty (`/dev/null`).
//! - Its **standard output** is read as fast as the topic takes it, through one buffer: a program
//!   that writes faster waits, as it would for any pipe. So it does while the topic's disk is behind,
//!   full or broken: no line is lost by that.
//! - Its **standard error** goes to the log, limited in rate, or to a topic of its own ([`Stderr`]).
//! - It inherits this process's environment, with additions, and runs in a **process group**
//!   of its own. The group is ended as a whole: SIGTERM to all, then SIGKILL to those that are still
//!   there after [`Options::grace`]. That is done when the source is stopped or dropped, when this
//!   process is killed (a shell, the group's leader, waits for that), and also
//!   when the program ends by itself, for whatever it has left running. Only a process that has left
//!   the group (`setsid`) survives.
//! - When it ends, [`Restart`] says whether it is started again; between two starts is a growing wait.
//!
//! Its state ([`status`](crate::status)): `opening` until its first line, `live` from then on,
//! `waiting` while lines cannot be kept, `silent` when it closed its output and still runs, `lost` when it ended or could not be started
//! and will be again, `ended` when it will not. The sentence has the exit status, and the program's
//! name, but not its arguments, which may hold secrets: every reader of the status sees it.

mod allowance;
mod group;
mod guard;
mod run;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Topic;

pub use run::run;

use crate::{first_line, lines};

/// The command to run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// A program with its arguments, looked for in `PATH` if its name has no slash. No shell has a
    /// part in it.
    Program {
        /// Its name or path.
        program: OsString,
        /// Its arguments, as they are.
        arguments: Vec<OsString>,
    },
    /// A line for the shell: run with `sh -c`.
    Shell(OsString),
}

impl Command {
    /// A program with its arguments.
    pub fn program<A: Into<OsString>>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self::Program { program: program.into(), arguments }
    }
}

impl fmt::Display for Command {
    /// Its name alone: arguments may hold secrets. Of a shell's line that is the first word that sets no variable.
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

/// The program that a line for the shell begins with, unless quotes or the like leave it in doubt which word that is: what
/// stands in them may be secret.
fn name(line: &str) -> Option<&str> {
    let is_plain =
        |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "=._-+/:,@%".contains(c));
    let mut words = line.split_ascii_whitespace().take_while(is_plain);
    let word = words.find(|word| !word.contains('='))?;
    Path::new(word).file_name()?.to_str()
}

/// The choice whether a program that has ended is started again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Restart {
    /// However it ended.
    #[default]
    Always,
    /// Unless it ended with exit status 0. That it could not be started is a failure too.
    OnFailure,
    /// It is run once.
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

/// The place that a program's standard error goes to, line by line.
#[derive(Clone, Debug, Default)]
pub enum Stderr {
    /// To the log, as information: each line cut to 1,000 characters, control characters escaped, at
    /// most [`Options::log_lines_max`] in [`Options::report_interval`]; how many more there were is
    /// logged after it.
    #[default]
    Log,
    /// To this topic (by convention `NAME.stderr`), by the same rules as standard output. Its lines
    /// count in the status as those of standard output do.
    Topic(Arc<Topic>),
}

/// The command to run, and how. [`Options::new`] has the defaults named here.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command to run.
    pub command: Command,
    /// Added to the environment it inherits, or replacing what is there.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory that it runs in. Default: that of this process.
    pub directory: Option<PathBuf>,
    /// Default [`Restart::Always`].
    pub restart: Restart,
    /// Default [`Stderr::Log`].
    pub stderr: Stderr,
    /// Time between SIGTERM and SIGKILL. Default 5 s.
    pub grace: Duration,
    /// Longest line of either output. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// Time between two reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
    /// Most lines of standard error logged in one such interval. Default 100.
    pub log_lines_max: u32,
    /// First wait before it is started again. Default 250 ms; doubles each time. Each wait is
    /// shortened by chance, by up to a quarter.
    pub retry_min: Duration,
    /// Longest such wait. Default 30 s.
    pub retry_max: Duration,
    /// The time without a first line after which the log says that the program may hold its output back. Default 10 s.
    pub first_line_wait: Duration,
    /// The time that it may run with its output closed before that is told. Default 1 s: one that ends closes its output a
    /// moment before.
    pub closed_wait: Duration,
    /// A run of at least this length was a good one, after which the first wait is the shortest
    /// again, however it ended. Default 10 s.
    pub good_run_min: Duration,
}

impl Options {
    /// The defaults, for this command.
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
