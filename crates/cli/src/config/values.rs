//! The syntax of values: durations, sizes, numbers, words, addresses, paths.
//!
//! Each error contains the value found and the one expected; the caller adds the name of the key. A variable is
//! always text, and is parsed as its key requires.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anemone_server::{Limit, Unit};

use super::document::{Node, Value};
use super::fault::closest;
use super::listen::{Listen, parse_address};

/// The most threads: more than any machine can use.
pub(crate) const THREADS_MAX: usize = 1024;

/// The most characters of an invalid text that are shown.
const SHOWN_CHARS: usize = 60;

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const TIB: u64 = 1 << 40;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = seconds(1);
pub(super) const HOUR: Duration = seconds(3600);
pub(super) const DAY: Duration = seconds(24 * 3600);

/// Longer than anybody keeps events.
pub(super) const AGE_MAX: Duration = DAY.saturating_mul(36_500);

/// The longest unit first, for formatting.
const TIME_UNITS: [(&str, Duration); 5] =
    [("d", DAY), ("h", HOUR), ("min", seconds(60)), ("s", SECOND), ("ms", MILLISECOND)];
const SIZE_UNITS: [(&str, u64); 5] =
    [("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1)];

/// A duration in the format of a configuration, `30s`, in the largest unit that needs no fraction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(pub(crate) Duration);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let whole = |unit: Duration| millis != 0 && millis.is_multiple_of(unit.as_millis());
        match TIME_UNITS.iter().find(|(_, unit)| whole(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", millis / unit.as_millis()),
            None => f.write_str("0s"),
        }
    }
}

/// A number of bytes in the format of a configuration, `64KiB`, in the largest unit that needs no fraction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub(crate) u64);

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZE_UNITS.iter().find(|(_, unit)| self.0 != 0 && self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => f.write_str("0B"),
        }
    }
}

fn expected(what: &str, node: &Node) -> String {
    format!("expected {what}, but found {}", node.content.kind())
}

/// Quotes the beginning of a text.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{cut:?}{}", if cut.len() < text.len() { "…" } else { "" })
}

fn as_text(node: &Node) -> Option<&str> {
    match &node.content {
        Value::Text(text) | Value::Variable(text) => Some(text),
        _ => None,
    }
}

