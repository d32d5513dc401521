//! This process's standard input, line by line: `vmstat 1 | anemone serve --stdin cpu`.
//!
//! [`lines`] defines a line and its event; an event's time is the wall clock right after the read that completed its
//! line. Input is read as fast as the topic takes it; a faster writer has to wait.
//!
//! When it is stopped, the source still publishes the lines that were written by then, up to [`REST_BYTES_MAX`] and
//! without an unfinished last line. The published lines are always the first ones, without a hole.
//!
//! Its state ([`status`](crate::status)) is `opening` until its first line, then `live`, and `ended` when the input has
//! ended or cannot be read, or when the source was stopped. Other sources are not affected.

use std::io::{self, PipeWriter, Read};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Topic, UnixTime};
use tokio::sync::{mpsc, watch};

use crate::feed::{Feed, Patience, patiently};
use crate::first_line::{self, FirstLine};
use crate::lines;
use crate::status::{State, Status, chain, earliest, sleep_until, wall_clock};

/// The most bytes of one read. A pipe usually holds 64 KiB.
const READ_BYTES: usize = 16 << 10;

/// The most bytes that are read after the source is stopped: as much as a pipe can hold. Without a limit, a writer that
/// never stops would keep the source from ending.
pub const REST_BYTES_MAX: usize = 1 << 20;

/// The options for reading standard input.
#[derive(Clone, Debug)]
pub struct StdinOptions {
    /// The longest line. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// The time between two reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
    /// The time for which lines wait for their topic's disk once the source is stopped. Default 5 s.
    pub grace: Duration,
    /// The time without a first line after which the log warns that the writer may buffer its output. Default 10 s.
    pub first_line_wait: Duration,
}

impl Default for StdinOptions {
    fn default() -> Self {
        Self {
            line_bytes_max: lines::BYTES_MAX_DEFAULT,
            report_interval: Duration::from_secs(10),
            grace: Duration::from_secs(5),
            first_line_wait: first_line::WAIT_DEFAULT,
        }
    }
}

/// Publishes the lines of standard input to `topic`, and reports its state to `status` (by convention the topic
/// `NAME.status`). Returns when the input has ended. Returns also after `stop` has completed, once everything written
/// by then is published or given up. With [`std::future::pending`] as `stop`, the source is never stopped.
///
/// A separate thread reads the input. It does not keep this process from ending. Nothing else in the process should
/// read standard input, and there should be only one such source, since two would share the lines at random.
///
/// # Cancel safety
/// After dropping the future, nothing more is published. The thread ends at once (on systems other than Unix, when its
/// read returns) and discards what it has read.
pub async fn run(
    options: StdinOptions,
    topic: Arc<Topic>,
    status: Arc<Topic>,
    stop: impl Future<Output = ()>,
) {
    read_from(io::stdin(), options, topic, status, stop).await;
}

async fn read_from(
    input: impl Input,
    options: StdinOptions,
    topic: Arc<Topic>,
    status: Arc<Topic>,
    stop: impl Future<Output = ()>,
) {
    let name = topic.name().to_string();
    let detail = "waiting for the first line of standard input".to_owned();
    let mut status = Status::open(status, name, options.report_interval, detail);
    let (patience_over, patience) = watch::channel(false);
    let patience_over = (patience_over, options.grace);
    let mut feed =
        Feed::new(topic, options.line_bytes_max).with_patience(Patience::until(patience));
    let (mut pieces, go_on) = match read_in_thread(input) {
        Ok(reading) => reading,
        Err(error) => return status.end(format!("cannot read standard input: {}", chain(&error))),
    };
    let mut go_on = Some(go_on);
    let mut first_line = FirstLine::new(options.first_line_wait);
    first_line.expect();
    let (mut stop, mut stopped) = (pin!(stop), false);
    let end = loop {
        if stopped {
            go_on = None;
        }
        let piece = tokio::select! {
            piece = pieces.recv() => piece,
            () = stop.as_mut(), if !stopped => {
                stopped = true;
                continue;
            }
            () = sleep_until(earliest(status.due(), first_line.due())) => {
                first_line.report_due(&mut status, "standard input", first_line::MAY_BUFFER);
                status.report_due();
                continue;
            }
        };
        match piece {
            Some(Ok((at, bytes))) => {
                let work = async {
                    let events = feed.receive(&mut status, at, &bytes).await;
                    on_events(&mut status, events);
                };
                patiently(work, stop.as_mut(), &mut stopped, &patience_over).await;
            }
            Some(Err(error)) => break format!("cannot read standard input: {}", chain(&error)),
            None if go_on.is_none() => return status.end("standard input was stopped".to_owned()),
            None => break "standard input has ended".to_owned(),
        }
        status.report_due();
    };
    let work = async {
        let events = feed.finish(&mut status, wall_clock()).await;
        on_events(&mut status, events);
    };
    patiently(work, stop.as_mut(), &mut stopped, &patience_over).await;
    status.end(end);
}

