//! One connection. Its bytes and segments are counted.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::pipe::Pipe;
use super::wait::Wait;
use super::{Fault, MESSAGE_BYTES_MAX, Place};
use crate::tcp_info::Traffic;

/// A number of bytes that always fits into the buffers between both ends.
pub(super) const AT_ONCE_BYTES: usize = 32 << 10;

/// A connection, and the received bytes that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Stream {
    pipe: Arc<Pipe>,
    place: Place,
    buffer: Vec<u8>,
    /// The number of bytes at the beginning of the buffer that were taken.
    taken: usize,
    sent_bytes: u64,
    received_bytes: u64,
    wait: Wait,
}

impl Stream {
    pub(crate) fn connect(place: &Place) -> Result<Self, Fault> {
        let pipe = Arc::new(Pipe::connect(place)?);
        let (buffer, taken) = (Vec::new(), 0);
        let wait = Wait::begin(place);
        let (sent_bytes, received_bytes) = (0, 0);
        let place = place.clone();
        Ok(Self { pipe, place, buffer, taken, sent_bytes, received_bytes, wait })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Sends bytes, in one write if possible. Begins the wait for their answer.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.send_aside(bytes)?;
        self.begin_wait();
        Ok(())
    }

    /// Sends bytes that need no answer, such as a pong. Does not change the current wait.
    pub(crate) fn send_aside(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.pipe.write_all(bytes).map_err(|error| self.fault(error))?;
        self.sent_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Begins a wait, for example for the next message of a server that sends without requests.
    pub(crate) fn begin_wait(&mut self) {
        self.wait = Wait::begin(&self.place);
    }

    /// Counts the last bytes as a heartbeat. They do not make the wait longer.
    pub(super) fn count_as_heartbeat(&mut self, bytes: usize) {
        self.wait.count_as_heartbeat(bytes);
    }

    /// Returns the received bytes that nobody has taken yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Takes the first `len` bytes, or all bytes if there are fewer.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let bytes = self.bytes();
        let bytes = bytes[..len.min(bytes.len())].to_vec();
        self.skip(bytes.len());
        bytes
    }

    /// Drops the first `len` bytes. They must have been received.
    pub(super) fn skip(&mut self, len: usize) {
        self.taken += len;
    }

    /// Waits for more bytes. The end of the connection is the error [`Fault::Closed`].
    pub(crate) fn fill(&mut self) -> Result<(), Fault> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        if self.buffer.len() > MESSAGE_BYTES_MAX {
            return Err(Fault::Wrong(format!("a message has more than {MESSAGE_BYTES_MAX} bytes")));
        }
        self.wait.check()?;
        match self.pipe.read(&mut self.buffer) {
            // A signal, such as Ctrl-C, which lets what is begun come to its end.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Ok(Some(0)) => Err(Fault::Closed),
            Ok(len) => {
                self.received_bytes += len.unwrap_or(0) as u64;
                self.wait.add(len.unwrap_or(0));
                Ok(())
            }
            Err(error) => match self.fault(error) {
                Fault::Stalled(_) => Err(self.wait.stalled()),
                fault => Err(fault),
            },
        }
    }

    /// Waits until there are at least `len` bytes that nobody has taken.
    pub(crate) fn fill_to(&mut self, len: usize) -> Result<(), Fault> {
        while self.bytes().len() < len {
            self.fill()?;
        }
        Ok(())
    }

    /// Sends bytes while it waits for `len` bytes. So even bytes that fill every buffer on the way do not block.
    pub(crate) fn exchange(&mut self, bytes: &[u8], len: usize) -> Result<(), Fault> {
        if bytes.len() <= AT_ONCE_BYTES {
            self.send(bytes)?;
            return self.fill_to(len);
        }
        self.send_beside(bytes, |stream| stream.fill_to(len))
    }

    /// Sends many bytes on another thread while `receive` reads. If a reply comes before all bytes are sent, such as a
    /// refusal, the reply counts, and the other bytes are not sent.
    pub(crate) fn send_beside<T>(
        &mut self,
        bytes: &[u8],
        receive: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let writer = Arc::clone(&self.pipe);
        self.sent_bytes += bytes.len() as u64;
        self.begin_wait();
        self.wait.add(bytes.len());
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| write_until(&writer, bytes, &is_over));
            let received = receive(self);
            is_over.store(true, Ordering::Relaxed);
            if received.is_err() {
                // It wakes a write that nobody reads.
                let _ = self.pipe.close();
            }
            received
        })
    }

    /// Closes this side, and waits until the other side has closed. Returns the traffic of the connection.
    pub(crate) fn finish(mut self) -> Result<Traffic, Fault> {
        // The server may have closed the connection already.
        let _ = self.pipe.end();
        self.begin_wait();
        loop {
            self.taken = self.buffer.len();
            match self.fill() {
                Ok(()) => {}
                Err(Fault::Closed | Fault::Broken(_)) => break,
                Err(fault) => return Err(fault),
            }
        }
        self.pipe.wait_for_end();
        self.traffic()
    }

    pub(crate) fn traffic(&self) -> Result<Traffic, Fault> {
        self.pipe.traffic(self.sent_bytes, self.received_bytes).map_err(Fault::Broken)
    }

    fn fault(&self, error: io::Error) -> Fault {
        Fault::of_io(error, self.place.patience)
    }
}

