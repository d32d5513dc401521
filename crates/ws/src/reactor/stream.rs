//! The system calls of a socket.

use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};

use anemone_proto::Rest;
use mio::net::TcpStream;
use rustix::buffer::spare_capacity;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags};

/// The operations of a socket. None of them blocks.
pub(super) trait NonBlocking {
    /// True if [`append`](Self::append) is implemented.
    const APPENDS: bool = false;
    /// Reads into the free capacity of the buffer for the rest of a frame.
    fn append(&mut self, rest: Rest<'_>) -> io::Result<Appended> {
        let _ = rest;
        Err(ErrorKind::Unsupported.into())
    }
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize>;
    /// Writes; a result below the length of `bytes` means that the rest would block.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Writes several slices, with the same result.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
    fn peer(&self) -> Option<SocketAddr> {
        None
    }
    /// Ends our side; returns `WouldBlock` while that takes. With `is_last` the stream is dropped right after.
    fn end(&mut self, is_last: bool) -> io::Result<()>;
}

/// The result of [`NonBlocking::append`].
pub(super) struct Appended {
    pub(super) len: usize,
    pub(super) may_have_more: bool,
    /// Bytes after the end of the frame, if the read got any.
    pub(super) beyond: Option<Vec<u8>>,
}

/// Makes writing to a broken connection an error instead of a signal. Rust programs ignore the signal, but this is a
/// library.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// Uses rustix, which makes the system calls directly. Those of libc are cancellation points in a program with
/// threads; that costs as much as decoding a small message.
impl NonBlocking for TcpStream {
    const APPENDS: bool = true;

    fn peer(&self) -> Option<SocketAddr> {
        self.peer_addr().ok()
    }

    #[inline]
    fn append(&mut self, rest: Rest<'_>) -> io::Result<Appended> {
        let begin = rest.bytes.len();
        let room = rest.bytes.capacity() - begin;
        // Does not fill the buffer with zeros first.
        let (len, _) = net::recv(self, spare_capacity(rest.bytes), RecvFlags::empty())?;
        let beyond = (len > rest.len).then(|| rest.bytes.split_off(begin + rest.len));
        Ok(Appended { len, may_have_more: len == room, beyond })
    }

    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let (len, _) = net::recv(self, bytes, RecvFlags::empty())?;
        Ok(len)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(self, bytes, SEND_FLAGS)?)
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(net::sendmsg(self, slices, &mut SendAncillaryBuffer::default(), SEND_FLAGS)?)
    }

    #[inline]
    fn end(&mut self, is_last: bool) -> io::Result<()> {
        if is_last { Ok(()) } else { self.shutdown(Shutdown::Write) }
    }
}
