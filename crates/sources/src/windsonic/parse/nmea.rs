//! The wind sentence of NMEA 0183, `MWV`, of any make and talker: `WIMWV,229,R,002.74,M,A`, `IIMWV,311.67,T,4,N,A`.
//!
//! The fields are those of the standard: the direction, its reference (`R` or `T`), the speed, its unit (`K`, `M`, `N`,
//! `S`), and the status (`A` or `V`). Figures have 1 to 5 digits before the point, and up to 6 after it. A WindSonic
//! also sends the units and, in two of its formats, the status of the Gill formats.

use super::field::{self, ParseError, digits, field_error, fields, is_code, is_void, text};
use crate::windsonic::decimal::Decimal;
use crate::windsonic::message::{Message, Reference, Sender, SpeedUnits, Wind};

/// Parses the part after `$`, without the checksum.
///
/// # Errors
/// [`ParseError::Sentence`], [`ParseError::Fields`] or [`ParseError::Field`].
pub(super) fn parse(content: &[u8]) -> Result<Message, ParseError> {
    let sentence = content.split(|byte| *byte == b',').next().unwrap_or(content);
    if !is_sentence(sentence) {
        return Err(field_error("sentence", sentence, "a wind sentence, MWV"));
    }
    if sentence.len() != 5 || !sentence.ends_with(b"MWV") {
        return Err(ParseError::Sentence { sentence: text(sentence)?.into() });
    }
    let [_, direction, reference, speed, units, status] =
        fields::<6>(content)?.map(<[u8]>::trim_ascii);
    if !(matches!(status, b"A" | b"V") || is_code(status)) {
        return Err(field_error("status", status, "A or V"));
    }
    let is_void = is_void([direction, speed], matches!(status, b"A" | b"00"));
    let wind = if is_void {
        Wind::Void
    } else {
        Wind::Polar { direction: parse_direction(direction)?, speed: parse_speed(speed)? }
    };
    let sender = Sender::Nmea(parse_reference(reference, is_void)?);
    Ok(Message { sender, wind, units: parse_units(units, is_void)?, status: text(status)?.into() })
}

/// Returns true for the name of any sentence, such as `GPRMC` or `PGRME`.
fn is_sentence(field: &[u8]) -> bool {
    let is_in = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    (3..=16).contains(&field.len()) && field.iter().all(is_in)
}

fn parse_reference(field: &[u8], is_void: bool) -> Result<Option<Reference>, ParseError> {
    match field {
        b"R" => Ok(Some(Reference::Relative)),
        b"T" => Ok(Some(Reference::Theoretical)),
        b"" if is_void => Ok(None),
        _ => Err(field_error("reference", field, "R or T")),
    }
}

fn parse_units(units: &[u8], is_void: bool) -> Result<Option<SpeedUnits>, ParseError> {
    match units {
        b"S" => Ok(Some(SpeedUnits::MilesPerHour)),
        b"" if is_void => Ok(None),
        _ => field::parse_units(units).map(Some),
    }
}

/// Parses degrees. Some makes count up to 360.
fn parse_direction(field: &[u8]) -> Result<Option<Decimal>, ParseError> {
    let full = Decimal::whole(360);
    match (field, decimal(field)) {
        (b"", _) => Ok(None),
        (_, Some(degrees)) if degrees < full => Ok(Some(degrees)),
        (_, Some(degrees)) if degrees == full => Ok(Some(Decimal::default())),
        _ => Err(field_error("direction", field, "empty or 0 to 360")),
    }
}

fn parse_speed(field: &[u8]) -> Result<Decimal, ParseError> {
    decimal(field).ok_or_else(|| field_error("speed", field, "a number, such as 2.74"))
}

