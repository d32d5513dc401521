//! Any device on a serial line that writes lines of text: `{"celsius":21.5}`, `21.5 40`, `READY`.
//!
//! [`lines`] defines a line and its event. Here a CR alone ends a line, too, since many devices send only that. An
//! event's time is the wall clock right after the read that completed its line. Nothing is sent to the device.
//!
//! **The first line** after the device was opened may lack its beginning, and half of `21.5` is another number. So it
//! is published only if the device was quiet for [`SerialLinesOptions::quiet`] before it. Otherwise, the second line is
//! the first to be published.
//!
//! A device cannot wait. If lines have to wait for their topic's disk, later bytes of the device may be lost. This is
//! reported and counted as a gap, and publishing begins again as after opening. A device that is missing or cannot be
//! opened is tried again forever, with growing delays.
//!
//! Its state ([`status`](crate::status)) is `opening` until its first line, then `live`, and `lost` while the device is
//! missing or cannot be opened.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Topic;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::feed::Feed;
use crate::first_line::{self, FirstLine};
use crate::lines;
use crate::serial::{Framing, Port, SerialError};
use crate::status::{State, Status, chain, earliest, seconds, sleep_until, wall_clock};

/// The most bytes of one read. A driver usually holds as many.
const READ_BYTES: usize = 4096;

/// A device and the options for reading it. [`SerialLinesOptions::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct SerialLinesOptions {
    /// The path of the serial device.
    pub path: PathBuf,
    /// The speed in baud. Default 9600.
    pub baud: u32,
    /// The bits of a character. Default 8N1.
    pub framing: Framing,
    /// The longest line. Default 64 KiB, see [`lines`].
    pub line_bytes_max: usize,
    /// The time without a byte after which the next byte begins a line, even if no line end came before it. Default
    /// 200 ms: at 50 baud, the slowest speed, a character takes as long.
    pub quiet: Duration,
    /// The time without a first line after which the log warns. Default 10 s.
    pub first_line_wait: Duration,
    /// The interval between reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
    /// The delay before a lost device is opened again. Default 250 ms; doubles after each failure.
    pub retry_min: Duration,
    /// The longest of these delays. Default 5 s.
    pub retry_max: Duration,
}

impl SerialLinesOptions {
    /// Returns the defaults for this device.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            baud: 9600,
            framing: Framing::default(),
            line_bytes_max: lines::BYTES_MAX_DEFAULT,
            quiet: Duration::from_millis(200),
            first_line_wait: first_line::WAIT_DEFAULT,
            report_interval: Duration::from_secs(10),
            retry_min: Duration::from_millis(250),
            retry_max: Duration::from_secs(5),
        }
    }
}

/// Reads the device. Publishes its lines to `topic` and its state to `status` (by convention the topic `NAME.status`).
/// Never returns: it reports each failure of the device and opens it again.
///
/// Runs on the calling task, in a tokio runtime with IO and time drivers; a current-thread runtime is enough.
///
/// # Cancel safety
/// Dropping the future closes the device. No batch of lines is published in part.
pub async fn run(options: SerialLinesOptions, topic: Arc<Topic>, status: Arc<Topic>) -> Infallible {
    let mut source = LineSource::new(options, topic, status);
    loop {
        let SerialLinesOptions { path, baud, framing, .. } = &source.options;
        let error = match Port::open(path, *baud, *framing) {
            Ok(port) => source.serve(&port).await,
            Err(error) => error,
        };
        source.feed.drop_line(&mut source.status);
        source.first_line.give_up();
        let wait = source.backoff.next(fastrand::f64());
        let detail = format!("{}; retrying in {}", chain(&error), seconds(wait));
        source.status.set(State::Lost, detail);
        source.status.pause(wait).await;
    }
}

struct LineSource {
    options: SerialLinesOptions,
    path: String,
    feed: Feed,
    status: Status,
    backoff: Backoff,
    first_line: FirstLine,
}

