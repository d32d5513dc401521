//! A measurement as a message of the instrument, and as an event.
//!
//! Owns the values and writes them as text in the three formats and as JSON. `parse` reads the text; the two are
//! inverse.

use std::fmt;
use std::str::FromStr;

use anemone_hub::UnixTime;
use serde::Serialize;

pub(crate) const STX: u8 = 0x02;
pub(crate) const ETX: u8 = 0x03;

/// The speed below which there is no direction: the instrument's default threshold.
pub(crate) const DIRECTION_THRESHOLD_METRES_PER_SECOND: f64 = 0.05;

/// An instrument's identifier: a letter, A to Z. The factory's is `Q`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct UnitId(u8);

/// The text is not a unit identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a unit identifier is one capital letter, A to Z")]
pub struct UnitIdError;

impl UnitId {
    /// Returns the identifier with this letter, or `None` unless it is one of A to Z.
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
    /// `N`, kn.
    Knots,
    /// `P`, mph.
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
            Self::Knots => "kn",
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

/// A number with two decimals, as the instrument writes them. Exact.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Hundredths(i32);

impl Hundredths {
    /// Creates a value from hundredths.
    pub(crate) const fn new(hundredths: i32) -> Self {
        Self(hundredths)
    }

    /// Rounds to two decimals.
    pub(crate) fn round(value: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
        let hundredths = (value * 100.0).round() as i32;
        Self(hundredths)
    }

    /// Returns the nearest floating-point number.
    pub(crate) fn as_f64(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Hundredths {
    /// Formats as `002.74`, and with the flag `+` as `+002.74`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match (self.0 < 0, f.sign_plus()) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let value = self.0.unsigned_abs();
        write!(f, "{sign}{:03}.{:02}", value / 100, value % 100)
    }
}

/// The wind, in one of the two ways an instrument gives it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wind {
    /// Speed and direction.
    Polar {
        /// The direction from which the wind comes, in degrees, 0 to 359. `None` if the wind is too weak.
        direction: Option<u16>,
        /// The speed, in the message's unit.
        speed: Hundredths,
    },
    /// Components along two axes. Positive U blows from south to north, positive V from east to west. So the
    /// direction from which the wind comes is `atan2(V, -U)`: wind from the south (180) has U > 0, wind from the east
    /// (90) has V > 0.
    Vector {
        /// The component from south to north.
        u: Hundredths,
        /// The component from east to west.
        v: Hundredths,
    },
}

/// One measurement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Message {
    /// The instrument's identifier; NMEA does not contain it.
    pub(crate) unit: Option<UnitId>,
    /// The wind.
    pub(crate) wind: Wind,
    /// The unit of the speeds.
    pub(crate) units: SpeedUnits,
    /// In the Gill formats two digits, `00` for OK. In NMEA `A` (valid) or `V` (invalid).
    pub(crate) status: String,
}

impl Message {
    /// Returns the speed. For a vector it is the length, rounded to hundredths.
    pub(crate) fn speed(&self) -> Hundredths {
        match self.wind {
            Wind::Polar { speed, .. } => speed,
            Wind::Vector { u, v } => Hundredths::round(u.as_f64().hypot(v.as_f64())),
        }
    }

    /// Returns the direction from which the wind comes, in degrees, 0 to 359. For a vector it is computed; below 0.05
    /// m/s there is none, as in the instrument.
    pub(crate) fn direction(&self) -> Option<u16> {
        match self.wind {
            Wind::Polar { direction, .. } => direction,
            Wind::Vector { u, v } => {
                let speed = u.as_f64().hypot(v.as_f64()) / self.units.per_metre_per_second();
                // Without the tolerance, a rounding error could put 0.05 below the threshold.
                let calm = speed < DIRECTION_THRESHOLD_METRES_PER_SECOND - 1e-9;
                let degrees = v.as_f64().atan2(-u.as_f64()).to_degrees();
                (!calm).then(|| whole_degrees(degrees))
            }
        }
    }

