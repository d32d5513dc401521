//! A Gill WindSonic anemometer on a serial line.
//!
//! [`run`] reads it and publishes one event for each measurement, in any of its three formats (polar, UV, NMEA):
//!
//! ```json
//! {"unit":"Q","direction":229,"speed":2.74,"units":"m/s","status":"00","raw":"Q,229,002.74,M,00,","t0":1789000000123.456}
//! ```
//!
//! - `unit`: the instrument's identifier; `null` in NMEA, which has none.
//! - `direction`: the direction from which the wind comes, in degrees, 0 up to 360; `null` if the wind is too weak. The
//!   instrument gives whole numbers. In UV, the direction is `atan2(v, -u)`, and the event has `u` and `v`, too.
//! - `speed` in `units`: `m/s`, `knots`, `mph`, `km/h` or `ft/min`. `speed` and `direction` are `null` if the
//!   instrument could not measure, because something is in its path or it is broken (`Q,,,M,04,` or
//!   `Q,999,999.99,M,04,`).
//! - `status`: two digits, `00` for OK; `A` or `V` (void) in NMEA. Any other status is named on the status topic as
//!   well.
//! - `reference`: only in NMEA, `R` for wind relative to the instrument, `T` for theoretical (true) wind.
//! - `raw`: the text between STX and ETX; in NMEA the line without CR LF.
//! - `t0`: the time at which the line's last byte was read, in milliseconds since the Unix epoch; also the time of the
//!   event. The last byte is the first CR or LF, since some settings send only one of them.
//!
//! NMEA is read as any make sends it: `$--MWV` with figures of different widths, with a checksum or without.
//!
//! All other lines are skipped, and count as bad lines (see [`status`](crate::status)), with three exceptions: an
//! incomplete first line, other sentences of NMEA, and texts about the instrument itself. If only such lines come, the
//! status contains the newest. A device that is missing or cannot be opened is tried again forever, with growing
//! delays.
//!
//! [`emulate`] has an emulated instrument.

mod configure;
mod decimal;
pub mod emulate;
mod line;
mod message;
mod parse;
#[cfg(unix)]
mod run;
mod session;

use std::path::PathBuf;
use std::time::Duration;

pub use message::{SpeedUnits, UnitId, UnitIdError};
pub use parse::ParseError;
#[cfg(unix)]
pub use run::run;

/// The way to read the instrument.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// Listens, and never sends anything.
    #[default]
    Listen,
    /// Sets the instrument to polar, continuous, 4 Hz, and then listens. Repeats that if the instrument is silent for a
    /// while. Until it succeeds, every valid message is published.
    Configure,
    /// Asks for each measurement. First sets the instrument to polled mode if it sends by itself or does not answer.
    Polled,
}

/// The instrument, and the options for reading it. [`WindsonicOptions::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct WindsonicOptions {
    /// The path of the serial device.
    pub path: PathBuf,
    /// The speed in baud. Default 9600, the instrument's own default.
    pub baud: u32,
    /// The instrument's identifier, for commands and polls. Default `Q`, the factory setting. If the instrument does
    /// not answer to it, it is asked for its identifier.
    pub unit: UnitId,
    /// The way to read the instrument. Default [`Mode::Listen`].
    pub mode: Mode,
    /// The time without a valid message after which the state becomes silent. Default 3 s: three messages at the
    /// slowest rate of the instrument.
    pub silence_max: Duration,
    /// The longest line. Default 128 bytes: NMEA's limit is 82, and the instrument's own texts are shorter.
    pub line_bytes_max: usize,
    /// The interval between polls. Default 250 ms: the fastest rate of the instrument.
    pub poll_interval: Duration,
    /// The time to listen before the first poll, in order to notice an instrument that sends by itself. Default 1.1 s,
    /// a little more than the longest time between two messages.
    pub unasked_wait: Duration,
    /// The time to wait for the answer to a command. Default 1 s: the instrument takes up to 130 ms, and the slowest
    /// line another 100 ms.
    pub answer_wait: Duration,
    /// The interval between attempts to configure the instrument. Default 30 s. That is rare enough not to disturb
    /// measurements, and soon enough after the instrument is connected.
    pub configure_retry: Duration,
    /// The interval between reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
    /// The delay before a lost device is opened again. Default 250 ms; doubles after each failure.
    pub retry_min: Duration,
    /// The longest of these delays. Default 5 s.
    pub retry_max: Duration,
}

impl WindsonicOptions {
    /// Returns the defaults for this device.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            baud: 9600,
            unit: UnitId::default(),
            mode: Mode::default(),
            silence_max: Duration::from_secs(3),
            line_bytes_max: 128,
            poll_interval: Duration::from_millis(250),
            unasked_wait: Duration::from_millis(1100),
            answer_wait: Duration::from_secs(1),
            configure_retry: Duration::from_secs(30),
            report_interval: Duration::from_secs(10),
            retry_min: Duration::from_millis(250),
            retry_max: Duration::from_secs(5),
        }
    }
}
