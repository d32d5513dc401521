//! Reads the kernel's counts of a TCP connection's segments (`TCP_INFO`). Has all `unsafe` code of this crate.

use std::io;
use std::net::TcpStream;
use std::ops::{AddAssign, Sub};
use std::os::fd::AsRawFd as _;

use serde::{Deserialize, Serialize};

/// The bytes of each packet on Ethernet in addition to its payload. They are preamble, header, check sequence and gap
/// (38), IPv4 (20), and TCP with timestamps (32).
const PACKET_BYTES: u64 = 90;
/// The additional bytes of a SYN, since it has more options.
const SYN_BYTES: u64 = 8;
/// The bytes of each packet in addition to its payload, in the captures of the publications (part D). They are null
/// header (4), IPv6 (40), and TCP with timestamps (32).
const PUBLISHED_PACKET_BYTES: u64 = 76;
const PUBLISHED_SYN_BYTES: u64 = 12;
const SYNS: u64 = 2;

/// The kernel's states of a connection whose peer has sent its FIN. They are `TCP_CLOSE` (also after a reset, which is
/// rare), `TCP_CLOSE_WAIT`, `TCP_LAST_ACK` and `TCP_CLOSING`.
const PEER_HAS_FINISHED: [u8; 4] = [7, 8, 9, 11];

/// The offsets of fields in the kernel's `struct tcp_info`. That structure only grows at its end.
const STATE: usize = 0;
const RETRANSMITTED: usize = 100;
const SEGMENTS_OUT: usize = 136;
const SEGMENTS_IN: usize = 140;
const DATA_IN: usize = 152;
const DATA_OUT: usize = 156;
const BYTES_IN: usize = 128;
const BYTES_OUT: usize = 200;
const BYTES_RETRANSMITTED: usize = 208;
const INFO_BYTES_MIN: usize = 216;
const INFO_BYTES_MAX: usize = 512;

/// The traffic of connections, as the client sees it. The segments are those of both directions, including those that
/// open and close.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub(crate) struct Traffic {
    /// The bytes of payload that the client sent; below, the bytes that it received.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) segments: u64,
    /// The number of segments with payload. The others are acknowledgements, SYNs and FINs.
    pub(crate) data_segments: u64,
    pub(crate) retransmitted: u64,
    pub(crate) connections: u64,
}

impl Traffic {
    /// Reads the counters of a connection. Its bytes of payload are given.
    pub(crate) fn of(stream: &TcpStream, sent_bytes: u64, received_bytes: u64) -> io::Result<Self> {
        Ok(Self { sent_bytes, received_bytes, ..Self::by_kernel(stream)? })
    }

    /// Reads the traffic of several connections. The bytes are those that the kernel has counted.
    pub(crate) fn of_all(streams: &[TcpStream]) -> io::Result<Self> {
        let mut all = Self::default();
        for stream in streams {
            all += Self::by_kernel(stream)?;
        }
        Ok(all)
    }

    /// Reads the traffic of one connection. The bytes are those that the kernel has counted.
    pub(crate) fn by_kernel(stream: &TcpStream) -> io::Result<Self> {
        let info = tcp_info(stream)?;
        let at = |place: usize| {
            let bytes = info.get(place..place + 4).and_then(|bytes| bytes.try_into().ok());
            u64::from(u32::from_ne_bytes(bytes.unwrap_or_default()))
        };
        let bytes = |place: usize| {
            let bytes = info.get(place..place + 8).and_then(|bytes| bytes.try_into().ok());
            u64::from_ne_bytes(bytes.unwrap_or_default())
        };
        // The kernel counts sequence numbers that came, and a FIN takes one (RFC 9293 section 3.4).
        let fins =
            u64::from(info.get(STATE).is_some_and(|state| PEER_HAS_FINISHED.contains(state)));
        Ok(Self {
            sent_bytes: bytes(BYTES_OUT).saturating_sub(bytes(BYTES_RETRANSMITTED)),
            received_bytes: bytes(BYTES_IN).saturating_sub(fins),
            segments: at(SEGMENTS_OUT) + at(SEGMENTS_IN),
            data_segments: at(DATA_OUT) + at(DATA_IN),
            retransmitted: at(RETRANSMITTED),
            connections: 1,
        })
    }

    pub(crate) fn payload_bytes(&self) -> u64 {
        self.sent_bytes + self.received_bytes
    }

    /// Returns the bytes on Ethernet, with everything around the payload.
    pub(crate) fn wire_bytes(&self) -> u64 {
        self.payload_bytes() + PACKET_BYTES * self.segments + SYN_BYTES * SYNS * self.connections
    }

    /// Returns the bytes as the captures of the publications count them.
    pub(crate) fn published_bytes(&self) -> u64 {
        let packets = PUBLISHED_PACKET_BYTES * self.segments;
        self.payload_bytes() + packets + PUBLISHED_SYN_BYTES * SYNS * self.connections
    }
}

impl Sub for Traffic {
    type Output = Self;

    /// Returns the traffic of a connection after an earlier reading.
    fn sub(self, earlier: Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes - earlier.sent_bytes,
            received_bytes: self.received_bytes - earlier.received_bytes,
            segments: self.segments - earlier.segments,
            data_segments: self.data_segments - earlier.data_segments,
            retransmitted: self.retransmitted - earlier.retransmitted,
            connections: self.connections - earlier.connections,
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.sent_bytes = self.sent_bytes.saturating_add(other.sent_bytes);
        self.received_bytes = self.received_bytes.saturating_add(other.received_bytes);
        self.segments = self.segments.saturating_add(other.segments);
        self.data_segments = self.data_segments.saturating_add(other.data_segments);
        self.retransmitted = self.retransmitted.saturating_add(other.retransmitted);
        self.connections = self.connections.saturating_add(other.connections);
    }
}

#[expect(unsafe_code, reason = "neither the standard library nor rustix reads TCP_INFO")]
fn tcp_info(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut info = vec![0_u8; INFO_BYTES_MAX];
    let mut len = INFO_BYTES_MAX as libc::socklen_t;
    // SAFETY: `info` has `len` bytes, to which the kernel writes at most that many; both pointers are valid for the call, and
    // the descriptor is open as long as `stream` is borrowed.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    info.truncate(len as usize);
    if info.len() < INFO_BYTES_MIN {
        let words =
            format!("the kernel's TCP_INFO has {} bytes, {INFO_BYTES_MIN} are needed", info.len());
        return Err(io::Error::new(io::ErrorKind::Unsupported, words));
    }
    Ok(info)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener};

    use super::*;

    #[test]
    fn segments_are_counted_with_those_that_open_and_close() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"question").unwrap();
        server.read_exact(&mut [0; 8]).unwrap();
        server.write_all(b"reply").unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        let mut reply = Vec::new();
        client.read_to_end(&mut reply).unwrap();
        let traffic = Traffic::of(&client, 8, 5).unwrap();
        assert_eq!((traffic.data_segments, traffic.retransmitted), (2, 0));
        let by_kernel = Traffic::of_all(&[client]).unwrap();
        assert_eq!((by_kernel.sent_bytes, by_kernel.received_bytes), (8, 5));
        // SYN, SYN-ACK, ACK; question, ACK; reply, FIN, and their ACKs, which may be one.
        assert!((7..=9).contains(&traffic.segments), "{traffic:?}");
        assert_eq!(traffic.wire_bytes(), 13 + 90 * traffic.segments + 16);
        assert_eq!(traffic.published_bytes(), 13 + 76 * traffic.segments + 24);
    }
}
