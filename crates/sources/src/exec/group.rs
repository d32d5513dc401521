//! A program and its descendants: a process group that is ended as a whole.
//!
//! Owns the signals and the reaping. The group's leader is a [`Guard`], which ends the group if this process dies
//! first. The guard is reaped last: until then the system cannot reuse the group's number.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::signal::unix::Signal as Signals;

use super::Command;
use super::guard::Guard;

/// Makes Python write each line at once: into a pipe it would write several KiB at a time, often all at its end.
const UNBUFFERED: &str = "PYTHONUNBUFFERED";

/// The interval at which to check if a group has ended. Nothing announces that.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The time to wait after SIGKILL. Only a process that hangs in the kernel needs any.
const KILL_WAIT: Duration = Duration::from_secs(1);

/// A running group. Dropping it ends it in a background thread: SIGTERM at once, and SIGKILL after the grace period
/// if this process still runs.
#[derive(Debug)]
pub(super) struct Group(Option<Members>);

/// A program to start.
pub(super) struct Launch<'a> {
    pub(super) command: &'a Command,
    /// Variables to add to the inherited environment.
    pub(super) environment: &'a [(OsString, OsString)],
    pub(super) directory: Option<&'a Path>,
    /// The time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
    pub(super) input: Input,
}

/// The standard input of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Input {
    /// `/dev/null`.
    Empty,
    Pipe,
}

/// The pipes of a program.
pub(super) struct Pipes {
    /// `None` if its input is empty.
    pub(super) stdin: Option<Sender>,
    pub(super) stdout: Receiver,
    pub(super) stderr: Receiver,
}

