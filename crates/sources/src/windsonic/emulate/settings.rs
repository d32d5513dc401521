//! The settings that configuration mode changes and lists.

use std::fmt;
use std::time::Duration;

use crate::windsonic::{SpeedUnits, UnitId};

/// The setting `M`: the format of messages, which also decides if they are sent without polls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Format {
    /// `M1`: UV, continuous.
    UvContinuous,
    /// `M2`: polar, continuous; the factory setting.
    #[default]
    PolarContinuous,
    /// `M3`: UV, polled.
    UvPolled,
    /// `M4`: polar, polled.
    PolarPolled,
    /// `M5`: NMEA, continuous.
    Nmea,
}

impl Format {
    const ALL: [Self; 5] =
        [Self::UvContinuous, Self::PolarContinuous, Self::UvPolled, Self::PolarPolled, Self::Nmea];

    pub(crate) fn is_polled(self) -> bool {
        matches!(self, Self::UvPolled | Self::PolarPolled)
    }
}

/// The setting `P`: the rate of messages.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Rate {
    /// `P1`: once a second; the factory setting.
    #[default]
    Hz1,
    /// `P2`: twice a second.
    Hz2,
    /// `P3`: four times a second.
    Hz4,
}

impl Rate {
    const ALL: [Self; 3] = [Self::Hz1, Self::Hz2, Self::Hz4];

    /// Returns the rate for this many messages a second; `None` unless it is 1, 2 or 4.
    #[must_use]
    pub fn from_hz(hz: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|rate| rate.hz() == hz)
    }

    /// Returns the messages per second.
    #[must_use]
    pub fn hz(self) -> u32 {
        match self {
            Self::Hz1 => 1,
            Self::Hz2 => 2,
            Self::Hz4 => 4,
        }
    }

    pub(crate) fn period(self) -> Duration {
        Duration::from_secs(1) / self.hz()
    }
}

/// The settings that have an effect. The defaults are the factory settings.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Settings {
    /// `N`: the identifier.
    pub unit: UnitId,
    /// `M`: the format of messages.
    pub format: Format,
    /// `U`: the unit of speeds.
    pub units: SpeedUnits,
    /// `P`: the rate.
    pub rate: Rate,
}

/// All settings of the instrument. The defaults are the factory settings: `M2,U1,O1,L1,P1,B3,F1,H1,NQ,E1,T1,S3,C2`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Stored {
    pub(crate) settings: Settings,
    /// The settings that are kept and listed, but have no effect.
    others: Others,
}

impl Default for SpeedUnits {
    /// Returns metres per second, the factory setting.
    fn default() -> Self {
        Self::MetresPerSecond
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Others([(u8, u8); 9]);

impl Default for Others {
    fn default() -> Self {
        Self(
            [*b"O1", *b"L1", *b"B3", *b"F1", *b"H1", *b"E1", *b"T1", *b"S3", *b"C2"]
                .map(|[letter, digit]| (letter, digit)),
        )
    }
}

impl From<Settings> for Stored {
    fn from(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }
}

impl Stored {
    /// Changes one setting, such as `M2`. Returns false if its letter or value is unknown.
    pub(crate) fn set(&mut self, command: &[u8]) -> bool {
        let &[letter, value] = command else { return false };
        let settings = &mut self.settings;
        let number = usize::from(value.wrapping_sub(b'1'));
        match letter {
            b'M' => assign(&mut settings.format, Format::ALL.get(number).copied()),
            b'U' => assign(&mut settings.units, SpeedUnits::ALL.get(number).copied()),
            b'P' => assign(&mut settings.rate, Rate::ALL.get(number).copied()),
            b'N' => assign(&mut settings.unit, UnitId::new(char::from(value))),
            _ => {
                let digit = value.is_ascii_digit().then_some(value);
                let mut others = self.others.0.iter_mut();
                let other = others.find(|(name, _)| *name == letter);
                other.is_some_and(|(_, kept)| assign(kept, digit))
            }
        }
    }

    fn other(&self, letter: u8) -> u8 {
        let found = self.others.0.iter().find(|(name, _)| *name == letter);
        found.map_or(b'0', |(_, value)| *value)
    }
}

fn assign<T>(place: &mut T, value: Option<T>) -> bool {
    let given = value.is_some();
    if let Some(value) = value {
        *place = value;
    }
    given
}

/// Returns the digit for a value: its number in `all`, counted from 1.
fn digit<T: PartialEq>(all: &[T], value: &T) -> usize {
    1 + all.iter().position(|one| one == value).unwrap_or(0)
}

impl fmt::Display for Stored {
    /// Formats the answer to `D3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        for (at, letter) in "MUOLPBFHNETSC".chars().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{letter}")?;
            match letter {
                'M' => write!(f, "{}", digit(&Format::ALL, &settings.format))?,
                'U' => write!(f, "{}", digit(&SpeedUnits::ALL, &settings.units))?,
                'P' => write!(f, "{}", digit(&Rate::ALL, &settings.rate))?,
                'N' => write!(f, "{}", settings.unit)?,
                other => write!(f, "{}", char::from(self.other(other as u8)))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_factorys() {
        let listed = Stored::default().to_string();
        assert_eq!(listed, "M2,U1,O1,L1,P1,B3,F1,H1,NQ,E1,T1,S3,C2");
    }

    #[test]
    fn what_is_set_is_listed() {
        let mut settings = Stored::default();
        for command in ["M5", "U3", "P2", "NW", "B4", "S9", "O2"] {
            assert!(settings.set(command.as_bytes()), "{command} was refused");
        }
        assert_eq!(settings.to_string(), "M5,U3,O2,L1,P2,B4,F1,H1,NW,E1,T1,S9,C2");
    }

    #[test]
    fn other_commands_are_refused_and_change_nothing() {
        let mut settings = Stored::default();
        for command in ["M0", "M6", "U6", "P4", "P0", "Nq", "N1", "X1", "B", "BA", "M22", "", "m2"]
        {
            assert!(!settings.set(command.as_bytes()), "{command} was taken");
        }
        assert_eq!(settings, Stored::default());
    }
}
