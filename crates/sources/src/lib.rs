//! Where events come from: a serial wind instrument, and this machine itself.
//!
//! - [`windsonic`]: a Gill WindSonic on a serial line, as a source ([`windsonic::run`]) and as an
//!   instrument for those who have none ([`windsonic::emulate`]).
//! - [`host`]: processor load, memory and network counters of this machine.
//! - [`serial`]: opening a serial device (Unix).
//! - [`status`]: how a source tells how it is doing, on a topic of its own.
//!
//! A source publishes to a topic and never returns; dropping its future stops it. No input makes
//! it fail: what cannot be read is counted, reported at a limited rate and skipped, and a device
//! that is gone is looked for again.
//!
//! What thinks is kept apart from what does IO. Lines, messages, the configuration dialogue, the
//! session with the instrument and the instrument's emulation are state machines: bytes and time
//! in, events and bytes out. Time in them is a [`Duration`](std::time::Duration) since whoever
//! drives them began.
#![forbid(unsafe_code)]
#![cfg_attr(not(unix), allow(dead_code, reason = "serial devices are only opened on Unix"))]

mod backoff;
#[cfg(unix)]
mod controlling;
pub mod host;
#[cfg(unix)]
pub mod serial;
pub mod status;
pub mod windsonic;
