//! Lines on their way to whoever reads the log, by a thread of their own.
//!
//! A pipe that nobody reads takes nothing more, and whoever wrote to it would wait: every thread of a server, sooner or
//! later. So lines wait here, up to a limit; those beyond it are dropped, and the log says how many.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Most that waits: some 5,000 lines, more than the requests of a burst. A line longer than that is written alone.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Lines that wait. Clones are the same.
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
    /// Lines for which there was no room, since that was last told.
    dropped: u64,
}

impl Queue {
    /// Starts the thread that writes, if there can be one.
    pub(super) fn start(output: impl Write + Send + 'static) -> Option<Self> {
        let queue = Self::default();
        let own = queue.clone();
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || own.drain(output));
        thread.is_ok().then_some(queue)
    }

    /// Writes what comes, for ever.
    fn drain(&self, mut output: impl Write) {
        loop {
            let mut waiting = self.waiting();
            while waiting.lines.is_empty() {
                waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            let lines = std::mem::take(&mut waiting.lines);
            let dropped = std::mem::take(&mut waiting.dropped);
            waiting.is_writing = true;
            drop(waiting);
            // There is nowhere else to tell that nobody reads any more.
            let _ = output.write_all(&lines).and_then(|()| output.flush());
            if dropped > 0 {
                tracing::warn!(
                    "the log is read more slowly than it is written: {dropped} of its lines were dropped here"
                );
            }
            self.waiting().is_writing = false;
            self.0.changed.notify_all();
        }
    }

    /// Waits until all is written, but not for longer than that.
    pub(super) fn flush(&self, timeout: Duration) {
        let is_left = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        let waited = self.0.changed.wait_timeout_while(self.waiting(), timeout, is_left);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a line, whole or not at all.
impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.waiting();
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
    use std::io::{Read as _, pipe};

    use super::*;

    #[test]
    fn who_logs_does_not_wait_for_who_reads_and_lines_beyond_the_limit_are_counted() {
        let (mut reader, writer) = pipe().unwrap();
        let mut queue = Queue::start(writer).unwrap();
        let line = |number: usize| format!("{number:99}\n").into_bytes();
        // Nobody reads: the pipe takes its 64 KiB or so, the queue its limit and what is being written.
        let lines = 5 * QUEUED_BYTES_MAX / 100;
        for number in 0..lines {
            queue.write_all(&line(number)).unwrap();
        }
        queue.flush(Duration::ZERO);
        let dropped = usize::try_from(queue.waiting().dropped).unwrap();
        assert!((1..lines).contains(&dropped), "{dropped} of {lines}");
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
}
