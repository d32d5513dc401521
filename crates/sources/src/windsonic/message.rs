//! A measurement as a message of the instrument, and as an event.
//!
//! Owns the values, and writes them as text in the three formats and as JSON. `parse` reads the text back into the same
//! values.

use std::fmt;
use std::str::FromStr;

use anemone_hub::UnixTime;
use serde::Serialize;

use super::decimal::Decimal;

pub(crate) const STX: u8 = 0x02;
pub(crate) const ETX: u8 = 0x03;

/// The status of a measurement that succeeded, in the Gill formats.
pub(crate) const OK: &str = "00";

/// The speed below which there is no direction, in m/s. It is the default threshold of the instrument.
pub(crate) const DIRECTION_THRESHOLD_METRES_PER_SECOND: f64 = 0.05;

/// An instrument's identifier: a letter, A to Z. The factory setting is `Q`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct UnitId(u8);

/// The text is not a unit identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a unit identifier is one capital letter, A to Z")]
pub struct UnitIdError;

impl UnitId {
    /// Returns the identifier with this letter; `None` unless it is one of A to Z.
    #[must_use]
    pub fn new(letter: char) -> Option<Self> {
        letter.is_ascii_uppercase().then_some(Self(letter as u8))
    }

    /// Returns the letter.
    #[must_use]
    pub fn letter(self) -> char {
        self.0 as char
    }

    pub(crate) fn byte(self) -> u8 {
        self.0
    }
}

impl Default for UnitId {
    fn default() -> Self {
        Self(b'Q')
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Write::write_char(f, self.letter())
    }
}

impl FromStr for UnitId {
    type Err = UnitIdError;

    fn from_str(text: &str) -> Result<Self, UnitIdError> {
        let mut letters = text.chars();
        match (letters.next().and_then(Self::new), letters.next()) {
            (Some(unit), None) => Ok(unit),
            _ => Err(UnitIdError),
        }
    }
}

/// The unit of a speed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SpeedUnits {
    /// `M`, m/s.
    MetresPerSecond,
    /// `N`, knots.
    Knots,
    /// `P`, mph; in the NMEA of other makes also `S`, statute miles.
    MilesPerHour,
    /// `K`, km/h.
    KilometresPerHour,
    /// `F`, ft/min.
    FeetPerMinute,
}

impl SpeedUnits {
    /// All units, in the order of the settings `U1` to `U5`.
    pub const ALL: [Self; 5] = [
        Self::MetresPerSecond,
        Self::Knots,
        Self::MilesPerHour,
        Self::KilometresPerHour,
        Self::FeetPerMinute,
    ];

    /// Returns the letter of the unit in a message.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::MetresPerSecond => 'M',
            Self::Knots => 'N',
            Self::MilesPerHour => 'P',
            Self::KilometresPerHour => 'K',
            Self::FeetPerMinute => 'F',
        }
    }

    /// Returns the usual symbol, as in events.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::MetresPerSecond => "m/s",
            Self::Knots => "knots",
            Self::MilesPerHour => "mph",
            Self::KilometresPerHour => "km/h",
            Self::FeetPerMinute => "ft/min",
        }
    }

    /// Returns the number of these units in one metre per second.
    #[must_use]
    pub fn per_metre_per_second(self) -> f64 {
        match self {
            Self::MetresPerSecond => 1.0,
            Self::Knots => 3600.0 / 1852.0,
            Self::MilesPerHour => 3600.0 / 1609.344,
            Self::KilometresPerHour => 3.6,
            Self::FeetPerMinute => 60.0 / 0.3048,
        }
    }
}

/// The wind, in one of the forms in which an instrument gives it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wind {
    /// Speed and direction.
    Polar {
        /// The direction from which the wind comes, in degrees, 0 up to 360. `None` if the wind is too weak.
        direction: Option<Decimal>,
        /// The speed, in the message's unit.
        speed: Decimal,
    },
    /// Components along two axes. Positive U blows from south to north, positive V from east to west. So the
    /// direction from which the wind comes is `atan2(V, -U)`: wind from the south (180) has U > 0, wind from the east
    /// (90) has V > 0.
    Vector {
        /// The component from south to north.
        u: Decimal,
        /// The component from east to west.
        v: Decimal,
    },
    /// No values, since the instrument could not measure the wind. This is so if something blocks its path.
    Void,
}

/// The reference of the wind in an NMEA message.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(crate) enum Reference {
    /// Relative to the instrument. On a vessel, this is the apparent wind.
    #[serde(rename = "R")]
    Relative,
    /// Theoretical, which is the true wind, computed from the vessel's own motion.
    #[serde(rename = "T")]
    Theoretical,
}

impl Reference {
    fn letter(self) -> char {
        match self {
            Self::Relative => 'R',
            Self::Theoretical => 'T',
        }
    }
}

/// The format of a message, with the values that only this format has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sender {
    /// One of the Gill formats, with the instrument's identifier.
    Gill(UnitId),
    /// NMEA, with the reference; `None` if the field of the reference is empty.
    Nmea(Option<Reference>),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Message {
    pub(crate) sender: Sender,
    pub(crate) wind: Wind,
    /// The unit of the speeds. Only a void NMEA message may lack it.
    pub(crate) units: Option<SpeedUnits>,
    /// In the Gill formats two digits, `00` for OK. In NMEA `A` (valid) or `V` (void).
    pub(crate) status: String,
}