/// Parses a number with or without a point and decimals.
fn decimal(field: &[u8]) -> Option<Decimal> {
    let point = field.iter().position(|byte| *byte == b'.');
    let (whole, decimals) = match point {
        Some(at) => (&field[..at], &field[at + 1..]),
        None => (field, &b""[..]),
    };
    if !(1..=5).contains(&whole.len()) || decimals.len() > Decimal::DECIMALS {
        return None;
    }
    let missing = u32::try_from(Decimal::DECIMALS - decimals.len()).ok()?;
    let fraction = digits(decimals)? * 10_i64.pow(missing);
    Some(Decimal::millionths(digits(whole)? * 1_000_000 + fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windsonic::parse::tests::nmea;

    fn parsed(content: &str) -> Message {
        crate::windsonic::parse::parse(&nmea(content)).unwrap().message
    }

    fn error(content: &str) -> String {
        crate::windsonic::parse::parse(&nmea(content)).unwrap_err().to_string()
    }

    #[test]
    fn figures_have_any_width() {
        for (content, degrees, speed) in [
            ("WIMWV,229,R,002.74,M,A", "229.00", "002.74"),
            ("WIMWV,311.67,R,4.00,N,A", "311.67", "004.00"),
            ("WIMWV,270,R,10,N,A", "270.00", "010.00"),
            ("WIMWV,5.5,R,0.125,N,A", "005.50", "000.125"),
            ("WIMWV,0,R,10.,N,A", "000.00", "010.00"),
            ("WIMWV, 90.0,R, 12.3,N,A", "090.00", "012.30"),
            ("WIMWV,359.999999,R,99999.999999,N,A", "359.999999", "99999.999999"),
        ] {
            let message = parsed(content);
            let figures =
                [message.direction(), message.speed()].map(|figure| figure.unwrap().to_string());
            assert_eq!(figures, [degrees, speed], "{content}");
        }
    }

    #[test]
    fn north_is_0_also_when_it_is_written_as_360() {
        for text in ["360", "360.0", "0", "000"] {
            let message = parsed(&format!("WIMWV,{text},R,1,N,A"));
            assert_eq!(message.direction(), Some(Decimal::default()), "{text}");
        }
        for text in ["360.1", "361", "-1", "1e2", "1.2.3", ".", "1.1234567", "123456"] {
            let fault = error(&format!("WIMWV,{text},R,1,N,A"));
            assert_eq!(fault, format!("direction {text:?} is not empty or 0 to 360"));
        }
    }

    #[test]
    fn every_talker_unit_reference_and_status_is_read() {
        for talker in ["WI", "II", "YX", "U0"] {
            assert_eq!(parsed(&format!("{talker}MWV,1,R,1,N,A")).fault(), None);
        }
        for (letter, symbol) in [
            ("K", "km/h"),
            ("M", "m/s"),
            ("N", "knots"),
            ("S", "mph"),
            ("P", "mph"),
            ("F", "ft/min"),
        ] {
            let units = parsed(&format!("WIMWV,1,R,1,{letter},A")).units;
            assert_eq!(units.map(SpeedUnits::symbol), Some(symbol));
        }
        for (letter, reference) in [("R", Reference::Relative), ("T", Reference::Theoretical)] {
            let sender = parsed(&format!("WIMWV,1,{letter},1,N,A")).sender;
            assert_eq!(sender, Sender::Nmea(Some(reference)));
        }
        for status in ["A", "V", "00", "04"] {
            assert_eq!(parsed(&format!("WIMWV,1,R,1,N,{status}")).status, status);
        }
        assert_eq!(error("WIMWV,1,X,1,N,A"), "reference \"X\" is not R or T");
        assert_eq!(error("WIMWV,1,R,1,X,A"), "unit of speed \"X\" is not one of M N P K F");
        assert_eq!(error("WIMWV,1,R,1,N,B"), "status \"B\" is not A or V");
        assert_eq!(error("WIMWV,1,R,,N,A"), "speed \"\" is not a number, such as 2.74");
    }

    #[test]
    fn void_data_has_no_wind_and_may_lack_its_unit_and_reference() {
        for content in ["IIMWV,,R,,M,V", "WIMWV,,,,,V", "WIMWV,999,R,999.99,M,V", "WIMWV,,R,,N,04"]
        {
            let message = parsed(content);
            assert_eq!(message.wind, Wind::Void, "{content}");
            assert!(message.fault().is_some());
        }
        let kept = parsed("IIMWV,229,R,002.74,M,V");
        assert_eq!(kept.speed(), Some(Decimal::hundredths(274)));
    }

    #[test]
    fn another_sentence_is_named() {
        for sentence in ["GPRMC", "WIXDR", "PGRME", "HEHDT"] {
            let fault = error(&format!("{sentence},1,2"));
            assert_eq!(fault, format!("sentence {sentence} is not a wind sentence, MWV"));
        }
        assert_eq!(error("wimwv,1,R,1,N,A"), "sentence \"wimwv\" is not a wind sentence, MWV");
        assert_eq!(error("WIMWV,1,R,1,N"), "message has 5 fields, expected 6");
    }
}
