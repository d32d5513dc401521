use std::time::Duration;

use super::super::StreamHandler;
use super::super::protocol;
use super::*;

/// Has so many bytes for the reader, and then the end.
struct Script(usize);

impl Stream for Script {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.0.min(bytes.len());
        self.0 -= len;
        Ok(len)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(slices.iter().map(|slice| slice.len()).sum())
    }

    fn end(&mut self, _is_last: bool) -> io::Result<()> {
        Ok(())
    }
}

struct Silent;

impl StreamHandler for Silent {
    fn receive(&mut self, _bytes: &[u8], _output: &mut Output) {}
}

#[test]
fn an_end_that_was_told_of_is_found_behind_any_number_of_bytes() {
    let ended = Readiness { read: true, end: true, write: false };
    for (len, turns) in [
        (0, 1),
        (1, 2),
        (Scratch::INPUT_BYTES, 2),
        (Scratch::INPUT_BYTES + 1, 3),
        (3 * Scratch::INPUT_BYTES + 1, 5),
    ] {
        let mut scratch = Scratch::new();
        let protocol = protocol::Stream::boxed(Silent, Duration::from_secs(60), Time::ZERO);
        let mut socket = Socket::new(Script(len), protocol, 0);
        // epoll tells of it once; then the loop comes back for as long as it is asked to.
        let mut verdict = socket.event(ended, Time::ZERO, &mut scratch);
        for turn in 1..turns {
            assert_eq!(verdict, Verdict::ReadAgain, "{len} bytes, turn {turn}");
            verdict = socket.readable(Time::ZERO, &mut scratch);
        }
        assert_eq!(verdict, Verdict::Drop, "{len} bytes");
    }
}
