//! An emulated WindSonic behind a pseudo-terminal, for development and tests without an instrument.
//!
//! A program that opens the pseudo-terminal finds an instrument on a serial line. As on a line, messages are lost
//! while no program has it open. The wind is a seeded model (a mean wind, gusts, a fan that swings, sometimes a
//! calm), or a recording.
//!
//! An emulator that is killed (`SIGKILL`) leaves its link behind, and the system may give the name of the
//! pseudo-terminal to another program, maybe to a shell. The next emulator with that link replaces it. Until then,
//! opening it fails if it leads nowhere or to a [terminal in use](crate::serial::SerialError::Terminal).
//!
//! While it measures, it sends by itself at its rate (`M1`, `M2`, `M5`), or a message for each poll (`M3`, `M4`). Its
//! commands, and their answers:
//!
//! | sent | answer |
//! |---|---|
//! | its identifier, while polls are enabled | one message |
//! | `?` | none; polls are enabled, and nothing is sent unasked |
//! | `!` | none; polls are disabled, and a continuous format sends by itself again |
//! | `?&` | its identifier |
//! | `*` and its identifier | `CONFIGURATION MODE`; measuring stops |
//!
//! Polls are enabled when a polled format begins to measure.
//!
//! In configuration mode, a command ends with ENTER (CR). An accepted setting is echoed, `D3` lists all, and `Q`
//! returns to measuring. The manual does not show the answer to anything else; the emulator answers `ILLEGAL
//! COMMAND`. The settings `O`, `L`, `B`, `F`, `H`, `E`, `T`, `S` and `C` are kept and listed, but have no effect.

#[cfg(unix)]
mod emulator;
#[cfg(unix)]
mod error;
mod instrument;
#[cfg(unix)]
mod link;
mod noise;
#[cfg(unix)]
mod pty;
mod replay;
mod settings;
mod wind;

use std::path::PathBuf;

pub use replay::ReplayError;
pub use settings::{Format, Rate, Settings};

#[cfg(unix)]
pub use emulator::Emulator;
#[cfg(unix)]
pub use error::OpenError;

/// The instrument to emulate.
#[derive(Clone, Debug)]
pub struct EmulatorOptions {
    /// The instrument's settings when it is switched on. Default: the factory settings.
    pub settings: Settings,
    /// The seed of the wind and the noise; the same seed gives the same values. Default 1.
    pub seed: u64,
    /// A recording to send instead of the model, in a loop, one line for each message. A line is a complete line of
    /// the instrument, only its part between STX and ETX, or a JSON object with such a line as `raw`. It is sent
    /// unchanged, so the settings of format and units have no effect.
    pub replay: Option<PathBuf>,
    /// The probability that a message is damaged on purpose, 0 to 1. Default 0.
    pub noise: f64,
    /// The path of a symbolic link to create to the pseudo-terminal, since its own name changes.
    pub link: Option<PathBuf>,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self { settings: Settings::default(), seed: 1, replay: None, noise: 0.0, link: None }
    }
}