fn on_events(status: &mut Status, events: usize) {
    if events > 0 && status.state() == State::Opening {
        status.set(State::Live, "receiving from standard input".to_owned());
    }
}

/// The bytes of a read with its time, or its error.
type Piece = io::Result<(UnixTime, Vec<u8>)>;

/// Starts a thread that reads the input. The runtime cannot wait for every kind of input, and non-blocking reads would
/// affect other processes that share it. The runtime's own blocking threads would keep the runtime from ending. When
/// the returned writer is dropped, the thread reads the rest and ends.
fn read_in_thread(mut input: impl Input) -> io::Result<(mpsc::Receiver<Piece>, PipeWriter)> {
    // One piece is published while the next is read.
    let (sender, pieces) = mpsc::channel(1);
    let (stopping, go_on) = io::pipe()?;
    let read = move || {
        let mut buffer = vec![0; READ_BYTES];
        let mut rest = REST_BYTES_MAX;
        while rest > 0 {
            let goes_on = match input.wait(&stopping) {
                Readiness::Input => true,
                Readiness::LastInput => false,
                Readiness::Stop => return,
            };
            let piece = match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(len) => Ok((wall_clock(), buffer[..len].to_vec())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            if let (Ok((_, bytes)), false) = (&piece, goes_on) {
                rest = rest.saturating_sub(bytes.len());
            }
            let is_last = piece.is_err();
            if sender.blocking_send(piece).is_err() || is_last {
                return;
            }
        }
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
    Ok((pieces, go_on))
}

/// The reason why a wait for input ended.
enum Readiness {
    /// There is input, or its end, or the state is unknown.
    Input,
    /// There is input, or its end, and the source will not wait again.
    LastInput,
    /// The source is stopped, and there is no input.
    Stop,
}

/// An input that can be read, and on which the thread can wait, if possible.
trait Input: Read + Send + 'static {
    /// Waits until there is input, or until the other end of `stopping` is closed.
    fn wait(&self, stopping: &io::PipeReader) -> Readiness;
}

#[cfg(unix)]
impl<T: Read + std::os::fd::AsFd + Send + 'static> Input for T {
    fn wait(&self, stopping: &io::PipeReader) -> Readiness {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut fds = [PollFd::new(self, PollFlags::IN), PollFd::new(stopping, PollFlags::IN)];
        // The read will return the error.
        let waited = rustix::io::retry_on_intr(|| poll(&mut fds, None));
        match (waited, fds[0].revents().is_empty(), fds[1].revents().is_empty()) {
            (Ok(_), true, false) => Readiness::Stop,
            (Ok(_), false, false) => Readiness::LastInput,
            _ => Readiness::Input,
        }
    }
}