impl LineSource {
    fn new(options: SerialLinesOptions, topic: Arc<Topic>, status: Arc<Topic>) -> Self {
        let path = options.path.display().to_string();
        let detail = format!("opening {path} at {} baud, {}", options.baud, options.framing);
        let name = topic.name().to_string();
        Self {
            feed: Feed::with_cr(topic, options.line_bytes_max),
            status: Status::open(status, name, options.report_interval, detail),
            backoff: Backoff::new(options.retry_min, options.retry_max),
            first_line: FirstLine::new(options.first_line_wait),
            path,
            options,
        }
    }

    /// Publishes lines until the device fails.
    async fn serve(&mut self, port: &Port) -> SerialError {
        let detail = format!("{} is open, waiting for its first line", self.path);
        self.status.set(State::Opening, detail);
        self.first_line.expect();
        let mut beginning = Beginning::new(self.options.quiet);
        let mut newest_byte_at = Instant::now();
        let mut buffer = [0; READ_BYTES];
        loop {
            let wake_at = earliest(self.status.due(), self.first_line.due());
            tokio::select! {
                read = port.read(&mut buffer) => match read {
                    Ok(len) => {
                        let quiet = newest_byte_at.elapsed();
                        self.receive(beginning.skip(quiet, &buffer[..len])).await;
                    }
                    Err(error) => return error,
                },
                () = sleep_until(wake_at) => {
                    self.first_line.report_due(&mut self.status, &self.path, "");
                    self.status.report_due();
                    continue;
                }
            }
            newest_byte_at = Instant::now();
            if self.feed.take_waited() {
                self.lose_meanwhile();
                beginning = Beginning::new(self.options.quiet);
                if let Err(error) = port.discard() {
                    return error;
                }
            }
            self.status.report_due();
        }
    }

    async fn receive(&mut self, bytes: &[u8]) {
        let count = self.feed.receive(&mut self.status, wall_clock(), bytes).await;
        if count > 0 {
            self.backoff.reset();
            self.first_line.give_up();
            self.status.set(State::Live, format!("receiving from {}", self.path));
        }
    }

    /// Reports that bytes which the device sent while nobody read may be missing.
    fn lose_meanwhile(&mut self) {
        let path = &self.path;
        self.status.gap(format!(
            "{path}: what it sent while its lines waited for the disk may be missing"
        ));
        self.feed.drop_line(&mut self.status);
    }
}

/// Finds the beginning of the first complete line in the bytes of a device. Pure.
#[derive(Debug)]
struct Beginning {
    quiet: Duration,
    /// True if the next bytes belong to complete lines.
    is_found: bool,
}

impl Beginning {
    fn new(quiet: Duration) -> Self {
        Self { quiet, is_found: false }
    }

    /// Returns the part of these bytes that belongs to complete lines. `quiet` is the time without a byte before them.
    fn skip<'a>(&mut self, quiet: Duration, bytes: &'a [u8]) -> &'a [u8] {
        if self.is_found || quiet >= self.quiet {
            self.is_found = true;
            return bytes;
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        self.is_found = end.is_some();
        end.map_or(&[], |end| &bytes[end + 1..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_its_beginning_is_skipped_and_one_after_quiet_is_whole() {
        let ms = Duration::from_millis;
        let skip = |pieces: &[(u64, &'static str)]| {
            let mut beginning = Beginning::new(ms(200));
            let mut kept = String::new();
            for (quiet, piece) in pieces {
                let bytes = beginning.skip(ms(*quiet), piece.as_bytes());
                kept.push_str(std::str::from_utf8(bytes).unwrap());
            }
            kept
        };
        assert_eq!(skip(&[(3, ".5\n21.6\n")]), "21.6\n");
        assert_eq!(skip(&[(3, ".5"), (3, "0\r"), (3, "\n21.6\n")]), "\n21.6\n");
        assert_eq!(skip(&[(3, "\r\n21.6")]), "\n21.6");
        assert_eq!(skip(&[(200, "21.5\n"), (3, "21.6\n")]), "21.5\n21.6\n");
        assert_eq!(skip(&[(3, ".5"), (1000, "21.6\n")]), "21.6\n");
        assert_eq!(skip(&[(200, "21"), (3, ".5\n")]), "21.5\n");
    }
}
