//! A serial device. It is opened exclusively, raw and without flow control.
//!
//! Owns the terminal settings and their errors. `framing` has the bits of a character. The caller interprets the bytes,
//! and decides about trying again.

mod framing;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{self, ControlModes, InputModes, OptionalActions, QueueSelector, Termios};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub use self::framing::{Framing, FramingError};
use crate::controlling::is_controlling;

/// An error of a serial device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SerialError {
    /// The device does not exist. It may not be plugged in, or have another name.
    #[error("no such device {path}")]
    NoDevice {
        /// The device.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The device exists, but this user may not open it.
    #[error("no permission to open {path} (on most systems the group is dialout)")]
    Denied {
        /// The device.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another program uses the device.
    #[error("{path} is in use by another program")]
    Busy {
        /// The device.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path is that of a file, a directory or another kind of device.
    #[error("{path} is not a serial device")]
    NotSerial {
        /// The path.
        path: PathBuf,
    },
    /// The device is the controlling terminal of a session. Reading it would take the input of the session's user. The
    /// system may give the name of an old pseudo-terminal to such a terminal, see
    /// [`emulate`](crate::windsonic::emulate).
    #[error("{path} is a terminal in use")]
    Terminal {
        /// The device.
        path: PathBuf,
    },
    /// The driver does not support this speed.
    #[error("cannot set {path} to {baud} baud")]
    Baud {
        /// The device.
        path: PathBuf,
        /// The speed asked for.
        baud: u32,
        /// The error of the system.
        source: io::Error,
    },
    /// The driver accepted the settings, but set another speed.
    #[error("{path} was set to {baud} baud but runs at {taken}")]
    BaudNotTaken {
        /// The device.
        path: PathBuf,
        /// The speed asked for.
        baud: u32,
        /// The speed that the driver set, for receiving or for sending.
        taken: u32,
    },
    /// The driver accepted the settings, but set another framing.
    #[error("{path} does not support {framing}")]
    FramingNotTaken {
        /// The device.
        path: PathBuf,
        /// The framing asked for.
        framing: Framing,
    },
    /// The device was open and is gone. It was unplugged, or the other end was closed.
    #[error("{path} is gone")]
    Gone {
        /// The device.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another error of the system.
    #[error("cannot use {path}")]
    Io {
        /// The device.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// An open serial device.
#[derive(Debug)]
pub struct Port {
    path: PathBuf,
    fd: AsyncFd<Arc<OwnedFd>>,
}

impl Port {
    /// Opens `path` raw, sets its speed and framing, and discards everything that the device received before.
    ///
    /// Does not wait for a carrier. Accepts any speed of the driver, standard or not. While the device is open, other
    /// programs that check first cannot use it. Refuses a terminal in use, if the system reveals that. Must be called
    /// within a tokio runtime with its IO driver.
    ///
    /// # Errors
    /// [`SerialError`], with one variant for each cause.
    pub fn open(path: &Path, baud: u32, framing: Framing) -> Result<Self, SerialError> {
        // Non-blocking, since some drivers would otherwise wait for a carrier.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| open_error(path.to_path_buf(), errno))?;
        if !termios::isatty(&fd) {
            return Err(SerialError::NotSerial { path: path.to_path_buf() });
        }
        if is_controlling(&fd) {
            return Err(SerialError::Terminal { path: path.to_path_buf() });
        }
        claim(&fd).map_err(|errno| open_error(path.to_path_buf(), errno))?;
        set_raw(&fd, baud, framing).map_err(|fault| match fault {
            SetFault::Baud(source) => SerialError::Baud { path: path.to_path_buf(), baud, source },
            SetFault::NotTaken(taken) => {
                SerialError::BaudNotTaken { path: path.to_path_buf(), baud, taken }
            }
            SetFault::Framing => SerialError::FramingNotTaken { path: path.to_path_buf(), framing },
            SetFault::Io(source) => SerialError::Io { path: path.to_path_buf(), source },
        })?;
        let fd = watch(Arc::new(fd))
            .map_err(|source| SerialError::Io { path: path.to_path_buf(), source })?;
        Ok(Self { path: path.to_path_buf(), fd })
    }

    /// Waits for bytes and reads at least one.
    ///
    /// # Errors
    /// [`SerialError::Gone`] once the device is gone. The port cannot be used after that.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes reads nothing.
    pub async fn read(&self, buffer: &mut [u8]) -> Result<usize, SerialError> {
        let gone = |source| SerialError::Gone { path: self.path.clone(), source };
        loop {
            let mut ready = self.fd.readable().await.map_err(gone)?;
            let read = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut *buffer)?));
            match read {
                // A terminal that was hung up reads as ended.
                Ok(Ok(0)) => return Err(gone(io::ErrorKind::UnexpectedEof.into())),
                Ok(Ok(len)) => return Ok(len),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(gone(error)),
                Err(_would_block) => {}
            }
        }
    }

    /// Discards the bytes that the device has sent and nobody has read.
    ///
    /// # Errors
    /// [`SerialError::Gone`] once the device is gone.
    pub fn discard(&self) -> Result<(), SerialError> {
        termios::tcflush(self.fd.get_ref(), QueueSelector::IFlush)
            .map_err(|errno| SerialError::Gone { path: self.path.clone(), source: errno.into() })
    }

    /// Writes as many bytes as the driver takes without waiting, and returns their number. Commands have a few bytes,
    /// and a driver buffers some thousand. So if it takes fewer, the device takes nothing from the buffer.
    ///
    /// # Errors
    /// [`SerialError::Gone`] once the device is gone.
    pub fn try_write(&self, bytes: &[u8]) -> Result<usize, SerialError> {
        match rustix::io::write(self.fd.get_ref(), bytes) {
            Ok(len) => Ok(len),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(SerialError::Gone { path: self.path.clone(), source: errno.into() }),
        }
    }
}

/// Registers this descriptor with the runtime, to wait for input.
pub(crate) fn watch(fd: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe for those who could close the descriptor meanwhile; \
                  here the registration owns it"
    )]
    AsyncFd::with_interest(fd, Interest::READABLE)
}

