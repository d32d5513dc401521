//! The bits of a character on a serial line.

use std::fmt;
use std::str::FromStr;

use rustix::termios::{ControlModes, InputModes, Termios};

/// The bits of a character, written as `8N1`: data bits, parity, stop bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Framing {
    data_bits: DataBits,
    parity: Parity,
    stop_bits: StopBits,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DataBits {
    Seven,
    Eight,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Parity {
    None,
    Even,
    Odd,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StopBits {
    One,
    Two,
}

/// The text is not a framing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("expected data bits, parity and stop bits, such as 8N1, 7E1 or 8O2")]
pub struct FramingError;

impl Default for Framing {
    /// Returns 8N1, which nearly all devices have.
    fn default() -> Self {
        Self { data_bits: DataBits::Eight, parity: Parity::None, stop_bits: StopBits::One }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data_bits = match self.data_bits {
            DataBits::Seven => 7,
            DataBits::Eight => 8,
        };
        let parity = match self.parity {
            Parity::None => 'N',
            Parity::Even => 'E',
            Parity::Odd => 'O',
        };
        let stop_bits = match self.stop_bits {
            StopBits::One => 1,
            StopBits::Two => 2,
        };
        write!(f, "{data_bits}{parity}{stop_bits}")
    }
}

impl FromStr for Framing {
    type Err = FramingError;

    fn from_str(text: &str) -> Result<Self, FramingError> {
        let &[data_bits, parity, stop_bits] = text.as_bytes() else { return Err(FramingError) };
        Ok(Self {
            data_bits: match data_bits {
                b'7' => DataBits::Seven,
                b'8' => DataBits::Eight,
                _ => return Err(FramingError),
            },
            parity: match parity.to_ascii_uppercase() {
                b'N' => Parity::None,
                b'E' => Parity::Even,
                b'O' => Parity::Odd,
                _ => return Err(FramingError),
            },
            stop_bits: match stop_bits {
                b'1' => StopBits::One,
                b'2' => StopBits::Two,
                _ => return Err(FramingError),
            },
        })
    }
}

impl Framing {
    /// The modes of a terminal that depend on the framing.
    const MODES: ControlModes = ControlModes::CSIZE
        .union(ControlModes::PARENB)
        .union(ControlModes::PARODD)
        .union(ControlModes::CSTOPB);

    /// Sets the modes of a terminal. With parity, a damaged character is read as NUL.
    pub(super) fn apply(self, settings: &mut Termios) {
        settings.control_modes -= Self::MODES;
        settings.control_modes |= self.modes();
        settings.input_modes -= InputModes::IGNPAR | InputModes::PARMRK;
        settings.input_modes.set(InputModes::INPCK, self.parity != Parity::None);
    }

    /// Returns true if a terminal has this framing. A driver may ignore settings that it does not support.
    pub(super) fn is_taken(self, settings: &Termios) -> bool {
        settings.control_modes.intersection(Self::MODES) == self.modes()
    }

    fn modes(self) -> ControlModes {
        let data_bits = match self.data_bits {
            DataBits::Seven => ControlModes::CS7,
            DataBits::Eight => ControlModes::CS8,
        };
        let parity = match self.parity {
            Parity::None => ControlModes::empty(),
            Parity::Even => ControlModes::PARENB,
            Parity::Odd => ControlModes::PARENB | ControlModes::PARODD,
        };
        let stop_bits = match self.stop_bits {
            StopBits::One => ControlModes::empty(),
            StopBits::Two => ControlModes::CSTOPB,
        };
        data_bits | parity | stop_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_framing_is_written_as_everybody_writes_it() {
        for text in ["8N1", "7E1", "7O2", "8E2", "7N1"] {
            assert_eq!(text.parse::<Framing>().unwrap().to_string(), text);
        }
        assert_eq!("8n1".parse(), Ok(Framing::default()));
        for text in ["", "8", "8N", "9N1", "8M1", "8N3", "8N1 ", "N81"] {
            assert_eq!(text.parse::<Framing>(), Err(FramingError), "{text:?}");
        }
    }
}
