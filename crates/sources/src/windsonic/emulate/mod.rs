//! An emulated WindSonic behind a pseudo-terminal, for development and tests without an instrument.
//!
//! A program that opens the pseudo-terminal sees an instrument on a serial line. Output that nobody reads is lost. The
//! wind is a seeded model (a mean wind, gusts, a fan that swings, sometimes a calm), or a recording.
//!
//! An emulator that is killed (`SIGKILL`) leaves its link behind. The system may then give the name of the
//! pseudo-terminal to another program, such as a shell. Opening the link then fails if it leads nowhere or to a
//! [terminal in use](crate::serial::SerialError::Terminal). The next emulator with the same link replaces it.
//!
//! While the instrument measures, it sends by itself at its rate (`M1`, `M2`, `M5`), or sends a message for each poll
//! (`M3`, `M4`). These are its commands and answers:
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
//! In configuration mode, a command ends with ENTER (CR). The instrument echoes an accepted setting, lists all
//! settings after `D3`, and measures again after `Q`. The manual does not give the answer to other commands; the
//! emulator answers `ILLEGAL COMMAND`. The settings `O`, `L`, `B`, `F`, `H`, `E`, `T`, `S` and `C` are kept and
//! listed, but have no effect.

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

pub use replay::{LeftOut, LineError, ReplayError};
pub use settings::{Format, Rate, Settings};

#[cfg(unix)]
pub use emulator::Emulator;
#[cfg(unix)]
pub use error::OpenError;

/// The instrument to emulate.
#[derive(Clone, Debug)]
pub struct EmulatorOptions {
    /// The settings of the instrument when it is switched on. Default: the factory settings.
    pub settings: Settings,
    /// The seed of the wind and the noise; the same seed gives the same values. Default 1.
    pub seed: u64,
    /// A recording to send in a loop instead of the model, one line for each message.
    ///
    /// A line of the recording is a complete line of the instrument, or the part between STX and ETX. It may also be a
    /// JSON object with either of these as `raw`: the data of an event, an item of NDJSON, or a page. Other lines are
    /// left out, see [`Emulator::left_out`]. Values are sent unchanged, so the settings of format and units have no
    /// effect.
    pub replay: Option<PathBuf>,
    /// The probability that a message is damaged on purpose, 0 to 1. Default 0.
    pub noise: f64,
    /// The path of a symbolic link to the pseudo-terminal. The pseudo-terminal's own name is different each time.
    pub link: Option<PathBuf>,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self { settings: Settings::default(), seed: 1, replay: None, noise: 0.0, link: None }
    }
}
