//! One TCP connection whose bytes and segments are counted.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;

use super::{Fault, MESSAGE_BYTES_MAX, Place};
use crate::tcp_info::Traffic;

const READ_BYTES: usize = 64 << 10;
/// So many bytes fit into the buffers between both ends.
pub(super) const AT_ONCE_BYTES: usize = 32 << 10;

/// A connection, and the bytes that came and were not taken yet.
#[derive(Debug)]
pub(crate) struct Stream {
    stream: TcpStream,
    place: Place,
    buffer: Vec<u8>,
    /// The bytes at the front of the buffer that were taken.
    taken: usize,
    sent_bytes: u64,
    received_bytes: u64,
}

impl Stream {
    pub(crate) fn connect(place: &Place) -> Result<Self, Fault> {
        let stream = place.connect()?;
        let (buffer, taken) = (Vec::new(), 0);
        Ok(Self { stream, place: place.clone(), buffer, taken, sent_bytes: 0, received_bytes: 0 })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Sends bytes with one write, if the kernel takes them so.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stream.write_all(bytes).map_err(|error| self.fault(error))?;
        self.sent_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Returns what came and was not taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Takes the first bytes, or all if there are fewer.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let bytes = self.bytes();
        let bytes = bytes[..len.min(bytes.len())].to_vec();
        self.taken += bytes.len();
        bytes
    }

    /// Waits for more bytes. The end of the connection is [`Fault::Closed`].
    pub(crate) fn fill(&mut self) -> Result<(), Fault> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        if self.buffer.len() > MESSAGE_BYTES_MAX {
            return Err(Fault::Wrong(format!("a message has more than {MESSAGE_BYTES_MAX} bytes")));
        }
        let old = self.buffer.len();
        self.buffer.resize(old + READ_BYTES, 0);
        let read = self.stream.read(&mut self.buffer[old..]);
        self.buffer.truncate(old + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(Fault::Closed),
            Ok(len) => {
                self.received_bytes += len as u64;
                Ok(())
            }
            Err(error) => Err(self.fault(error)),
        }
    }

    /// Waits until there are as many bytes.
    pub(crate) fn fill_to(&mut self, len: usize) -> Result<(), Fault> {
        while self.bytes().len() < len {
            self.fill()?;
        }
        Ok(())
    }

    /// Sends bytes and waits for as many. Both go on at the same time, so bytes that fill every buffer on the way do not block.
    pub(crate) fn exchange(&mut self, bytes: &[u8], len: usize) -> Result<(), Fault> {
        if bytes.len() <= AT_ONCE_BYTES {
            self.send(bytes)?;
            return self.fill_to(len);
        }
        self.send_beside(bytes, |stream| stream.fill_to(len))
    }

    /// Sends many bytes on a thread of their own, while `receive` reads.
    pub(crate) fn send_beside<T>(
        &mut self,
        bytes: &[u8],
        receive: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut writer = self.stream.try_clone().map_err(Fault::Broken)?;
        self.sent_bytes += bytes.len() as u64;
        let (received, sent) = thread::scope(|scope| {
            let sending = scope.spawn(move || writer.write_all(bytes));
            (receive(self), sending.join())
        });
        match sent {
            Ok(Err(error)) => Err(self.fault(error)),
            _ => received,
        }
    }

    /// Closes this side, waits for the other, and returns what the connection carried.
    pub(crate) fn finish(mut self) -> Result<Traffic, Fault> {
        // The server may have closed the connection already.
        let _ = self.stream.shutdown(Shutdown::Write);
        loop {
            self.taken = self.buffer.len();
            match self.fill() {
                Ok(()) => {}
                Err(Fault::Closed | Fault::Broken(_)) => break,
                Err(fault) => return Err(fault),
            }
        }
        self.traffic()
    }

    /// Returns what the connection has carried so far.
    pub(crate) fn traffic(&self) -> Result<Traffic, Fault> {
        Traffic::of(&self.stream, self.sent_bytes, self.received_bytes).map_err(Fault::Broken)
    }

    fn fault(&self, error: std::io::Error) -> Fault {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Fault::Stalled(self.place.patience),
            _ => Fault::Broken(error),
        }
    }
}
