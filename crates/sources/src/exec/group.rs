//! A program and all that it starts: a process group, ended as a whole.
//!
//! Owns the signals and the reaping. The group's leader is a [`Guard`], which ends the group when this
//! process has gone without doing so. The guard is reaped last: until then the group's number cannot
//! become somebody else's.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::Signal as Signals;

use super::guard::Guard;
use super::{Command, Options};

/// The interval at which to look whether a group that was asked to end has ended: nothing tells of it.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The time to wait after SIGKILL. It takes none, but for a process that hangs in the kernel.
const KILL_WAIT: Duration = Duration::from_secs(1);

/// A running group. Dropping it ends it in the background, in a thread of its own: SIGTERM at once,
/// SIGKILL after the grace, as long as this process lives.
#[derive(Debug)]
pub(super) struct Group(Option<Members>);

/// Both outputs of a program, to be read.
pub(super) struct Outputs {
    pub(super) stdout: Receiver,
    pub(super) stderr: Receiver,
}

impl Group {
    /// Starts the program.
    pub(super) fn start(options: &Options) -> io::Result<(Self, Outputs)> {
        let mut command = match &options.command {
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
        command.envs(options.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &options.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let guard = Guard::start(options.grace)?;
        let number = guard.pid();
        let mut program = command.process_group(number.as_raw_nonzero().get()).spawn()?;
        let (stdout, stderr) = (program.stdout.take(), program.stderr.take());
        let group = Self(Some(Members {
            number,
            guard,
            program,
            exit: None,
            grace: options.grace,
            asked_at: None,
            killed: false,
        }));
        let missing = || io::Error::other("the system gave no pipes");
        let receiver = |fd: OwnedFd| Receiver::from_owned_fd(fd);
        let stdout = receiver(stdout.ok_or_else(missing)?.into())?;
        let stderr = receiver(stderr.ok_or_else(missing)?.into())?;
        Ok((group, Outputs { stdout, stderr }))
    }

    /// Waits until the program has ended, and leaves it to be reaped. `children` is SIGCHLD, heard
    /// from since before the group was started. Cancel safe.
    pub(super) async fn program_ended(&self, children: &mut Signals) {
        while self.0.as_ref().is_some_and(Members::program_runs) {
            if children.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Asks all to end, once; look from then on with [`Group::has_ended`].
    pub(super) fn end(&mut self) {
        if let Some(members) = &mut self.0 {
            members.ask_to_end();
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.0.as_ref().is_none_or(|members| members.asked_at.is_some())
    }

    /// Ends by force those whose time is over. `Some` once all are gone, with how the program ended,
    /// if that is known.
    pub(super) fn has_ended(&mut self) -> Option<Option<ExitStatus>> {
        let Some(members) = &mut self.0 else { return Some(None) };
        match members.look() {
            GroupState::Gone(exit) => {
                self.0 = None;
                Some(exit)
            }
            // Whatever hangs is reaped in the background once it can be.
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
            while matches!(members.look(), GroupState::Alive) {
                std::thread::sleep(LOOK_EVERY);
            }
            if members.exit.is_none() {
                let _ = members.program.wait();
            }
        };
        if std::thread::Builder::new().name("exec-end".to_owned()).spawn(end).is_err() {
            // There is nobody to wait for them.
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
    /// Once it is reaped; how it ended, if that is known.
    exit: Option<Option<ExitStatus>>,
    grace: Duration,
    /// The time at which they were asked to end.
    asked_at: Option<Instant>,
    killed: bool,
}

enum GroupState {
    Alive,
    /// All but the guard, and the program is reaped.
    Gone(Option<ExitStatus>),
    /// Killed some time ago and still there.
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
            self.asked_at = Some(Instant::now());
            self.signal(Signal::TERM);
        }
    }

    fn look(&mut self) -> GroupState {
        if self.exit.is_none() {
            self.exit = match self.program.try_wait() {
                Ok(Some(status)) => Some(Some(status)),
                Ok(None) => None,
                // Somebody else has reaped it.
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
            self.killed = true;
            self.signal(Signal::KILL);
        }
        if since >= self.grace.saturating_add(KILL_WAIT) {
            GroupState::Hanging
        } else {
            GroupState::Alive
        }
    }

    fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process_group(self.number, signal) {
            // Nobody is left, or all that are left are somebody else's (a set-user-ID program).
            tracing::debug!("signal {} to group {}: {error}", signal.as_raw(), self.number);
        }
    }
}
