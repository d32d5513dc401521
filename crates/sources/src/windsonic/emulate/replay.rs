//! Replays recorded lines.
//!
//! A recording has the lines of the instrument itself, or those that a reader of its topic stored. A reader stores one
//! JSON object a line: the data of an event, an item of NDJSON (`anemone sub --output json`, `curl`), or a page of
//! events. Real recordings have damaged lines. These are counted, and not replayed.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anemone_wire::{TextFault, without_mark};
use serde::Deserialize;

use crate::windsonic::message::gill_line;
use crate::windsonic::parse::{ParseError, parse, parse_gill};

/// The largest recording: two weeks at 4 Hz.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// The reason why a recording cannot be replayed.
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
    /// The file is not UTF-8.
    #[error(transparent)]
    Encoding(TextFault),
    /// No line has a measurement.
    #[error("none of its lines is a measurement")]
    NoMeasurement(#[source] LineError),
}

/// The reason why a line of a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[error("line {number} is not a measurement")]
pub struct LineError {
    number: usize,
    source: LineFault,
}

#[derive(Debug, thiserror::Error)]
enum LineFault {
    #[error(transparent)]
    Line(#[from] ParseError),
    #[error("it is not a JSON object of events")]
    Json(#[from] serde_json::Error),
    #[error("its JSON has no text \"raw\"")]
    NoRaw,
}

/// The lines of a recording that were left out.
#[derive(Debug)]
pub struct LeftOut {
    /// The number of these lines.
    pub count: usize,
    /// The fault of the first of these lines.
    pub first: LineError,
}

/// The lines of a recording, repeated without end.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// The recorded lines with their line ends; at least one.
    lines: Vec<Vec<u8>>,
    next: usize,
}

/// A line of a recording: the data of an event, an item with its data, or a page with its events.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Recorded {
    raw: Option<String>,
    data: Option<Box<Self>>,
    events: Vec<Self>,
}

impl Recorded {
    /// Adds the lines of the instrument that this line of the recording contains, in their order.
    fn add_raw(self, lines: &mut Vec<String>) {
        lines.extend(self.raw);
        if let Some(data) = self.data {
            data.add_raw(lines);
        }
        self.events.into_iter().for_each(|event| event.add_raw(lines));
    }
}

impl Replay {
    /// Reads a recording. Returns it, and a description of the lines that were left out, if there are any.
    pub(crate) fn open(path: &Path) -> Result<(Self, Option<LeftOut>), ReplayError> {
        Self::open_within(path, FILE_BYTES_MAX)
    }

    fn open_within(path: &Path, bytes_max: u64) -> Result<(Self, Option<LeftOut>), ReplayError> {
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

    /// Parses a recording. Each line is a complete line of the instrument (in a Gill format or NMEA), or the part
    /// between STX and ETX, or a JSON object with these as `raw`.
    pub(crate) fn parse(file: &[u8]) -> Result<(Self, Option<LeftOut>), ReplayError> {
        if let Some(fault @ TextFault::Utf16) = TextFault::find(first_line(file)) {
            return Err(ReplayError::Encoding(fault));
        }
        let (mut lines, mut left_out) = (Vec::new(), None::<LeftOut>);
        for (at, line) in file.split(|byte| *byte == b'\n').enumerate() {
            if let Err(source) = add_sent(without_mark(line).trim_ascii(), &mut lines) {
                let number = at + 1;
                let left_out = left_out
                    .get_or_insert(LeftOut { count: 0, first: LineError { number, source } });
                left_out.count += 1;
            }
        }
        match left_out {
            None if lines.is_empty() => Err(ReplayError::Empty),
            Some(left_out) if lines.is_empty() => Err(ReplayError::NoMeasurement(left_out.first)),
            left_out => Ok((Self { lines, next: 0 }, left_out)),
        }
    }

    /// Returns the next line. After the last line, the first one follows again.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let line = self.lines.get(self.next).cloned().unwrap_or_default();
        self.next = (self.next + 1) % self.lines.len().max(1);
        line
    }
}

fn first_line(file: &[u8]) -> &[u8] {
    file.split(|byte| *byte == b'\n').next().unwrap_or(file)
}

/// Adds the lines of the instrument that this line of the recording contains, in the form in which the instrument sends
/// them. Adds nothing if any of them is faulty.
fn add_sent(line: &[u8], lines: &mut Vec<Vec<u8>>) -> Result<(), LineFault> {
    match line.first() {
        None => {}
        Some(b'{') => {
            let mut raw = Vec::new();
            serde_json::from_slice::<Recorded>(line)?.add_raw(&mut raw);
            if raw.is_empty() {
                return Err(LineFault::NoRaw);
            }
            let sent: Result<Vec<_>, _> = raw.iter().map(|raw| sent(raw.as_bytes())).collect();
            lines.extend(sent?);
        }
        Some(_) => lines.push(sent(line)?),
    }
    Ok(())
}

