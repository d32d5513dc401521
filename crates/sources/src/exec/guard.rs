//! The guard of a program: a process that starts the program, and ends it with all its descendants.
//!
//! The guard is another process of the same executable ([`guard_or_continue`]), and the parent of the program. As a
//! child subreaper (prctl(2)), it becomes the parent of every descendant whose own parent has ended. So no descendant
//! escapes with a new process group or session, or by outliving its parent. When the guard has no child left, all have
//! ended.
//!
//! The guard holds one end of a socket. Only the process that wants the program has the other end. When that process
//! ends, even by `kill -9`, the socket ends, and the guard ends the program as on request. It sends SIGTERM to all
//! processes, waits for the grace period, and then sends SIGKILL until no process is left.

use std::collections::HashSet;
use std::env::{args_os, current_exe};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anemone_hub::run::lower_priority;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, setsid, wait};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::descendants;
use super::handover::{GuardReport, Order, Priority, Request};
use crate::status::sleep_until;

/// The first argument that makes the executable a guard.
const FLAG: &str = "--guard-a-program";

static EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// Makes this executable the guard of programs. Call it first in `main`. In a process that was started as a guard, it
/// does the guard's work and then ends the process. In any other process, it returns at once.
pub fn guard_or_continue() {
    if args_os().nth(1).is_some_and(|word| word == FLAG) {
        std::process::exit(i32::from(guard().is_err()));
    }
    // It stays the same file when an update replaces it, which a path would not.
    let own = Path::new("/proc/self/exe");
    let own = if own.exists() { Ok(own.to_owned()) } else { current_exe() };
    if let Ok(own) = own {
        guard_with(own);
    }
}

/// Makes another executable the guard of programs. Its `main` must begin with [`guard_or_continue`]. This is for a
/// process that does not own its `main`, such as a test. Only the first call of either function has an effect.
pub fn guard_with(executable: impl Into<PathBuf>) {
    let _ = EXECUTABLE.set(executable.into());
}

/// Starts a guard and gives it one end of the socket. The guard waits for an [`Order`].
pub(super) fn start(
    socket: UnixStream,
    environment: &[(OsString, OsString)],
    directory: Option<&Path>,
) -> io::Result<Child> {
    let Some(executable) = EXECUTABLE.get() else {
        let missing = "no program guards others: main has to begin with exec::guard_or_continue()";
        return Err(io::Error::other(missing));
    };
    let mut command = Command::new(executable);
    command.arg0("anemone").arg(FLAG).stdin(OwnedFd::from(socket));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    command.spawn()
}

/// Does the work of a guard. The socket is its standard input.
fn guard() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Signals of the terminal and of process groups do not reach another session.
    setsid()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let order = Order::receive(&socket)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(watch(order, socket))
}

/// Starts the program, and watches it until no process is left.
async fn watch(order: Order, socket: UnixStream) -> io::Result<()> {
    let mut children = signal(SignalKind::child())?;
    // With a listener, these do not end it. The program has their default actions, unlike for signals that are ignored.
    let deadly = [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
    ];
    let _heard: Vec<_> = deadly.into_iter().map(signal).collect::<io::Result<_>>()?;
    socket.set_nonblocking(true)?;
    let mut socket = tokio::net::UnixStream::from_std(socket)?;
    let grace = order.grace;
    let program = match launch(order) {
        Ok(program) => Pid::from_child(&program),
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
            report(&socket, GuardReport::NotStarted(number));
            return Ok(());
        }
    };
    report(&socket, GuardReport::Started(program));
    let mut end = GroupEnd::new(program, grace);
    let mut is_wanted = true;
    loop {
        let are_left = reap(program, &socket) || descendants::are_left_in_group(program);
        if !are_left {
            report(&socket, GuardReport::Gone);
            return Ok(());
        }
        tokio::select! {
            _ = children.recv() => {}
            request = socket.read_u8(), if is_wanted => match request.map(Request::of) {
                Ok(Some(Request::Kill)) => end.kill(),
                Ok(Some(Request::End)) => end.begin(),
                Ok(None) => {}
                Err(_) => {
                    is_wanted = false;
                    end.begin();
                }
            },
            () = sleep_until(end.due) => end.kill(),
            // Nothing announces the end of a process that is nobody's child here.
            () = tokio::time::sleep(SOON), if !descendants::ARE_KNOWN => {}
        }
    }
}

/// Starts the program as the leader of a new process group. A process inherits the priority of the thread that starts
/// it, so a new thread with the program's priority starts the program.
fn launch(order: Order) -> io::Result<Child> {
    let start = || {
        if order.priority == Priority::Low {
            lower_priority();
        }
        spawn(order)
    };
    std::thread::scope(|scope| {
        let started = scope.spawn(start).join();
        started.unwrap_or_else(|_| Err(io::Error::other("the start of the program panicked")))
    })
}

fn spawn(order: Order) -> io::Result<Child> {
    let [stdin, stdout, stderr] = order.streams.map(Stdio::from);
    let [program, arguments @ ..] = &order.words[..] else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command.args(arguments).process_group(0).stdin(stdin).stdout(stdout).stderr(stderr);
    command.spawn()
}

/// Reports to the process that wants the program. That process may have ended.
fn report(socket: &tokio::net::UnixStream, report: GuardReport) {
    // The socket itself, since the runtime may not know yet that it can be written. A few reports of five bytes always fit.
    let _ = rustix::io::write(socket, &report.to_bytes());
}

/// Reaps the children that have ended. Reports it if the program is among them. Returns true if children are left.
fn reap(program: Pid, socket: &tokio::net::UnixStream) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == program => {
                report(socket, GuardReport::Ended(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Ends the program and its descendants.
struct GroupEnd {
    program: Pid,
    grace: Duration,
    /// The time of the next SIGKILL; set once all were asked to end.
    due: Option<Instant>,
    kills: u32,
}

/// The time after which the remaining processes are killed again. At first it is `SOON`, for new processes and those
/// that hang in the kernel. Later it is `LATER`, for those of another user, which cannot be killed.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_secs(1);
const SOON_MAX: u32 = 100;

/// A time that never comes.
const FAR: Duration = Duration::from_secs(1 << 32);

/// The most times in a row that processes are listed to find new ones.
const LOOKS_MAX: u32 = 100;

impl GroupEnd {
    fn new(program: Pid, grace: Duration) -> Self {
        Self { program, grace, due: None, kills: 0 }
    }

    /// Asks all processes to end (SIGTERM), unless they were asked before.
    fn begin(&mut self) {
        if self.due.is_none() {
            descendants::signal_all(self.program, Signal::TERM);
            self.due = Some(Instant::now() + self.grace.min(FAR));
        }
    }

    /// Kills all processes. A process that is still alive can start others, so it lists the processes again until there
    /// is no new one.
    fn kill(&mut self) {
        let mut killed = HashSet::new();
        for _ in 0..LOOKS_MAX {
            let known = killed.len();
            killed.extend(descendants::signal_all(self.program, Signal::KILL));
            if killed.len() == known {
                break;
            }
        }
        self.kills = self.kills.saturating_add(1);
        let wait = if self.kills < SOON_MAX { SOON } else { LATER };
        self.due = Some(Instant::now() + wait);
    }
}