/// Writes all bytes. Stops early if the exchange is over, or if the connection breaks, which the reading thread finds,
/// too. A write that waits in the kernel ends after the patience.
fn write_until(writer: &Pipe, mut bytes: &[u8], is_over: &AtomicBool) {
    while !bytes.is_empty() && !is_over.load(Ordering::Relaxed) {
        match writer.write(bytes) {
            Ok(len) => bytes = &bytes[len..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use socket2::{Domain, Protocol, Socket, Type};

    use super::*;

    /// The number for all protocols of Ethernet, in network byte order.
    const ALL_PROTOCOLS: i32 = 0x0003_u16.to_be() as i32;
    const ETHERNET_BYTES: usize = 14;
    /// The payload of a full segment, in bytes.
    const PAYLOAD_BYTES: usize = 1448;

    /// Returns the ports, and the number of segments, of a captured packet of TCP over IPv4. A capture gets long
    /// packets before the kernel divides them.
    fn segments(packet: &[u8]) -> Option<([u16; 2], usize)> {
        let ip = packet.get(ETHERNET_BYTES..)?;
        let header = usize::from(ip.first()? & 0x0f) * 4;
        let tcp = (ip[0] >> 4 == 4 && *ip.get(9)? == 6).then(|| ip.get(header..))??;
        let at = |place: usize| Some(u16::from_be_bytes([*tcp.get(place)?, *tcp.get(place + 1)?]));
        let payload = tcp.len().checked_sub(usize::from(*tcp.get(12)? >> 4) * 4)?;
        Some(([at(0)?, at(2)?], payload.div_ceil(PAYLOAD_BYTES).max(1)))
    }

    /// Returns the number of segments of a connection twice: as the kernel counts them, and as a capture shows them.
    /// Returns `None` without the right to capture.
    fn counted_and_captured() -> Option<(u64, u64)> {
        let all = Some(Protocol::from(ALL_PROTOCOLS));
        let mut capture = Socket::new(Domain::PACKET, Type::RAW, all).ok()?;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().port();
        let place = Place::new(listener.local_addr().unwrap());
        // Bound, but not listening: a refused connection marks the end.
        let bound = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        bound.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let marker = bound.local_addr().unwrap().as_socket().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap();
        });
        // Read at once, since the kernel keeps few packets.
        let captured = thread::spawn(move || {
            let (mut seen, mut packet) = (0, vec![0; 70_000]);
            loop {
                let len = capture.read(&mut packet).unwrap();
                match segments(&packet[..len]) {
                    Some((ports, _)) if ports.contains(&marker.port()) => return seen,
                    Some((ports, segments)) if ports.contains(&server) => seen += segments,
                    _ => {}
                }
            }
        });
        let mut stream = Stream::connect(&place).unwrap();
        for len in [1, 100, 1448, 10_000] {
            stream.exchange(&vec![7; len], len).unwrap();
            stream.take(len);
        }
        let counted = stream.finish().unwrap().segments;
        // The mark may be lost as any packet.
        while !captured.is_finished() {
            assert!(std::net::TcpStream::connect(marker).is_err());
        }
        // A packet of the loopback interface is captured when it leaves and when it arrives.
        Some((counted, captured.join().unwrap() as u64 / 2))
    }

    #[test]
    fn the_kernel_counts_the_packets_that_a_capture_sees() {
        let mut tries = (0..10).map_while(|_| counted_and_captured()).peekable();
        if tries.peek().is_none() {
            // Captures are for root.
            return;
        }
        // A capture loses packets on a busy machine, and finds none that were not sent.
        let is_equal = tries.any(|(counted, captured)| {
            assert!(captured <= counted + 1, "counted: {counted}, captured: {captured}");
            counted.abs_diff(captured) <= 1
        });
        assert!(is_equal, "ten captures lost packets");
    }
}
