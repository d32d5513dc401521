//! The fields that messages of all formats have, and the faults that a line may have.

use crate::windsonic::message::SpeedUnits;

/// The reason why a line is not a message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The line has no beginning of a message, or is not a message at all.
    #[error("line begins neither with STX nor with $")]
    Start,
    /// The line is JSON, so another kind of device writes it.
    #[error("line is JSON, not a message of a WindSonic: use --serial-lines for this device")]
    Json,
    /// The line is another sentence of NMEA.
    #[error("sentence {sentence} is not a wind sentence, MWV")]
    Sentence {
        /// The talker and the name of the sentence.
        sentence: String,
    },
    /// The line lacks its end.
    #[error("line has no {end} and no checksum after it")]
    End {
        /// The expected byte before the checksum: `ETX` or `*`.
        end: &'static str,
    },
    /// Something other than two hex digits follows the end.
    #[error("{len} bytes stand where the checksum should be two hex digits")]
    ChecksumDigits {
        /// The number of bytes after the end.
        len: usize,
    },
    /// The checksum is wrong, so bytes were damaged.
    #[error("checksum is {found:02X}, the bytes give {computed:02X}")]
    Checksum {
        /// The checksum in the line.
        found: u8,
        /// The checksum of the bytes in the line.
        computed: u8,
    },
    /// No format has this number of fields.
    #[error("message has {found} fields, expected {expected}")]
    Fields {
        /// The number of fields.
        found: usize,
        /// The expected number.
        expected: usize,
    },
    /// A field has an invalid value.
    #[error("{field} {text:?} is not {expected}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// The text of the field, cut to 20 characters.
        text: String,
        /// A description of the expected value.
        expected: &'static str,
    },
    /// The line was longer than the limit.
    #[error("line is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
}

pub(super) fn fields<const N: usize>(content: &[u8]) -> Result<[&[u8]; N], ParseError> {
    let mut fields: [&[u8]; N] = [b""; N];
    let mut found = 0;
    for field in content.split(|byte| *byte == b',') {
        if let Some(place) = fields.get_mut(found) {
            *place = field;
        }
        found += 1;
    }
    if found != N {
        return Err(ParseError::Fields { found, expected: N });
    }
    Ok(fields)
}

pub(super) fn text(bytes: &[u8]) -> Result<&str, ParseError> {
    std::str::from_utf8(bytes).map_err(|_| field_error("line", bytes, "ASCII"))
}

/// Returns true for two hex digits, which a status in the Gill formats has.
pub(super) fn is_code(status: &[u8]) -> bool {
    status.len() == 2 && status.iter().all(u8::is_ascii_hexdigit)
}

/// Returns true if both figures are void: empty, or full of nines. If the status is OK, nines are real figures.
pub(super) fn is_void(figures: [&[u8]; 2], is_ok: bool) -> bool {
    let is_empty = |figure: &[u8]| figure.is_empty();
    let is_padded = |figure: &[u8]| {
        let digits = figure.strip_prefix(b"+").or(figure.strip_prefix(b"-")).unwrap_or(figure);
        digits.starts_with(b"99") && digits.iter().all(|byte| b"9.".contains(byte))
    };
    figures.into_iter().all(is_empty) || (!is_ok && figures.into_iter().all(is_padded))
}

pub(super) fn parse_units(field: &[u8]) -> Result<SpeedUnits, ParseError> {
    let is = |units: &SpeedUnits| field == [units.letter() as u8];
    let units = SpeedUnits::ALL.into_iter().find(is);
    units.ok_or_else(|| field_error("unit of speed", field, "one of M N P K F"))
}

/// Parses decimal digits. A caller passes at most 6, so the number cannot overflow.
pub(super) fn digits(field: &[u8]) -> Option<i64> {
    field.iter().try_fold(0, |value: i64, byte| {
        byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
    })
}

pub(super) fn field_error(field: &'static str, bytes: &[u8], expected: &'static str) -> ParseError {
    let text = bytes.iter().take(20).map(|byte| char::from(*byte)).collect();
    ParseError::Field { field, text, expected }
}
