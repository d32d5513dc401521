use std::time::Duration;

use super::super::StreamHandler;
use super::super::protocol;
use super::*;
use crate::Memory;

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
    for len in [0, 1, Scratch::INPUT_BYTES, Scratch::INPUT_BYTES + 1, 3 * Scratch::INPUT_BYTES + 1]
    {
        let mut scratch = Scratch::new(Instant::now);
        let protocol = protocol::Stream::boxed(Silent, Duration::from_secs(60), Time::ZERO);
        let mut socket = Socket::new(Script(len), protocol, 0, Memory::default().share());
        // epoll tells of it once; then the loop comes back for as long as it is asked to.
        let mut verdict = socket.event(ended, Time::ZERO, &mut scratch);
        let mut left = len.div_ceil(ReadBytes::LEAST) + 1;
        while left > 0 && verdict != Verdict::Drop {
            assert_eq!(verdict, Verdict::ReadAgain, "{len} bytes");
            verdict = socket.readable(Time::ZERO, &mut scratch);
            left -= 1;
        }
        assert_eq!((verdict, socket.stream.0), (Verdict::Drop, 0), "{len} bytes");
    }
}

#[test]
fn reads_grow_with_what_is_done_in_a_slice_and_shrink_with_what_is_not() {
    let mut read = ReadBytes::FIRST;
    for _ in 0..8 {
        read = read.after(true);
    }
    assert_eq!(read.0, Scratch::INPUT_BYTES);
    assert_eq!(read.after(false).0, Scratch::INPUT_BYTES / 2);
    for _ in 0..8 {
        read = read.after(false);
    }
    assert_eq!(read.0, ReadBytes::LEAST);
}
