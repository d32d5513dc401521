//! The instrument's end of a pseudo-terminal.
//!
//! Owns what a serial line would not do: a pseudo-terminal keeps what nobody reads, and tells its
//! one end when the other is closed, again and again until it is open. Here, as on a line, what is
//! sent while nobody listens is gone, and a listener who comes finds nothing old.

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

use crate::serial::{raw_8n1, watch};

/// The interval at which to look whether somebody has opened the other end: nothing tells of it. A command sent
/// meanwhile waits this long for its answer, which is within the instrument's own 130 ms.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The reason why a wait ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wait {
    /// This many bytes came in.
    Received(usize),
    /// It is time.
    Due,
}

#[derive(Debug)]
pub(crate) struct Pty {
    path: PathBuf,
    master: Arc<OwnedFd>,
    /// Registered while somebody has the other end open. A registration that has once seen it
    /// closed reports so for ever, so each opening gets a new one.
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
        // Before anyone listens: no echo, or each message would come back to us as commands. And
        // only from the first close on does the master tell whether the other end is open.
        let slave = pty.open_slave()?;
        let mut settings = tcgetattr(&slave)?;
        raw_8n1(&mut settings);
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

    /// Returns whether somebody has the other end open.
    fn is_open(&self) -> rustix::io::Result<bool> {
        let mut fds = [PollFd::new(&*self.master, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now))?;
        Ok(!fds[0].revents().contains(PollFlags::HUP))
    }

    /// Sends what is taken without waiting; the rest is gone.
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
                Ok(_) | Err(Errno::AGAIN | Errno::IO) => self.forget()?,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// The other end was closed. What was sent and not read is dropped, or the next listener would
    /// take it for new.
    fn forget(&mut self) -> io::Result<()> {
        self.heard = None;
        if self.is_open()? {
            return Ok(()); // somebody was quick; a serial device is flushed by who opens it
        }
        match self.open_slave() {
            Ok(slave) => Ok(tcflush(&slave, QueueSelector::IFlush)?),
            // Somebody has just opened it, and for himself alone.
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
