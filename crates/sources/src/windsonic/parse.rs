//! Parses a line as a message: framing, checksum, fields.
//!
//! The checksum is the exclusive-or of the bytes. It detects every change, loss or insertion of **one** byte, except
//! of a NUL, which no field accepts. It misses changes of several bytes that cancel out, such as the same bit in two
//! digits. So each field of a Gill format must also have exactly the form in the manual, digit for digit.
//!
//! NMEA 0183 fixes no widths and, for this sentence, requires no checksum. So [`nmea`] also reads the messages of other
//! makes. A checksum that is there must be right. If one changed byte hides the beginning of the checksum, no field
//! accepts the bytes that are left.
//!
//! An instrument that cannot measure sends no figures. Both fields are empty or, in its fixed-field output, full of
//! nines, and the status is not OK. Such a line is a message, too, with [`Wind::Void`].

mod field;
mod nmea;

use anemone_wire::without_mark;

pub use self::field::ParseError;
use self::field::{digits, field_error, fields, is_code, is_void, parse_units, text};
use super::decimal::Decimal;
use super::message::{ETX, Message, OK, STX, Sender, SpeedUnits, UnitId, Wind, checksum};

/// A message and its text. In the Gill formats, the text is the part between STX and ETX; in NMEA, it is the line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Parsed<'a> {
    pub(crate) message: Message,
    pub(crate) raw: &'a str,
}

/// Parses one line, without its CR LF.
///
/// # Errors
/// [`ParseError`] with the first fault. The framing is checked first, then the checksum, then the fields.
pub(crate) fn parse(line: &[u8]) -> Result<Parsed<'_>, ParseError> {
    match line.split_first() {
        Some((&STX, rest)) => {
            let content = checked(rest, ETX, "ETX")?;
            Ok(Parsed { message: parse_gill(content)?, raw: text(content)? })
        }
        Some((b'$', rest)) => {
            let has_checksum = rest.contains(&b'*');
            let content = if has_checksum { checked(rest, b'*', "*")? } else { rest };
            Ok(Parsed { message: nmea::parse(content)?, raw: text(line)? })
        }
        _ if is_json(line) => Err(ParseError::Json),
        _ => Err(ParseError::Start),
    }
}

/// Returns true if the line seems to be JSON, since it begins like an object or a list of objects.
pub(crate) fn is_json(line: &[u8]) -> bool {
    let mut bytes = without_mark(line).iter().filter(|byte| !byte.is_ascii_whitespace());
    match bytes.next() {
        Some(b'{') => true,
        Some(b'[') => bytes.next() == Some(&b'{'),
        _ => false,
    }
}

/// Returns the bytes before `end`, if the checksum after `end` is right.
fn checked<'a>(rest: &'a [u8], end: u8, name: &'static str) -> Result<&'a [u8], ParseError> {
    let at = rest.iter().position(|byte| *byte == end).ok_or(ParseError::End { end: name })?;
    let (content, digits) = (&rest[..at], &rest[at + 1..]);
    let found = hex_byte(digits).ok_or(ParseError::ChecksumDigits { len: digits.len() })?;
    let computed = checksum(content);
    if found != computed {
        return Err(ParseError::Checksum { found, computed });
    }
    Ok(content)
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let &[high, low] = digits else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Parses the part between STX and ETX: `Q,229,002.74,M,00,` or `Q,+000.05,+000.00,M,00,` or `Q,,,M,04,`.
///
/// # Errors
/// [`ParseError::Fields`] or [`ParseError::Field`].
pub(crate) fn parse_gill(content: &[u8]) -> Result<Message, ParseError> {
    let [unit, second, third, units, status, b""] = fields::<6>(content)? else {
        return Err(ParseError::Fields { found: 7, expected: 6 });
    };
    let units = parse_units(units)?;
    if !is_code(status) {
        return Err(field_error("status", status, "two digits"));
    }
    let wind = if is_void([second, third], status == OK.as_bytes()) {
        Wind::Void
    } else if second.starts_with(b"+") || second.starts_with(b"-") {
        Wind::Vector {
            u: parse_component("U", second, units)?,
            v: parse_component("V", third, units)?,
        }
    } else {
        Wind::Polar { direction: parse_direction(second)?, speed: parse_speed(third, units)? }
    };
    let sender = Sender::Gill(parse_unit(unit)?);
    Ok(Message { sender, wind, units: Some(units), status: text(status)?.into() })
}

fn parse_unit(field: &[u8]) -> Result<UnitId, ParseError> {
    let &[letter] = field else { return Err(field_error("unit", field, "one letter, A to Z")) };
    UnitId::new(char::from(letter)).ok_or_else(|| field_error("unit", field, "one letter, A to Z"))
}

fn parse_direction(field: &[u8]) -> Result<Option<Decimal>, ParseError> {
    if field.is_empty() {
        return Ok(None);
    }
    let degrees = if field.len() == 3 { digits(field) } else { None };
    match degrees.and_then(|degrees| u16::try_from(degrees).ok()) {
        Some(degrees) if degrees < 360 => Ok(Some(Decimal::whole(degrees))),
        _ => Err(field_error("direction", field, "empty or 000 to 359")),
    }
}

fn parse_speed(field: &[u8], units: SpeedUnits) -> Result<Decimal, ParseError> {
    hundredths(field, units).ok_or_else(|| field_error("speed", field, "as 002.74"))
}

fn parse_component(
    name: &'static str,
    field: &[u8],
    units: SpeedUnits,
) -> Result<Decimal, ParseError> {
    let value = match field.split_first() {
        Some((b'+', value)) => hundredths(value, units),
        Some((b'-', value)) => hundredths(value, units).map(|value| -value),
        _ => None,
    };
    value.ok_or_else(|| field_error(name, field, "as +002.74"))
}

/// Parses `ddd.dd`. The instrument's greatest speed, 60 m/s, is 11,811 ft/min, so up to 5 digits may precede the
/// point.
fn hundredths(field: &[u8], units: SpeedUnits) -> Option<Decimal> {
    let (rest, decimals) = field.split_last_chunk::<2>()?;
    let (b'.', whole) = rest.split_last()? else { return None };
    let digits_max = if units == SpeedUnits::FeetPerMinute { 5 } else { 3 };
    if !(3..=digits_max).contains(&whole.len()) {
        return None;
    }
    Some(Decimal::hundredths(digits(whole)? * 100 + digits(decimals)?))
}

#[cfg(test)]
mod tests;
