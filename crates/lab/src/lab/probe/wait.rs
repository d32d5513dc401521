//! Limits the time for an answer.
//!
//! A head, a small answer or an event must come within the patience. Only long data may take longer, and only as much
//! longer as the slowest link needs.

use std::time::{Duration, Instant};

use super::{Fault, Place, Stall};

/// The least speed of a long message, in bytes a second. The slowest link that can be emulated has 1 kbit a second,
/// which is 125 bytes.
const BYTES_PER_SECOND_MIN: u64 = 100;

/// A wait for a message that has not arrived completely.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    begun: Instant,
    patience: Duration,
    patience_of_all: Duration,
    /// The number of the message's bytes that were sent or received so far.
    bytes: u64,
    /// True if heartbeats have come during the wait.
    has_heartbeats: bool,
}

impl Wait {
    pub(super) fn begin(place: &Place) -> Self {
        let (patience, patience_of_all) = (place.patience, place.patience_of_all());
        Self { begun: Instant::now(), patience, patience_of_all, bytes: 0, has_heartbeats: false }
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Counts some of the bytes as a heartbeat. They do not make the wait longer.
    pub(super) fn count_as_heartbeat(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
        self.has_heartbeats = true;
    }

    /// Returns the wait as if this many bytes had been sent or received.
    pub(super) fn with(self, bytes: usize) -> Self {
        Self { bytes: bytes as u64, ..self }
    }

    /// Returns a fault if the wait has taken longer than its bytes allow.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let worth = Duration::from_secs_f64(self.bytes as f64 / BYTES_PER_SECOND_MIN as f64);
        let allowed = (self.patience + worth).min(self.patience_of_all);
        if self.begun.elapsed() <= allowed { Ok(()) } else { Err(self.stalled()) }
    }

    pub(super) fn stalled(&self) -> Fault {
        match self.bytes {
            0 if self.has_heartbeats => Fault::Stalled(Stall::Heartbeats(self.patience)),
            0 => Fault::Stalled(Stall::Silent(self.patience)),
            bytes => Fault::Stalled(Stall::Slow(self.begun.elapsed(), bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::super::{FaultKind, Http, WebSocket};
    use super::*;

    /// Starts a server that answers the first request byte by byte.
    fn slow(answer: &'static [u8], pause: Duration, patience: Duration) -> Place {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            for byte in answer.iter().cycle() {
                // It ends when the client has gone.
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
                thread::sleep(pause);
            }
        });
        Place { patience, ..Place::new(address) }
    }

    #[test]
    fn a_head_that_comes_byte_by_byte_is_waited_for_once_and_not_twelve_times() {
        let is_waited_for_once = |patience: Duration| {
            let place = || slow(b"HTTP/1.1 200 OK\r\na: ", patience / 4, patience);
            let begun = Instant::now();
            let fault = Http::connect(&place()).unwrap().call("GET", "/", "", b"").unwrap_err();
            assert_eq!(fault.kind(), FaultKind::Stalled);
            assert!(WebSocket::connect(&place(), "/", &[], 1).is_err());
            // It was slow and not silent, and both heads together took less than twelve times the patience.
            fault.to_string().starts_with("the server was too slow: ")
                && begun.elapsed() < patience * 12
        };
        // A busy machine makes both ends late, though not with each of these.
        let mut patiences = (0..8).map(|doublings| Duration::from_millis(100 << doublings));
        assert!(patiences.any(is_waited_for_once));
    }

    #[test]
    fn what_is_long_may_take_as_long_as_the_slowest_link_needs() {
        let begun = Instant::now().checked_sub(Duration::from_secs(25)).unwrap();
        let patience = Duration::from_secs(10);
        let wait = Wait { begun, ..Wait::begin(&Place::new(([127, 0, 0, 1], 1).into())) };
        assert_eq!(wait.patience, patience);
        assert!(wait.with(1600).check().is_ok() && wait.with(1400).check().is_err());
        assert_eq!(wait.stalled().to_string(), "the server was silent for 10 s");
        let mut pinged = Wait { bytes: 1602, ..wait };
        pinged.count_as_heartbeat(1602);
        assert_eq!(pinged.check().unwrap_err().to_string(), "only heartbeats came within 10 s");
        let long = Wait { begun: begun.checked_sub(patience * 12).unwrap(), ..wait };
        assert!(long.with(usize::MAX).check().is_err(), "not for ever");
    }
}
