//! One hostile peer: the bytes that it sends and reads, and its end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::load::is_transient;

/// The number of received bytes that are kept, at the beginning and at the end. They are enough for the first line of a
/// response, or for a close frame.
const TAIL_BYTES: usize = 256;
/// The most bytes that a peer writes in one turn, and the most that it reads.
const TURN_BYTES: u64 = 256 << 10;

/// The behaviour of a peer once it is connected. Some peers also have a WebSocket by then.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// The bytes that are sent first. After them, `burst` is sent `bursts` times.
    pub(super) begin: Rc<[u8]>,
    pub(super) burst: Rc<[u8]>,
    pub(super) bursts: usize,
    /// The bytes that are sent once a second after that.
    pub(super) drip: Rc<[u8]>,
    pub(super) never_reads: bool,
    /// The number of bytes that a harmless peer must get back. The server does not end such a peer.
    pub(super) reply_bytes: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Peer {
    stream: TcpStream,
    script: Script,
    begun: Instant,
    pub(super) sent_bytes: u64,
    received_bytes: u64,
    /// The first bytes that came; below, the last ones.
    head: Vec<u8>,
    tail: Vec<u8>,
    pub(super) end: Option<PeerEnd>,
}

/// The way in which the server ended a connection.
#[derive(Debug)]
pub(super) struct PeerEnd {
    pub(super) after: Duration,
    pub(super) how: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Progress {
    Some,
    None,
}

impl Peer {
    pub(super) fn new(stream: TcpStream, script: Script) -> anyhow::Result<Self> {
        stream.set_nonblocking(true)?;
        let (begun, head, tail) = (Instant::now(), Vec::new(), Vec::new());
        let (sent_bytes, received_bytes) = (0, 0);
        Ok(Self { stream, script, begun, sent_bytes, received_bytes, head, tail, end: None })
    }

    pub(super) fn is_over(&self) -> bool {
        let has_all = |bytes| self.received_bytes >= bytes && self.burst_left() == 0;
        self.end.is_some() || self.script.reply_bytes.is_some_and(has_all)
    }

    /// Returns the number of bytes that are still to be sent without a pause.
    fn burst_left(&self) -> u64 {
        let Script { begin, burst, bursts, .. } = &self.script;
        let all = (burst.len() as u64).saturating_mul(*bursts as u64);
        all.saturating_add(begin.len() as u64).saturating_sub(self.sent_bytes)
    }

    /// Sends and reads as much as one turn allows. `drips` is true in one turn each second.
    pub(super) fn turn(&mut self, drips: bool) -> anyhow::Result<Progress> {
        if self.is_over() {
            return Ok(Progress::None);
        }
        let before = (self.sent_bytes, self.received_bytes);
        let mut is_cut = false;
        if self.burst_left() > 0 {
            is_cut = self.send_burst();
        } else if drips && !self.script.drip.is_empty() {
            is_cut = match (&self.stream).write(&self.script.drip) {
                Ok(len) => {
                    self.sent_bytes += len as u64;
                    false
                }
                Err(error) => !is_transient(error.kind()),
            };
        }
        if self.script.never_reads {
            is_cut |= is_hung_up(&self.stream)?;
        } else {
            is_cut |= self.read();
        }
        if is_cut {
            self.end = Some(PeerEnd { after: self.begun.elapsed(), how: self.how() });
        }
        let went_on = before != (self.sent_bytes, self.received_bytes);
        Ok(if went_on { Progress::Some } else { Progress::None })
    }

    /// Sends more of the burst. Returns true if the connection is lost.
    fn send_burst(&mut self) -> bool {
        let Script { begin, burst, .. } = &self.script;
        let limit = self.sent_bytes + self.burst_left().min(TURN_BYTES);
        while self.sent_bytes < limit {
            let sent = self.sent_bytes as usize;
            let bytes = match sent.checked_sub(begin.len()) {
                Some(sent) => &burst[sent % burst.len()..],
                None => &begin[sent..],
            };
            match (&self.stream).write(bytes) {
                Ok(len) => self.sent_bytes += len as u64,
                Err(error) if is_transient(error.kind()) => return false,
                // The server's last bytes may still be readable.
                Err(_) => return self.script.never_reads,
            }
        }
        false
    }

    /// Reads the bytes that have come. Returns true at the end of the stream.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 1 << 14];
        for _ in 0..TURN_BYTES / bytes.len() as u64 {
            match self.stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(len) => self.keep(&bytes[..len]),
                Err(error) if is_transient(error.kind()) => return false,
                Err(_) => return true,
            }
        }
        false
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.received_bytes += bytes.len() as u64;
        let room = TAIL_BYTES - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
    }

    /// Returns the way in which the server ended the connection: the status of a response, the code of a close frame,
    /// or only a close.
    fn how(&self) -> String {
        if self.script.never_reads {
            return "closed".to_owned();
        }
        let head = String::from_utf8_lossy(&self.head);
        if let Some(status) = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)) {
            return format!("status {status}");
        }
        match close_code(&self.tail) {
            Some(code) => format!("close code {code}"),
            None => "closed".to_owned(),
        }
    }
}

/// Returns the code of the close frame at the end of a server's bytes (RFC 6455 section 5.5.1).
fn close_code(tail: &[u8]) -> Option<u16> {
    (0..tail.len()).find_map(|at| match tail[at..] {
        [0x88, len, high, low, ref reason @ ..] if usize::from(len) == reason.len() + 2 => {
            Some(u16::from_be_bytes([high, low]))
        }
        _ => None,
    })
}

/// Returns true if the other end has closed the connection. Reads nothing.
fn is_hung_up(stream: &TcpStream) -> anyhow::Result<bool> {
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).context("watching a connection")?;
    Ok(fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_frame_is_found_at_the_end_and_only_there() {
        let frame = [&[0x88, 5, 0x03, 0xf1][..], b"big"].concat();
        assert_eq!(close_code(&frame), Some(1009));
        assert_eq!(close_code(&[&[0x8a, 0, 0x88][..], &frame].concat()), Some(1009));
        assert_eq!(close_code(&[&frame[..], b"more"].concat()), None);
        assert_eq!(close_code(b""), None);
    }
}
