//! The messages between a process and the guard of its program, on a socket.
//!
//! First, the process sends the [`Order`]: the program, with its standard streams as descriptors. Then it sends
//! requests of one byte, and the guard sends reports of five bytes. The end of the socket is a request to end the
//! program.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::Pid;

/// The order to start a program.
#[derive(Debug)]
pub(super) struct Order {
    /// The time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
    pub(super) priority: Priority,
    /// The program with its arguments.
    pub(super) words: Vec<OsString>,
    pub(super) streams: [OwnedFd; 3],
}

/// The priority of a program. Its guard always has the priority of this process, so that it can act even if the program
/// takes all processor time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Priority {
    /// The priority of this process.
    Normal,
    /// The low priority of runs.
    Low,
}

/// The most bytes of a program with its arguments. This is the limit of Linux, which is far above that of other
/// systems.
const WORDS_BYTES_MAX: usize = 6 << 20;

/// The number of bytes at the beginning: the grace period in milliseconds (8), the number of bytes that follow (8), and
/// 1 for a low priority (1).
const HEAD_BYTES: usize = 17;

impl Order {
    pub(super) fn send(&self, socket: &UnixStream) -> io::Result<()> {
        let mut words = Vec::new();
        for word in &self.words {
            words.extend_from_slice(word.as_bytes());
            words.push(0);
        }
        if words.len() > WORDS_BYTES_MAX
            || self.words.iter().any(|word| word.as_bytes().contains(&0))
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let grace = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX);
        let is_low = u8::from(self.priority == Priority::Low);
        let (grace, len) = (grace.to_le_bytes(), (words.len() as u64).to_le_bytes());
        let head = [&grace[..], &len, &[is_low]].concat();
        let streams = self.streams.each_ref().map(|stream| stream.as_fd());
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&streams));
        // So few bytes fit into an empty socket at once.
        sendmsg(socket, &[IoSlice::new(&head)], &mut ancillary, SendFlags::empty())?;
        (&mut &*socket).write_all(&words)
    }

    pub(super) fn receive(socket: &UnixStream) -> io::Result<Self> {
        let mut head = [0; HEAD_BYTES];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let slices = &mut [IoSliceMut::new(&mut head)];
        let received = recvmsg(socket, slices, &mut ancillary, RecvFlags::empty())?;
        let mut streams = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                streams.extend(fds);
            }
        }
        // Not all systems can do that at once. The program is to have them as its standard streams alone.
        for stream in &streams {
            fcntl_setfd(stream, FdFlags::CLOEXEC)?;
        }
        let (Ok(streams), HEAD_BYTES) = (streams.try_into(), received.bytes) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let [numbers @ .., is_low] = head;
        let (grace, len) = halves(u128::from_le_bytes(numbers));
        let priority = if is_low == 1 { Priority::Low } else { Priority::Normal };
        let len = usize::try_from(len).ok().filter(|len| *len <= WORDS_BYTES_MAX);
        let mut words = vec![0; len.ok_or(io::ErrorKind::InvalidData)?];
        (&mut &*socket).read_exact(&mut words)?;
        // Each word ends with a zero byte.
        words.pop();
        let words = words.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
        let (grace, words) = (Duration::from_millis(grace), words.collect());
        Ok(Self { grace, priority, words, streams })
    }
}

/// Splits a number into its lower half and its upper half.
fn halves(numbers: u128) -> (u64, u64) {
    ((numbers & u128::from(u64::MAX)) as u64, (numbers >> 64) as u64)
}

/// A request to the guard, after the order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Request {
    /// Send SIGTERM to all processes, and SIGKILL to those that are left after the grace period.
    End,
    /// Send SIGKILL to all processes.
    Kill,
}

impl Request {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::End => b'e',
            Self::Kill => b'k',
        }
    }

    pub(super) fn of(byte: u8) -> Option<Self> {
        [Self::End, Self::Kill].into_iter().find(|request| request.to_byte() == byte)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum GuardReport {
    Started(Pid),
    /// The program could not be started; the number is the system's error.
    NotStarted(i32),
    /// The program has ended. Descendants may be left.
    Ended(ExitStatus),
    /// No process is left, and the guard ends.
    Gone,
}

impl GuardReport {
    pub(super) const BYTES: usize = 5;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let (kind, number) = match self {
            Self::Started(pid) => (b's', pid.as_raw_nonzero().get()),
            Self::NotStarted(number) => (b'n', number),
            Self::Ended(status) => (b'e', status.into_raw()),
            Self::Gone => (b'g', 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub(super) fn of([kind, number @ ..]: [u8; Self::BYTES]) -> Option<Self> {
        let number = i32::from_le_bytes(number);
        match kind {
            b's' => Pid::from_raw(number).map(Self::Started),
            b'n' => Some(Self::NotStarted(number)),
            b'e' => Some(Self::Ended(ExitStatus::from_raw(number))),
            b'g' => Some(Self::Gone),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_with_its_words_and_its_streams() {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let null = || std::fs::File::open("/dev/null").unwrap().into();
        let words: Vec<OsString> = ["sh", "", "-c", "echo \"a b\""].map(Into::into).into();
        let order = Order {
            grace: Duration::from_millis(1500),
            priority: Priority::Low,
            words: words.clone(),
            streams: [null(), writer.into(), null()],
        };
        order.send(&near).unwrap();
        drop(order);
        let received = Order::receive(&far).unwrap();
        assert_eq!((received.grace, &received.words), (Duration::from_millis(1500), &words));
        assert_eq!(received.priority, Priority::Low);
        let [_, output, _] = received.streams;
        std::fs::File::from(output).write_all(b"here").unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "here");
    }

    #[test]
    fn words_that_no_program_can_have_are_refused_and_half_an_order_is_an_error() {
        let (near, far) = UnixStream::pair().unwrap();
        let null = || std::fs::File::open("/dev/null").unwrap().into();
        let (grace, priority) = (Duration::ZERO, Priority::Normal);
        let (words, streams) = (vec!["a\0b".into()], [null(), null(), null()]);
        let order = Order { grace, priority, words, streams };
        assert_eq!(order.send(&near).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        drop(near);
        assert_eq!(Order::receive(&far).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn requests_and_reports_are_read_as_they_were_written() {
        for request in [Request::End, Request::Kill] {
            assert_eq!(Request::of(request.to_byte()), Some(request));
        }
        for report in [
            GuardReport::Started(Pid::from_raw(70_000).unwrap()),
            GuardReport::NotStarted(2),
            GuardReport::Ended(ExitStatus::from_raw(9)),
            GuardReport::Gone,
        ] {
            assert_eq!(GuardReport::of(report.to_bytes()), Some(report));
        }
        assert_eq!((Request::of(b'x'), GuardReport::of(*b"x0000")), (None, None));
    }
}
