//! The bench of the tests: a source with its topics, an emulator in the background, a bare
//! pseudo-terminal, and waits that end.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone_sources::windsonic::emulate::{self, Emulator};
use anemone_sources::windsonic::{WindsonicOptions, run};
use anemone_testing::{Background, Topics};
#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use tokio::io::unix::AsyncFd;

/// A source and its two topics.
pub(crate) struct Bench {
    topics: Topics,
    _source: Background<Infallible>,
}

impl Bench {
    pub(crate) fn start(options: WindsonicOptions) -> Self {
        let topics = Topics::new("wind");
        let (wind, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
        let source = tokio::spawn(run(options, wind, status));
        Self { topics, _source: Background(source) }
    }

    /// Events published so far.
    pub(crate) fn count(&self) -> usize {
        self.topics.all().len()
    }

    /// All events, once there are this many.
    pub(crate) async fn events(&self, count: usize) -> Vec<Value> {
        self.topics.events(count).await
    }

    /// The first status that is so.
    pub(crate) async fn status(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        self.topics.status(is_so).await
    }
}

/// An emulator that runs until dropped.
pub(crate) struct Running {
    pub(crate) path: PathBuf,
    _task: Background<std::io::Result<Infallible>>,
}

pub(crate) fn emulator(options: emulate::EmulatorOptions) -> Running {
    let emulator = Emulator::open(options).unwrap();
    let path = emulator.path().to_path_buf();
    Running { path, _task: Background(tokio::spawn(emulator.run())) }
}

/// A pseudo-terminal with nothing behind it.
pub(crate) struct Terminal {
    pub(crate) path: PathBuf,
    master: OwnedFd,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        Self { path: PathBuf::from(OsString::from_vec(name.into_bytes())), master }
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        assert_eq!(rustix::io::write(&self.master, bytes), Ok(bytes.len()));
    }
}

/// A program that works in a terminal, until dropped.
#[cfg(target_os = "linux")]
pub(crate) struct Shell(std::process::Child);

#[cfg(target_os = "linux")]
impl Shell {
    pub(crate) fn start(terminal: &Terminal) -> Self {
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let end = || rustix::fs::open(&terminal.path, flags, Mode::empty()).unwrap();
        let mut command = std::process::Command::new("setsid");
        command.args(["--ctty", "sh", "-c", "echo ready; exec cat"]).stdin(end()).stdout(end());
        let shell = Self(command.spawn().unwrap());
        let mut fds = [PollFd::new(&terminal.master, PollFlags::IN)];
        let long = anemone_testing::PATIENCE.try_into().unwrap();
        assert_eq!(rustix::event::poll(&mut fds, Some(&long)), Ok(1));
        let mut said = [0; 5];
        assert_eq!(rustix::io::read(&terminal.master, &mut said), Ok(5));
        assert_eq!(&said, b"ready");
        shell
    }
}

#[cfg(target_os = "linux")]
impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens a device as any program would.
pub(crate) fn open(path: &Path) -> AsyncFd<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK;
    let fd = rustix::fs::open(path, flags, Mode::empty()).unwrap();
    #[expect(deprecated, reason = "the registration owns the descriptor")]
    AsyncFd::new(fd).unwrap()
}

pub(crate) async fn readable(reader: &AsyncFd<OwnedFd>) {
    reader.readable().await.unwrap().retain_ready();
}

/// Bytes that can be read.
pub(crate) fn waiting(reader: &AsyncFd<OwnedFd>) -> u64 {
    rustix::io::ioctl_fionread(reader.get_ref()).unwrap()
}