/// Returns the line in the form in which the instrument sends it.
fn sent(line: &[u8]) -> Result<Vec<u8>, ParseError> {
    if line.first().is_some_and(u8::is_ascii_uppercase) {
        parse_gill(line)?;
        return Ok(gill_line(&String::from_utf8_lossy(line)));
    }
    parse(line)?;
    Ok([line, b"\r\n"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::chain;
    use tempfile::TempDir;

    const LINE: &[u8] = b"\x02Q,229,002.74,M,00,\x0316\r\n";
    const NMEA: &[u8] = b"$WIMWV,229,R,002.74,M,A*06\r\n";

    /// Returns the lines of a recording, and the number of lines that were left out.
    fn replay(file: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let (mut replay, left_out) = Replay::parse(file).unwrap();
        let lines = (0..replay.lines.len()).map(|_| replay.next()).collect();
        (lines, left_out.map_or(0, |left_out| left_out.count))
    }

    #[test]
    fn every_form_of_a_line_is_sent_as_the_instrument_sends_it_over_and_over() {
        let file = [LINE, NMEA, b"\nQ,229,002.74,M,00,\n{\"raw\":\"Q,229,002.74,M,00,\",\"t0\":1}"];
        let (mut replay, left_out) = Replay::parse(&file.concat()).unwrap();
        let sent: Vec<_> = (0..6).map(|_| replay.next()).collect();
        assert_eq!(sent, [LINE, NMEA, LINE, LINE, LINE, NMEA]);
        assert!(left_out.is_none());
    }

    #[test]
    fn what_a_reader_of_the_topic_wrote_down_is_replayed() {
        let data = "{\"unit\":\"Q\",\"speed\":2.74,\"raw\":\"Q,229,002.74,M,00,\",\"t0\":1}";
        let nmea = r#"{"raw":"$WIMWV,229,R,002.74,M,A*06"}"#;
        for (recorded, sent) in [
            (format!("{{\"offset\":7,\"time\":1.5,\"data\":{data}}}"), vec![LINE]),
            (format!("{{\"position\":\"4zq81x-7\",\"time\":1.5,\"data\":{data}}}"), vec![LINE]),
            (format!("{{\"topic\":\"wind\",\"item\":1,\"data\":{nmea}}}"), vec![NMEA]),
            (
                format!(
                    "{{\"epoch\":\"4zq81x\",\"events\":[{{\"data\":{data}}},{{\"data\":{nmea}}}]}}"
                ),
                vec![LINE, NMEA],
            ),
        ] {
            let expected: Vec<_> = sent.iter().map(|line| line.to_vec()).collect();
            assert_eq!(replay(recorded.as_bytes()), (expected, 0), "{recorded}");
        }
    }

    #[test]
    fn lines_that_are_no_measurements_are_left_out_and_counted() {
        for bad in [
            &b"Q,400,002.74,M,00,\n"[..],
            b"\x02Q,229,002.74,M,00,\x0317\r\n",
            b"$GPRMC,1,2\r\n",
            b"CONFIGURATION MODE\r\n",
            b"{\"gap\":{\"reason\":\"expired\"}}\n",
            b"{\"data\":{\"raw\":5}}\n",
            b"{\"data\":\"text\"}\n",
            b"{\"speed\":\n",
            b"\xff\xfa\n",
        ] {
            let file = [bad, LINE, b"\r\n \n", bad, LINE].concat();
            assert_eq!(replay(&file), (vec![LINE.to_vec(); 2], 2), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_recording_without_a_measurement_is_an_error_with_the_fault_of_its_first_line() {
        let error = |file: &str| chain(&Replay::parse(file.as_bytes()).unwrap_err());
        let none = "none of its lines is a measurement: line 2 is not a measurement";
        for (line, fault) in [
            ("Q,400,002.74,M,00,", "direction \"400\" is not empty or 000 to 359"),
            ("\u{2}Q,229,002.74,M,00,\u{3}17", "checksum is 17, the bytes give 16"),
            ("{\"raw\":\"hello\"}", "line begins neither with STX nor with $"),
            ("{\"speed\":1}", "its JSON has no text \"raw\""),
        ] {
            assert_eq!(error(&format!("\n{line}\n{line}\n")), format!("{none}: {fault}"));
        }
        let not_json = error("\n{\"raw\":\n");
        assert!(not_json.starts_with(&format!("{none}: it is not a JSON object")), "{not_json}");
        assert_eq!(error("\n \r\n"), "it has no lines");
    }

    #[test]
    fn a_file_that_is_not_there_is_said_so() {
        let error = Replay::open(Path::new("/no/such/recording")).unwrap_err();
        assert!(matches!(error, ReplayError::Read(_)));
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_utf_16_is_named() {
        assert_eq!(replay(&[b"\xef\xbb\xbf", LINE].concat()), (vec![LINE.to_vec()], 0));
        let utf_16: Vec<_> = "\u{feff}Q,229,002.74,M,00,\r\n".encode_utf16().collect();
        let utf_16: Vec<_> = utf_16.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let error = Replay::parse(&utf_16).unwrap_err();
        assert!(error.to_string().contains("iconv -f UTF-16"), "{error}");
    }

    #[test]
    fn a_file_is_replayed_up_to_the_limit_and_not_a_byte_more() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("recording");
        fs::write(&path, LINE).unwrap();
        let bytes = LINE.len() as u64;
        let at_the_limit = Replay::open_within(&path, bytes);
        let above = Replay::open_within(&path, bytes - 1);
        assert_eq!(at_the_limit.unwrap().0.next(), LINE);
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
