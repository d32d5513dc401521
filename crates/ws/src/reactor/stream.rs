//! The calls to the system that a socket is made of.

use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;

use anemone_proto::Rest;
use mio::net::TcpStream;
use rustix::buffer::spare_capacity;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags};

/// The calls that a socket is made of, none of which blocks.
pub(super) trait Stream {
    /// Whether [`append`](Self::append) is of use.
    const APPENDS: bool = false;
    /// Reads into the room that there is for the rest of a frame.
    fn append(&mut self, rest: Rest<'_>) -> io::Result<Appended> {
        let _ = rest;
        Err(ErrorKind::Unsupported.into())
    }
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize>;
    /// One that takes less than it was offered says that the rest would block.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// The same.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Ends our side; would block while that takes. With `is_last` the stream is dropped right after.
    fn end(&mut self, is_last: bool) -> io::Result<()>;
}

/// The result of [`Stream::append`].
pub(super) struct Appended {
    pub(super) len: usize,
    pub(super) may_have_more: bool,
    /// Bytes after the end of the frame; there was more room than it takes.
    pub(super) beyond: Option<Vec<u8>>,
}

/// A broken connection is an error, not a signal. Rust programs ignore that one, but this is a library.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// By rustix, whose calls are nothing but the system's; libc's are points of cancellation in a program with
/// threads, which costs as much again as decoding a small message.
impl Stream for TcpStream {
    const APPENDS: bool = true;

    #[inline]
    fn append(&mut self, rest: Rest<'_>) -> io::Result<Appended> {
        let begin = rest.bytes.len();
        let room = rest.bytes.capacity() - begin;
        // Never fills what it reads to with zeros first.
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
