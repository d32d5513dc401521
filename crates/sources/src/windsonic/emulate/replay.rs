//! Replays recorded lines.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use crate::windsonic::message::gill_line;
use crate::windsonic::parse::{ParseError, parse, parse_gill};

/// The largest recording: two weeks at 4 Hz.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// The mark that some editors put before UTF-8 text (U+FEFF).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The reason why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("cannot read it")]
    Read(#[from] std::io::Error),
    /// The path is a directory, a device or a pipe.
    #[error("it is not a regular file")]
    NotFile,
    /// The file is larger than a recording may be.
    #[error("it is larger than {bytes_max} bytes")]
    TooBig {
        /// The limit.
        bytes_max: u64,
    },
    /// The file has no lines.
    #[error("it has no lines")]
    Empty,
    /// A line is not one of the three forms.
    #[error("line {number} is not a measurement")]
    Line {
        /// Its number, from 1.
        number: usize,
        /// The fault in it.
        source: ParseError,
    },
    /// A line begins with `{` and is not an event.
    #[error("line {number} is not a JSON object with a text \"raw\"")]
    Json {
        /// Its number, from 1.
        number: usize,
        /// The fault in it.
        source: serde_json::Error,
    },
}

/// The lines of a recording, repeated without end.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// The recorded lines with their line ends; at least one.
    lines: Vec<Vec<u8>>,
    next: usize,
}

/// An event of this crate, of which only the raw line is used.
#[derive(Deserialize)]
struct Recorded {
    raw: String,
}

impl Replay {
    pub(crate) fn open(path: &Path) -> Result<Self, ReplayError> {
        Self::open_within(path, FILE_BYTES_MAX)
    }

    fn open_within(path: &Path, bytes_max: u64) -> Result<Self, ReplayError> {
        // Check first: opening a pipe would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(ReplayError::NotFile);
        }
        let mut bytes = Vec::new();
        // Count while reading: a file may grow meanwhile, or report no size.
        File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            return Err(ReplayError::TooBig { bytes_max });
        }
        Self::parse(&bytes)
    }

    /// Parses a recording. Each line is a complete line of the instrument (in a Gill format or NMEA), its part between
    /// STX and ETX, or a JSON object with one of these as `raw`.
    pub(crate) fn parse(file: &[u8]) -> Result<Self, ReplayError> {
        let file = file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file);
        let mut lines = Vec::new();
        for (at, line) in file.split(|byte| *byte == b'\n').enumerate() {
            let (number, line) = (at + 1, line.trim_ascii());
            match line.first() {
                None => {}
                Some(b'{') => {
                    let recorded: Recorded = serde_json::from_slice(line)
                        .map_err(|source| ReplayError::Json { number, source })?;
                    lines.push(sent(number, recorded.raw.as_bytes())?);
                }
                Some(_) => lines.push(sent(number, line)?),
            }
        }
        if lines.is_empty() {
            return Err(ReplayError::Empty);
        }
        Ok(Self { lines, next: 0 })
    }

    /// Returns the next line. The first follows the last.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let line = self.lines.get(self.next).cloned().unwrap_or_default();
        self.next = (self.next + 1) % self.lines.len().max(1);
        line
    }
}

/// Returns the line as the instrument sends it.
fn sent(number: usize, line: &[u8]) -> Result<Vec<u8>, ReplayError> {
    let fault = |source| ReplayError::Line { number, source };
    if line.first().is_some_and(u8::is_ascii_uppercase) {
        parse_gill(line).map_err(fault)?;
        return Ok(gill_line(&String::from_utf8_lossy(line)));
    }
    parse(line).map_err(fault)?;
    Ok([line, b"\r\n"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::chain;
    use tempfile::TempDir;

    const LINE: &[u8] = b"\x02Q,229,002.74,M,00,\x0316\r\n";
    const NMEA: &[u8] = b"$WIMWV,229,R,002.74,M,A*06\r\n";

    #[test]
    fn every_form_of_a_line_is_sent_as_the_instrument_sends_it() {
        let file = [LINE, NMEA, b"\nQ,229,002.74,M,00,\n{\"raw\":\"Q,229,002.74,M,00,\",\"t0\":1}"];
        let mut replay = Replay::parse(&file.concat()).unwrap();
        let sent: Vec<_> = (0..6).map(|_| replay.next()).collect();
        assert_eq!(sent, [LINE, NMEA, LINE, LINE, LINE, NMEA]);
    }

    #[test]
    fn a_bad_line_is_an_error_with_its_number() {
        let error = |file: &str| chain(&Replay::parse(file.as_bytes()).unwrap_err());
        let good = "Q,229,002.74,M,00,\n";
        assert_eq!(
            error(&format!("{good}\n{good}Q,400,002.74,M,00,\n")),
            "line 4 is not a measurement: direction \"400\" is not empty or 000 to 359"
        );
        assert_eq!(
            error("\u{2}Q,229,002.74,M,00,\u{3}17"),
            "line 1 is not a measurement: checksum is 17, the bytes give 16"
        );
        assert_eq!(
            error("{\"raw\":\"hello\"}"),
            "line 1 is not a measurement: line begins neither with STX nor with $"
        );
        assert_eq!(
            error("{\"speed\":1}"),
            "line 1 is not a JSON object with a text \"raw\": \
             missing field `raw` at line 1 column 11"
        );
        assert_eq!(error("\n \r\n"), "it has no lines");
    }

    #[test]
    fn a_file_that_is_not_there_is_said_so() {
        let error = Replay::open(Path::new("/no/such/recording")).unwrap_err();
        assert!(matches!(error, ReplayError::Read(_)));
    }

    #[test]
    fn a_byte_order_mark_before_the_first_line_is_skipped() {
        let mut replay = Replay::parse(&[BYTE_ORDER_MARK, LINE].concat()).unwrap();
        assert_eq!(replay.next(), LINE);
    }

    #[test]
    fn a_file_is_replayed_up_to_the_limit_and_not_a_byte_more() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("recording");
        fs::write(&path, LINE).unwrap();
        let bytes = LINE.len() as u64;
        let at_the_limit = Replay::open_within(&path, bytes);
        let above = Replay::open_within(&path, bytes - 1);
        assert_eq!(at_the_limit.unwrap().next(), LINE);
        assert!(matches!(above, Err(ReplayError::TooBig { bytes_max }) if bytes_max == bytes - 1));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_tells_no_size_is_bounded_all_the_same() {
        let path = Path::new("/proc/self/status");
        assert_eq!(fs::metadata(path).unwrap().len(), 0);
        let opened = Replay::open_within(path, 64);
        assert!(matches!(opened, Err(ReplayError::TooBig { bytes_max: 64 })));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_a_regular_file_is_not_read() {
        let directory = TempDir::new().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let opened: Vec<_> =
            [&pipe, Path::new("/dev/zero"), Path::new("/")].map(Replay::open).into();
        for opened in opened {
            assert!(matches!(opened, Err(ReplayError::NotFile)), "{opened:?}");
        }
    }
}
