//! A connection that breaks for its reader after a number of bytes, in the middle of a line, a frame or a head.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The stream that a reader reads from.
pub struct Wire {
    stream: TcpStream,
    /// The number of bytes that have come.
    count: Arc<AtomicUsize>,
    max: usize,
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, count: Arc::default(), max: usize::MAX }
    }

    /// Breaks the connection after this number of bytes.
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { max: bytes, ..self }
    }

    /// Returns the counter of the bytes that have come.
    pub fn count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.count)
    }

    pub fn peer(&self) -> SocketAddr {
        self.stream.peer_addr().unwrap()
    }
}

impl Read for Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.max - self.count.load(Ordering::Relaxed));
        if len == 0 && !bytes.is_empty() {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        let read = self.stream.read(&mut bytes[..len])?;
        self.count.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Returns true if the test itself broke the connection.
pub fn is_cut(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionAborted
}
