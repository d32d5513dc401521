//! Runs a program, and ends it with all its descendants.
//!
//! Starts a program by its [`guard`], which does the work, and reacts to the reports of the guard.

use std::ffi::OsString;
use std::io::{self, Read as _, pipe};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::Instant;

use super::handover::{GuardReport, Order, Priority, Request};
use super::{Command, descendants, guard};
use crate::status::sleep_until;

/// The variable that makes Python write each line at once. Otherwise it writes several KiB at a time into a pipe, often
/// everything at its end.
const UNBUFFERED: &str = "PYTHONUNBUFFERED";

/// The longest wait after SIGKILL. A wait is needed only for a process that hangs in the kernel, or belongs to another
/// user.
const KILL_WAIT: Duration = Duration::from_secs(1);

/// The time within which a guard must start the program. Only a very busy machine needs more than a few ms.
const START_WAIT: Duration = Duration::from_secs(60);

/// A running program with its descendants. When it is dropped, or when this process ends, the guard ends them: SIGTERM
/// at once, and SIGKILL after the grace period.
#[derive(Debug)]
pub(super) struct Group(Option<Members>);

pub(super) struct Launch<'a> {
    pub(super) command: &'a Command,
    /// Variables to add to the inherited environment.
    pub(super) environment: &'a [(OsString, OsString)],
    pub(super) directory: Option<&'a Path>,
    /// The time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
    pub(super) priority: Priority,
    pub(super) input: ProgramInput,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ProgramInput {
    /// `/dev/null`.
    Empty,
    Pipe,
}

pub(super) struct Pipes {
    /// The standard input; `None` if it is empty.
    pub(super) stdin: Option<Sender>,
    pub(super) stdout: Receiver,
    pub(super) stderr: Receiver,
}

/// An event in the life of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum GroupEvent {
    /// The program has ended. Descendants may be left.
    ProgramEnded,
    /// All processes have ended, or those that are left cannot be killed. The exit status of the program is known,
    /// unless somebody killed the guard.
    Gone(Option<ExitStatus>),
}

impl Launch<'_> {
    fn words(&self) -> Vec<OsString> {
        match self.command {
            Command::Program { program, arguments } => {
                std::iter::once(program).chain(arguments).cloned().collect()
            }
            Command::Shell(line) => ["sh".into(), "-c".into(), line.clone()].into(),
        }
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let unbuffered = std::env::var_os(UNBUFFERED).is_none();
        let unbuffered = unbuffered.then(|| (UNBUFFERED.into(), "1".into()));
        unbuffered.into_iter().chain(self.environment.iter().cloned()).collect()
    }
}

impl Group {
    /// Starts the program, and waits until it has started. Needs a runtime with IO.
    pub(super) fn start(launch: &Launch<'_>) -> io::Result<(Self, Pipes)> {
        let (stdin, input) = match launch.input {
            ProgramInput::Empty => (None, std::fs::File::open("/dev/null")?.into()),
            ProgramInput::Pipe => pipe().map(|(reader, writer)| (Some(writer), reader.into()))?,
        };
        let ((stdout, output), (stderr, error_output)) = (pipe()?, pipe()?);
        let pipes = Pipes {
            stdin: stdin.map(|stdin| Sender::from_owned_fd(stdin.into())).transpose()?,
            stdout: Receiver::from_owned_fd(stdout.into())?,
            stderr: Receiver::from_owned_fd(stderr.into())?,
        };
        let streams = [input, output.into(), error_output.into()];
        let (grace, priority, words) = (launch.grace, launch.priority, launch.words());
        let order = Order { grace, priority, words, streams };
        Ok((Self(Some(Members::start(launch, &order)?)), pipes))
    }

    /// Waits for the next event.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> GroupEvent {
        let Some(members) = &mut self.0 else { return GroupEvent::Gone(None) };
        let event = members.next().await;
        if event != GroupEvent::ProgramEnded {
            drop(self.0.take());
        }
        event
    }

    /// Sends SIGTERM to all processes, once, and SIGKILL to those that are left after the grace period.
    pub(super) fn end(&mut self) {
        if let Some(members) = &mut self.0
            && members.given_up_at.is_none()
        {
            members.request(Request::End);
            members.give_up_after(members.grace.saturating_add(KILL_WAIT));
        }
    }

    /// Sends SIGKILL to all processes.
    pub(super) fn kill(&mut self) {
        if let Some(members) = &mut self.0
            && !members.is_killed
        {
            members.request(Request::Kill);
            members.is_killed = true;
            members.give_up_after(KILL_WAIT);
        }
    }

    /// Returns the number of living processes, if the system lists them (Linux).
    pub(super) fn processes(&self) -> Option<usize> {
        self.0.as_ref()?.living().map(|living| living.len())
    }

    pub(super) fn is_ending(&self) -> bool {
        self.0.as_ref().is_none_or(|members| members.given_up_at.is_some())
    }
}