impl Message {
    /// Returns the speed. For a vector, this is its length, rounded to hundredths.
    pub(crate) fn speed(&self) -> Option<Decimal> {
        match self.wind {
            Wind::Polar { speed, .. } => Some(speed),
            Wind::Vector { u, v } => Some(Decimal::round(u.as_f64().hypot(v.as_f64()))),
            Wind::Void => None,
        }
    }

    /// Returns the direction from which the wind comes, in degrees, 0 up to 360. For a vector, it is computed in whole
    /// degrees. Below 0.05 m/s there is none, as in the instrument.
    pub(crate) fn direction(&self) -> Option<Decimal> {
        match self.wind {
            Wind::Polar { direction, .. } => direction,
            Wind::Vector { u, v } => {
                let per = self.units.map_or(1.0, SpeedUnits::per_metre_per_second);
                let speed = u.as_f64().hypot(v.as_f64()) / per;
                // Without the tolerance, a rounding error could put 0.05 below the threshold.
                let calm = speed < DIRECTION_THRESHOLD_METRES_PER_SECOND - 1e-9;
                let degrees = v.as_f64().atan2(-u.as_f64()).to_degrees();
                (!calm).then(|| Decimal::whole(whole_degrees(degrees)))
            }
            Wind::Void => None,
        }
    }

    /// Returns the fault that the instrument reports of itself, in words; `None` if it reports none.
    pub(crate) fn fault(&self) -> Option<String> {
        let words = match self.status.as_str() {
            OK | "A" => return None,
            "01" => "axis 1 failed (look for something in its path)",
            "02" => "axis 2 failed (look for something in its path)",
            "04" => "both axes failed (look for something in their paths)",
            "08" => "the checksum of its settings is wrong",
            "09" => "the checksum of its program is wrong",
            "V" => "its data is void",
            _ => return Some(format!("status {}", self.status)),
        };
        Some(format!("status {}, {words}", self.status))
    }

    /// Returns the message as bytes on the line, with CR LF.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let units = self.units.map(|units| units.letter().to_string()).unwrap_or_default();
        let (status, direction) = (&self.status, self.direction().map(degrees).unwrap_or_default());
        let speed = self.speed().map(|speed| speed.to_string()).unwrap_or_default();
        match (self.sender, self.wind) {
            (Sender::Gill(unit), Wind::Vector { u, v }) => {
                gill_line(&format!("{unit},{u:+},{v:+},{units},{status},"))
            }
            (Sender::Gill(unit), Wind::Polar { .. } | Wind::Void) => {
                gill_line(&format!("{unit},{direction},{speed},{units},{status},"))
            }
            (Sender::Nmea(reference), _) => {
                let reference = reference.map(|reference| reference.letter().to_string());
                let reference = reference.unwrap_or_default();
                nmea_line(&format!("WIMWV,{direction},{reference},{speed},{units},{status}"))
            }
        }
    }

    pub(crate) fn event<'a>(&'a self, raw: &'a str, t0: UnixTime) -> MessageEvent<'a> {
        let (u, v) = match self.wind {
            Wind::Polar { .. } | Wind::Void => (None, None),
            Wind::Vector { u, v } => (Some(u.as_f64()), Some(v.as_f64())),
        };
        let (unit, reference) = match self.sender {
            Sender::Gill(unit) => (Some(unit.letter()), None),
            Sender::Nmea(reference) => (None, reference),
        };
        MessageEvent {
            unit,
            direction: self.direction().map(Degrees::from),
            speed: self.speed().map(Decimal::as_f64),
            units: self.units.map(SpeedUnits::symbol),
            status: &self.status,
            reference,
            u,
            v,
            raw,
            t0,
        }
    }
}

/// Formats a direction with three digits, and with decimals only if it has a fraction.
fn degrees(direction: Decimal) -> String {
    match direction.as_whole() {
        Some(degrees) => format!("{degrees:03}"),
        None => direction.to_string(),
    }
}

/// A direction in an event. A Gill instrument gives a whole number; NMEA from other makes may have decimals.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Degrees {
    Whole(i64),
    Exact(f64),
}

impl From<Decimal> for Degrees {
    fn from(direction: Decimal) -> Self {
        direction.as_whole().map_or_else(|| Self::Exact(direction.as_f64()), Self::Whole)
    }
}

/// Normalizes degrees to 0 to 359.
pub(crate) fn whole_degrees(degrees: f64) -> u16 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rem_euclid gives 0.0..=360.0"
    )]
    let whole = degrees.rem_euclid(360.0).round() as u16;
    whole % 360
}

/// Returns the checksum of these bytes, which is their exclusive-or in all formats.
pub(crate) fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum ^ byte)
}

/// Returns a line with this text between STX and ETX.
pub(crate) fn gill_line(content: &str) -> Vec<u8> {
    let sum = checksum(content.as_bytes());
    format!("\u{2}{content}\u{3}{sum:02X}\r\n").into_bytes()
}

