//! `[[source]]`: the sources of events.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anemone_hub::TopicName;
use anemone_sources::exec::{Command, Restart};
use anemone_sources::file::Origin;
use anemone_sources::windsonic::{Mode, UnitId};
use anemone_sources::{exec, file, host, serial_lines, stdin, windsonic};

use super::document::{Node, Value};
use super::place::{Located, Place};
use super::table::Table;
use super::values::{
    DAY, HOUR, KIB, MIB, MILLISECOND, SECOND, Time, argument, duration, number, parsed, path, size,
    text, word,
};

/// The speeds of a serial line in bits per second.
pub(crate) const BAUD: RangeInclusive<u32> = 50..=4_000_000;
const LINES: RangeInclusive<u64> = 1..=16 * MIB;
const TIMES: RangeInclusive<Duration> = MILLISECOND..=DAY;

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) topic: Located<TopicName>,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Serial(Located<windsonic::WindsonicOptions>),
    SerialLines(Located<serial_lines::SerialLinesOptions>),
    Exec(Box<exec::ExecOptions>, StderrTo),
    File(file::FileOptions),
    Stdin(stdin::StdinOptions),
    /// This machine, measured at this interval.
    Host(Duration),
    /// An emulated instrument that this program starts itself, for `demo`.
    Demo(UnitId),
}

/// The destination of a program's standard error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StderrTo {
    Log,
    /// The topic `NAME.stderr`.
    Topic,
}

impl Kind {
    /// Returns the name in a configuration.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Serial(_) => "serial",
            Self::SerialLines(_) => "serial-lines",
            Self::Exec(..) => "exec",
            Self::File(_) => "file",
            Self::Stdin(_) => "stdin",
            Self::Host(_) => "host",
            Self::Demo(_) => "demo",
        }
    }
}

#[derive(Clone, Copy)]
enum Type {
    Serial,
    SerialLines,
    Exec,
    File,
    Stdin,
    Host,
}

const TYPES: [(&str, Type); 6] = [
    ("serial", Type::Serial),
    ("serial-lines", Type::SerialLines),
    ("exec", Type::Exec),
    ("file", Type::File),
    ("stdin", Type::Stdin),
    ("host", Type::Host),
];

/// Reads a source; `None` after an error that prevents continuing.
pub(super) fn read(mut table: Table<'_>) -> Option<Source> {
    let what = "\"serial\", \"serial-lines\", \"exec\", \"file\", \"stdin\" or \"host\"";
    // Without the type, the other keys are unknown.
    let kind = table.required("type", what, word(TYPES))?;
    let what = "the name of the topic for its events, such as \"cpu\"";
    let topic = table.required("topic", what, parsed);
    let t = &mut table;
    let kind = match kind.value {
        Type::Serial => serial(t).map(Kind::Serial),
        Type::SerialLines => serial_lines(t).map(Kind::SerialLines),
        Type::Exec => exec(t).map(|(options, stderr)| Kind::Exec(Box::new(options), stderr)),
        Type::File => file(t).map(Kind::File),
        Type::Stdin => Some(Kind::Stdin(stdin(t))),
        Type::Host => {
            let interval = duration(Duration::from_millis(200)..=HOUR);
            Some(Kind::Host(t.value("interval", host::INTERVAL_DEFAULT, interval)))
        }
    };
    table.finish();
    Some(Source { topic: topic?, kind: kind? })
}

fn time(table: &mut Table<'_>, key: &'static str, default: Duration) -> Duration {
    table.value(key, default, duration(TIMES))
}

fn report_interval(table: &mut Table<'_>, default: Duration) -> Duration {
    table.value("report_interval", default, duration(SECOND..=DAY))
}

fn line_bytes_max(table: &mut Table<'_>, default: usize) -> usize {
    table.value("line_bytes_max", default, size(LINES))
}

/// Reads the first and the longest wait before a retry.
fn retry(table: &mut Table<'_>, min: Duration, max: Duration) -> (Duration, Duration) {
    let retry_min = table.optional("retry_min", duration(TIMES));
    let retry_max = table.optional("retry_max", duration(TIMES));
    let place = retry_min.as_ref().or(retry_max.as_ref()).map(|found| found.place.clone());
    let min = retry_min.map_or(min, |found| found.value);
    let max = retry_max.map_or(max, |found| found.value);
    if let (true, Some(place)) = (min > max, place) {
        let (min, max) = (Time(min), Time(max));
        let fault = format!("source.retry_min, {min}, is longer than source.retry_max, {max}");
        table.fault(&place, fault);
    }
    (min, max)
}

fn serial(t: &mut Table<'_>) -> Option<Located<windsonic::WindsonicOptions>> {
    let device = t.required("device", "the serial device, such as \"/dev/ttyUSB0\"", path);
    let place = device.as_ref().map(|device| device.place.clone()).unwrap_or_default();
    let default = windsonic::WindsonicOptions::new(device.as_deref().cloned().unwrap_or_default());
    let modes =
        [("listen", Mode::Listen), ("configure", Mode::Configure), ("polled", Mode::Polled)];
    let (retry_min, retry_max) = retry(t, default.retry_min, default.retry_max);
    let options = windsonic::WindsonicOptions {
        baud: t.value("baud", default.baud, number(BAUD)),
        unit: t.value("unit", default.unit, parsed),
        mode: t.value("mode", default.mode, word(modes)),
        silence_max: time(t, "silence_max", default.silence_max),
        line_bytes_max: t.value("line_bytes_max", default.line_bytes_max, size(16..=64 * KIB)),
        poll_interval: time(t, "poll_interval", default.poll_interval),
        unasked_wait: time(t, "unasked_wait", default.unasked_wait),
        answer_wait: time(t, "answer_wait", default.answer_wait),
        configure_retry: time(t, "configure_retry", default.configure_retry),
        report_interval: report_interval(t, default.report_interval),
        retry_min,
        retry_max,
        path: default.path,
    };
    device.map(|_| Located::new(options, place))
}