fn open_error(path: PathBuf, errno: Errno) -> SerialError {
    let source = io::Error::from(errno);
    match errno {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => SerialError::NoDevice { path, source },
        Errno::ACCESS | Errno::PERM => SerialError::Denied { path, source },
        Errno::BUSY | Errno::AGAIN => SerialError::Busy { path, source },
        // Returned for a directory, or for a file on a read-only file system.
        Errno::ISDIR | Errno::ROFS => SerialError::NotSerial { path },
        _ => SerialError::Io { path, source },
    }
}

/// Reserves the device with a lock, which ends with this process. Sets also `TIOCEXCL`, which stops programs that do
/// not check for locks, unless the device is a pseudo-terminal.
fn claim(fd: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive)?;
    if !is_pseudo_terminal(fd) {
        termios::ioctl_tiocexcl(fd)?;
    }
    Ok(())
}

/// Returns true for a pseudo-terminal. It would keep `TIOCEXCL` until its other end is closed, so it could not be used
/// after its reader was killed.
fn is_pseudo_terminal(fd: &OwnedFd) -> bool {
    let name = termios::ttyname(fd, Vec::new());
    name.is_ok_and(|name| name.to_bytes().starts_with(b"/dev/pts/"))
}

enum SetFault {
    Baud(io::Error),
    NotTaken(u32),
    Framing,
    Io(io::Error),
}

fn set_raw(fd: &impl AsFd, baud: u32, framing: Framing) -> Result<(), SetFault> {
    let io = |errno: Errno| SetFault::Io(errno.into());
    if baud == 0 {
        // As a setting, 0 means to hang up.
        return Err(SetFault::Baud(io::ErrorKind::InvalidInput.into()));
    }
    let mut settings = termios::tcgetattr(fd).map_err(io)?;
    raw(&mut settings, framing);
    settings.set_speed(baud).map_err(|errno| SetFault::Baud(errno.into()))?;
    termios::tcsetattr(fd, OptionalActions::Now, &settings).map_err(|errno| match errno {
        Errno::INVAL => SetFault::Baud(errno.into()),
        _ => io(errno),
    })?;
    // tcsetattr succeeds as soon as it applied any of the settings (POSIX).
    let set = termios::tcgetattr(fd).map_err(io)?;
    if let Some(taken) =
        [set.input_speed(), set.output_speed()].into_iter().find(|taken| !is_near(baud, *taken))
    {
        return Err(SetFault::NotTaken(taken));
    }
    if !framing.is_taken(&set) {
        return Err(SetFault::Framing);
    }
    // Bytes from before the speed was set are meaningless, and old ones would get a wrong time.
    termios::tcflush(fd, QueueSelector::IFlush).map_err(io)
}

/// Returns true if two speeds differ by at most 2.5 percent. A driver divides its clock by whole numbers, so its speed
/// is not exact. A character of 10 bits allows 5 percent, half of it for each end.
fn is_near(baud: u32, taken: u32) -> bool {
    u64::from(baud.abs_diff(taken)) * 40 <= u64::from(baud)
}

/// Sets a terminal to no echo, no line editing, no translation and no flow control, and to ignore the carrier.
pub(crate) fn raw(settings: &mut Termios, framing: Framing) {
    settings.make_raw();
    settings.input_modes -= InputModes::IXOFF | InputModes::IXANY | InputModes::INPCK;
    settings.control_modes -= ControlModes::CRTSCTS | ControlModes::HUPCL;
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    framing.apply(settings);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn error_of(path: &str) -> SerialError {
        Port::open(Path::new(path), 9600, Framing::default()).unwrap_err()
    }

    #[tokio::test]
    async fn what_is_not_there_is_said_by_its_name() {
        let error = error_of("/dev/no-such-serial-device").await;
        assert!(matches!(error, SerialError::NoDevice { .. }));
        assert_eq!(error.to_string(), "no such device /dev/no-such-serial-device");
    }

    #[tokio::test]
    async fn what_is_not_a_serial_device_is_refused() {
        for path in ["/dev/null", "/tmp"] {
            let error = error_of(path).await;
            assert_eq!(error.to_string(), format!("{path} is not a serial device"));
        }
    }

    #[test]
    fn a_speed_taken_nearly_will_do_and_another_will_not() {
        for (baud, taken) in [(9600, 9600), (115_200, 115_384), (9600, 9840), (250_000, 250_000)] {
            assert!(is_near(baud, taken), "{baud} {taken}");
        }
        for (baud, taken) in [(9600, 0), (9600, 9841), (9600, 4800), (u32::MAX, 9600)] {
            assert!(!is_near(baud, taken), "{baud} {taken}");
        }
        let path = PathBuf::from("/dev/wind");
        let error = SerialError::BaudNotTaken { path, baud: 250_000, taken: 9600 };
        assert_eq!(error.to_string(), "/dev/wind was set to 250000 baud but runs at 9600");
    }

    #[test]
    fn no_text_repeats_its_source() {
        let (path, source) = (PathBuf::from("/dev/wind"), || io::Error::other("broken"));
        let gone = SerialError::Gone { path: path.clone(), source: source() };
        assert_eq!(crate::status::chain(&gone), "/dev/wind is gone: broken");
        let other = SerialError::Io { path, source: source() };
        assert_eq!(crate::status::chain(&other), "cannot use /dev/wind: broken");
    }
}
