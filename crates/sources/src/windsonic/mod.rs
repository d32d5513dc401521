//! A Gill WindSonic anemometer on a serial line.
//!
//! [`run`] reads it and publishes one event for each measurement, in any of the three formats it
//! speaks (polar, UV, NMEA):
//!
//! ```json
//! {"unit":"Q","direction":229,"speed":2.74,"units":"m/s","status":"00","raw":"Q,229,002.74,M,00,","t0":1789000000123.456}
//! ```
//!
//! - `unit`: the instrument's identifier; `null` in NMEA, which does not say.
//! - `direction`: whole degrees the wind comes from, 0 to 359; `null` when the instrument gives
//!   none (too little wind). In UV it is derived, see [`Wind::Vector`], and `u` and `v` are there too.
//! - `speed` in `units`: `m/s`, `kn`, `mph`, `km/h` or `ft/min`.
//! - `status`: two digits, `00` for OK; `A` or `V` in NMEA.
//! - `raw`: what stands between STX and ETX; in NMEA the line without CR LF.
//! - `t0`: the wall clock right after the read that brought the line's last byte, in milliseconds
//!   since the Unix epoch; also the event's own time. The last byte is the first of CR and LF to come:
//!   some settings send only one.
//!
//! Anything else than a measurement is skipped: half a line at the start and what the instrument says of
//! itself silently, everything else as a bad line, see [`status`](crate::status). A device that is
//! gone or cannot be opened is tried again for ever, with growing waits.
//!
//! [`emulate`] is the instrument for those who have none.

mod configure;
pub mod emulate;
mod line;
mod message;
mod parse;
#[cfg(unix)]
mod run;
mod session;

use std::path::PathBuf;
use std::time::Duration;

pub use message::{Hundredths, Message, SpeedUnits, UnitId, UnitIdError, Wind};
pub use parse::{ParseError, Parsed, parse};
#[cfg(unix)]
pub use run::run;

/// The way in which the instrument is asked for its measurements.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// Only listened to: nothing is ever sent.
    #[default]
    Listen,
    /// Set to polar, continuous, 4 Hz through its configuration commands, then listened to. Done
    /// again when it falls silent; while it cannot be done, whatever comes is published all the same.
    Configure,
    /// Asked for each measurement. Set to polled mode first when it sends by itself or does not
    /// answer.
    Polled,
}

/// The instrument to read, and how. [`WindsonicOptions::new`] has the defaults named here.
#[derive(Clone, Debug)]
pub struct WindsonicOptions {
    /// The serial device.
    pub path: PathBuf,
    /// Its speed. Default 9600, the instrument's own default.
    pub baud: u32,
    /// The instrument's identifier, for commands and polls. Default `Q`, the factory's. One that
    /// answers only to another letter is asked for it.
    pub unit: UnitId,
    /// Default [`Mode::Listen`].
    pub mode: Mode,
    /// After this long without a valid message the state is silent. Default 3 s: three messages at
    /// the instrument's slowest rate.
    pub silence_max: Duration,
    /// Longest line. Default 128 bytes: NMEA's limit is 82, the instrument's own texts are shorter.
    pub line_bytes_max: usize,
    /// Time between polls. Default 250 ms: the instrument's fastest rate.
    pub poll_interval: Duration,
    /// In polled mode, how long to listen before the first poll for an instrument that sends by
    /// itself. Default 1.1 s: a little over the slowest rate.
    pub unasked_wait: Duration,
    /// The time to wait for the answer to a command. Default 1 s: the instrument's is 130 ms, at
    /// the slowest line another 100 ms.
    pub answer_wait: Duration,
    /// Time between two dialogues to configure an instrument. Default 30 s: long enough not to get
    /// in the way of measurements, short enough for someone who has just plugged it in.
    pub configure_retry: Duration,
    /// Time between two reports of bad lines, on the status topic and in the log. Default 10 s.
    pub report_interval: Duration,
    /// First wait before a lost device is opened again. Default 250 ms; doubles each time.
    pub retry_min: Duration,
    /// Longest such wait. Default 5 s: what someone who has just plugged it in will wait.
    pub retry_max: Duration,
}

impl WindsonicOptions {
    /// The defaults, for this device.
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
