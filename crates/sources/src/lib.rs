//! The sources of events: a serial wind instrument, programs, files, and this machine itself.
//!
//! - [`windsonic`]: a Gill WindSonic on a serial line, as a source ([`windsonic::run`]) and as an
//!   instrument for those who have none ([`windsonic::emulate`]).
//! - [`host`]: processor load, memory and network counters of this machine.
//! - [`exec`]: a program whose output lines become events (Unix).
//! - [`mod@file`]: a file that is followed as it grows (Unix).
//! - [`stdin`]: the lines of this process's standard input.
//! - [`lines`]: what a line is, for all three.
//! - [`serial`]: opening a serial device (Unix).
//! - [`status`]: how a source tells how it is doing, on a topic of its own.
//! - [`printable`]: what somebody else said, for a terminal.
//!
//! A source publishes to a topic, and returns only when nothing more can come; dropping its future
//! stops it. Lines wait for a topic whose disk is full or behind, and with them whoever brings them; an
//! instrument cannot wait. No input makes it fail: what cannot be read is counted, reported at a limited rate and
//! skipped, and a device that is gone is looked for again.
//!
//! Rules are kept apart from what does IO. [`lines`], an instrument's lines, messages, the
//! configuration dialogue, the session with the instrument and the instrument's emulation are state
//! machines: bytes and time in, events and bytes out. Time in them is a
//! [`Duration`](std::time::Duration) since whoever drives them began.
#![forbid(unsafe_code)]
#![cfg_attr(not(unix), allow(dead_code, reason = "some sources are for Unix only"))]

mod backoff;
#[cfg(unix)]
mod controlling;
#[cfg(unix)]
pub mod exec;
mod feed;
#[cfg(unix)]
pub mod file;
mod first_line;
pub mod host;
pub mod lines;
mod printable;
#[cfg(unix)]
pub mod serial;
pub mod status;
pub mod stdin;
pub mod windsonic;

pub use printable::printable;
