//! The instrument's end of a pseudo-terminal.
//!
//! Hides two differences from a serial line. A pseudo-terminal keeps unread output, and it reports that the other end
//! is closed until that end is opened again.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

use crate::serial::{Framing, raw, watch};

/// The interval of checks if the other end is open, since the system does not report that. A command that a program
/// sends at once waits at most this long. A real instrument takes up to 130 ms to answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The reason why a wait ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wait {
    /// This many bytes were received.
    Received(usize),
    /// The wait reached its end.
    Due,
}

#[derive(Debug)]
pub(crate) struct Pty {
    path: PathBuf,
    master: Arc<OwnedFd>,
    /// The registration for input; `Some` while a program has the other end open. Once the other end was closed, a
    /// registration reports that forever, so each opening gets a new one.
    heard: Option<AsyncFd<Arc<OwnedFd>>>,
}

impl Pty {
    pub(crate) fn open() -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let path = PathBuf::from(OsString::from_vec(name.into_bytes()));
        let pty = Self { path, master: Arc::new(master), heard: None };
        // This is done before a program opens it. With echo, each message would come back as commands. And the master
        // reports whether the other end is open only after the first close.
        let slave = pty.open_slave()?;
        let mut settings = tcgetattr(&slave)?;
        raw(&mut settings, Framing::default());
        tcsetattr(&slave, OptionalActions::Now, &settings)?;
        Ok(pty)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn open_slave(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::open(&self.path, flags, Mode::empty())
    }

    /// Returns true if a program has the other end open.
    fn is_open(&self) -> rustix::io::Result<bool> {
        let mut fds = [PollFd::new(&*self.master, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now))?;
        Ok(!fds[0].revents().contains(PollFlags::HUP))
    }

    /// Sends as many bytes as fit at once. The other bytes are lost.
    pub(crate) fn send(&self, line: &[u8]) -> io::Result<()> {
        if !self.is_open()? {
            return Ok(());
        }
        match rustix::io::write(&*self.master, line) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::IO) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Waits for bytes, or until `due`.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes reads nothing.
    pub(crate) async fn receive(
        &mut self,
        buffer: &mut [u8],
        due: Option<Instant>,
    ) -> io::Result<Wait> {
        loop {
            if self.heard.is_none() && self.is_open()? {
                self.heard = Some(watch(Arc::clone(&self.master))?);
            }
            let Some(heard) = &self.heard else {
                let look = Instant::now() + LOOK_EVERY;
                sleep_until(due.map_or(look, |due| due.min(look))).await;
                if due.is_some_and(|due| due <= Instant::now()) {
                    return Ok(Wait::Due);
                }
                continue;
            };
            let mut ready = tokio::select! {
                ready = heard.readable() => ready?,
                () = sleep_or_never(due) => return Ok(Wait::Due),
            };
            let closed = ready.ready().is_read_closed();
            match rustix::io::read(&*self.master, &mut *buffer) {
                Ok(len) if len > 0 => return Ok(Wait::Received(len)),
                Err(Errno::AGAIN) if !closed => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Ok(_) | Err(Errno::AGAIN | Errno::IO) => self.on_close()?,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Handles a close of the other end. Drops unread output, so that the next program does not take it for new output.
    fn on_close(&mut self) -> io::Result<()> {
        self.heard = None;
        if self.is_open()? {
            return Ok(()); // a program has just opened it; a program that opens a serial device flushes it
        }
        match self.open_slave() {
            Ok(slave) => Ok(tcflush(&slave, QueueSelector::IFlush)?),
            // A program has just opened it exclusively.
            Err(Errno::BUSY) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

async fn sleep_or_never(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