/// Parses `"…"`, not empty.
pub(super) fn text(node: &Node) -> Result<String, String> {
    let text = as_text(node).ok_or_else(|| expected("a string", node))?;
    match text {
        "" => Err("it is empty".to_owned()),
        _ if text.contains('\0') => Err("it contains a NUL character".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses a text for another program, which may be empty.
pub(super) fn argument(node: &Node) -> Result<OsString, String> {
    match &node.content {
        Value::Text(text) if text.is_empty() => Ok(OsString::new()),
        _ => text(node).map(Into::into),
    }
}

/// Parses `true` or `false`.
pub(super) fn boolean(node: &Node) -> Result<bool, String> {
    match &node.content {
        Value::Boolean(value) => Ok(*value),
        Value::Variable(text) => {
            text.parse().map_err(|_| format!("expected true or false, but found {}", shown(text)))
        }
        _ => Err(expected("true or false", node)),
    }
}

pub(super) fn number<T>(range: RangeInclusive<T>) -> impl FnOnce(&Node) -> Result<T, String>
where
    T: Copy + Display + PartialOrd + TryFrom<u64>,
{
    move |node| {
        let (written, number) = match &node.content {
            Value::Integer(written, number) => (written.clone(), *number),
            Value::Variable(text) => (shown(text), text.parse().ok()),
            _ => return Err(expected("a whole number", node)),
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            format!("{written} is not a whole number from {} to {}", range.start(), range.end())
        })
    }
}

/// Parses a number of bytes in this range: `4096`, or `"4KiB"`.
pub(super) fn size<T>(range: RangeInclusive<u64>) -> impl FnOnce(&Node) -> Result<T, String>
where
    T: TryFrom<u64>,
{
    move |node| {
        let (written, bytes) = match &node.content {
            Value::Integer(written, number) => (written.clone(), *number),
            Value::Text(text) | Value::Variable(text) => (shown(text), Some(parse_size(text)?)),
            _ => return Err(expected("a number of bytes, such as 4096 or \"4KiB\"", node)),
        };
        let bytes = bytes.filter(|bytes| range.contains(bytes));
        bytes.and_then(|bytes| T::try_from(bytes).ok()).ok_or_else(|| {
            format!(
                "{written} is not in the range from {} to {}",
                Size(*range.start()),
                Size(*range.end())
            )
        })
    }
}

/// Parses the value of a limit in its unit.
pub(super) fn amount<L>(limit: &Limit<L>) -> impl FnOnce(&Node) -> Result<u64, String> {
    let (unit, range) = (limit.unit, limit.least..=limit.most);
    move |node| match unit {
        Unit::Bytes => size(range)(node),
        Unit::Nanoseconds => {
            let [least, most] = [*range.start(), *range.end()].map(Duration::from_nanos);
            let time = duration(least..=most)(node)?;
            Ok(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        }
        _ => number(range)(node),
    }
}

pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("{} is not a number of bytes: {why}", shown(text));
    let (number, unit) = split_unit(text);
    let number: u64 = number.parse().map_err(|_| {
        wrong("expected a whole number with a unit, B, KiB, MiB, GiB or TiB, such as \"64KiB\"")
    })?;
    let factor = match unit {
        "" => Some(1),
        unit => SIZE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
    };
    let factor = factor
        .ok_or_else(|| wrong("the units are B, KiB, MiB, GiB and TiB; 1KiB is 1024 bytes"))?;
    number.checked_mul(factor).ok_or_else(|| wrong("the number is too large"))
}

/// Parses a duration in this range: `"250ms"`, `"30s"`, `"5min"`, `"1h"`, `"7d"`.
pub(super) fn duration(
    range: RangeInclusive<Duration>,
) -> impl FnOnce(&Node) -> Result<Duration, String> {
    move |node| {
        let text = as_text(node)
            .ok_or_else(|| expected("a duration with a unit, such as \"30s\"", node))?;
        let duration = parse_duration(text)?;
        let (min, max) = (Time(*range.start()), Time(*range.end()));
        let is_in = range.contains(&duration);
        is_in
            .then_some(duration)
            .ok_or_else(|| format!("{} is not in the range from {min} to {max}", shown(text)))
    }
}

pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = |why: &str| format!("{} is not a duration: {why}", shown(text));
    let (number, unit) = split_unit(text);
    let number: u64 = number.parse().map_err(|_| {
        wrong("expected a whole number with a unit, ms, s, min, h or d, such as \"30s\"")
    })?;
    let factor = TIME_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let factor = factor.ok_or_else(|| match unit {
        "" => wrong("it has no unit; the units are ms, s, min, h and d, as in \"30s\""),
        "m" => wrong("m is ambiguous; write min or ms"),
        _ => wrong("the units are ms, s, min, h and d, as in \"30s\""),
    })?;
    let factor = u64::try_from(factor.as_millis()).unwrap_or(u64::MAX);
    let millis = number.checked_mul(factor).ok_or_else(|| wrong("the duration is too long"))?;
    Ok(Duration::from_millis(millis))
}

fn split_unit(text: &str) -> (&str, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(digits)
}

/// Parses a type from a text; its error says what is expected.
pub(super) fn parsed<T: FromStr<Err: Display>>(node: &Node) -> Result<T, String> {
    text(node)?.parse().map_err(|error: T::Err| error.to_string())
}

pub(super) fn address(node: &Node) -> Result<SocketAddr, String> {
    let text = text(node)?;
    parse_address(&text).map_err(|fault| format!("{} is not an address: {fault}", shown(&text)))
}

/// Parses places to listen: an address, `unix:PATH`, or a list of these.
pub(super) fn places(node: &Node) -> Result<Vec<Listen>, String> {
    let one = |node: &Node| match as_text(node).and_then(|text| text.strip_prefix("unix:")) {
        Some("") => Err("unix: must be followed by the path of a socket".to_owned()),
        Some(socket) => Ok(Listen::Unix(relative(node, socket.into()))),
        None => {
            let text = text(node)?;
            let told = |fault| format!("{} is not a place to listen: {fault}", shown(&text));
            text.parse().map_err(told)
        }
    };
    let all = match &node.content {
        Value::List(_) | Value::Variable(_) => list(one)(node)?,
        _ => vec![one(node)?],
    };
    Listen::check_number(&all).map(|()| all)
}

/// Parses a file's permissions in octal digits, `"660"`.
pub(super) fn mode(node: &Node) -> Result<u32, String> {
    parse_mode(&text(node)?)
}

pub(crate) fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| {
        format!("{} is not a file mode: expected three octal digits, such as \"660\"", shown(text))
    })
}

/// Parses a path; one in a file is relative to that file.
pub(super) fn path(node: &Node) -> Result<PathBuf, String> {
    Ok(relative(node, text(node)?.into()))
}

fn relative(node: &Node, path: PathBuf) -> PathBuf {
    match node.place.source() {
        Some(source) => source.directory().join(path),
        None => path,
    }
}

pub(super) fn word<T: Copy, const N: usize>(
    words: [(&'static str, T); N],
) -> impl FnOnce(&Node) -> Result<T, String> {
    move |node| {
        let text = text(node)?;
        let names = words.iter().map(|(name, _)| *name);
        words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
            let near = closest(&text, names.clone());
            let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            let allowed: Vec<_> = names.map(|name| format!("{name:?}")).collect();
            format!("{} is not one of {}{hint}", shown(&text), allowed.join(", "))
        })
    }
}

/// Parses a list of values; in a variable, they are separated by commas.
pub(super) fn list<T>(
    item: impl Fn(&Node) -> Result<T, String>,
) -> impl FnOnce(&Node) -> Result<Vec<T>, String> {
    move |node| match &node.content {
        Value::List(items) => items.iter().map(item).collect(),
        Value::Variable(text) => {
            let of = |text: &str| Node {
                place: node.place.clone(),
                content: Value::Variable(text.trim().to_owned()),
            };
            text.split(',').map(|text| item(&of(text))).collect()
        }
        _ => Err(expected("a list, such as [\"a\", \"b\"]", node)),
    }
}

#[cfg(test)]
mod tests;
