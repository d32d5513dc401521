//! The pipes of a program.

use std::io;
use std::os::fd::AsFd;

use tokio::net::unix::pipe::Receiver;

/// The most bytes of one read. A pipe usually holds 64 KiB.
pub(super) const READ_BYTES: usize = 16 << 10;

/// The most bytes that are read after the group has ended: as much as a pipe can hold. A process that has left the
/// group may keep the pipe open and go on writing.
pub(super) const REST_BYTES_MAX: usize = 1 << 20;

pub(super) enum Read {
    Nothing,
    Bytes(usize),
    End,
}

/// Waits until the pipe is readable. Waits forever if the pipe has ended.
pub(super) async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        // The read will return the error.
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}

pub(super) fn take(pipe: &mut Option<Receiver>, buffer: &mut [u8]) -> Read {
    let Some(open) = pipe else { return Read::Nothing };
    match open.try_read(buffer) {
        Ok(len) if len > 0 => Read::Bytes(len),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Read::Nothing,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Read::Nothing,
        Ok(_) | Err(_) => {
            *pipe = None;
            Read::End
        }
    }
}

/// The number of bytes that may still be read.
pub(super) struct Rest(pub(super) usize);

impl Rest {
    /// Reads from the descriptor itself, since the runtime may not know yet that the pipe has data. Returns `None` at
    /// the end.
    pub(super) fn read(&mut self, pipe: &Receiver, buffer: &mut [u8]) -> Option<usize> {
        let buffer_bytes = buffer.len().min(self.0);
        let read = rustix::io::retry_on_intr(|| {
            rustix::io::read(pipe.as_fd(), &mut buffer[..buffer_bytes])
        });
        let len = read.ok().filter(|len| *len > 0)?;
        self.0 -= len;
        Some(len)
    }
}