    /// Returns the message as bytes on the line, with CR LF. Without an identifier the format is NMEA, otherwise UV or
    /// polar.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (units, status) = (self.units.letter(), &self.status);
        let direction = |direction: Option<u16>| match direction {
            Some(degrees) => format!("{degrees:03}"),
            None => String::new(),
        };
        match (self.unit, self.wind) {
            (Some(unit), Wind::Polar { direction: degrees, speed }) => {
                gill_line(&format!("{unit},{},{speed},{units},{status},", direction(degrees)))
            }
            (Some(unit), Wind::Vector { u, v }) => {
                gill_line(&format!("{unit},{u:+},{v:+},{units},{status},"))
            }
            (None, _) => {
                let (degrees, speed) = (direction(self.direction()), self.speed());
                nmea_line(&format!("WIMWV,{degrees},R,{speed},{units},{status}"))
            }
        }
    }

    /// Returns the data of the event.
    pub(crate) fn event<'a>(&'a self, raw: &'a str, t0: UnixTime) -> MessageEvent<'a> {
        let (u, v) = match self.wind {
            Wind::Polar { .. } => (None, None),
            Wind::Vector { u, v } => (Some(u.as_f64()), Some(v.as_f64())),
        };
        MessageEvent {
            unit: self.unit.map(UnitId::letter),
            direction: self.direction(),
            speed: self.speed().as_f64(),
            units: self.units.symbol(),
            status: &self.status,
            u,
            v,
            raw,
            t0,
        }
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

/// Returns the checksum of these bytes, their exclusive-or, as in all formats.
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

/// The JSON of a message's event.
#[derive(Debug, Serialize)]
pub(crate) struct MessageEvent<'a> {
    unit: Option<char>,
    direction: Option<u16>,
    speed: f64,
    units: &'static str,
    status: &'a str,
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

    fn vector(u: i32, v: i32, units: SpeedUnits) -> Message {
        let wind = Wind::Vector { u: Hundredths(u), v: Hundredths(v) };
        Message { unit: Some(UnitId::default()), wind, units, status: "00".into() }
    }

    #[test]
    fn a_vector_comes_from_where_its_wind_comes_from() {
        let from = |u, v| vector(u, v, SpeedUnits::MetresPerSecond).direction();
        assert_eq!(from(100, 0), Some(180)); // blows from the south
        assert_eq!(from(0, 100), Some(90)); // from the east
        assert_eq!(from(-100, 0), Some(0)); // from the north
        assert_eq!(from(0, -100), Some(270)); // from the west
        assert_eq!(from(-100, -1), Some(359));
        assert_eq!(from(-10_000, -1), Some(0)); // 359.99 rounds to north, not to 360
    }

    #[test]
    fn a_vector_has_no_direction_below_the_threshold_in_any_unit() {
        assert_eq!(vector(3, 3, SpeedUnits::MetresPerSecond).direction(), None);
        assert_eq!(vector(5, 0, SpeedUnits::MetresPerSecond).direction(), Some(180));
        assert_eq!(vector(9, 0, SpeedUnits::Knots).direction(), None); // 0.046 m/s
        assert_eq!(vector(980, 0, SpeedUnits::FeetPerMinute).direction(), None); // 0.0498 m/s
        assert_eq!(vector(990, 0, SpeedUnits::FeetPerMinute).direction(), Some(180));
    }

    #[test]
    fn an_event_is_written_as_documented() {
        let wind = Wind::Polar { direction: Some(229), speed: Hundredths(274) };
        let units = SpeedUnits::MetresPerSecond;
        let unit = Some(UnitId::default());
        let message = Message { unit, wind, units, status: "00".into() };
        let t0 = UnixTime::from_micros(1_789_000_000_123_456);
        assert_eq!(
            serde_json::to_string(&message.event("Q,229,002.74,M,00,", t0)).unwrap(),
            r#"{"unit":"Q","direction":229,"speed":2.74,"units":"m/s","status":"00","raw":"Q,229,002.74,M,00,","t0":1789000000123.456}"#
        );
        let calm = Wind::Polar { direction: None, speed: Hundredths(3) };
        let calm = Message { unit: None, wind: calm, status: "A".into(), ..message };
        assert_eq!(
            serde_json::to_string(&calm.event("$", t0)).unwrap(),
            r#"{"unit":null,"direction":null,"speed":0.03,"units":"m/s","status":"A","raw":"$","t0":1789000000123.456}"#
        );
        let vector = vector(-300, 400, SpeedUnits::Knots);
        assert_eq!(
            serde_json::to_string(&vector.event("Q", t0)).unwrap(),
            r#"{"unit":"Q","direction":53,"speed":5.0,"units":"kn","status":"00","u":-3.0,"v":4.0,"raw":"Q","t0":1789000000123.456}"#
        );
    }

    #[test]
    fn a_unit_identifier_is_one_capital_letter() {
        assert_eq!("Q".parse(), Ok(UnitId::default()));
        for text in ["", "q", "QQ", "1", "Ä"] {
            assert_eq!(text.parse::<UnitId>(), Err(UnitIdError), "{text:?}");
        }
    }
}
