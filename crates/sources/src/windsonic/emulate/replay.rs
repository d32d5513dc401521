//! Recorded lines, to be sent again.

use std::path::Path;

use serde::Deserialize;

use crate::windsonic::message::gill_line;
use crate::windsonic::parse::{ParseError, parse, parse_gill};

/// Largest recording: a fortnight at 4 Hz.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Read(#[from] std::io::Error),
    /// The file is no recording of this kind, or cut off.
    #[error("it has {bytes} bytes, at most {bytes_max} are replayed")]
    TooBig {
        /// The file's size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// There is nothing to replay.
    #[error("it has no lines")]
    Empty,
    /// A line is not one of the three forms.
    #[error("line {number}: {fault}")]
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        fault: ParseError,
    },
    /// A line begins with `{` and is not an event.
    #[error("line {number} is not a JSON object with a text \"raw\": {fault}")]
    Json {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        fault: serde_json::Error,
    },
}

/// Lines that come again and again.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// As they are sent, each with its line end. At least one.
    lines: Vec<Vec<u8>>,
    next: usize,
}

/// An event as this crate publishes it; only its raw line is looked at.
#[derive(Deserialize)]
struct Recorded {
    raw: String,
}

impl Replay {
    pub(crate) fn open(path: &Path) -> Result<Self, ReplayError> {
        let bytes = std::fs::metadata(path)?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(ReplayError::TooBig { bytes, bytes_max: FILE_BYTES_MAX });
        }
        Self::parse(&std::fs::read(path)?)
    }

    /// Each line is a line as recorded from the instrument (with STX, ETX and checksum, or NMEA),
    /// what stands between STX and ETX alone, or a JSON object with such a line as its `raw`.
    pub(crate) fn parse(file: &[u8]) -> Result<Self, ReplayError> {
        let mut lines = Vec::new();
        for (at, line) in file.split(|byte| *byte == b'\n').enumerate() {
            let (number, line) = (at + 1, line.trim_ascii());
            match line.first() {
                None => {}
                Some(b'{') => {
                    let recorded: Recorded = serde_json::from_slice(line)
                        .map_err(|fault| ReplayError::Json { number, fault })?;
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

    /// The next line; after the last, the first.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let line = self.lines.get(self.next).cloned().unwrap_or_default();
        self.next = (self.next + 1) % self.lines.len().max(1);
        line
    }
}

/// The line as the instrument sends it.
fn sent(number: usize, line: &[u8]) -> Result<Vec<u8>, ReplayError> {
    let fault = |fault| ReplayError::Line { number, fault };
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
        let error = |file: &str| Replay::parse(file.as_bytes()).unwrap_err().to_string();
        let good = "Q,229,002.74,M,00,\n";
        assert_eq!(
            error(&format!("{good}\n{good}Q,400,002.74,M,00,\n")),
            "line 4: direction \"400\" is not empty or 000 to 359"
        );
        assert_eq!(
            error("\u{2}Q,229,002.74,M,00,\u{3}17"),
            "line 1: checksum is 17, the bytes give 16"
        );
        assert_eq!(error("{\"raw\":\"hello\"}"), "line 1: line begins neither with STX nor with $");
        assert!(error("{\"speed\":1}").starts_with("line 1 is not a JSON object with a text"));
        assert_eq!(error("\n \r\n"), "it has no lines");
    }

    #[test]
    fn a_file_that_is_not_there_is_said_so() {
        let error = Replay::open(Path::new("/no/such/recording")).unwrap_err();
        assert!(matches!(error, ReplayError::Read(_)));
    }
}