impl Launch<'_> {
    fn command(&self) -> std::process::Command {
        let mut command = match self.command {
            Command::Program { program, arguments } => {
                let mut command = std::process::Command::new(program);
                command.args(arguments);
                command
            }
            Command::Shell(line) => {
                let mut command = std::process::Command::new("sh");
                command.arg("-c").arg(line);
                command
            }
        };
        if std::env::var_os(UNBUFFERED).is_none() {
            command.env(UNBUFFERED, "1");
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let stdin = match self.input {
            Input::Empty => Stdio::null(),
            Input::Pipe => Stdio::piped(),
        };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Group {
    /// Starts the program.
    pub(super) fn start(launch: &Launch<'_>) -> io::Result<(Self, Pipes)> {
        let guard = Guard::start(launch.grace)?;
        let number = guard.pid();
        let mut command = launch.command();
        let mut program = command.process_group(number.as_raw_nonzero().get()).spawn()?;
        let (stdout, stderr) = (program.stdout.take(), program.stderr.take());
        let stdin = program.stdin.take();
        let group = Self(Some(Members {
            number,
            guard,
            program,
            exit: None,
            grace: launch.grace,
            asked_at: None,
            look_at: None,
            killed: false,
        }));
        let missing = || io::Error::other("the system gave no pipes");
        let receiver = |fd: OwnedFd| Receiver::from_owned_fd(fd);
        let stdin = stdin.map(|stdin| Sender::from_owned_fd(stdin.into())).transpose()?;
        let stdout = receiver(stdout.ok_or_else(missing)?.into())?;
        let stderr = receiver(stderr.ok_or_else(missing)?.into())?;
        Ok((group, Pipes { stdin, stdout, stderr }))
    }

    /// Waits until the program has ended, without reaping it. `children` must have received SIGCHLD since before the
    /// group was started. Cancel safe.
    pub(super) async fn program_ended(&self, children: &mut Signals) {
        while self.0.as_ref().is_some_and(Members::program_runs) {
            if children.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Sends SIGTERM to all, once; then poll [`Group::has_ended`].
    pub(super) fn end(&mut self) {
        if let Some(members) = &mut self.0 {
            members.ask_to_end();
        }
    }

    /// Sends SIGKILL to all; then poll [`Group::has_ended`].
    pub(super) fn kill(&mut self) {
        if let Some(members) = &mut self.0
            && !members.killed
        {
            members.kill();
        }
    }

    /// Returns the time at which to poll [`Group::has_ended`] again. `None` before the group is asked to end.
    pub(super) fn look_at(&self) -> Option<tokio::time::Instant> {
        self.0.as_ref()?.look_at.map(Into::into)
    }

    /// Counts the living processes of the group, if the system lists them (Linux).
    pub(super) fn processes(&self) -> Option<usize> {
        self.0.as_ref()?.guard.company()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.0.as_ref().is_none_or(|members| members.asked_at.is_some())
    }

    /// Kills the processes whose grace period is over. Returns `Some` when all are gone, with the program's exit
    /// status if it is known.
    pub(super) fn has_ended(&mut self) -> Option<Option<ExitStatus>> {
        let Some(members) = &mut self.0 else { return Some(None) };
        // Looking takes time, and a program may write all the while.
        if members.look_at.is_some_and(|look_at| Instant::now() < look_at) {
            return None;
        }
        match members.check() {
            GroupState::Gone(exit) => {
                self.0 = None;
                Some(exit)
            }
            // Hanging processes are reaped in the background once that is possible.
            GroupState::Hanging => {
                let exit = members.exit.flatten();
                tracing::warn!("process group {} outlives SIGKILL", members.number);
                drop(std::mem::replace(self, Self(None)));
                Some(exit)
            }
            GroupState::Alive => None,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut members) = self.0.take() else { return };
        members.ask_to_end();
        let number = members.number;
        let end = move || {
            while matches!(members.check(), GroupState::Alive) {
                std::thread::sleep(LOOK_EVERY);
            }
            if members.exit.is_none() {
                let _ = members.program.wait();
            }
        };
        if std::thread::Builder::new().name("exec-end".to_owned()).spawn(end).is_err() {
            // There is no thread to wait for them.
            let _ = kill_process_group(number, Signal::KILL);
        }
    }
}

#[derive(Debug)]
struct Members {
    /// The number of the group and of its leader, the guard.
    number: Pid,
    guard: Guard,
    program: Child,
    /// `Some` once the program is reaped, with its exit status if it is known.
    exit: Option<Option<ExitStatus>>,
    grace: Duration,
    /// The time at which SIGTERM was sent.
    asked_at: Option<Instant>,
    /// The time of the next look, once it was asked to end.
    look_at: Option<Instant>,
    killed: bool,
}

enum GroupState {
    Alive,
    /// All but the guard have ended, and the program is reaped.
    Gone(Option<ExitStatus>),
    /// Processes were killed some time ago and still exist.
    Hanging,
}

impl Members {
    fn program_runs(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let program = WaitId::Pid(Pid::from_child(&self.program));
        self.exit.is_none() && matches!(waitid(program, options), Ok(None))
    }

    fn ask_to_end(&mut self) {
        if self.asked_at.is_none() {
            self.signal(Signal::TERM);
            self.asked_at = Some(Instant::now());
            self.look_at = self.asked_at;
        }
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.killed = true;
        let asked_at = *self.asked_at.get_or_insert_with(Instant::now);
        self.look_at.get_or_insert(asked_at);
    }

    fn check(&mut self) -> GroupState {
        if self.exit.is_none() {
            self.exit = match self.program.try_wait() {
                Ok(Some(status)) => Some(Some(status)),
                Ok(None) => None,
                // Another part of the process has reaped it.
                Err(_) => Some(None),
            };
        }
        if let Some(exit) = self.exit
            && !self.guard.has_company()
        {
            return GroupState::Gone(exit);
        }
        let since = self.asked_at.map_or(Duration::ZERO, |asked_at| asked_at.elapsed());
        if since >= self.grace && !self.killed {
            self.kill();
        }
        let wait = self.grace.saturating_sub(since);
        let wait = if self.killed { LOOK_EVERY } else { wait.min(LOOK_EVERY) };
        self.look_at = self.asked_at.map(|_| Instant::now() + wait);
        if since >= self.grace.saturating_add(KILL_WAIT) {
            GroupState::Hanging
        } else {
            GroupState::Alive
        }
    }

    fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process_group(self.number, signal) {
            // No process is left, or the rest belong to another user (a set-user-ID program).
            tracing::debug!("signal {} to group {}: {error}", signal.as_raw(), self.number);
        }
    }
}
