//! The sources of events: a serial wind instrument, programs, files, and this machine itself.
//!
//! - [`windsonic`]: a Gill WindSonic on a serial line, as a source ([`windsonic::run`]) and as an emulated instrument
//!   ([`windsonic::emulate`]).
//! - [`host`]: processor load, memory and network counters of this machine.
//! - [`exec`]: a program whose output lines become events (Unix).
//! - [`mod@file`]: a file that is followed as it grows (Unix).
//! - [`stdin`]: the lines of this process's standard input.
//! - [`lines`]: the rules for lines. [`exec`], [`mod@file`], [`stdin`] and [`serial_lines`] share them.
//! - [`serial`]: opens a serial device (Unix).
//! - [`serial_lines`]: any device on a serial line that writes lines of text (Unix).
//! - [`status`]: the state of a source, on a topic of its own.
//! - [`printable`]: makes foreign text safe for a terminal.
//! - [`without_mark`] and [`TextFault`]: for text from other programs, which may begin with a byte order mark or have a
//!   fault.
//!
//! A source publishes to a topic, and returns only when nothing more can come. Dropping its future stops it. While a
//! topic's disk is full or behind, lines wait, and so does the program that writes them; an instrument cannot wait. No
//! input makes a source fail. Unreadable input is counted, reported at a limited rate and skipped. A lost device is
//! looked for again.
//!
//! Rules are separate from IO. [`lines`] is a state machine, and so are the modules for the lines, messages,
//! configuration, session and emulation of an instrument. Bytes and time go in; events and bytes come out. The time is
//! a [`Duration`](std::time::Duration) since their driver began.
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
#[cfg(unix)]
pub mod serial_lines;
pub mod status;
pub mod stdin;
pub mod windsonic;

pub use anemone_wire::{BYTE_ORDER_MARK, TextFault, printable, without_mark};
