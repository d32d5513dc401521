//! This process's standard input, line by line: `vmstat 1 | anemone serve --stdin cpu`.
//!
//! What a line is and what becomes of it says [`lines`]; an event's time is the wall
//! clock right after the read that brought the end of its line. It is read as fast as the topic
//! takes it: whoever writes faster waits.
//!
//! Its state ([`status`](crate::status)): `opening` until its first line, `live` from then on,
//! `ended` when it is over or cannot be read. That ends nothing else.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Topic, UnixTime};
use tokio::sync::mpsc;

use crate::feed::Feed;
use crate::lines;
use crate::status::{State, Status, chain, sleep_until, wall_clock};

/// One read's worth; a pipe holds 64 KiB as a rule.
const READ_BYTES: usize = 16 << 10;

/// How to read it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Longest line. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// Time between two reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { line_bytes_max: lines::BYTES_MAX_DEFAULT, report_interval: Duration::from_secs(10) }
    }
}

/// Publishes the lines of standard input to `topic` and how it is doing to `status` (by convention
/// the topic `NAME.status`). Returns once the input has ended.
///
/// It is read in a thread of its own, which does not keep this process from ending. Nobody else in
/// the process should read it, and it can be a source once: two would share its lines by chance.
///
/// # Cancel safety
/// Dropping the future publishes nothing more. The thread goes when its read returns, and takes what
/// that has read with it.
pub async fn run(options: Options, topic: Arc<Topic>, status: Arc<Topic>) {
    read_from(io::stdin(), options, topic, status).await;
}

async fn read_from(
    input: impl Read + Send + 'static,
    options: Options,
    topic: Arc<Topic>,
    status: Arc<Topic>,
) {
    let name = topic.name().to_string();
    let detail = "waiting for the first line of standard input".to_owned();
    let mut status = Status::open(status, name, options.report_interval, detail);
    let mut feed = Feed::new(topic, options.line_bytes_max);
    let mut pieces = match read_in_thread(input) {
        Ok(pieces) => pieces,
        Err(error) => return status.end(format!("cannot read standard input: {}", chain(&error))),
    };
    let end = loop {
        let piece = tokio::select! {
            piece = pieces.recv() => piece,
            () = sleep_until(status.due()) => {
                status.tell_due();
                continue;
            }
        };
        match piece {
            Some(Ok((at, bytes))) => {
                let events = feed.receive(&mut status, at, &bytes).await;
                heard(&mut status, events);
            }
            Some(Err(error)) => break format!("cannot read standard input: {}", chain(&error)),
            None => break "standard input has ended".to_owned(),
        }
        status.tell_due();
    };
    let events = feed.finish(&mut status, wall_clock()).await;
    heard(&mut status, events);
    status.end(end);
}

fn heard(status: &mut Status, events: usize) {
    if events > 0 && status.state() == State::Opening {
        status.set(State::Live, "receiving from standard input".to_owned());
    }
}

/// What a read brought, and when.
type Piece = io::Result<(UnixTime, Vec<u8>)>;

/// A thread, since standard input may be anything: not all of it can be waited for, and to make it
/// non-blocking would make it so for whoever shares it. The runtime's own blocking threads would
/// keep the runtime from ending.
fn read_in_thread(mut input: impl Read + Send + 'static) -> io::Result<mpsc::Receiver<Piece>> {
    // One is published while another is read.
    let (sender, pieces) = mpsc::channel(1);
    let read = move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let piece = match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(len) => Ok((wall_clock(), buffer[..len].to_vec())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = piece.is_err();
            if sender.blocking_send(piece).is_err() || is_last {
                return;
            }
        }
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use anemone_hub::{After, Epoch, PageLimit, Retention};
    use serde_json::Value;

    use super::*;

    fn topic(name: &str) -> Arc<Topic> {
        let name = name.parse().unwrap();
        Arc::new(Topic::new(name, Epoch::from_bits(1), Retention::default()))
    }

    fn all(topic: &Topic) -> Vec<Value> {
        let now = wall_clock();
        let start = topic.start(now, After::Earliest).unwrap();
        let page = topic.read(now, start, PageLimit::default()).unwrap();
        page.events.iter().map(|event| serde_json::from_str(event.data.as_str()).unwrap()).collect()
    }

    async fn read(input: impl Read + Send + 'static, options: Options) -> (Vec<Value>, Vec<Value>) {
        let (events, status) = (topic("lines"), topic("lines.status"));
        let reading = read_from(input, options, Arc::clone(&events), Arc::clone(&status));
        tokio::time::timeout(Duration::from_secs(30), reading).await.unwrap();
        (all(&events), all(&status))
    }

    #[tokio::test]
    async fn lines_are_published_until_the_input_ends() {
        let (input, mut writer) = io::pipe().unwrap();
        let write = std::thread::spawn(move || {
            writer.write_all(b"{\"a\":1}\r\n\n5\n 1  0\nmuch too long").unwrap();
            writer.write_all(b"\nlast").unwrap();
        });
        let options = Options { line_bytes_max: 10, ..Options::default() };
        let (events, status) = read(input, options).await;
        write.join().unwrap();
        assert_eq!(Value::from(events).to_string(), r#"[{"a":1},5," 1  0","last"]"#);
        let states: Vec<_> = status.iter().map(|status| &status["state"]).collect();
        assert_eq!(states[..3], ["opening", "live", "ended"]);
        let last = status.last().unwrap();
        assert_eq!(last["detail"], "standard input has ended");
        assert_eq!((&last["events"], &last["bad_lines"]), (&4.into(), &1.into()));
    }

    #[tokio::test]
    async fn a_fault_ends_it_and_is_told_and_what_came_before_is_published() {
        struct Faulty(usize);
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
        let (events, status) = read(Faulty(0), Options::default()).await;
        assert_eq!(events, ["one", "two"]);
        assert_eq!(status.last().unwrap()["detail"], "cannot read standard input: broken");
        assert_eq!(status.last().unwrap()["state"], "ended");
    }

    #[tokio::test]
    async fn dropped_it_lets_go_of_the_input() {
        let (input, mut writer) = io::pipe().unwrap();
        let (events, status) = (topic("lines"), topic("lines.status"));
        let mut head = events.head();
        let start = events.start(wall_clock(), After::Earliest).unwrap();
        let reading = read_from(input, Options::default(), events, status);
        writer.write_all(b"one\n").unwrap();
        tokio::select! {
            () = reading => panic!("ended"),
            () = head.passed(start) => {}
        }
        // Once the thread finds nobody to give it to, nobody reads and writing fails.
        let write =
            tokio::task::spawn_blocking(move || while writer.write_all(b"more\n").is_ok() {});
        tokio::time::timeout(Duration::from_secs(30), write).await.unwrap().unwrap();
    }
}