/// Returns a line with this text between `$` and `*`.
pub(crate) fn nmea_line(content: &str) -> Vec<u8> {
    let sum = checksum(content.as_bytes());
    format!("${content}*{sum:02X}\r\n").into_bytes()
}

#[derive(Debug, Serialize)]
pub(crate) struct MessageEvent<'a> {
    unit: Option<char>,
    direction: Option<Degrees>,
    speed: Option<f64>,
    units: Option<&'static str>,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    u: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    v: Option<f64>,
    raw: &'a str,
    t0: UnixTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(u: i64, v: i64, units: SpeedUnits) -> Message {
        let wind = Wind::Vector { u: Decimal::hundredths(u), v: Decimal::hundredths(v) };
        gill(wind, units, OK)
    }

    fn gill(wind: Wind, units: SpeedUnits, status: &str) -> Message {
        let sender = Sender::Gill(UnitId::default());
        Message { sender, wind, units: Some(units), status: status.into() }
    }

    #[test]
    fn a_vector_comes_from_where_its_wind_comes_from() {
        let from = |u, v| vector(u, v, SpeedUnits::MetresPerSecond).direction();
        let degrees = |degrees| Some(Decimal::whole(degrees));
        assert_eq!(from(100, 0), degrees(180)); // blows from the south
        assert_eq!(from(0, 100), degrees(90)); // from the east
        assert_eq!(from(-100, 0), degrees(0)); // from the north
        assert_eq!(from(0, -100), degrees(270)); // from the west
        assert_eq!(from(-100, -1), degrees(359));
        assert_eq!(from(-10_000, -1), degrees(0)); // 359.99 rounds to north, not to 360
    }

    #[test]
    fn a_vector_has_no_direction_below_the_threshold_in_any_unit() {
        assert_eq!(vector(3, 3, SpeedUnits::MetresPerSecond).direction(), None);
        assert_eq!(
            vector(5, 0, SpeedUnits::MetresPerSecond).direction(),
            Some(Decimal::whole(180))
        );
        assert_eq!(vector(9, 0, SpeedUnits::Knots).direction(), None); // 0.046 m/s
        assert_eq!(vector(980, 0, SpeedUnits::FeetPerMinute).direction(), None); // 0.0498 m/s
        assert_eq!(
            vector(990, 0, SpeedUnits::FeetPerMinute).direction(),
            Some(Decimal::whole(180))
        );
    }

    #[test]
    fn an_event_is_written_as_documented() {
        let (metres, t0) =
            (SpeedUnits::MetresPerSecond, UnixTime::from_micros(1_789_000_000_123_456));
        let json = |message: &Message, raw| serde_json::to_string(&message.event(raw, t0)).unwrap();
        let wind =
            Wind::Polar { direction: Some(Decimal::whole(229)), speed: Decimal::hundredths(274) };
        assert_eq!(
            json(&gill(wind, metres, OK), "Q,229,002.74,M,00,"),
            r#"{"unit":"Q","direction":229,"speed":2.74,"units":"m/s","status":"00","raw":"Q,229,002.74,M,00,","t0":1789000000123.456}"#
        );
        let direction = Some(Decimal::hundredths(31_167));
        let wind = Wind::Polar { direction, speed: Decimal::hundredths(3) };
        let sender = Sender::Nmea(Some(Reference::Theoretical));
        assert_eq!(
            json(&Message { sender, ..gill(wind, metres, "A") }, "$"),
            r#"{"unit":null,"direction":311.67,"speed":0.03,"units":"m/s","status":"A","reference":"T","raw":"$","t0":1789000000123.456}"#
        );
        assert_eq!(
            json(&vector(-300, 400, SpeedUnits::Knots), "Q"),
            r#"{"unit":"Q","direction":53,"speed":5.0,"units":"knots","status":"00","u":-3.0,"v":4.0,"raw":"Q","t0":1789000000123.456}"#
        );
        assert_eq!(
            json(&gill(Wind::Void, metres, "04"), "Q,,,M,04,"),
            r#"{"unit":"Q","direction":null,"speed":null,"units":"m/s","status":"04","raw":"Q,,,M,04,","t0":1789000000123.456}"#
        );
    }

    #[test]
    fn a_status_that_is_not_ok_is_a_fault_with_its_code() {
        let fault = |status| gill(Wind::Void, SpeedUnits::Knots, status).fault();
        assert_eq!((fault(OK), fault("A")), (None, None));
        for (status, part) in [
            ("01", "status 01, axis 1 failed"),
            ("04", "status 04, both axes failed"),
            ("V", "status V, its data is void"),
            ("51", "status 51"),
        ] {
            assert!(fault(status).unwrap().starts_with(part), "{status}");
        }
    }

    #[test]
    fn a_unit_identifier_is_one_capital_letter() {
        assert_eq!("Q".parse(), Ok(UnitId::default()));
        for text in ["", "q", "QQ", "1", "Ä"] {
            assert_eq!(text.parse::<UnitId>(), Err(UnitIdError), "{text:?}");
        }
    }
}
