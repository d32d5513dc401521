//! The queue of log lines, written by a thread of its own.
//!
//! A full pipe without a reader would block every thread that writes to it, and sooner or later the whole server. So
//! lines wait here, up to a limit; further ones are dropped, and the log reports their number.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The time before a retry with an output that would block, for example a terminal that another program has made
/// non-blocking.
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// The most bytes that wait: about 5,000 lines, more than the requests of a burst. A longer line is written alone.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// A queue of lines. Clones are handles to the same queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    is_writing: bool,
    /// The number of lines without room, or that could not be written, since the last report.
    dropped: u64,
}

impl Queue {
    /// Starts the thread that writes, if possible.
    pub(super) fn start(output: impl Write + Send + 'static) -> Option<Self> {
        let queue = Self::default();
        let own = queue.clone();
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || own.drain(output));
        thread.is_ok().then_some(queue)
    }

    /// Writes lines forever.
    fn drain(&self, mut output: impl Write) {
        let mut is_amid_line = false;
        loop {
            let mut waiting = self.lock();
            while waiting.lines.is_empty() {
                waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            let lines = std::mem::take(&mut waiting.lines);
            let dropped = std::mem::take(&mut waiting.dropped);
            waiting.is_writing = true;
            drop(waiting);
            // The cut line has been counted as dropped; later lines must not look like its rest.
            if is_amid_line && write(&mut output, b"\n") > 0 {
                is_amid_line = false;
            }
            let written = write(&mut output, &lines);
            is_amid_line = match written.checked_sub(1) {
                Some(last) => lines[last] != b'\n',
                None => is_amid_line,
            };
            if written < lines.len() {
                // There is no other place to report this. The log reports it when writing works again.
                let left = &lines[written..];
                let left = left.iter().filter(|&&byte| byte == b'\n').count();
                self.lock().dropped += dropped + left as u64;
            } else if dropped > 0 {
                tracing::warn!(
                    "the log is read more slowly than it is written: {dropped} of its lines were dropped here"
                );
            }
            self.lock().is_writing = false;
            self.0.changed.notify_all();
        }
    }

    /// Waits until everything is written, for at most `timeout`.
    pub(super) fn flush(&self, timeout: Duration) {
        let is_left = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        let waited = self.0.changed.wait_timeout_while(self.lock(), timeout, is_left);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes all bytes, and waits for an output that would block. Returns the number of bytes written, which is smaller
/// if the output failed.
fn write(output: &mut impl Write, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match output.write(&bytes[written..]) {
            Ok(0) => break,
            Ok(len) => written += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(RETRY_AFTER),
            Err(_) => break,
        }
    }
    // If flushing fails, buffered bytes are lost with the output.
    let _ = output.flush();
    written
}

/// Adds a line, as a whole or not at all.
impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.lock();
        let has_room = waiting.lines.len() + line.len() <= QUEUED_BYTES_MAX;
        if has_room || waiting.lines.is_empty() {
            waiting.lines.extend_from_slice(line);
        } else {
            waiting.dropped += 1;
        }
        drop(waiting);
        self.0.changed.notify_all();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io::{Read as _, pipe};

    use anemone_testing::wait_until;

    use super::*;

    #[test]
    fn who_logs_does_not_wait_for_who_reads_and_lines_beyond_the_limit_are_counted() {
        let (mut reader, writer) = pipe().unwrap();
        let mut queue = Queue::start(writer).unwrap();
        let line = |number: usize| format!("{number:99}\n").into_bytes();
        // More than a pipe takes: while nobody reads, no other line is written, and those that are dropped are counted together.
        let long = [&vec![b'x'; 256 << 10][..], b"\n"].concat();
        queue.write_all(&long).unwrap();
        wait_until("the long line is not written", || {
            let waiting = queue.lock();
            waiting.is_writing && waiting.lines.is_empty()
        });
        let lines = 5 * QUEUED_BYTES_MAX / 100;
        for number in 0..lines {
            queue.write_all(&line(number)).unwrap();
        }
        queue.flush(Duration::ZERO);
        let dropped = usize::try_from(queue.lock().dropped).unwrap();
        assert!((1..lines).contains(&dropped), "{dropped} of {lines}");
        reader.read_exact(&mut vec![0; long.len()]).unwrap();
        let mut read = vec![0; (lines - dropped) * 100];
        reader.read_exact(&mut read).unwrap();
        let numbers: Vec<_> = read
            .chunks(100)
            .map(|line| std::str::from_utf8(line).unwrap().trim().parse::<usize>().unwrap())
            .collect();
        assert!(numbers.is_sorted(), "in order, and each whole");
        queue.write_all(&line(7)).unwrap();
        queue.flush(Duration::from_secs(60));
        reader.read_exact(&mut read[..100]).unwrap();
        assert_eq!(&read[..100], line(7), "it goes on");
    }

    /// An output that takes 150 bytes before each of its errors, and everything once there are no more of these. Clones are the
    /// same.
    #[derive(Clone)]
    struct Failing(Arc<Mutex<FailingState>>);

    struct FailingState {
        errors: VecDeque<io::ErrorKind>,
        written: Vec<u8>,
        is_error_next: bool,
    }

    impl Failing {
        fn with(errors: &[io::ErrorKind]) -> Self {
            let errors = errors.iter().copied().collect();
            let state = FailingState { errors, written: Vec::new(), is_error_next: false };
            Self(Arc::new(Mutex::new(state)))
        }

        fn written(&self) -> Vec<u8> {
            self.0.lock().unwrap().written.clone()
        }
    }

    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let state = &mut *self.0.lock().unwrap();
            if std::mem::take(&mut state.is_error_next)
                && let Some(error) = state.errors.pop_front()
            {
                return Err(error.into());
            }
            state.is_error_next = !state.errors.is_empty();
            let len = if state.is_error_next { bytes.len().min(150) } else { bytes.len() };
            state.written.extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Ten lines of a hundred bytes.
    fn ten_lines() -> Vec<u8> {
        (0..10).flat_map(|number| format!("{number:99}\n").into_bytes()).collect()
    }

    #[test]
    fn an_output_that_takes_nothing_for_the_moment_is_waited_for() {
        use io::ErrorKind::{Interrupted, WouldBlock};
        let output = Failing::with(&[WouldBlock, Interrupted, WouldBlock, WouldBlock]);
        let mut queue = Queue::start(output.clone()).unwrap();
        queue.write_all(&ten_lines()).unwrap();
        queue.flush(Duration::from_secs(60));
        assert_eq!(output.written(), ten_lines());
        assert_eq!(queue.lock().dropped, 0);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_until_one_can() {
        let output = Failing::with(&[io::ErrorKind::BrokenPipe]);
        let mut queue = Queue::start(output.clone()).unwrap();
        queue.write_all(&ten_lines()).unwrap();
        queue.flush(Duration::from_secs(60));
        assert_eq!(output.written(), ten_lines()[..150], "a whole line, and half of one");
        assert_eq!(queue.lock().dropped, 9);
        queue.write_all(b"on\n").unwrap();
        queue.flush(Duration::from_secs(60));
        assert!(output.written().ends_with(b"\non\n"), "not in the line that was cut");
        assert_eq!(queue.lock().dropped, 0, "and that is told");
    }
}