#[derive(Debug)]
struct Members {
    guard: GuardProcess,
    socket: UnixStream,
    /// The bytes of a report that has not arrived completely.
    report: Vec<u8>,
    program: Pid,
    /// The exit status of the program, once it has ended.
    exit: Option<ExitStatus>,
    grace: Duration,
    /// The time at which this process stops waiting for the remaining processes; the guard goes on. Set once all were
    /// asked to end.
    given_up_at: Option<Instant>,
    is_killed: bool,
}

impl Members {
    fn start(launch: &Launch<'_>, order: &Order) -> io::Result<Self> {
        let (mut socket, far) = std::os::unix::net::UnixStream::pair()?;
        let guard = guard::start(far, &launch.environment(), launch.directory)?;
        let guard = GuardProcess(Some(guard));
        socket.set_read_timeout(Some(START_WAIT))?;
        order.send(&socket)?;
        let mut report = [0; GuardReport::BYTES];
        socket.read_exact(&mut report).map_err(|error| {
            io::Error::new(error.kind(), format!("its guard does not answer: {error}"))
        })?;
        let program = match GuardReport::of(report) {
            Some(GuardReport::Started(program)) => program,
            Some(GuardReport::NotStarted(number)) => {
                return Err(io::Error::from_raw_os_error(number));
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        socket.set_nonblocking(true)?;
        Ok(Self {
            guard,
            socket: UnixStream::from_std(socket)?,
            report: Vec::new(),
            program,
            exit: None,
            grace: launch.grace,
            given_up_at: None,
            is_killed: false,
        })
    }

    async fn next(&mut self) -> GroupEvent {
        loop {
            match self.take_report() {
                Ok(Some(GuardReport::Ended(status))) => {
                    self.exit = Some(status);
                    return GroupEvent::ProgramEnded;
                }
                Ok(Some(GuardReport::Gone)) => return GroupEvent::Gone(self.exit),
                Ok(Some(_)) => {}
                Ok(None) => tokio::select! {
                    _ = self.socket.readable() => {}
                    () = sleep_until(self.given_up_at) => {
                        self.log_left();
                        return GroupEvent::Gone(self.exit);
                    }
                },
                Err(_) => {
                    self.kill_unguarded();
                    return GroupEvent::Gone(self.exit);
                }
            }
        }
    }

    /// Takes the next report; `None` if it has not arrived. An error means that the guard is gone.
    fn take_report(&mut self) -> io::Result<Option<GuardReport>> {
        let mut bytes = [0; GuardReport::BYTES];
        let missing = GuardReport::BYTES - self.report.len();
        match self.socket.try_read(&mut bytes[..missing]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => self.report.extend_from_slice(&bytes[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        let Ok(whole) = <[u8; GuardReport::BYTES]>::try_from(&self.report[..]) else {
            return Ok(None);
        };
        self.report.clear();
        Ok(GuardReport::of(whole))
    }

    /// Kills the process group of the program, since somebody has killed the guard. Without the guard, other
    /// descendants cannot be found.
    fn kill_unguarded(&self) {
        let guard = self.guard.pid();
        tracing::warn!(
            guard,
            "the guard of a program was killed: the program is killed, and processes that have left its group may go on"
        );
        if self.exit.is_none() {
            let _ = kill_process_group(self.program, Signal::KILL);
        }
    }

    fn request(&self, request: Request) {
        // The socket itself, since the runtime may not know yet that it can be written. An error means that there is no guard any
        // more, which `next` finds.
        let _ = rustix::io::write(&self.socket, &[request.to_byte()]);
    }

    fn give_up_after(&mut self, time: Duration) {
        let now = Instant::now();
        self.given_up_at = Some(now.checked_add(time).unwrap_or(now + FAR));
    }

    fn living(&self) -> Option<Vec<Pid>> {
        descendants::pids_of(self.guard.pid().and_then(Pid::from_raw)?)
    }

    fn log_left(&self) {
        let pids = self.living().unwrap_or_default();
        let pids: Vec<_> = pids.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        tracing::warn!(
            ?pids,
            "processes of a program outlive SIGKILL: they hang in the system, or belong to another user"
        );
    }
}

/// A time that never comes.
const FAR: Duration = Duration::from_secs(1 << 32);

/// The process of a guard. It runs as long as a descendant lives. A background thread reaps it.
#[derive(Debug)]
struct GuardProcess(Option<Child>);

impl GuardProcess {
    fn pid(&self) -> Option<i32> {
        self.0.as_ref().and_then(|guard| i32::try_from(guard.id()).ok())
    }
}

impl Drop for GuardProcess {
    fn drop(&mut self) {
        let Some(mut guard) = self.0.take() else { return };
        if !matches!(guard.try_wait(), Ok(None)) {
            return;
        }
        // Without a thread, it stays a zombie until this process ends.
        let reap = move || guard.wait();
        let _ = std::thread::Builder::new().name("exec-end".to_owned()).spawn(reap);
    }
}