#[cfg(not(unix))]
impl<T: Read + Send + 'static> Input for T {
    fn wait(&self, _: &io::PipeReader) -> Readiness {
        Readiness::Input
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::io::Write as _;

    use anemone_hub::{After, Position};
    use anemone_testing::{Topics, values, within};
    use serde_json::Value;

    use super::*;

    async fn read(input: impl Input, options: StdinOptions) -> (Vec<Value>, Vec<Value>) {
        let Topics { events, status } = Topics::new("lines");
        let (to, told) = (Arc::clone(&events), Arc::clone(&status));
        within(read_from(input, options, to, told, pending())).await;
        (values(&events), values(&status))
    }

    #[tokio::test]
    async fn lines_are_published_until_the_input_ends() {
        let (input, mut writer) = io::pipe().unwrap();
        let write = std::thread::spawn(move || {
            writer.write_all(b"{\"a\":1}\r\n\n5\n 1  0\nmuch too long").unwrap();
            writer.write_all(b"\nlast").unwrap();
        });
        let options = StdinOptions { line_bytes_max: 10, ..StdinOptions::default() };
        let (events, status) = read(input, options).await;
        write.join().unwrap();
        assert_eq!(Value::from(events).to_string(), r#"[{"a":1},5," 1  0","last"]"#);
        let states: Vec<_> = status.iter().map(|status| &status["state"]).collect();
        assert_eq!(states[..3], ["opening", "live", "ended"]);
        let last = status.last().unwrap();
        assert_eq!(
            last["detail"],
            "standard input has ended; the newest bad line: longer than 10 bytes, skipped: \"much too l\""
        );
        assert_eq!((&last["events"], &last["bad_lines"]), (&4.into(), &1.into()));
    }

    #[tokio::test]
    async fn a_fault_ends_it_and_is_told_and_what_came_before_is_published() {
        /// An input that can always be read a number of times, and then fails.
        struct Faulty(usize, std::fs::File);
        #[cfg(unix)]
        impl std::os::fd::AsFd for Faulty {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.1.as_fd()
            }
        }
        impl Read for Faulty {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                match self.0 {
                    1 => (&b"one\ntwo"[..]).read(buffer),
                    2 => Err(io::ErrorKind::Interrupted.into()),
                    _ => Err(io::Error::other("broken")),
                }
            }
        }
        let file = tempfile::tempfile().unwrap();
        let (events, status) = read(Faulty(0, file), StdinOptions::default()).await;
        assert_eq!(events, ["one", "two"]);
        assert_eq!(status.last().unwrap()["detail"], "cannot read standard input: broken");
        assert_eq!(status.last().unwrap()["state"], "ended");
    }

    #[tokio::test]
    async fn an_input_without_a_line_may_be_held_back_which_is_told() {
        let (input, _writer) = io::pipe().unwrap();
        let Topics { events, status } = Topics::new("lines");
        let options = StdinOptions {
            first_line_wait: Duration::from_millis(20),
            report_interval: Duration::from_millis(20),
            ..StdinOptions::default()
        };
        let mut head = status.head();
        let opening = status.start(wall_clock(), After::Earliest).unwrap();
        let reading = read_from(input, options, events, Arc::clone(&status), pending());
        let told = head.passed(Position { offset: opening.offset + 1, ..opening });
        tokio::select! {
            () = reading => panic!("ended"),
            () = within(told) => {}
        }
        let last = values(&status).pop().unwrap();
        assert_eq!(last["state"], "opening");
        assert_eq!(
            last["detail"],
            "no line from standard input in 20 ms: if it should have written one, it may be buffering its \
             output (python3 -u, stdbuf -oL, grep --line-buffered)"
        );
    }

    #[tokio::test]
    async fn dropped_it_lets_go_of_the_input() {
        let (input, mut writer) = io::pipe().unwrap();
        let Topics { events, status } = Topics::new("lines");
        let mut head = events.head();
        let start = events.start(wall_clock(), After::Earliest).unwrap();
        let reading = read_from(input, StdinOptions::default(), events, status, pending());
        writer.write_all(b"one\n").unwrap();
        tokio::select! {
            () = reading => panic!("ended"),
            () = head.passed(start) => {}
        }
        // Once the thread finds nobody to give it to, nobody reads and writing fails.
        let write =
            tokio::task::spawn_blocking(move || while writer.write_all(b"more\n").is_ok() {});
        within(write).await.unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn stopped_it_publishes_what_was_written_and_no_line_without_its_end() {
        for text in
            ["", "1", "1\n", "1\n2\n3", &(0..20_000).map(|n| format!("{n}\n")).collect::<String>()]
        {
            let (input, mut writer) = io::pipe().unwrap();
            let (written, was_written) = tokio::sync::oneshot::channel();
            let bytes = text.to_owned().into_bytes();
            let write = std::thread::spawn(move || {
                writer.write_all(&bytes).unwrap();
                written.send(()).unwrap();
                writer
            });
            let Topics { events, status } = Topics::new("lines");
            let (to, told) = (Arc::clone(&events), Arc::clone(&status));
            let stop = async { was_written.await.unwrap() };
            let reading = read_from(input, StdinOptions::default(), to, told, stop);
            within(reading).await;
            drop(write.join().unwrap());
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            let count = text[..whole].lines().count();
            assert_eq!(events.info(wall_clock()).head.offset, count as u64);
            assert_eq!(values(&status).last().unwrap()["detail"], "standard input was stopped");
        }
    }
}
