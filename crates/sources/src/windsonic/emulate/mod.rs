//! The instrument for those who have none: a WindSonic behind a pseudo-terminal.
//!
//! To whoever opens the pseudo-terminal it is an instrument on a serial line. What it sends while
//! nobody has the line open is gone, as on a line. The wind is a seeded model (a mean wind, gusts, a
//! fan that swings, a calm now and then), or a recording.
//!
//! An emulator that is killed (`SIGKILL`) leaves its link behind, and the system gives the
//! pseudo-terminal's name to the next program that wants one, maybe somebody's shell. The next
//! emulator with that link replaces it; until then opening it fails where it leads nowhere or to a
//! [terminal somebody works in](crate::serial::SerialError::Terminal).
//!
//! Measuring, it sends by itself at its rate (`M1`, `M2`, `M5`) or a message for each poll (`M3`,
//! `M4`). What it takes as commands, and what it answers:
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
//! In configuration mode a command ends with ENTER (CR). A setting that is accepted is echoed, `D3`
//! lists all, `Q` returns to measuring. The manual does not show the answer to anything else; this
//! one says `ILLEGAL COMMAND`. The settings `O`, `L`, `B`, `F`, `H`, `E`, `T`, `S` and `C` are kept
//! and listed, and change nothing.

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
    /// The instrument's settings when it is switched on. Default: the factory's.
    pub settings: Settings,
    /// The seed that the wind and the noise are drawn from; the same seed gives the same. Default 1.
    pub seed: u64,
    /// A recording to send instead of a model's wind, over and over, one line for each message.
    /// Each line is a line of the instrument, what stands between STX and ETX alone, or a JSON
    /// object with such a line as `raw`; it is sent as it is, whatever format and units are set.
    pub replay: Option<PathBuf>,
    /// The probability with which a message is damaged on purpose, 0 to 1. Default 0.
    pub noise: f64,
    /// A symbolic link to make to the pseudo-terminal, as a name that stays the same.
    pub link: Option<PathBuf>,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self { settings: Settings::default(), seed: 1, replay: None, noise: 0.0, link: None }
    }
}