fn serial_lines(t: &mut Table<'_>) -> Option<Located<serial_lines::SerialLinesOptions>> {
    let device = t.required("device", "the serial device, such as \"/dev/ttyUSB0\"", path)?;
    let default = serial_lines::SerialLinesOptions::new(device.value);
    let (retry_min, retry_max) = retry(t, default.retry_min, default.retry_max);
    let options = serial_lines::SerialLinesOptions {
        baud: t.value("baud", default.baud, number(BAUD)),
        framing: t.value("framing", default.framing, parsed),
        line_bytes_max: line_bytes_max(t, default.line_bytes_max),
        report_interval: report_interval(t, default.report_interval),
        retry_min,
        retry_max,
        ..default
    };
    Some(Located::new(options, device.place))
}

fn exec(t: &mut Table<'_>) -> Option<(exec::ExecOptions, StderrTo)> {
    let what = "a shell command, such as \"vmstat 1\", or a program and its arguments, such as [\"vmstat\", \
                \"1\"]";
    let command = t.required("command", what, command);
    let found = command.is_some();
    let default =
        exec::ExecOptions::new(command.map_or(Command::Shell("".into()), |found| found.value));
    let restarts = [
        ("always", Restart::Always),
        ("on-failure", Restart::OnFailure),
        ("never", Restart::Never),
    ];
    let stderr = [("log", StderrTo::Log), ("topic", StderrTo::Topic)];
    let stderr = t.value("stderr", StderrTo::Log, word(stderr));
    let directory = t.optional("directory", path).map(|found| found.value);
    let (retry_min, retry_max) = retry(t, default.retry_min, default.retry_max);
    let options = exec::ExecOptions {
        environment: t.value("environment", Vec::new(), environment),
        directory: directory.or_else(|| beside(t.place())),
        restart: t.value("restart", default.restart, word(restarts)),
        grace: t.value("grace", default.grace, duration(Duration::ZERO..=HOUR)),
        line_bytes_max: line_bytes_max(t, default.line_bytes_max),
        report_interval: report_interval(t, default.report_interval),
        log_lines_max: t.value("log_lines_max", default.log_lines_max, number(0..=1_000_000)),
        good_run_min: time(t, "good_run_min", default.good_run_min),
        retry_min,
        retry_max,
        ..default
    };
    found.then_some((options, stderr))
}

/// Returns the directory of a file, unless that is the working directory.
pub(super) fn beside(place: &Place) -> Option<PathBuf> {
    let directory = place.source()?.directory();
    (!directory.as_os_str().is_empty()).then(|| directory.to_owned())
}

pub(super) fn command(node: &Node) -> Result<Command, String> {
    let Value::List(words) = &node.content else { return Ok(Command::Shell(text(node)?.into())) };
    let Some((program, arguments)) = words.split_first() else {
        return Err("the list is empty: expected a program and its arguments".to_owned());
    };
    let arguments: Result<Vec<_>, _> = arguments.iter().map(argument).collect();
    Ok(Command::program(text(program)?, arguments?))
}

pub(super) fn environment(node: &Node) -> Result<Vec<(OsString, OsString)>, String> {
    let Value::Table(entries) = &node.content else {
        return Err("expected a table, such as { TZ = \"UTC\" }".to_owned());
    };
    let variable = |entry: &super::document::Entry| {
        let key = &entry.key;
        if key.is_empty() || key.contains(['=', '\0']) {
            return Err(format!("{key:?} is not a valid name of a variable"));
        }
        let value = argument(&entry.node).map_err(|fault| format!("{key}: {fault}"))?;
        Ok((key.into(), value))
    };
    entries.iter().map(variable).collect()
}

fn file(t: &mut Table<'_>) -> Option<file::FileOptions> {
    let path = t.required("path", "the file to follow, such as \"/var/log/syslog\"", path);
    let found = path.is_some();
    let default = file::FileOptions::new(path.map(|path| path.value).unwrap_or_default());
    let origins = [("end", Origin::End), ("start", Origin::Start)];
    let options = file::FileOptions {
        from: t.value("from", default.from, word(origins)),
        interval: t.value("interval", default.interval, duration(MILLISECOND..=HOUR)),
        line_bytes_max: line_bytes_max(t, default.line_bytes_max),
        report_interval: report_interval(t, default.report_interval),
        path: default.path,
    };
    found.then_some(options)
}

fn stdin(t: &mut Table<'_>) -> stdin::StdinOptions {
    let default = stdin::StdinOptions::default();
    stdin::StdinOptions {
        line_bytes_max: line_bytes_max(t, default.line_bytes_max),
        report_interval: report_interval(t, default.report_interval),
        grace: t.value("grace", default.grace, duration(Duration::ZERO..=HOUR)),
        ..default
    }
}
